/** Writes what is generated of the chart. */
import { readFileSync, writeFileSync } from 'node:fs';
import { chartFiles } from './chart/files.ts';

const chart = new URL('../helm/model-manager/', import.meta.url);
const values = readFileSync(new URL('values.yaml', chart), 'utf8');
for (const [path, text] of Object.entries(chartFiles(values))) {
  writeFileSync(new URL(path, chart), text);
  console.log(`helm/model-manager/${path}`);
}
