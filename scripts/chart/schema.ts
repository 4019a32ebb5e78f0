/** The JSON schema of the chart's values. */
import type { Section, Value } from './values.ts';

type Schema = Readonly<Record<string, unknown>>;

/** A key that is not in it fails an installation, but below `global`. */
export const schemaOf = (sections: readonly Section[]): Schema => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  additionalProperties: false,
  properties: propertiesOf(sections.flatMap(({ values }) => values)),
});

const propertiesOf = (values: readonly Value[]) => Object.fromEntries(values.map(each => [each.key, ofValue(each)]));

function ofValue({ description, schema, children, default: standard }: Value): Schema {
  const described = description === '' ? {} : { description };
  if (!children) return { ...described, ...kindOf(standard), ...schema };
  if (schema.additionalProperties) return { ...described, type: 'object', ...schema };
  return { ...described, type: 'object', additionalProperties: false, ...schema, properties: propertiesOf(children) };
}

function kindOf(standard: unknown): Schema {
  if (Array.isArray(standard)) return { type: 'array' };
  // Whoever sets a number with `--set-string`, or in a value made of a variable, gives a text.
  if (typeof standard === 'number') return { type: ['integer', 'string'], pattern: '^[0-9]+$' };
  return { type: typeof standard };
}
