/** Whether a file is left out: a pattern matches its whole path, or its base name. Blank patterns match nothing. */
export function isIgnored(path: string, patterns: readonly string[]): boolean {
  const base = path.slice(path.lastIndexOf('/') + 1);
  return patterns.some(pattern => {
    const glob = pattern.trim();
    return glob !== '' && (matches(glob, path) || matches(glob, base));
  });
}

/**
 * Whether a path is what a glob describes: `*` is any number of characters and `?` is one, neither of them `/`; `[a-z]` is
 * one of those, `[^a-z]` one of the others; a backslash takes the next character as it is. A glob with a bracket that is
 * never closed matches nothing.
 */
export function matches(glob: string, path: string): boolean {
  const globs = glob.split('/');
  const parts = path.split('/');
  return globs.length === parts.length && globs.every((each, place) => matchesPart(each, parts[place] as string));
}

/** No way back further than to the last `*`: the time is the product of the lengths at most, whatever they hold. */
function matchesPart(glob: string, text: string): boolean {
  const tokens = tokensOf(glob);
  if (!tokens) return false;
  const characters = [...text];
  let token = 0;
  let at = 0;
  let star = -1;
  let starAt = 0;
  while (at < characters.length) {
    const wanted = tokens[token];
    if (wanted === 'any') {
      star = token++;
      starAt = at;
    } else if (wanted?.(characters[at] as string)) {
      token++;
      at++;
    } else if (star >= 0) {
      token = star + 1;
      at = ++starAt;
    } else {
      return false;
    }
  }
  return tokens.slice(token).every(rest => rest === 'any');
}

type Token = 'any' | ((character: string) => boolean);

function tokensOf(glob: string): Token[] | undefined {
  const tokens: Token[] = [];
  const signs = [...glob];
  for (let place = 0; place < signs.length; place++) {
    const sign = signs[place] as string;
    if (sign === '*') tokens.push('any');
    else if (sign === '?') tokens.push(() => true);
    else if (sign === '[') {
      const set = setAt(signs, place + 1);
      if (!set) return undefined;
      tokens.push(set.has);
      place = set.end;
    } else {
      const literal = sign === '\\' ? signs[++place] : sign;
      if (literal === undefined) return undefined;
      tokens.push(character => character === literal);
    }
  }
  return tokens;
}

/** The characters between brackets, up to the one that closes them. */
function setAt(signs: readonly string[], start: number) {
  const others = signs[start] === '^' || signs[start] === '!';
  const ranges: [from: string, to: string][] = [];
  let place = others ? start + 1 : start;
  // A bracket that comes first is meant as it is.
  for (let first = true; first || signs[place] !== ']'; first = false) {
    const from = signs[place] === '\\' ? signs[++place] : signs[place];
    if (from === undefined) return undefined;
    place++;
    const isRange = signs[place] === '-' && signs[place + 1] !== ']' && signs[place + 1] !== undefined;
    const to = isRange ? (signs[place + 1] as string) : from;
    if (isRange) place += 2;
    ranges.push([from, to]);
  }
  const has = (character: string) => ranges.some(([from, to]) => from <= character && character <= to) !== others;
  return { has, end: place };
}
