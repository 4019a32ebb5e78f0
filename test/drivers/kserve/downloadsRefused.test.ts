import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCall } from '../../../src/call.ts';
import { createDownloads } from '../../../src/drivers/kserve/downloads.ts';
import { GatewayError } from '../../../src/errors.ts';
import { createWatches } from '../../../src/kubernetes/watches.ts';
import { createCell } from '../../../src/live/cell.ts';
import { mockTime, settled } from '../../live/clock.ts';
import { silent } from '../../support/gateway.ts';
import { settingsWith } from './world.ts';

test('who may not follow a download waits a minute for their rights, and then says that it goes on', async t => {
  const time = mockTime(t);
  const forbidden = new GatewayError('forbidden', 'cannot list jobs.batch in namespace model-serving');
  const removed: string[] = [];
  const never = () => Promise.reject(new Error('not asked for'));
  const client = {
    list: () => Promise.reject(forbidden),
    watch: () => assert.fail('nothing can be watched'),
    get: never,
    logs: never,
    create: async <T extends { metadata: object }>(_call: unknown, _resource: unknown, job: T) => ({
      ...job,
      metadata: { ...job.metadata, uid: 'u' },
    }),
    remove: async (_call: unknown, _resource: unknown, name: string) => {
      removed.push(name);
      return true;
    },
  };
  const downloads = createDownloads({
    client: client as never,
    watches: createWatches({ client: client as never, log: silent }),
    settings: createCell(settingsWith({ cache: { enabled: true } })),
    changed: () => {},
  });
  const call = createCall({ log: silent });
  const progress = downloads.start(call, { repository: 'o/n', directory: 'o-n' })[Symbol.asyncIterator]();
  assert.equal((await progress.next()).value?.status, 'download job created');
  let ended: GatewayError | undefined;
  progress.next().catch((error: GatewayError) => {
    ended = error;
  });
  await settled();
  for (let second = 0; second < 59; second++) await time.pass(1_000);
  assert.equal(ended, undefined);
  for (let second = 0; second < 10; second++) await time.pass(1_000);
  const { code, message } = ended ?? assert.fail('it still waits');
  assert.deepEqual(
    [code, message],
    [
      'forbidden',
      'download Job model-serving/mm-pull-o-n goes on, but cannot be followed: cannot list jobs.batch in namespace model-serving',
    ],
  );
  assert.deepEqual(removed, []);
});
