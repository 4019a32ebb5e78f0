/**
 * What people write in settings and documents: durations, addresses, endpoints and lists, and how each is checked.
 * Pure text in, value out.
 */
import { isIPv4, isIPv6 } from 'node:net';
import * as z from 'zod';
import { type BackendKind, backendKinds } from '../domain.ts';
import { parseEndpoint } from '../endpoint.ts';
import { quoted } from '../errors.ts';

/** A value, or the reason why the text is none: the end of a sentence that begins with the setting's name. */
export type Read<T> = { readonly value: T } | { readonly problem: string };

/** Where a server listens. Without a host: on every interface. Port 0: the system picks a free one. */
export interface ListenAddress {
  readonly host: string | undefined;
  readonly port: number;
}

/** A value as a sentence shows it: in quotes, on one line, and never endless. */
export const quote = (value: unknown) => quoted(String(value));

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3, // the Greek letter; the line above has the micro sign
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

// A digit is needed on one side of the point: `.5h` and `5.h` are durations, `.h` is not.
const durationPart = String.raw`(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)`;
const wholeDuration = new RegExp(`^[+-]?(?:${durationPart})+$`);

/** Milliseconds of a duration in Go's spelling (`1h30m`, `1.5h`, `250ms`, `0`); undefined when it is none. */
export function parseDuration(text: string): number | undefined {
  if (/^[+-]?0$/.test(text)) return 0;
  if (!wholeDuration.test(text)) return undefined;
  let ms = 0;
  for (const [, amount, unit] of text.matchAll(new RegExp(durationPart, 'g'))) {
    ms += Number(amount) * (unitMs[unit as string] as number);
  }
  return text.startsWith('-') ? -ms : ms;
}

/** An address to listen on, in Go's spelling: `:8080`, `127.0.0.1:8080`, `[::1]:8080`, `localhost:0`. */
export function parseListen(text: string): Read<ListenAddress> {
  const shown = quote(text);
  if (/^\d+$/.test(text) && Number(text) <= 65_535) {
    return { problem: `${shown} is a port without a colon; write :${text} for every interface or 127.0.0.1:${text}` };
  }
  if (isIPv6(text) || /^[^[]*:.*:/.test(text)) {
    return { problem: `${shown} needs brackets around its IPv6 address, as in [::1]:8080` };
  }
  const parts = /^(?:\[(?<v6>[^\]]*)\]|(?<name>[^:[\]]*)):(?<port>\d+)$/.exec(text)?.groups;
  if (parts === undefined) {
    return { problem: `${shown} is not an address to listen on; write :8080, 127.0.0.1:8080 or [::1]:8080` };
  }
  const port = Number(parts.port);
  if (port > 65_535) return { problem: `${shown} has a port above 65535` };
  if (parts.v6 !== undefined) {
    return isIPv6(parts.v6)
      ? { value: { host: parts.v6, port } }
      : { problem: `${shown} has no IPv6 address in its brackets` };
  }
  const host = parts.name as string;
  if (host === '') return { value: { host: undefined, port } };
  const plausible = /^[\d.]+$/.test(host) ? isIPv4(host) : /^[a-z\d_]([a-z\d_.-]*[a-z\d_])?$/i.test(host);
  return plausible ? { value: { host, port } } : { problem: `${shown} has no host name or IP address before its port` };
}

/** The URL of a backend's server, with the way out where one can be guessed. */
function readEndpoint(text: string): Read<string> {
  const read = parseEndpoint(text);
  if ('endpoint' in read) return { value: read.endpoint };
  const guess = `http://${text.trim()}`;
  const isAddress = /^[a-z\d.-]+(:\d+)?$/i.test(text.trim()) && 'endpoint' in parseEndpoint(guess);
  return { problem: isAddress ? `${read.problem}; write it as in ${guess}` : read.problem };
}

/** How the value of a setting is written and checked. */
export interface Kind<T> {
  /** Stands for the value in `--help`; empty for a switch, which needs none. */
  readonly placeholder: string;
  readonly check: z.ZodType<T, string>;
  /** A variable that fails the check gives way to the default, with a warning, instead of stopping the start. */
  readonly lenient?: boolean;
}

/** A check made of a function that reads text. */
export function reading<T>(read: (text: string) => Read<T>): z.ZodType<T, string> {
  return z.string().transform((text, context) => {
    const answer = read(text);
    if ('value' in answer) return answer.value;
    context.addIssue(answer.problem);
    return z.NEVER;
  });
}

export const text: Kind<string> = { placeholder: 'TEXT', check: z.string() };

export const boolean: Kind<boolean> = {
  placeholder: '',
  check: z.stringbool({
    truthy: ['true', 't', '1'],
    falsy: ['false', 'f', '0'],
    error: issue => `${quote(issue.input)} is neither true nor false`,
  }),
  lenient: true,
};

/** A switch that may be left to something else; it takes its value like any other setting. */
export const optionalBoolean: Kind<boolean | undefined> = {
  placeholder: 'BOOLEAN',
  check: z
    .literal('')
    .transform(() => undefined)
    .or(boolean.check),
};

export const duration: Kind<number> = {
  placeholder: 'DURATION',
  check: reading<number>(text => {
    const ms = parseDuration(text);
    if (ms === undefined) return { problem: `${quote(text)} is not a duration; write one such as 30s, 10m or 1h30m` };
    return ms < 0 ? { problem: `${quote(text)} is below zero` } : { value: ms };
  }),
  lenient: true,
};

export const keepAlive: Kind<string> = {
  placeholder: 'DURATION',
  check: z
    .string()
    .refine(text => /^[+-]?\d+(\.\d+)?$/.test(text) || parseDuration(text) !== undefined, {
      error: issue =>
        `${quote(issue.input)} is not a keep-alive; write a duration such as 5m, a number of seconds, or -1`,
    })
    .refine(text => Number(text) !== 0 && parseDuration(text) !== 0, {
      error: issue => `${quote(issue.input)} would unload every model at once; write a duration such as 5m, or -1`,
    }),
  lenient: true,
};

export const address: Kind<ListenAddress> = { placeholder: 'ADDRESS', check: reading(parseListen) };

export const optionalAddress: Kind<ListenAddress | undefined> = {
  placeholder: 'ADDRESS',
  check: reading<ListenAddress | undefined>(text => (text === '' ? { value: undefined } : parseListen(text))),
};

/** Whether a namespace can have that name: a DNS label. */
export const isNamespaceName = (name: string) => name.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name);

export const namespaceName: Kind<string> = {
  placeholder: 'NAME',
  check: z.string().refine(text => text === '' || isNamespaceName(text), {
    error: issue => `${quote(issue.input)} is no namespace; its name has lower-case letters, digits and inner dashes`,
  }),
};

export const apiVersion: Kind<string> = {
  placeholder: 'VERSION',
  check: z.string().refine(text => text === 'auto' || /^v\d+((alpha|beta)\d+)?$/.test(text), {
    error: issue => `${quote(issue.input)} is no API version; write auto, or one such as v1alpha3`,
  }),
};

export const namePrefix: Kind<string> = {
  placeholder: 'PREFIX',
  check: z.string().refine(text => text === '' || /^[a-z0-9][-a-z0-9]{0,39}$/.test(text), {
    error: issue =>
      `${quote(issue.input)} cannot begin a name; use up to 40 lower-case letters, digits and dashes, no dash first`,
  }),
};

export const endpoint: Kind<string> = { placeholder: 'URL', check: reading(readEndpoint) };

export const optionalEndpoint: Kind<string | undefined> = {
  placeholder: 'URL',
  check: reading<string | undefined>(text => (text === '' ? { value: undefined } : readEndpoint(text))),
};

export const oneOf = <Word extends string>(words: readonly Word[], placeholder: string): Kind<Word> => ({
  placeholder,
  check: z.enum(words, { error: issue => `${quote(issue.input)} is not one of ${words.join(', ')}` }),
});

const isBackendKind = (word: string): word is BackendKind => (backendKinds as readonly string[]).includes(word);

function unknownBackend(word: string): string {
  const near = nearest(word.toLowerCase(), backendKinds);
  const hint = near === undefined ? `known are ${backendKinds.join(', ')}` : `did you mean ${near}?`;
  return `does not know the backend ${quote(word)}; ${hint}`;
}

export const backendName: Kind<BackendKind | undefined> = {
  placeholder: 'NAME',
  check: reading<BackendKind | undefined>(text => {
    if (text === '') return { value: undefined };
    return isBackendKind(text) ? { value: text } : { problem: unknownBackend(text) };
  }),
};

export const backendNames: Kind<readonly BackendKind[]> = {
  placeholder: 'NAME,…',
  check: reading<readonly BackendKind[]>(text => {
    const names: BackendKind[] = [];
    for (const word of text.split(',').map(part => part.trim())) {
      if (word === '') continue;
      if (!isBackendKind(word)) return { problem: unknownBackend(word) };
      if (names.includes(word)) return { problem: `lists ${word} twice; name each backend once` };
      names.push(word);
    }
    return { value: names };
  }),
};

export const origins: Kind<readonly string[]> = {
  placeholder: 'ORIGIN,…',
  check: reading<readonly string[]>(text => {
    const words = text.split(',').map(part => part.trim());
    const given = words.filter(word => word !== '');
    const wrong = given.find(word => !URL.canParse(word) || new URL(word).origin !== word);
    return wrong === undefined
      ? { value: given }
      : { problem: `${quote(wrong)} is no origin; write scheme and host, such as https://portal.example` };
  }),
};

/** The first words of paths at which the server answers itself; /mcp must not hide it. */
export const takenPaths: readonly string[] = [
  ...['graphql', 'healthz', 'readyz', 'backendz', 'metrics'],
  ...['api', 'oauth', '.well-known'],
];

export const path: Kind<string> = {
  placeholder: 'PATH',
  check: reading<string>(text => {
    const path = text.replace(/\/+$/, '');
    if (takenPaths.includes(path.split('/')[1] ?? ''))
      return { problem: `${quote(text)} is taken; choose a path such as /mcp` };
    const isPath = /^(\/[\w~-][\w.~-]*)+$/.test(path);
    return isPath ? { value: path } : { problem: `${quote(text)} is not a path; write one such as /mcp` };
  }),
};

/** The candidate somebody probably meant, if one is close enough. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const begun = candidates.filter(candidate => candidate.startsWith(word));
  if (begun.length === 1) return begun[0];
  const reach = Math.min(3, Math.floor(word.length / 2));
  let best: { candidate: string; distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = editDistance(word, candidate);
    if (distance <= reach && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) best = { candidate, distance };
  }
  return best?.candidate;
}

/** How many letters to add, drop or change to get from one word to the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const change = (row[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}
