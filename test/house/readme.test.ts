import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { buildableKinds } from '../../src/backends/drivers.ts';
import { configurationTable } from '../../src/config/help.ts';
import { parseServe } from '../../src/config/parse.ts';
import { parseDemo, parseRecord, parseReplay } from '../../src/config/recording.ts';
import { errorCodes, GatewayError } from '../../src/errors.ts';
import { permissionsTable } from '../../src/kubernetes/permissions.ts';
import { loadOperations } from '../../src/operations/load.ts';
import { schema } from '../../src/resolvers/schema.ts';

const root = new URL('../../', import.meta.url);
const readme = readFileSync(new URL('README.md', root), 'utf8');
const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
  dependencies: Record<string, string>;
  scripts: Record<string, string>;
};

test('the README has the settings as the code has them', () => {
  const [, table = ''] = /<!-- configuration -->\n([\s\S]*?)\n<!-- \/configuration -->/.exec(readme) ?? [];
  assert.equal(table.trim(), configurationTable().trim());
});

test('the README has the permissions as the code has them', () => {
  const [, table = ''] = /<!-- permissions -->\n([\s\S]*?)\n<!-- \/permissions -->/.exec(readme) ?? [];
  assert.equal(table, permissionsTable());
});

test('the README names every route and every tool', () => {
  const operations = loadOperations(schema);
  const names = operations.flatMap(({ tool }) => (tool ? `\`${tool.name}\`` : []));
  const routes = operations.flatMap(({ rest }) => rest?.path.replace(/^\/api\/v1/, '').replace('...}', '}') ?? []);
  const missing = [...names, ...new Set(routes)].filter(name => !readme.includes(name));
  assert.deepEqual(missing, [], 'add them to the table of what can be asked');
});

test('the README gives codes their status', () => {
  const wrong = errorCodes.filter(code => {
    const [, status] = new RegExp(`\\| \`${code}\` \\| (\\d+) \\|`).exec(readme) ?? [];
    return Number(status) !== new GatewayError(code, '').status;
  });
  assert.deepEqual(wrong, []);
});

test('the README justifies every production dependency, and each is pinned', () => {
  const [, table = ''] = /### Dependencies\n([\s\S]*?)\n## /.exec(readme) ?? [];
  const missing = Object.keys(manifest.dependencies).filter(
    name => !table.includes(name.replace(/^@pothos\/(?=plugin)/, '')),
  );
  assert.deepEqual(missing, []);
  const floating = Object.entries(manifest.dependencies).filter(([, version]) => !/^\d/.test(version));
  assert.deepEqual(floating, []);
});

test('the commands of the README run as printed after `npm ci`, on whatever Node there is', () => {
  const blocks = [...readme.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].filter(([, language]) => language === '');
  const commands = blocks
    .flatMap(([, , block = '']) => block.split('\n'))
    .filter(line => /^(?:npm|npx|node|model-manager) /.test(line));
  assert.ok(commands.length >= 7);
  for (const command of commands) {
    for (const part of command.split(' && ')) {
      const script = /^npm (?:run )?(\S+)/.exec(part)?.[1] ?? '';
      if (script in manifest.scripts || part === 'npm ci') checkDemo(part);
      else checkOurs(part);
    }
  }
  // Elsewhere it is a name.
  assert.doesNotMatch(readme, /`model-manager (?:serve|demo|record|replay|schema)/);
});

const checkDemo = (command: string) => {
  const [, flags] = command.split(/^npm start -- /);
  const file = flags && parseDemo(flags.split(' ')).replay?.file;
  if (file) assert.ok(existsSync(new URL(file, root)), file);
};

function checkOurs(command: string) {
  const [, word = '', flags = ''] = /^npx node src\/main\.ts (\S+) (.*)$/.exec(command) ?? [];
  const argv = flags.split(' ');
  if (word === 'serve') parseServe(argv, {}, { buildable: buildableKinds });
  else if (word === 'record') parseRecord(argv, {});
  else if (word === 'replay') assert.ok(existsSync(new URL(parseReplay(argv).file, root)), command);
  else assert.fail(`${command}: no command that a checkout has`);
}
