/** The longest that a timer can wait, in milliseconds; longer ones would fire at once. */
const longest = 2 ** 31 - 1;

/** Does something when a time has come, in milliseconds since the epoch. Returns how to have that not happen. */
export function at(time: number, act: () => void): () => void {
  let timer: NodeJS.Timeout;
  const wait = () => {
    const left = time - Date.now();
    timer = setTimeout(left > longest ? wait : act, Math.min(Math.max(left, 0), longest)).unref();
  };
  wait();
  return () => clearTimeout(timer);
}
