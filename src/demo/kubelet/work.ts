/** What a container of a Job has to do with: its environment, and a volume. */
import { recordOf } from '../cluster/store/object.ts';
import type { Container } from './pods.ts';

/** A directory at the top of a volume. */
export interface Directory {
  readonly dir: string;
  readonly bytes: number;
  readonly files: number;
  /** Milliseconds since the epoch. */
  readonly mtime: number;
  /** At its top is what models are made of. */
  readonly hasModel: boolean;
  /** The JSON that a download leaves beside it when it is complete. */
  readonly marker?: Readonly<Record<string, unknown>> | undefined;
}

export interface Work {
  readonly env: Readonly<Record<string, string>>;
  /** Of the volume that is mounted, by name. */
  readonly content: Map<string, Directory>;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Rejects when the pod is taken away. */
  sleep(ms: number): Promise<void>;
  print(line: string): void;
  readonly signal: AbortSignal;
  readonly workMs: number;
  readonly bytesPerSecond: number;
  readonly progressMs: number;
}

/** Resolves to the code it exits with. */
export type Program = (work: Work) => Promise<number>;

/** A key of a Secret that is not there is left out: it is optional to all that come here. */
export function environmentOf({ env = [] }: Container, secret: (name: string) => { data?: unknown } | undefined) {
  const values = env.map(({ name, value = '', valueFrom }) => {
    const ref = valueFrom?.secretKeyRef;
    if (!ref) return [name, value];
    const text = recordOf(secret(ref.name)?.data)[ref.key];
    return typeof text === 'string' ? [name, Buffer.from(text, 'base64').toString()] : [];
  });
  return Object.fromEntries(values.filter(({ length }) => length > 0)) as Readonly<Record<string, string>>;
}
