import assert from 'node:assert/strict';
import { test } from 'node:test';
import { objectsAt } from '../drivers/kserve/recordings.ts';
import { gpuPool, type PodEvent, pace, service, startLab, stepOf, weights } from './servingLab.ts';

const log = 'Traceback (most recent call last):\nValueError: too long\n';
const crash = { kind: 'crash', afterMs: 3_000, log } as const;

test('a runtime that crashes is started again, and waits longer each time', async t => {
  const { cluster, clock, told, phases, pods, log: logOf, events } = await startLab(t, { faults: { nova: crash } });
  cluster.put(service({ name: 'nova', nodeSelector: gpuPool }));
  await phases('nova', 'loading');
  const main = () => pods('nova')[0]?.status.containerStatuses?.[0];
  await clock.advance(crash.afterMs);
  assert.deepEqual([main()?.restartCount, main()?.state.terminated?.exitCode], [0, 1]);
  assert.match(told('nova', log).steps[4]?.message ?? '', /^runtime crashed 1× \(exit 1\): ValueError: too long$/);
  await clock.advance(1_000);
  assert.deepEqual(
    [main()?.restartCount, Object.keys(main()?.state ?? {})],
    [1, ['running']],
    'at once the first time',
  );

  for (const [crashes, seconds] of [
    [2, 10],
    [3, 20],
    [4, 40],
  ] as const) {
    await clock.advance(crash.afterMs + 1_000);
    const { reason, message } = main()?.state.waiting ?? {};
    assert.equal(reason, 'CrashLoopBackOff');
    const { name, uid } = pods('nova')[0]?.metadata ?? {};
    assert.equal(message, `back-off ${seconds}s restarting failed container=main pod=${name}_model-serving(${uid})`);
    assert.equal(main()?.lastState.terminated?.exitCode, 1);
    const step = stepOf(told('nova', log), 'loading');
    assert.deepEqual([step?.state, step?.reason], ['failed', 'CrashLoopBackOff']);
    assert.match(step?.message ?? '', new RegExp(`^runtime crashed ${crashes}× .*ValueError: too long; back-off`));
    for (const previous of [false, true])
      assert.match(await logOf('nova', 'main', previous), /ValueError: too long\n$/);
    await clock.advance(seconds * 1_000 - 1);
    assert.equal(main()?.restartCount, crashes - 1);
    await clock.advance(1);
    assert.equal(main()?.restartCount, crashes);
    assert.doesNotMatch(await logOf('nova', 'main'), /ValueError/);
    assert.match(await logOf('nova', 'main', true), /ValueError: too long\n$/);
  }
  const backOff = events('nova').filter(({ reason }) => reason === 'BackOff');
  assert.deepEqual(
    backOff.map(({ count }) => count),
    [3],
  );
  assert.equal(pods('nova')[0]?.status.phase, 'Running');
});

test('at the back-off its container says what one of a real cluster does', async t => {
  const { cluster, clock, phases, pods } = await startLab(t, { faults: { nova: crash } });
  cluster.put(service({ name: 'nova', nodeSelector: gpuPool }));
  await phases('nova', 'failed');
  await clock.advance(1);
  const real = objectsAt('crash-loop', '03-back-off').find(({ kind }) => kind === 'Pod') as unknown as {
    status: { containerStatuses: [object & { state: object; lastState: { terminated: object } }] };
  };
  const [expected] = real.status.containerStatuses;
  const [main] = pods('nova')[0]?.status.containerStatuses ?? [];
  assert.ok(main);
  const missing = (fields: object, there: object = {}) => Object.keys(fields).filter(field => !(field in there));
  assert.deepEqual(missing(expected, main), []);
  assert.deepEqual(Object.keys(main.state), Object.keys(expected.state));
  assert.deepEqual(missing(expected.lastState.terminated, main.lastState.terminated), []);
});

test('an image that no registry has is asked for again and again', async t => {
  const image = 'registry.example.com/vllm:none';
  const { cluster, clock, told, phases, pods, events } = await startLab(t, { missingImages: [image] });
  cluster.put(service({ name: 'nova', nodeSelector: gpuPool, image }));
  assert.deepEqual(await phases('nova', 'failed'), ['scheduling', 'downloadingWeights', 'pullingImage', 'failed']);
  const step = () => stepOf(told('nova'), 'pullingImage');
  assert.equal(step()?.reason, 'ErrImagePull');
  await clock.advance(1_000);
  assert.equal(step()?.reason, 'ImagePullBackOff');
  assert.match(
    told('nova').message ?? '',
    /^ImagePullBackOff Back-off pulling image "registry[^"]*": ErrImagePull: rpc/,
  );
  assert.equal(pods('nova')[0]?.status.phase, 'Pending');
  await clock.advance(60_000);
  const real = objectsAt('image-pull-back-off', '03-image-pull-back-off') as readonly unknown[];
  for (const { reason, type } of (real as PodEvent[]).filter(({ kind }) => kind === 'Event')) {
    const ours = events('nova').find(each => {
      return each.reason === reason && each.involvedObject.fieldPath === 'spec.containers{main}';
    });
    assert.deepEqual([ours?.type, (ours?.count ?? 0) > 1], [type, true], reason);
  }
});

test('a download that stalls ends after a while, and is begun again where it was', async t => {
  const stall = { kind: 'stall', at: 0.5, afterMs: 30_000 } as const;
  const { cluster, clock, told, phases, content, log: logOf } = await startLab(t, { faults: { nova: stall } });
  cluster.put(service({ name: 'nova', nodeSelector: gpuPool }));
  await phases('nova', 'downloadingWeights');
  await clock.advance(15_000);
  assert.equal(content('nova')?.bytes, weights / 2);
  await clock.advance(27_500);
  assert.equal(
    stepOf(told('nova'), 'downloadingWeights')?.message,
    'storage-initializer exited 1: requests.exceptions.ReadTimeout: no byte came for 30 s',
  );
  await clock.advance(pace.backoffMs);
  const { state, reason, message } = stepOf(told('nova'), 'downloadingWeights') ?? {};
  assert.deepEqual([state, reason], ['failed', 'DownloadStalled']);
  assert.match(message ?? '', /^storage-initializer restarted 1× \(last exit 1 Error requests/);
  assert.equal(content('nova')?.bytes, weights / 2);
  assert.match(await logOf('nova', 'storage-initializer'), /no byte came for 30 s\n/);
});

test('what may not be read is not served', async t => {
  const problem = 'huggingface_hub.errors.GatedRepoError: 401: access is restricted';
  const { cluster, told, phases } = await startLab(t, { repositories: () => ({ problem }) });
  cluster.put(service({ name: 'nova', nodeSelector: gpuPool }));
  await phases('nova', 'failed');
  assert.equal(stepOf(told('nova'), 'downloadingWeights')?.message, `storage-initializer exited 1: ${problem}`);
});
