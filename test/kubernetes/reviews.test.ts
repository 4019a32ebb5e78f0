import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Call, createCall } from '../../src/call.ts';
import { type ClusterOptions, type Rule, startCluster } from '../../src/demo/cluster.ts';
import { backendError } from '../../src/errors.ts';
import { openServer } from '../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../src/kubernetes/client.ts';
import { needsOf, permissionFor, type Use } from '../../src/kubernetes/permissions.ts';
import { type Review, reviewBody, reviewed } from '../../src/kubernetes/review.ts';
import { createReviews } from '../../src/kubernetes/reviews.ts';
import { silent } from '../support/gateway.ts';

const namespace = 'model-serving';
const uses: Use[] = ['load', 'unload', 'pull', 'delete', 'unregister', 'wire', 'rewire', 'unwire', 'look'];
const keyUses: Use[] = ['makeKey', 'seekKey', 'dropKey'];

const ruleOf = ({ verb, group, resource }: Pick<Review, 'verb' | 'group' | 'resource'>): Rule => ({
  verbs: [verb],
  apiGroups: [group],
  resources: [resource],
  namespaces: [namespace],
});

async function startLab(t: TestContext, users: ClusterOptions['users'] = { jane: {}, john: {} }) {
  const cluster = await startCluster({ users });
  t.after(() => cluster.close());
  const client = createKubernetesClient(openServer(cluster.url));
  let time = 0;
  return {
    cluster,
    client,
    reviews: createReviews(client, () => time),
    pass(ms: number) {
      time += ms;
    },
    callOf(user: string): Call {
      const caller = { name: user, anonymous: false, scope: user, token: () => cluster.tokenOf(user) };
      return createCall({ log: silent, caller });
    },
    /** What the server was asked to review. */
    asked: () => cluster.requests.filter(({ resource }) => resource.startsWith('selfsubjectaccessreviews')).length,
  };
}

test('who lacks one right of a use is told which, and what it is for', async t => {
  for (const use of [...uses, ...keyUses]) {
    const needs = needsOf(use);
    assert.ok(needs.length > 0, `${use} takes rights`);
    for (const lacking of needs) {
      const rules = needs.filter(need => need !== lacking).map(ruleOf);
      const { reviews, callOf } = await startLab(t, { jane: { rules } });
      const { allowed, reason } = await reviews.permit(callOf('jane'), [{ use, namespace }]);
      const { verb, group, resource } = lacking;
      const what = group === '' ? resource : `${resource}.${group}`;
      assert.equal(allowed, false, `${use} without ${verb} ${resource}`);
      const why = permissionFor({ verb, group, resource })?.why;
      assert.equal(
        reason,
        `cannot ${verb} ${what} in namespace ${namespace}: no rule allows it; this is needed to ${why}`,
      );
    }
    const { reviews, callOf } = await startLab(t, { jane: { rules: needs.map(ruleOf) } });
    assert.deepEqual(await reviews.permit(callOf('jane'), [{ use, namespace }]), { allowed: true }, use);
    const elsewhere = await reviews.permit(callOf('jane'), [{ use, namespace: 'other' }]);
    assert.equal(elsewhere.allowed, false, `${use} in another namespace`);
  }
});

test('a right that is bound to a name is a right for the object of that name', async t => {
  const bound = {
    ...ruleOf({ verb: '*', group: '', resource: 'configmaps' }),
    resourceNames: ['model-backend-ollama'],
  };
  const { reviews, callOf } = await startLab(t, { jane: { rules: [bound] } });
  const permit = async (name?: string) =>
    (await reviews.permit(callOf('jane'), [{ use: 'unregister', namespace, name }])).allowed;
  assert.deepEqual(await Promise.all(['model-backend-ollama', 'model-backend-kserve', undefined].map(permit)), [
    true,
    false,
    false,
  ]);
});

test('each is asked for with their own token, and told their own answer', async t => {
  const rules = needsOf('load').map(ruleOf);
  const { reviews, callOf, asked, cluster } = await startLab(t, { jane: { rules }, john: {} });
  const wanted = [{ use: 'load', namespace }] as const;
  for (const _ of [1, 2]) {
    assert.equal((await reviews.permit(callOf('jane'), wanted)).allowed, true);
    assert.equal((await reviews.permit(callOf('john'), wanted)).allowed, false);
  }
  assert.equal(asked(), 2 * needsOf('load').length);
  const users = new Set(cluster.requests.map(({ user }) => user));
  assert.deepEqual(users, new Set(['jane', 'john']));
});

test('an answer stands for 30 s, however many ask; then it is asked for anew', async t => {
  const { reviews, callOf, asked, pass, cluster } = await startLab(t);
  const many = async () =>
    Promise.all(Array.from({ length: 50 }, () => reviews.permit(callOf('jane'), [{ use: 'load', namespace }])));
  const each = needsOf('load').length;
  await many();
  assert.equal(asked(), each);
  for (const need of needsOf('load')) cluster.grant('jane', ruleOf(need));
  pass(29_999);
  assert.equal((await many())[0]?.allowed, false);
  assert.equal(asked(), each);
  pass(1);
  assert.equal((await many())[0]?.allowed, true);
  assert.equal(asked(), 2 * each);
});

test('while the server is away nobody can tell, and that does not stand for long', async t => {
  const { reviews, callOf, cluster, pass } = await startLab(t, { jane: { rules: needsOf('load').map(ruleOf) } });
  const permit = () => reviews.permit(callOf('jane'), [{ use: 'load', namespace }]);
  await cluster.stop();
  const { allowed, reason } = await permit();
  assert.equal(allowed, undefined);
  assert.match(
    reason ?? '',
    /^nobody can tell now: cannot create selfsubjectaccessreviews\.authorization\.k8s\.io: the API server at .* cannot be reached \(ECONNREFUSED\)$/,
  );
  await cluster.start();
  pass(1_999);
  assert.equal((await permit()).allowed, undefined);
  pass(1);
  assert.equal((await permit()).allowed, true);
});

test('a token that is not accepted says nothing about rights', async t => {
  const { reviews, callOf, cluster } = await startLab(t);
  const call = callOf('jane');
  cluster.expireToken('jane');
  const { allowed, reason } = await reviews.permit(call, [{ use: 'load', namespace }]);
  assert.equal(allowed, undefined);
  assert.match(reason ?? '', /sign in again/);
});

test('a refusal goes before what nobody can tell', async () => {
  const review = async (_call: Call, { verb }: Review) => {
    if (verb === 'get') throw backendError('away');
    return backendError('no');
  };
  const permit = await createReviews({ review }).permit(createCall({ log: silent }), [{ use: 'load', namespace }]);
  assert.deepEqual(permit, { allowed: false, reason: 'no' });
});

test('who leaves is not waited with, and takes the answer from nobody else', async () => {
  const answer = Promise.withResolvers<undefined>();
  let asked = 0;
  const reviews = createReviews({
    review: async () => {
      asked++;
      return answer.promise;
    },
  });
  const leaving = new AbortController();
  const wanted = [{ use: 'seekKey', namespace }] as const;
  const gone = reviews.permit(createCall({ log: silent, signal: leaving.signal }), wanted);
  const stays = reviews.permit(createCall({ log: silent }), wanted);
  leaving.abort(new Error('left'));
  await assert.rejects(gone, /left/);
  answer.resolve(undefined);
  assert.equal((await stays).allowed, true);
  assert.equal(asked, 1);
});

test('so many answers are kept and no more: the oldest is asked for again', async () => {
  const asked: string[] = [];
  const reviews = createReviews({
    review: async call => {
      asked.push(call.caller.scope);
      return undefined;
    },
  });
  const permit = (scope: string) =>
    reviews.permit(createCall({ log: silent, caller: { name: scope, anonymous: false, scope } }), [
      { use: 'seekKey', namespace },
    ]);
  for (let each = 0; each < 10_000; each++) await permit(String(each));
  await permit('9999');
  assert.equal(asked.length, 10_000);
  await permit('one more');
  await permit('1');
  assert.equal(asked.length, 10_001);
  await permit('0');
  assert.equal(asked.at(-1), '0');
});

test('a part of an object is asked for as a part', () => {
  const review = { verb: 'get', group: '', resource: 'pods/log', namespace };
  assert.partialDeepStrictEqual(reviewBody(review), {
    spec: { resourceAttributes: { resource: 'pods', subresource: 'log' } },
  });
  const said = (status: object) => reviewed({ status }, review, 'https://api', false)?.message;
  assert.equal(said({ allowed: true }), undefined);
  const begins = `cannot get pods/log in namespace ${namespace}: `;
  assert.ok(said({ allowed: false })?.startsWith(`${begins}the API server does not allow it; this is needed to`));
  assert.ok(said({ allowed: false, reason: '', evaluationError: 'no role' })?.startsWith(`${begins}no role; `));
  assert.throws(() => said({}), /answered a document that is no object of Kubernetes/);
});
