/** Recorded serves, played in an emulated cluster and told by the driver: to who listens all along, and to who begins then. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { LoadedModel } from '../../../src/domain.ts';
import { eventually } from '../../support/server.ts';
import { tenSeconds } from './driverLab.ts';
import { startShow } from './playedLab.ts';
import { recordingNames, recordingOf } from './recordings.ts';

/** A row as recordings have it. */
function told(row: LoadedModel | undefined): unknown {
  if (!row) return undefined;
  const { status, phase, reason, message, node, endpoint, steps = [] } = row;
  return JSON.parse(JSON.stringify({ status, phase, reason, message, node, endpoint, steps }), (_, value) =>
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

for (const name of recordingNames) {
  test(`the driver tells ${name} at every instant`, async t => {
    const recording = recordingOf(name);
    await using lab = await startShow(t, recording);
    const { loaded } = lab.driver.observed ?? assert.fail('nothing is observed');
    loaded.subscribe(() => {});
    for (const [index, { name: instant = '', at, expect, denied }] of recording.instants.entries()) {
      await lab.show(index);
      const another = told(lab.rowIn(await lab.restarted().loaded?.(tenSeconds())));
      assert.deepEqual(withoutRefusals(another), withoutRefusals(expect), `${instant}, to who begins then`);
      // What was seen before stands when it may not be read again; and one death has one log.
      if (denied?.length || at === recording.instants[index - 1]?.at) continue;
      const live = () => told(lab.rowIn(loaded.current?.value));
      await eventually(() => isDeepStrictEqual(live(), expect), instant).catch(() =>
        assert.deepEqual(live(), expect, `${instant}, to who listens`),
      );
    }
  });
}
