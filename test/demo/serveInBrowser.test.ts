/** A model that is served from nothing, as somebody sees it in GraphiQL, and what all faces say of it then. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { callTool } from '../mcp/muster.ts';
import { noBrowser, openBrowser, openGraphiql, picture, runTab, shown } from '../support/browser.ts';
import { startDemo } from '../support/demo.ts';
import { rest } from '../support/rest.ts';
import { send, textOf } from '../support/server.ts';

const preset = 'qwen2-5-7b-x2';
const phases = [
  'SCHEDULING',
  'NODE_STARTING',
  'DOWNLOADING_WEIGHTS',
  'PULLING_IMAGE',
  'LOADING',
  'ROUTING',
  'READY',
] as const;

/** The phases that the page was sent over its WebSocket and those that it displayed, and their reasons. */
function watchPage(page: Page) {
  const times: string[] = [];
  const sent: string[] = [];
  const reasons = new Set<string>();
  page.on('websocket', socket =>
    socket.on('framereceived', ({ payload }) => {
      const { serve, observedAt } = JSON.parse(String(payload)).payload?.data?.serve ?? {};
      if (!serve) return;
      times.push(observedAt);
      sent.push(serve.phase);
      reasons.add(serve.reason);
    }),
  );
  const displayed: string[] = [];
  /** Waits for two frames of the page. */
  async function look(): Promise<string | undefined> {
    const phase = await page.evaluate(async () => {
      for (let frames = 0; frames < 2; frames++) await new Promise(requestAnimationFrame);
      const lines = [...document.querySelectorAll('.result-window .view-line')].map(line => line.textContent ?? '');
      return lines.map(line => /"phase":\s*"(\w+)"/.exec(line)?.[1]).find(found => found !== undefined);
    });
    if (phase !== undefined && phase !== displayed.at(-1)) displayed.push(phase);
    return phase;
  }
  return { times, sent, reasons, displayed, look };
}

/** Each phase once, in the order in which they were over for good. */
const passed = (all: readonly string[]) => [...new Set(all.toReversed())].reverse();

/** Words of the graph as the older faces have them: `NODE_STARTING` is nodeStarting there, and what is null is left out. */
const asOlder = (row: object): object =>
  JSON.parse(JSON.stringify(row), (_key, value) => {
    if (value === null) return undefined;
    if (typeof value !== 'string' || !/^[A-Z_]+$/.test(value)) return value;
    return value.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  });

/** The served model on each face, whole. */
async function onAllFaces(url: string) {
  const ours = (rows: { preset?: string }[]) => rows.filter(row => row.preset === preset);
  const { json } = await send(`${url}/graphql`, { query: textOf('listLoaded'), variables: { backend: 'kserve' } });
  const { data } = json as { data: { loadedModels: { loaded: [] } } };
  const route = await rest(url, 'GET /api/v1/loaded?backend=kserve');
  const tool = await callTool(`${url}/mcp`, 'list_loaded_models', { backend: 'kserve' });
  return {
    graphql: ours(data.loadedModels.loaded).map(asOlder) as Loaded[],
    rest: ours(route.json.loaded),
    mcp: ours(tool.data.loaded),
  };
}

interface Loaded {
  readonly status: string;
  readonly phase: string;
  readonly steps: readonly { name: string; state: string }[];
  readonly endpoint: string;
  readonly modelConfig: { name: string; ready: boolean };
}

test('GraphiQL follows a model from a refused node to its first answer', { skip: noBrowser }, async t => {
  const { url, live } = await startDemo(t, '--kserve-poll-interval', '20ms');
  const { page, complaints } = await openBrowser(t);
  const { times, sent, reasons, displayed, look } = watchPage(page);
  await openGraphiql(page, `${url}/graphql`);
  await runTab(page, 'watchServe', /"serve":\s*null/);

  const mutation =
    'mutation ($preset: String!) { loadModel(backend: "kserve", preset: $preset) { running { phase } } }';
  const loaded = await send(`${url}/graphql`, { query: mutation, variables: { preset } });
  assert.deepEqual(loaded.json, { data: { loadModel: { running: { phase: 'SCHEDULING' } } } });

  // Time stands still while the page is behind.
  let isUpToDate = true;
  await live(
    async () => {
      const before = displayed.at(-1);
      const now = await look();
      isUpToDate = now === sent.at(-1);
      if (now !== undefined && now !== before) await picture(page, `serve-${now.toLowerCase()}`);
      return now === 'READY';
    },
    'the page shows READY',
    () => isUpToDate,
    50_000,
  );
  assert.deepEqual(passed(displayed), phases);
  for (const reason of ['CapacityUnavailable', 'NodeLaunching', 'NodeStarting', 'DownloadingWeights']) {
    assert.ok(reasons.has(reason), `${reason} was among ${[...reasons]}`);
  }
  assert.deepEqual(times, times.toSorted(), 'what comes later was seen later');
  await shown(
    page,
    /"name":\s*"Qwen\/Qwen2\.5-7B-Instruct"/,
    /"remainingSeconds":\s*null/,
    /"endpoint":\s*"https:\/\/models\.example\.com\/model-serving\//,
    /"ready":\s*true/,
  );
  assert.deepEqual(complaints, []);

  const { graphql, ...older } = await onAllFaces(url);
  const [{ status, phase, steps, endpoint, modelConfig }] = graphql as [Loaded];
  assert.deepEqual([status, phase, modelConfig.name, modelConfig.ready], ['Ready', 'ready', preset, true]);
  assert.deepEqual(new Set(steps.map(({ state }) => state)), new Set(['done']));
  assert.equal(steps.length, phases.length);
  assert.equal(endpoint, `https://models.example.com/model-serving/${preset}`);
  assert.deepEqual(older, { rest: graphql, mcp: graphql });
});
