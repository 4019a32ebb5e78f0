import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { buildableKinds } from '../../src/backends/drivers.ts';
import { serveHelp } from '../../src/config/help.ts';
import { parseServe } from '../../src/config/parse.ts';
import { errorCodes } from '../../src/errors.ts';
import { containerOf, examples, gatewayPod, readChart, render, skip as skipHelm } from '../chart/helm.ts';
import { blocks, fencesOf, languages, messages, page, read, rowsBelow, spans, texts } from './page.ts';
import { missingIn, runScript, runUntil, whyNot } from './shell.ts';
import { stages, startEmpty } from './stages.ts';

for (const [stage, start] of Object.entries(stages)) {
  test(`the commands of the page for operators run where it is ${stage}`, async t => {
    const setting = await start(t);
    const here = blocks.filter(block => block.stage === stage);
    assert.ok(here.length > 0);
    let skip: string | false = false;
    for (const { script, line, prints } of here) {
      // What comes later may rest on it.
      skip ||= whyNot(script);
      await t.test(`line ${line}`, { skip }, async () => {
        const { code, output } = await (prints ? runUntil(script, prints, setting) : runScript(script, setting));
        assert.equal(code, 0, output);
        assert.notEqual(output.trim() + (prints ?? ''), '', 'it says something');
        if (prints) assert.equal(missingIn(output, prints), undefined, output);
      });
    }
  });
}

test('whatever the page has people run has a place to run', () => {
  assert.deepEqual([...languages].sort(), ['sh', 'text', 'yaml']);
  const lost = blocks.filter(({ stage }) => !(stage in stages)).map(({ line }) => line);
  assert.deepEqual(lost, []);
  assert.equal(
    fencesOf('text').length,
    blocks.filter(({ prints }) => prints !== undefined).length,
    'each output stands right below its command',
  );
});

const installed = rowsBelow('## Installing').map(([file = '', , namespaces]) => ({
  example: file.replace(/^`(.*)-values\.yaml`$/, '$1'),
  bare: namespaces === '–',
}));

test('the page names every example of the chart', () => {
  assert.deepEqual(installed.map(({ example }) => example).sort(), Object.keys(examples).sort());
});

for (const { example, bare } of installed) {
  test(`helm installs the example ${example} at the emulated API server, and takes it away`, {
    skip: skipHelm,
  }, async t => {
    const setting = await startEmpty(t, bare ? [] : ['kagent', 'agents', 'models', 'platform', 'presets']);
    const flags = '--namespace agent-platform';
    const { code, output } = await runScript(
      `helm install model-manager helm/model-manager ${flags} --create-namespace --values helm/model-manager/ci/${example}-values.yaml
       helm uninstall model-manager ${flags}
       echo left: $(helm list --short ${flags})`,
      setting,
    );
    assert.equal(code, 0, output);
    assert.equal(missingIn(output, 'STATUS: deployed\nrelease "model-manager" uninstalled\nleft:'), undefined, output);
  });
}

test('what the API server is told to trust is what the example of the chart trusts', { skip: skipHelm }, () => {
  const [configuration] = fencesOf('yaml').map(({ text }) => parse(text));
  const { kind, jwt } = configuration;
  assert.equal(kind, 'AuthenticationConfiguration');
  assert.equal(jwt.length, 1);
  const { args } = containerOf(gatewayPod(render(examples.downstream)));
  const { settings } = parseServe(args.slice(1), {}, { buildable: buildableKinds });
  const { dexIssuerUrl, dexClientId } = settings.oauth;
  const { url, audiences } = jwt[0].issuer;
  assert.deepEqual({ url, audiences }, { url: dexIssuerUrl, audiences: [dexClientId] });
});

test('the page has alerts as the chart has them', () => {
  const rules = parse(readChart('files/alerts.yaml')).groups.flatMap(
    ({ rules }: { rules: { alert: string }[] }) => rules,
  );
  const alerts = rules.map(({ alert }: { alert: string }) => `\`${alert}\``);
  assert.deepEqual(
    rowsBelow('### Alerts').map(([alert]) => alert),
    alerts,
  );
});

test('the page has every metric of ours, and no other', { skip: whyNot('curl -s') }, async t => {
  const setting = await stages.oauth?.(t);
  assert.ok(setting);
  const { output } = await runScript('curl -s http://127.0.0.1:9464/metrics', setting);
  const served = [...output.matchAll(/^# HELP (\S+)/gm)].map(([, name]) => name as string);
  const told = rowsBelow('### Metrics').flatMap(([cell = '']) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name as string),
  );
  assert.deepEqual(
    told.filter(name => !served.includes(name)),
    [],
  );
  assert.deepEqual(
    served.filter(name => name.startsWith('model_manager_') && !told.includes(name)),
    [],
  );
  const mentioned = page.match(/model_manager_[a-z_]+[a-z]/g) ?? [];
  assert.deepEqual(
    mentioned.filter(name => !served.some(each => each.startsWith(name))),
    [],
  );
});

test('messages that the page quotes are those of the program and its chart', () => {
  assert.ok(messages.length >= 60, `${messages.length}`);
  const partsOf = (message: string) => message.split('…').map(part => part.trim());
  const wrong = messages.filter(message => partsOf(message).some(part => !texts.includes(part)));
  assert.deepEqual(wrong, []);
  // Of what is mostly holes nobody can say whose it is.
  assert.deepEqual(
    messages.filter(message => !/\w{4}/.test(message)),
    [],
  );
});

test('there is a row for what goes wrong most, and each says what to do', () => {
  const rows = rowsBelow('## What is wrong');
  assert.ok(rows.length >= 20, `${rows.length}`);
  assert.deepEqual(
    rows.filter(cells => cells.length !== 3 || cells.includes('')),
    [],
  );
});

/** Of `kube-apiserver`, `kubectl` and `helm`, as far as the prose has them. */
const foreignFlags = [
  'oidc-issuer-url',
  'oidc-client-id',
  'oidc-username-claim',
  'oidc-groups-claim',
  'authentication-config',
  'token',
  'show-only',
  'namespace',
];

test('flags, values, codes and files that the page names are there', () => {
  const help = serveHelp(200);
  const flags = spans.flatMap(span => [...span.matchAll(/(?:^| )--([a-z-]+)/g)].map(([, flag]) => flag as string));
  assert.deepEqual(
    flags.filter(flag => !help.includes(`--${flag}`) && !foreignFlags.includes(flag)),
    [],
  );

  const values = parse(readChart('values.yaml'));
  const paths = spans
    .filter(span => /^[a-zA-Z]+(\.[a-zA-Z]+)+(: \S+)?$/.test(span))
    .map(span => span.replace(/: .*/, '').split('.'));
  const known = paths.filter(([top = '']) => top in values);
  assert.ok(known.length >= 30, `${known.length}`);
  const isThere = (path: readonly string[]) =>
    path.reduce((at, key) => (at !== null && typeof at === 'object' ? at[key] : undefined), values) !== undefined;
  assert.deepEqual(
    known.filter(path => !isThere(path)).map(path => path.join('.')),
    [],
  );

  const codes = [...page.matchAll(/[Cc]ode `(\w+)`/g)].map(([, code]) => code as string);
  assert.ok(codes.length >= 3);
  assert.deepEqual(
    codes.filter(code => code !== 'letters' && !(errorCodes as readonly string[]).includes(code)),
    [],
  );
});

test('links of the page lead somewhere, and the README leads to it', () => {
  const anchorOf = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-');
  const anchorsIn = (text: string) =>
    [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading as string));
  for (const [, file = '', anchor] of page.matchAll(/\]\(([^)#]*)(?:#([^)]+))?\)/g)) {
    const text = file === '' ? page : read(`docs/${file}`);
    if (anchor) assert.ok(anchorsIn(text).includes(anchor), `${file}#${anchor}`);
  }
  assert.match(read('README.md'), /\]\(docs\/operating\.md\)/);
});
