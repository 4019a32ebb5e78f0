import { Ajv2020 } from 'ajv/dist/2020.js';

const ajv = new Ajv2020({
  strict: true,
  allErrors: true,
  formats: {
    int64: { type: 'number', validate: Number.isSafeInteger },
    'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/,
  },
});

/** A check of values against a schema that says what is wrong with one; throws when the schema itself is wrong. */
export function schemaCheck(schema: object): (value: unknown) => string {
  const validate = ajv.compile(schema);
  return value => (validate(value) ? '' : ajv.errorsText(validate.errors));
}
