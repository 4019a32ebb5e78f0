import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { loadOperations } from '../operations/load.ts';
import { printedSchema, schema } from '../resolvers/schema.ts';
import { openApiOf } from '../rest-compat/openapi.ts';
import { readBuild } from './build.ts';

const schemaFolder = new URL('../../schema/', import.meta.url);

/** The generated files of `schema/`, by name. */
export function schemaFiles(): Readonly<Record<string, string>> {
  const { version } = readBuild({});
  return {
    'schema.graphql': printedSchema(),
    'openapi.yaml': stringify(openApiOf(loadOperations(schema), version), { lineWidth: 120 }),
  };
}

/** Writes them. */
export function writeSchema(): void {
  for (const [name, text] of Object.entries(schemaFiles())) {
    writeFileSync(new URL(name, schemaFolder), text);
    console.log(`schema/${name}`);
  }
}
