/**
 * The catalogue of reasons: every word that says why something waits, failed or does not fit, what it means, and what to do.
 * Messages take their texts from here, so what is documented is what is said.
 */
import { type ReasonEntry, type ReasonPlace, reasonPlaces } from './reasons/entry.ts';
import { fitReasons } from './reasons/fit.ts';
import { inventoryReasons } from './reasons/inventory.ts';
import { passedOnReasons } from './reasons/passedOn.ts';
import { stepReasons } from './reasons/steps.ts';
import { wiringTable } from './reasons/wiring.ts';

export { reasonPlaces };

/** One reason of the catalogue. */
export interface CataloguedReason {
  readonly code: string;
  readonly where: readonly ReasonPlace[];
  /** Templates; none where the texts are those of another program. */
  readonly texts: readonly string[];
  readonly meaning: string;
  readonly remedy: string;
  /** Whose word it is; absent = ours. */
  readonly from?: ReasonEntry['from'];
}

/** Those whose texts are ours. */
const told = { ...stepReasons, ...inventoryReasons, ...fitReasons };
type Told = typeof told;
type Fit = typeof fitReasons;
export type FitCode = keyof Fit;
export type ReasonCode = keyof Told | keyof typeof passedOnReasons;

/** All of them: by where they show, then by how far a model has come. */
export const catalogue: readonly CataloguedReason[] = [
  stepReasons,
  passedOnReasons,
  wiringTable,
  inventoryReasons,
  fitReasons,
].flatMap(table => Object.entries<ReasonEntry>(table).map(([code, entry]) => catalogued(code, entry)));

function catalogued(code: string, { where, texts = {}, changes = {}, meaning, remedy, from }: ReasonEntry) {
  const [change = ''] = Object.values(changes);
  return { code, where, texts: [...new Set(Object.values(texts))], meaning, remedy: remedy ?? change, from };
}

const byCode = new Map(catalogue.map(each => [each.code, each]));

/** A reason by its code; undefined for a word that other programs have and nobody described. */
export const reasonOf = (code: string | null | undefined): CataloguedReason | undefined => byCode.get(code ?? '');

/** What stands in the braces of a template: `'a' | 'b'` for `{a} of {b}`. */
type Placeholder<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Placeholder<Rest> : never;
/** What a template wants beside it: nothing, or a value for each placeholder. */
type Values<Text> = [Placeholder<Text>] extends [never]
  ? []
  : [values: Readonly<Record<Placeholder<Text>, string | number>>];

/** A text of a reason. */
export function phrase<Code extends keyof Told, Key extends keyof Told[Code]['texts']>(
  code: Code,
  key: Key,
  ...[values]: Values<Told[Code]['texts'][Key]>
): string {
  return filled((told[code].texts as Told[Code]['texts'])[key] as string, values);
}

/** A reason with a text, as steps have them. */
export const say = <Code extends keyof Told, Key extends keyof Told[Code]['texts']>(
  code: Code,
  key: Key,
  ...values: Values<Told[Code]['texts'][Key]>
) => ({ reason: code, message: phrase(code, key, ...values) });

/** An obstacle of a fit: a text, and what would take it away. */
export function obstacle<Code extends FitCode, Key extends keyof Fit[Code]['texts'] & keyof Fit[Code]['changes']>(
  code: Code,
  key: Key,
  ...[values]: Values<Fit[Code]['texts'][Key] | Fit[Code]['changes'][Key]>
) {
  const { texts, changes } = fitReasons[code];
  const text = filled((texts as Fit[Code]['texts'])[key] as string, values);
  return { code, text, change: filled((changes as Fit[Code]['changes'])[key] as string, values) };
}

/** Values may have braces of their own: each is put in once. */
const filled = (template: string, values: Readonly<Record<string, string | number>> = {}): string =>
  template.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name]));

/** Whether a word is one of these. */
export const oneOf =
  (...codes: readonly ReasonCode[]) =>
  (word: string | undefined): boolean =>
    codes.some(code => code === word);
