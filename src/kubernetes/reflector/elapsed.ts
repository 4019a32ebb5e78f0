/** Milliseconds that pass, from one call to the next. When the clock is set back meanwhile, none have passed. */
export function createElapsed(): () => number {
  let before = Date.now();
  let elapsed = 0;
  return () => {
    const now = Date.now();
    elapsed += Math.max(0, now - before);
    before = now;
    return elapsed;
  };
}
