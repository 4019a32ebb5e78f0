import type { Operation, RestRoute } from '../operations/load.ts';

/** A route: an operation, and how a path is taken apart for it. */
export interface Route {
  readonly operation: Operation;
  readonly rest: RestRoute;
  /** Segments of the path: text to be met, or the variable that a segment is. */
  readonly segments: readonly Segment[];
}

interface Segment {
  readonly text?: string;
  readonly variable?: string;
  /** Captures all that is left of the path. */
  readonly rest?: boolean;
}

export interface Hit {
  readonly route: Route;
  /** By the names that REST has for variables. */
  readonly captured: Readonly<Record<string, string>>;
}

export type Match =
  | Hit
  /** The path is another spelling of this one. */
  | { readonly redirect: string }
  /** The path is known, the method is not. */
  | { readonly allow: readonly string[] }
  | undefined;

export function routesOf(operations: readonly Operation[]): readonly Route[] {
  return operations.flatMap(operation => {
    const { rest } = operation;
    return rest ? [{ operation, rest, segments: rest.path.slice(1).split('/').map(toSegment) }] : [];
  });
}

function toSegment(text: string): Segment {
  const capture = /^\{(\w+)(\.\.\.)?\}$/.exec(text);
  return capture ? { variable: capture[1] as string, rest: capture[2] !== undefined } : { text };
}

/**
 * Finds the route of a request. A path that spells all its segments wins over one that captures, so that `/models/pull`
 * is a route for POST and a model's name for GET. HEAD is asked like GET.
 */
export function matchRoute(routes: readonly Route[], method: string, path: string): Match {
  const clean = cleaned(path);
  if (clean !== path && hitsOf(routes, clean).length > 0) return { redirect: clean };

  const wanted = method === 'HEAD' ? 'GET' : method;
  const isWanted = ({ route }: Hit) => route.rest.method === wanted;
  const hits = hitsOf(routes, path);
  const hit = hits.find(isWanted);
  if (hit) return hit;
  if (hitsOf(routes, `${path}/`).some(isWanted)) return { redirect: `${path}/` };
  if (hits.length === 0) return undefined;
  const methods = new Set(hits.map(({ route }) => route.rest.method as string));
  if (methods.has('GET')) methods.add('HEAD');
  return { allow: [...methods].sort() };
}

/** The routes of a path, whatever their method. */
function hitsOf(routes: readonly Route[], path: string): readonly Hit[] {
  return routes
    .map(route => ({ route, captured: capture(route.segments, path) }))
    .filter((hit): hit is Hit => hit.captured !== undefined)
    .sort((a, b) => Object.keys(a.captured).length - Object.keys(b.captured).length);
}

/** The path without its empty, `.` and `..` segments. They have to be spelled out: an encoded one is part of a name. */
function cleaned(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}${path.endsWith('/') && parts.length > 0 ? '/' : ''}`;
}

function capture(segments: readonly Segment[], path: string): Record<string, string> | undefined {
  const parts = path.slice(1).split('/');
  const captured: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    if (segment.variable && segment.rest) {
      if (parts.length <= index) return undefined;
      captured[segment.variable] = decode(parts.slice(index).join('/'));
      return captured;
    }
    const part = parts[index];
    if (segment.variable) {
      if (!part) return undefined;
      captured[segment.variable] = decode(part);
    } else if (part !== segment.text) return undefined;
  }
  return parts.length === segments.length ? captured : undefined;
}

/** Percent-decoded once; text that is not encoded properly stands for itself. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
