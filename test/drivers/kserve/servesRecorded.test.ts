/** Recorded serves, played in an emulated cluster and told by the driver: to who listens all along, and to who begins then. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { playRecording } from '../../../src/demo/playing.ts';
import type { LoadedModel } from '../../../src/domain.ts';
import { type Recording, stateAt } from '../../../src/drivers/kserve/recording.ts';
import { eventually } from '../../support/server.ts';
import { startDriver, tenSeconds, worldOf } from './driverLab.ts';
import { recordingNames, recordingOf } from './recordings.ts';

/** A row as recordings have it. */
function told(row: LoadedModel | undefined): unknown {
  if (!row) return undefined;
  const { status, phase, reason, message, node, endpoint, steps = [] } = row;
  const plain = steps.map(({ typical: _, ...step }) => step);
  return JSON.parse(JSON.stringify({ status, phase, reason, message, node, endpoint, steps: plain }), (_, value) =>
    typeof value === 'string' ? value.replace(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+Z$/, '$1Z') : value,
  );
}

/** Refusals have words of their own here: what was refused counts. */
const withoutRefusals = (value: unknown) =>
  JSON.parse(JSON.stringify(value ?? null), (_, each) =>
    typeof each === 'string'
      ? each.replace(/could not be read \(.*?forbidden.*?\)(?=;|$)/g, 'could not be read')
      : each,
  );

/** A cluster in which a recording goes on when the test says so; its clock is that of the recording. */
async function startPlayed(t: TestContext, recording: Recording) {
  const instants = recording.instants.map(({ at }, index) => ({ at, ...stateAt(recording, index) }));
  t.mock.timers.enable({ apis: ['Date'], now: instants[0]?.at as number });
  const flags = { scaleUpTimeout: `${recording.settings.scaleUpTimeout}ms` };
  const lab = await startDriver({ objects: worldOf({ storage: null, discovery: [], nodes: [] }), flags });
  for (const { metadata } of lab.cluster.list('configmaps', 'agent-platform')) {
    lab.cluster.remove('configmaps', metadata.name, 'agent-platform');
  }
  const steps = instants.map(() => ({ go: Promise.withResolvers<void>(), shown: Promise.withResolvers<void>() }));
  let next = 0;
  const clock = { now: () => Date.now(), sleep: async () => steps[next++]?.go.promise };
  const playing = playRecording(
    lab.cluster,
    { instants },
    { speed: 1, clock, shown: at => steps[at]?.shown.resolve() },
  );
  return {
    ...lab,
    /** Resolves when the objects of the instant are there. */
    async show(index: number) {
      t.mock.timers.setTime(instants[index]?.at as number);
      steps[index]?.go.resolve();
      await Promise.race([steps[index]?.shown.promise, playing]);
      // Only the date is mocked, so no timer tells that time has passed: any change does.
      const { namespace } = recording;
      lab.cluster.put({
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: `instant-${index}`, namespace },
        involvedObject: { kind: 'Pod', name: 'another', namespace },
      });
    },
    [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose](),
  };
}

for (const name of recordingNames) {
  test(`the driver tells ${name} at every instant`, async t => {
    const recording = recordingOf(name);
    await using lab = await startPlayed(t, recording);
    const { loaded } = lab.driver.observed ?? assert.fail('nothing is observed');
    loaded.subscribe(() => {});
    const rowIn = (rows: readonly LoadedModel[] | undefined) =>
      rows?.find(({ resource }) => resource === recording.object);
    for (const [index, { name: instant = '', at, expect, denied }] of recording.instants.entries()) {
      await lab.show(index);
      const another = told(rowIn(await lab.restarted().loaded?.(tenSeconds())));
      assert.deepEqual(withoutRefusals(another), withoutRefusals(expect), `${instant}, to who begins then`);
      // What was seen before stands when it may not be read again; and one death has one log.
      if (denied?.length || at === recording.instants[index - 1]?.at) continue;
      const live = () => told(rowIn(loaded.current?.value));
      await eventually(() => isDeepStrictEqual(live(), expect), instant).catch(() =>
        assert.deepEqual(live(), expect, `${instant}, to who listens`),
      );
    }
  });
}
