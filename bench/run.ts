/**
 * `npm run bench`: what we cost, as multiples of the least that the same could cost, measured in the same run.
 * `npm run bench -- list` runs the groups with `list` in their name; `--json` writes a line of JSON for each row instead
 * of the table. Nothing here fails because of a figure: other work on the machine moves them.
 */
import { parseArgs } from 'node:util';
import { modelList } from './modelList.ts';
import { serving } from './serving.ts';
import { smallQuery } from './smallQuery.ts';
import { start } from './start.ts';
import { subscribers } from './subscribers.ts';
import { jsonOf, type Row, tableOf } from './table.ts';
import { toolCall } from './toolCall.ts';

const groups = { smallQuery, modelList, toolCall, subscribers, serving, start };

const { values, positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true });
const wanted = (positionals[0] ?? '').toLowerCase();

const rows: Row[] = [];
for (const [name, run] of Object.entries(groups)) {
  if (!name.toLowerCase().includes(wanted)) continue;
  console.error(`${name} …`);
  try {
    const found = await run();
    rows.push(...found);
    if (values.json) for (const row of found) console.log(jsonOf(row));
  } catch (error) {
    console.error(`${name} could not be measured:`, error);
    process.exitCode = 1;
  }
}
if (!values.json) console.log(tableOf(rows));
