/** Servers are measured in processes of their own. Both ends of the line to them are here. */
import { fork } from 'node:child_process';
import { once } from 'node:events';

interface Question {
  readonly id: number;
  readonly method: string;
  readonly argument: unknown;
}
interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** Bytes a process holds, after its garbage was collected. */
export interface Memory {
  readonly rss: number;
  /** What JavaScript objects and their buffers take. */
  readonly heap: number;
}

export interface Child extends AsyncDisposable {
  /** What `answerParent` was given under that name; every child knows `cpu` and `memory`. */
  ask<T>(method: string, argument?: unknown): Promise<T>;
  /** Microseconds of processor time so far. */
  cpu(): Promise<number>;
}

const programs = {
  gateway: new URL('./servers/gateway.ts', import.meta.url),
  reference: new URL('./servers/reference.ts', import.meta.url),
  cluster: new URL('./servers/cluster.ts', import.meta.url),
  serving: new URL('./servers/serving.ts', import.meta.url),
  mcpServer: new URL('./servers/mcpServer.ts', import.meta.url),
};

/** Starts one of the programs. It lives until it is disposed of, at the latest until we end. */
export async function startChild(program: keyof typeof programs): Promise<Child> {
  const child = fork(programs[program], {
    execArgv: ['--expose-gc', '--disable-warning=ExperimentalWarning'],
    // As the command line does.
    env: { ...process.env, NODE_ENV: 'production' },
  });
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let asked = 0;
  child.on('message', ({ id, value, error }: Answer) => {
    const question = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) question?.resolve(value);
    else question?.reject(new Error(`${program}: ${error}`));
  });
  child.on('exit', code => {
    for (const { reject } of waiting.values()) reject(new Error(`${program} has ended with ${code}`));
  });
  const ask = (method: string, argument?: unknown) => {
    const question = Promise.withResolvers<unknown>();
    const id = ++asked;
    waiting.set(id, question);
    child.send({ id, method, argument } satisfies Question);
    return question.promise;
  };
  const result: Child = {
    ask: ask as Child['ask'],
    cpu: () => result.ask<number>('cpu'),
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
  return result;
}

/** What a method is given depends on the method; who asks knows. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export type Methods = Readonly<Record<string, (argument: any) => unknown>>;

const everywhere: Methods = {
  cpu() {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
  memory(): Memory {
    // As thoroughly as there is: pages that are half empty would count otherwise.
    globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    const { rss, heapUsed, external } = process.memoryUsage();
    return { rss, heap: heapUsed + external };
  },
};

/** Makes this process a child that answers with these methods, and ends when its parent is done with it. */
export function answerParent(own: Methods): void {
  const methods = { ...everywhere, ...own };
  process.on('message', async ({ id, method, argument }: Question) => {
    const answer = (rest: Omit<Answer, 'id'>) => process.send?.({ id, ...rest });
    try {
      answer({ value: await methods[method]?.(argument) });
    } catch (error) {
      answer({ error: String(error) });
    }
  });
  process.on('disconnect', () => process.exit(0));
}
