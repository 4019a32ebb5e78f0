/** Whether one version is another or later; compares the first three numbers only. */
export function isAtLeast(version: string, since: string): boolean {
  const have = numbersOf(version);
  const want = numbersOf(since);
  for (const [place, number] of want.entries()) {
    const difference = (have[place] ?? 0) - number;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

const numbersOf = (version: string) => (version.match(/\d+/g) ?? []).slice(0, 3).map(Number);
