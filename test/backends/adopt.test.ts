import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { pino } from 'pino';
import { pullModel } from '../../src/backends/actions.ts';
import { startAdopting } from '../../src/backends/adopt.ts';
import { createBackend } from '../../src/backends/backend.ts';
import { type Call, cancelled, interrupted } from '../../src/call.ts';
import type { Job, PullProgress } from '../../src/domain.ts';
import type { Driver, PullRequest, UnfinishedPull } from '../../src/drivers/driver.ts';
import { backendError, unavailable } from '../../src/errors.ts';
import { mockTime, settled } from '../live/clock.ts';
import { callOf } from '../support/backends.ts';
import { type FakeDriver, fakeDriver, hang, silent, testGateway } from '../support/gateway.ts';
import { jobEnd, jobWhen } from '../support/jobs.ts';
import { eventually, within } from '../support/server.ts';

const inTime = { timeout: 10_000 };

/** A download that goes on at a backend until the test ends it; who follows it hears what is said. */
function download(request: PullRequest, place: Partial<PullProgress> = {}) {
  const end = Promise.withResolvers<void>();
  const followers: Call[] = [];
  const said: PullProgress = { status: 'downloading', bytesCompleted: 5, bytesTotal: 10, ...place };
  const found: UnfinishedPull = {
    request,
    async *follow(call) {
      followers.push(call);
      yield said;
      await Promise.race([end.promise, hang().answer(call)]);
      yield { ...said, status: 'downloaded', bytesCompleted: 10 };
    },
  };
  return { found, followers, end };
}

type Answer = (call: Call) => Promise<UnfinishedPull[]>;

/** A backend that is asked what goes on there: `asked` has the calls. */
function backendWith(unfinished: Answer, name = 'kserve') {
  const asked: Call[] = [];
  const fake = fakeDriver({ name, kind: 'kserve' });
  const driver: Driver & Pick<FakeDriver, 'asked'> = {
    ...fake,
    canonical: reference => reference.split(':')[0]?.toLowerCase() ?? '',
    unfinished(call) {
      asked.push(call);
      return unfinished(call);
    },
  };
  return { driver, asked };
}

function adopting(t: TestContext, drivers: readonly Driver[], log = silent) {
  const gateway = testGateway({ drivers });
  const stop = startAdopting(gateway, log);
  t.after(stop);
  return { gateway, stop, jobs: () => gateway.jobs.store.list() };
}

const factsOf = ({ type, backend, model, node, preset, wire, requestedBy }: Job) => ({
  type,
  backend,
  model,
  node,
  preset,
  wire,
  requestedBy,
});

test('what goes on at a backend is a running pull as it was asked for, and ends as it ends', inTime, async t => {
  const one = download({ model: 'Acme/Nova:v1', preset: 'nova', node: 'n7' });
  const two = download({ model: 'acme/other' }, { node: 'n1', preset: 'p' });
  const { driver } = backendWith(async () => [one.found, two.found]);
  const { gateway, jobs } = adopting(t, [fakeDriver(), driver]);
  await eventually(() => jobs().length === 2, 'both are followed');
  const [nova, other] = ['Acme/Nova:v1', 'acme/other'].map(model => jobs().find(job => job.model === model)) as [
    Job,
    Job,
  ];
  const same = { type: 'pull', backend: 'kserve', wire: false, requestedBy: undefined };
  assert.deepEqual(factsOf(nova), { ...same, model: 'Acme/Nova:v1', preset: 'nova', node: 'n7' });

  const running = await jobWhen(gateway, other.id, ({ bytesCompleted }) => bytesCompleted === 5);
  assert.deepEqual(
    [running.phase, running.status, running.node, running.preset],
    ['running', 'downloading', 'n1', 'p'],
    'where it goes to is what its progress says',
  );
  two.end.resolve();
  one.end.reject(backendError('download failed: BackoffLimitExceeded'));
  assert.equal((await jobEnd(gateway, other.id)).phase, 'succeeded');
  const failed = await jobEnd(gateway, nova.id);
  assert.deepEqual([failed.phase, failed.error], ['failed', 'download failed: BackoffLimitExceeded']);
});

test('a pull that is asked meanwhile joins it, and one that was asked before is joined', inTime, async t => {
  const { found, followers, end } = download({ model: 'Acme/Nova:v1' });
  const answer = Promise.withResolvers<UnfinishedPull[]>();
  const { driver, asked } = backendWith(() => answer.promise);
  const early = fakeDriver({ name: 'other' });
  early.script.pull = async function* (call) {
    await hang().answer(call);
    yield { status: '', bytesCompleted: 0, bytesTotal: 0 };
  };
  const second = backendWith(async () => [download({ model: 'acme/x' }).found], 'other');
  const { gateway, jobs } = adopting(t, [driver]);
  answer.resolve([found]);
  await eventually(() => jobs().length === 1, 'it is followed');
  const joined = await pullModel(gateway, callOf(), { model: 'acme/nova' });
  assert.deepEqual([joined.created, joined.job.model], [false, 'Acme/Nova:v1']);
  assert.deepEqual(driver.asked, [], 'nothing is pulled a second time');
  end.resolve();
  await jobEnd(gateway, joined.job.id);
  assert.deepEqual([asked.length, followers.length], [1, 1]);

  const late = { ...early, unfinished: second.driver.unfinished } as Driver;
  const before = testGateway({ drivers: [late] });
  const { job } = await pullModel(before, callOf(), { model: 'acme/x' });
  t.after(startAdopting(before, silent));
  await eventually(() => second.asked.length === 1, 'it is asked');
  await settled();
  assert.deepEqual(
    before.jobs.store.list().map(({ id }) => id),
    [job.id],
  );
});

test('cancelling ends it for good; a gateway that stops leaves it running', inTime, async t => {
  const [one, two] = [download({ model: 'a/one' }), download({ model: 'a/two' })];
  const { driver } = backendWith(async () => [one.found, two.found]);
  const { gateway, jobs } = adopting(t, [driver]);
  await eventually(() => one.followers.length + two.followers.length === 2, 'both are followed');
  const idOf = (model: string) => jobs().find(job => job.model === model)?.id ?? '';
  await gateway.jobs.cancel(callOf(), idOf('a/one'));
  assert.equal((await jobEnd(gateway, idOf('a/one'))).phase, 'cancelled');
  assert.equal(one.followers[0]?.signal.reason, cancelled);
  await within(gateway.jobs.interrupt(), 'the interruption');
  assert.equal((await jobEnd(gateway, idOf('a/two'))).error, interrupted.message);
  assert.equal(two.followers[0]?.signal.reason, interrupted);
});

test('a backend that cannot say is asked again with growing patience, and each reason is told once', async t => {
  const time = mockTime(t);
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const { found } = download({ model: 'a/b' });
  const failures = ['down', 'down', 'down', 'forbidden', 'forbidden'];
  const { driver, asked } = backendWith(async () => {
    const failure = failures.shift();
    if (failure) throw unavailable(failure);
    return [found];
  });
  const { jobs } = adopting(t, [driver], log);
  await settled();
  const times = [Date.now()];
  while (asked.length < 6) {
    const before = asked.length;
    await time.pass(100);
    if (asked.length > before) times.push(Date.now());
    assert.ok(Date.now() - (times[0] ?? 0) < 60_000, 'it is asked again in time');
  }
  const pauses = times.slice(1).map((at, index) => at - (times[index] ?? 0));
  assert.deepEqual(
    pauses,
    pauses.toSorted((a, b) => a - b),
  );
  assert.ok((pauses.at(-1) ?? 0) > 8 * (pauses[0] ?? 0), `they grow: ${pauses.join(', ')} ms`);
  assert.equal(jobs().length, 1);
  const told = lines.filter(({ level }) => level === 40).map(({ backend, error }) => [backend, error]);
  assert.deepEqual(told, [
    ['kserve', 'backend unavailable: down'],
    ['kserve', 'backend unavailable: forbidden'],
  ]);
  await time.pass(600_000);
  assert.equal(asked.length, 6, 'once it has said, it is not asked any more');
});

test('each registration is asked once, and nobody who is not registered any more', async t => {
  const time = mockTime(t);
  const { gateway, stop } = adopting(t, [fakeDriver()]);
  const filed = (driver: Driver) => createBackend(driver, 'person', silent);
  const failing = backendWith(async () => {
    throw unavailable('down');
  });
  const saying = backendWith(async () => [], 'east');
  const [first, second] = [filed(failing.driver), filed(saying.driver)];
  gateway.registry.register([first, second], []);
  gateway.registry.register([first, second], []);
  await time.pass(0);
  assert.deepEqual([failing.asked.length, saying.asked.length], [1, 1]);
  gateway.registry.register([filed(saying.driver)], []);
  await time.pass(600_000);
  assert.deepEqual([failing.asked.length, saying.asked.length], [1, 2], 'a new backend of the same name is asked anew');

  stop();
  gateway.registry.register([filed(saying.driver)], []);
  await time.pass(600_000);
  assert.equal(saying.asked.length, 2);
});

test('nothing begins after the gateway was stopped, and nobody waits for it', inTime, async t => {
  const answer = Promise.withResolvers<UnfinishedPull[]>();
  const slow = backendWith(() => answer.promise, 'slow');
  const waiting = hang();
  const patient = backendWith(waiting.answer);
  const { stop, jobs } = adopting(t, [slow.driver, patient.driver]);
  await within(waiting.reached, 'the question');
  stop();
  await within(waiting.aborted, 'the end of the question');
  answer.resolve([download({ model: 'a/b' }).found]);
  await settled();
  assert.deepEqual(jobs(), []);
  assert.deepEqual([slow.asked.length, patient.asked.length], [1, 1]);
});
