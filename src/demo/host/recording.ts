/** What an emulated server was asked, and who waits to see it. */
export interface Recording<R> {
  /** Oldest first. */
  readonly requests: readonly R[];
  add(request: R): void;
  /** The nth request that is meant, counted from 1, once it has come. */
  requested(isMeant: (request: R) => boolean, nth: number): Promise<R>;
}

/** Keeps the last `most` requests. */
export function createRecording<R>(most = Number.POSITIVE_INFINITY): Recording<R> {
  const requests: R[] = [];
  const looking = new Set<() => void>();
  return {
    requests,
    add(request) {
      requests.push(request);
      if (requests.length > most) requests.shift();
      for (const look of looking) look();
    },
    requested(isMeant, nth) {
      const { promise, resolve } = Promise.withResolvers<R>();
      const look = () => {
        const found = requests.filter(isMeant)[nth - 1];
        if (!found) return;
        looking.delete(look);
        resolve(found);
      };
      looking.add(look);
      look();
      return promise;
    },
  };
}

/** A body as a recording has it: the parsed document, or the text when it is none; undefined when empty. */
export function parsedBody(raw: string): unknown {
  if (raw === '') return undefined;
  try {
    return JSON.parse(raw);
  } catch {
    return raw;
  }
}
