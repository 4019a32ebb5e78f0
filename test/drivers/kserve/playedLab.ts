/** The driver on a cluster in which recordings are played; its clock is theirs. */
import type { TestContext } from 'node:test';
import { type PlayedRecording, playRecording } from '../../../src/demo/playing.ts';
import type { LoadedModel } from '../../../src/domain.ts';
import { type Recording, stateAt } from '../../../src/drivers/kserve/recording.ts';
import { type DriverLab, startDriver, worldOf } from './driverLab.ts';

export type PlayedLab = DriverLab & {
  /**
   * Of the recorded serve, without what is only an estimate, and without how far clocks are apart: the emulated server
   * keeps the date of its answers for up to a second, so it is late whenever the mocked one is set.
   */
  rowIn(rows: readonly LoadedModel[] | undefined): LoadedModel | undefined;
  play(
    instants: PlayedRecording['instants'],
    options: { sleep(): Promise<void>; shown?(index: number): void },
  ): Promise<void>;
};

/** Nothing is there but the definitions, until something is played. Only the date is mocked: timers are real. */
export async function startPlayed(t: TestContext, recording: Recording, now: number): Promise<PlayedLab> {
  t.mock.timers.enable({ apis: ['Date'], now });
  const flags = { scaleUpTimeout: `${recording.settings.scaleUpTimeout}ms` };
  const lab = await startDriver({ objects: worldOf({ storage: null, discovery: [], nodes: [] }), flags });
  const { cluster } = lab;
  for (const { metadata } of cluster.list('configmaps', 'agent-platform')) {
    cluster.remove('configmaps', metadata.name, 'agent-platform');
  }
  return {
    ...lab,
    rowIn(rows) {
      const row = rows?.find(({ resource }) => resource === recording.object);
      return row && { ...row, steps: row.steps?.map(({ typical: _, aheadMs: __, ...step }) => step) };
    },
    play: (instants, { sleep, shown }) =>
      playRecording(
        cluster,
        { instants },
        { speed: 1, clock: { now: () => Date.now(), sleep }, ...(shown && { shown }) },
      ),
  };
}

/** The instants with all that is there, as they are played. */
export const instantsOf = (recording: Recording): PlayedRecording['instants'] =>
  recording.instants.map(({ at }, index) => ({ at, ...stateAt(recording, index) }));

/** A recording that goes on when the test says so. */
export async function startShow(t: TestContext, recording: Recording) {
  const instants = instantsOf(recording);
  const lab = await startPlayed(t, recording, instants[0]?.at as number);
  const steps = instants.map(() => ({ go: Promise.withResolvers<void>(), shown: Promise.withResolvers<void>() }));
  let next = 0;
  const playing = lab.play(instants, {
    sleep: async () => steps[next++]?.go.promise,
    shown: index => steps[index]?.shown.resolve(),
  });
  return {
    ...lab,
    /** Resolves when the objects of the instant are there. */
    async show(index: number) {
      t.mock.timers.setTime(instants[index]?.at as number);
      steps[index]?.go.resolve();
      await Promise.race([steps[index]?.shown.promise, playing]);
      // No timer tells that time has passed: any change does.
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
