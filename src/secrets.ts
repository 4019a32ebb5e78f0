/** What secrets look like, and how they go: from the lines of the log, from errors that clients see, from jobs. */

export const gone = '[redacted]';

/** Tokens that say by how they begin whose they are: of code hosts, chats and clouds. */
export const issuedTokens: readonly RegExp[] = [
  /\b(?:gh[opsur]_|github_pat_|glpat-|xox[abpr]-|nvapi-|AIza)[\w-]{8,}/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{12,}/g,
];

const name = '(?:authorization|cookie|token|api[-_]?key|password|client[-_]?secret)';

/** What ends with it holds a secret: `accessToken`, `x-api-key`. */
export const secretKey = new RegExp(`${name}$`, 'i');

// The backslashes before a quote inside a string. An even number would be backslashes, and the string's end.
const quoting = String.raw`\\(?:\\\\)*`;

/**
 * What secrets look like in finished JSON, where a quote inside a string has backslashes before it: one, or three when
 * that string is JSON itself. Every pattern swallows the whole run it begins with, so that a line takes linear time,
 * and never passes the end of a string, so that the line stays JSON.
 */
const shapes: readonly (readonly [RegExp, string | ((found: string) => string)])[] = [
  [/hf_[A-Za-z0-9]{10,}/g, gone],
  [/\bsk-[A-Za-z0-9][\w-]{15,}/g, gone],
  ...issuedTokens.map(shape => [shape, gone] as const),
  // A signed JWT has three parts, an encrypted one five.
  [/eyJ[\w-]*(?:\.[\w-]*)*/g, found => (/^[^.]+\.[^.]+\.[^.]/.test(found) ? gone : found)],
  // user:password@ in a URL, unless that is gone already.
  [/(?<![a-z\d+.-])([a-z][a-z\d+.-]*:\/\/)(?!…@|\[redacted\]@)[^\s/@"'<>\\]+@/gi, `$1${gone}@`],
  // But not the parameters of a WWW-Authenticate header: `Bearer realm="…"`.
  [/\b(Bearer|Basic) +(?!\w+=\\*")[\w.~+/-]{8,}=*/g, `$1 ${gone}`],
  // "token":"…"
  [new RegExp(String.raw`(${name}":")(?:[^"\\]|\\.)*`, 'gi'), `$1${gone}`],
  // The same inside a string, or token: "…" as GraphQL has it. The quote that ends it has as many backslashes as the
  // one that began it; a quote that is part of it has one more at that depth, or three, five…, doubled per depth since.
  [
    new RegExp(String.raw`(${name}(?:${quoting}")? *: *(${quoting})")(?:[^"\\]|\\+[^"\\]|\2\2\\(?:\2\\\2\\)*")*`, 'gi'),
    `$1${gone}`,
  ],
  // A header: to the end of its line.
  [/((?:authorization|cookie|x-api-key|x-auth-token): *)[^"\\]+/gi, `$1${gone}`],
  // token=…, as in a query string or a form.
  [new RegExp(String.raw`(${name}=)[^\s"\\&;,]+`, 'gi'), `$1${gone}`],
];

/** Finished JSON without what looks like a secret: still JSON. Redacted twice is redacted once. */
export function redactJson(json: string): string {
  let clear = json;
  for (const [shape, instead] of shapes) clear = clear.replace(shape, instead as string);
  return clear;
}

/** Any of these is in whatever a shape matches. */
const hint = new RegExp(
  String.raw`hf_|eyJ|sk-|gh[opsur]_|github_pat_|glpat-|xox[abpr]-|nvapi-|AIza|AKIA|ASIA|:\/\/[^\s/]*@|bearer|basic|x-auth-token|${name}`,
  'i',
);

/** Text without what looks like a secret. */
export const redacted = (text: string): string =>
  hint.test(text) ? (JSON.parse(redactJson(JSON.stringify(text))) as string) : text;
