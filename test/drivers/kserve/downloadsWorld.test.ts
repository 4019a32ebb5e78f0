/** The composed Jobs, run for real: their scripts by a real shell, against the emulated Hub, on an emulated cluster. */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startHub } from '../../../src/demo/hub.ts';
import type { PullProgress } from '../../../src/domain.ts';
import { createDownloads } from '../../../src/drivers/kserve/downloads.ts';
import { createAgents } from '../../../src/drivers/kserve/inventory/agent.ts';
import { type CacheSurroundings, createInventory } from '../../../src/drivers/kserve/inventory.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';
import { createCell } from '../../../src/live/cell.ts';
import { eventually, within } from '../../support/server.ts';
import { type JobLab, serving, startLab } from './jobLab.ts';
import { type Running, shells, startShell } from './shell.ts';
import { clusterNodes, locationOf, settingsWith } from './world.ts';

const [shell = []] = shells;
const model = {
  id: 'acme-labs/Nova-4B-Instruct',
  files: [
    { path: 'config.json', text: '{}' },
    { path: 'model.safetensors', bytes: 2_000_000 },
  ],
};

interface Container {
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

/** Runs the containers of each new Job one after the other, in the place of a cluster that would. */
async function runJobs(t: TestContext, lab: JobLab, root: string) {
  const program = join(root, '..', 'initializer');
  const initializer = new URL('initializer.ts', import.meta.url).pathname;
  await writeFile(program, `#!/bin/sh\nexec "${process.execPath}" "${initializer}" "$@"\n`);
  await chmod(program, 0o755);
  const here = (text: string) =>
    text
      .replaceAll('/cache/', `${root}/`)
      .replaceAll("'/cache'", `'${root}'`)
      .replace(/\/storage-initializer\S*entrypoint/, program);
  const started: Running[] = [];

  // biome-ignore lint/suspicious/noExplicitAny: Jobs of every shape
  async function run(job: any) {
    const { initContainers = [], containers } = job.spec.template.spec;
    const name = `${job.metadata.name}-pod`;
    const state = (container: string, what: object) => ({ containerStatuses: [{ name: container, state: what }] });
    lab.pod(job, name, { phase: 'Pending' });
    for (const { name: container, command, env = [] } of [...initContainers, ...containers] as Container[]) {
      const isMain = containers.some((each: Container) => each.name === container);
      if (isMain) lab.pod(job, name, { phase: 'Running', ...state(container, { running: {} }) });
      const variables = Object.fromEntries(env.map(({ name, value = '' }) => [name, here(value)]));
      const running = startShell(shell, here(command[2] ?? ''), variables);
      started.push(running);
      const { code, output } = await running.ended;
      lab.cluster.logs.set(serving, name, container, { current: output });
      if (code === 0 && !isMain) continue;
      const terminated = { exitCode: code, reason: code === 0 ? 'Completed' : 'Error' };
      lab.pod(job, name, { phase: code === 0 ? 'Succeeded' : 'Failed', ...state(container, { terminated }) });
      lab.end(job, code === 0 ? 'Complete' : 'Failed', code === 0 ? {} : { reason: 'PodFailurePolicy' });
      return;
    }
  }

  t.after(
    lab.cluster.watch(({ type, resource, object }) => {
      if (type === 'ADDED' && resource === 'jobs.batch') void run(object);
    }),
  );
  t.after(() => {
    for (const running of started) running.kill('SIGTERM');
  });
}

test('a model is downloaded, counted, listed and removed again; and a stall is told', async t => {
  await using hub = await startHub({ models: [model] });
  await using lab = await startLab();
  const folder = await mkdtemp(join(tmpdir(), 'world-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const root = join(folder, 'claim');
  await mkdir(root);
  await runJobs(t, lab, root);

  const flags = { hfEndpoint: hub.url, downloadStallTimeout: '2s', pollInterval: '200ms', inventoryTimeout: '20s' };
  const settings = settingsWith({ cache: { enabled: true } }, flags);
  const location = locationOf(settings, 'cache-pinned.yaml');
  const inventory = createInventory({
    ...lab,
    agents: createAgents(lab),
    backend: 'kserve',
    target: undefined,
    around: createCell<CacheSurroundings>({ settings, presets: [], served: [], location }),
    settings: createCell(settings),
    nodes: createCell<readonly KubernetesObject[]>(clusterNodes),
  });
  const downloads = createDownloads({ ...lab, settings: createCell(settings), changed: inventory.invalidate });
  const models = async () => {
    const { value } = await within(inventory.read(lab.call), 'a count', 20_000);
    return value?.modelsWith({ presets: [], served: [] }).map(({ name, node, path, downloaded, sizeBytes }) => ({
      name,
      node,
      path,
      downloaded,
      sizeBytes,
    }));
  };
  assert.deepEqual(await models(), []);

  const plan = { repository: model.id, directory: 'nova', node: 'spark-01', bytesTotal: 2_000_002 };
  const pull = async () => {
    const seen: PullProgress[] = [];
    for await (const each of downloads.start(lab.call, plan)) seen.push(each);
    return seen;
  };
  hub.line({ stopsAfterBytes: 500_000 });
  const stalled = await within(
    pull().then(
      () => assert.fail('it is stalled'),
      (error: Error) => error.message,
    ),
    'a stall',
    20_000,
  );
  assert.match(stalled, /^DOWNLOAD STALLED: no bytes written to \S+\/nova for \d+s \([45]\d{5} bytes on disk, /);

  hub.line({});
  const seen = await within(pull(), 'the download', 20_000);
  assert.deepEqual(seen.at(-1), {
    status: 'downloaded',
    bytesCompleted: 2_000_002,
    bytesTotal: 2_000_002,
    node: 'spark-01',
    preset: undefined,
  });
  assert.equal((await stat(join(root, 'nova', 'model.safetensors'))).size, 2_000_000);
  const listed = { name: model.id, node: 'spark-01', path: 'nova', downloaded: true, sizeBytes: 2_000_002 };
  assert.deepEqual(await models(), [listed]);

  await within(inventory.remove(lab.call, 'nova', 'spark-01'), 'the removal', 20_000);
  assert.deepEqual(await models(), []);
  await eventually(() => lab.jobs().every(name => name.startsWith('mm-pull-')), 'helpers are removed');
});
