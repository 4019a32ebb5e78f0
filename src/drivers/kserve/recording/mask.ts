/** Takes secrets out of text. What looks like one is masked: that a word too many is gone does less harm than one too few. */

export const mask = '***';

/** A bare `key`, as of a taint or a selector, names no secret, nor does the key of a topology: those that open something do. */
const keys =
  '(?:access|account|api|auth|client|encryption|license|master|private|secret|session|shared|signing|ssh)key|\\w[-_]key';
/** What the name of a secret ends with: `HF_TOKEN`, `--api-key`, `clientSecret`, `authorization`. */
const ending = `(?:token|secret|pass|passwd|password|passphrase|authorization|cookie|credentials?|signature|sig|${keys})`;

const quoted = String.raw`\\?"(?:[^"\\]|\\(?!"))*\\?"|\\?'[^']*\\?'`;
/** In brackets, in quotes, after the word for its kind, or to the end of the word; no mapping: that has names of its own. */
const value = String.raw`(?!\{\s*\\?["'}])(?:\[[^\]]*\]|${quoted}|(?:bearer|basic)\s+[^\s,;"')}\]]+|[^\s,;&"')}\]]+)`;

/** In the quotes that the value or else its name has, so that what was JSON stays JSON. */
function maskedValue(_: string, before: string, found: string): string {
  const [, quote = ''] = /^(\\?["'])/.exec(found) ?? /(\\?["'])\s*:\s*$/.exec(before) ?? [];
  return `${before}${quote}${mask}${quote}`;
}

type Rule = readonly [pattern: RegExp, instead: string | ((found: string, ...groups: string[]) => string)];

/** Each begins where a word does, or takes a whole run at once: tried in the midst of a long word, it would take for ever. */
const rules: readonly Rule[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, mask],
  // user:password@ in a URL
  [/(?<![a-z\d+.-])([a-z\d+.-]*:\/\/)[^\s/@"'<>]+@/gi, `$1${mask}@`],
  // name=value, name: value, "name": "value"
  [new RegExp(String.raw`(?<![\w.-])([\w.-]*${ending}\\?["']?\s*[=:]\s*)(${value})`, 'gi'), maskedValue],
  // --name value, "--name", "value"
  [new RegExp(String.raw`((?:^|[\s"'])--?[\w-]*${ending}(?:\\?["'],\s*|\s+))(?!-)(${value})`, 'gi'), maskedValue],
  [/\b(bearer)\s+[^\s"',;]+/gi, `$1 ${mask}`],
  [/\b(basic)\s+[A-Za-z0-9+/]{12,}=*/gi, `$1 ${mask}`],
  [/\bhf_[A-Za-z0-9][\w-]{3,}/g, `hf_${mask}`],
  [/\bsk-[A-Za-z0-9][\w-]{3,}/g, `sk-${mask}`],
  [/\b(?:gh[opsur]_|github_pat_|glpat-|xox[abpr]-|nvapi-|AIza)[\w-]{8,}/g, mask],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{12,}/g, mask],
  // JSON web tokens
  [/eyJ[\w-]*(?:\.[\w-]*)*/g, found => (/^[^.]{9,}\.[^.]+\./.test(found) ? mask : found)],
  // who was refused
  [/\b(User \\?")[^"\\]+/g, `$1${mask}`],
];

/** The text without what looks like a secret. Masked twice is masked once. */
export const masked = (text: string): string =>
  rules.reduce((safe, [pattern, instead]) => safe.replace(pattern, instead as string), text);

const secretName = new RegExp(`${ending}$`, 'i');
const secretFlag = new RegExp(`^--?[\\w-]*${ending}$`, 'i');

/** Whether a field, a variable or a header of that name holds a secret. */
export const namesSecret = (name: string): boolean => secretName.test(name);

/** Whether a word of a command line says that the next one is a secret: `--api-key`. */
export const announcesSecret = (word: string): boolean => secretFlag.test(word);
