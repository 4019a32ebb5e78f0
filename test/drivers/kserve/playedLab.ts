/** The driver on a cluster in which recordings are played; its clock is theirs. */
import type { TestContext } from 'node:test';
import { type PlayedRecording, playRecording } from '../../../src/demo/playing.ts';
import type { LoadedModel } from '../../../src/domain.ts';
import { type Recording, stateAt } from '../../../src/drivers/kserve/recording.ts';
import { type DriverLab, startDriver, worldOf } from './driverLab.ts';

export type PlayedLab = DriverLab & {
  /** Of the recorded serve, without what is only an estimate. */
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
      return row && { ...row, steps: row.steps?.map(({ typical: _, ...step }) => step) };
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
