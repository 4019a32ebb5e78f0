import { writeFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { loadOperations } from '../operations/load.ts';
import { printedSchema, schema } from '../resolvers/schema.ts';
import { openApiOf } from '../rest-compat/openapi.ts';
import { readBuild } from './build.ts';
import { reasonsPage } from './reasonsPage.ts';

const root = new URL('../../', import.meta.url);

/** The generated files of `schema/`, by name. */
export function schemaFiles(): Readonly<Record<string, string>> {
  const { version } = readBuild({});
  return {
    'schema.graphql': printedSchema(),
    'openapi.yaml': stringify(openApiOf(loadOperations(schema), version), { lineWidth: 120 }),
  };
}

/** The generated files of `docs/`. */
export const docsFiles = (): Readonly<Record<string, string>> => ({ 'reasons.md': reasonsPage() });

/** Writes them. */
export function writeSchema(): void {
  for (const [folder, files] of Object.entries({ schema: schemaFiles(), docs: docsFiles() })) {
    for (const [name, text] of Object.entries(files)) {
      const path = `${folder}/${name}`;
      writeFileSync(new URL(path, root), text);
      console.log(path);
    }
  }
}
