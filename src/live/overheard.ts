import { createListeners, type Source } from './source.ts';

/** The same source; what it shows is also told to somebody, each value once, for as long as anybody else listens. */
export function overheard<T>(source: Source<T>, tell: (value: T) => void): Source<T> {
  const listeners = createListeners(begin, () => stop());
  let stop = () => {};
  let told: T | undefined;

  function hear() {
    const value = source.current?.value;
    if (value === undefined || value === told) return;
    told = value;
    tell(value);
  }

  function begin() {
    stop = source.subscribe(() => {
      hear();
      listeners.notify();
    });
    hear();
  }

  return {
    get current() {
      return source.current;
    },
    read: call => source.read(call),
    subscribe: listeners.add,
  };
}
