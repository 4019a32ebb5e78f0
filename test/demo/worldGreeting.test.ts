import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { folder, start } from '../commands/running.ts';
import { openStream, send, within } from '../support/server.ts';

const main = new URL('../../src/main.ts', import.meta.url).pathname;

/** The demo as a process of its own, where every variable about clusters leads astray; what it wrote until it was ready. */
async function startDemo(t: TestContext) {
  const astray = { KUBECONFIG: '/nowhere/config', KUBE_CONTEXT: 'nobody', POD_NAMESPACE: 'x', KAGENT_NAMESPACE: 'y' };
  const child = spawn(process.execPath, [main, 'demo', '--listen', '127.0.0.1:0'], {
    env: { ...process.env, ...astray },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const { promise: greeted, resolve } = Promise.withResolvers<void>();
  const { promise: registered, resolve: register } = Promise.withResolvers<void>();
  let written = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    written += text;
    if (written.includes('Ctrl-C')) resolve();
    if (written.includes('backend registered')) register();
  });
  await within(Promise.all([greeted, registered]), 'the greeting', 20_000);
  const [, greeting = ''] = /\n\n(A made-up[\s\S]*?Ctrl-C.*)\n/.exec(written) ?? [];
  return { child, written, greeting };
}

interface Command {
  readonly url: string;
  readonly body: string | undefined;
}

/** The `curl` commands of a text, as a shell would read them. */
const commandsIn = (text: string): Command[] =>
  [...text.matchAll(/^ {2}curl (?:-N )?(\S+)((?:\s+(?:\\\n\s+)?-[Hd] '[^']*')*)/gm)].map(
    ([, url = '', options = '']) => ({
      url,
      body: /-d '([^']*)'/.exec(options)?.[1],
    }),
  );

/** Starts the `record` of a text, as a shell in the checkout would, but that the file is elsewhere. */
function recordIn(t: TestContext, text: string) {
  const [, words = ''] = /^ {2}npx node \S*src\/main\.ts (record (?:\\\n|\S| )+)/m.exec(text) ?? [];
  const { path: cwd } = folder(t);
  return Object.assign(start(t, words.split(/[\s\\]+/).filter(Boolean), { cwd }), { cwd });
}

test('everything that the greeting says can be done, whatever cluster the user has', { timeout: 60_000 }, async t => {
  const { child, written, greeting } = await startDemo(t);
  assert.doesNotMatch(written, /WARN|ERROR/);
  assert.deepEqual(
    greeting.split('\n').filter(line => line.length > 80),
    [],
    'it fits into a terminal',
  );
  const commands = commandsIn(greeting);
  assert.equal(commands.length, greeting.match(/^ {2}curl/gm)?.length);
  const [list, jobs, models, load, fit, follow, serve, remove, add] = commands as [
    Command,
    Command,
    Command,
    Command,
    Command,
    Command,
    Command,
    Command,
    Command,
  ];
  const streamOf = ({ url, body = '' }: Command) => openStream(url, JSON.parse(body));

  const { status, json } = await send(list.url);
  assert.equal(status, 200);
  assert.ok((json as { models: unknown[] }).models.length > 5);
  const downloads = await streamOf(jobs);
  assert.ok((await downloads.nextPayload('the jobs')).data.jobs.items);
  downloads.leave();

  const watcher = await streamOf(models);
  const loaded = send(load.url, load.body);
  for (let ready = false; !ready; ) {
    const { items } = (await watcher.nextPayload('a ModelConfig that is ready')).data.models;
    ready = items.some((model: { name: string; modelConfig?: { ready: boolean } }) => {
      return model.name === 'gemma3:latest' && model.modelConfig?.ready;
    });
  }
  watcher.leave();
  assert.equal((await loaded).status, 200);

  const judged = await send(fit.url, fit.body);
  assert.equal(judged.status, 200);
  assert.match((judged.json as { reason: string }).reason, /^67\.7 GiB weights .* exceed the 90\.0 GiB/);

  const follower = await streamOf(follow);
  assert.equal((await follower.nextPayload('nothing yet')).data.serve.serve, null);
  const record = recordIn(t, greeting);
  await record.wrote('waiting for gemma-3-4b-gguf to be served');
  const served = await send(serve.url, serve.body);
  assert.equal(served.status, 200);
  const { running } = served.json as { running: { kind: string; resource: string } };
  assert.deepEqual([running.kind, running.resource], ['LLMInferenceService', 'gemma-3-4b-gguf']);
  for (let phase: string | undefined; phase !== 'READY'; ) {
    phase = (await follower.nextPayload('its way')).data.serve.serve?.phase;
    assert.notEqual(phase, 'FAILED');
  }
  follower.leave();
  assert.equal(await record.ended, 0, record.err);
  assert.equal(record.err, '');
  const [, file = ''] = /it is ready: .* written to (\S+)/.exec(record.out) ?? [];
  const replay = start(t, ['replay', file, '--speed', 'max'], { cwd: record.cwd });
  assert.equal(await replay.ended, 0, replay.err);
  assert.match(replay.out, /\nready after \d+/);

  const called = async ({ url, body }: Command) => {
    const { text } = await send(url, body);
    return JSON.parse(text).result.structuredContent;
  };
  const { removed, deregistered } = await called(remove);
  assert.deepEqual({ removed, deregistered }, { removed: true, deregistered: true });
  const { created, registered, backend } = await called(add);
  assert.deepEqual({ created, registered }, { created: true, registered: true });
  // On a busy machine the first look may take longer than it has.
  const isHealthy = async () =>
    JSON.parse((await send(`${new URL(add.url).origin}/api/v1/backend?backend=${backend.backend}`)).text).healthy;
  while (!(await isHealthy())) await new Promise(resolve => setTimeout(resolve, 50));

  child.kill('SIGINT');
  const [code] = await within(once(child, 'close'), 'the end', 20_000);
  assert.equal(code, 0);
});

test('where people have to sign in the greeting says so, and nothing is told as done that was refused', async t => {
  const demo = start(t, [
    ...['demo', '--listen', '127.0.0.1:0', '--enable-oauth', '--oauth-base-url', 'https://models.example'],
    // No provider is there, and none is needed to be refused.
    ...['--allow-private-oauth-urls', '--dex-issuer-url', 'http://127.0.0.1:9', '--dex-client-id', 'platform'],
  ]);
  await demo.wrote('Authorization: Bearer $TOKEN');
  await demo.wrote('the gateway refuses that, by HTTP ');
});
