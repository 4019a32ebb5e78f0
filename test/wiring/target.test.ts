/** What callers may expect of any target, asked of each that there is. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createCall } from '../../src/call.ts';
import type { Known, WiringTarget } from '../../src/wiring/wiring.ts';
import { silent } from '../support/gateway.ts';
import { refusal, startLab } from './lab.ts';
import { lemonadeModel, modelConfig, ollamaModel, openAI, servedModel } from './modelConfigs.ts';
import { routingTable } from './routingTable.ts';

interface Begun {
  readonly target: WiringTarget;
  /** Somebody else makes something of that name that leads to an endpoint and a model. */
  write(name: string, endpoint: string, model: string): void;
  /** The name that a model of Ollama is wired under. */
  nameOf(reference: string): string;
}

const targets: Readonly<Record<string, (t: TestContext) => Promise<Begun>>> = {
  async kagent(t) {
    const { kagent, cluster } = await startLab(t);
    return {
      target: kagent,
      write: (name, endpoint, model) =>
        cluster.put(modelConfig({ name, backend: false, spec: openAI(endpoint, model) })),
      nameOf: reference => reference.replaceAll(':', '-'),
    };
  },
  async 'a routing table'() {
    const target = routingTable();
    return {
      target,
      write: (name, upstream, model) => target.write(name, { upstream, model, authorization: undefined }),
      nameOf: reference => `ollama/${reference}`,
    };
  },
};

const call = createCall({ log: silent });
const knownBy = async ({ known }: WiringTarget) => (await known.read(call)).value as Known;

for (const [title, begin] of Object.entries(targets)) {
  test(`${title}: what is wired is known, and what is unwired is not`, async t => {
    const { target } = await begin(t);
    assert.equal((await target.state.read(call)).value?.available, true);
    const model = ollamaModel('m:1');
    assert.equal((await knownBy(target)).of(model), undefined);
    const ref = await target.wire(call, model);
    const { backend, model: reference, managed, endpoint, providerModel } = ref;
    assert.deepEqual(
      [backend, reference, managed, endpoint, providerModel],
      ['ollama', 'm:1', true, model.access.url, 'm:1'],
    );
    assert.deepEqual((await knownBy(target)).of(model), ref);
    assert.deepEqual((await knownBy(target)).refs, [ref]);
    assert.deepEqual(await target.wire(call, model), ref, 'again is the same');
    await target.unwire(call, 'ollama', 'm:1');
    assert.equal((await knownBy(target)).of(model), undefined);
    await target.unwire(call, 'ollama', 'm:1');
  });

  test(`${title}: a model of two backends is wired on each`, async t => {
    const { target } = await begin(t);
    const [a, b] = [ollamaModel('shared:1'), lemonadeModel('shared:1')];
    const [first, second] = [await target.wire(call, a), await target.wire(call, b)];
    assert.notEqual(first.name, second.name);
    assert.deepEqual((await target.backendsOf(call, 'shared:1')).toSorted(), ['lemonade', 'ollama']);
    await target.unwire(call, 'ollama', 'shared:1');
    assert.deepEqual(await target.backendsOf(call, 'shared:1'), ['lemonade']);
    assert.deepEqual(await target.wiredOn(call, 'ollama'), []);
    assert.deepEqual(await target.wiredOn(call, 'lemonade'), ['shared:1']);
    assert.deepEqual((await knownBy(target)).of(b), second);
  });

  test(`${title}: the way to show a key is the model's own, unless the caller names another`, async t => {
    const { target } = await begin(t);
    const shown = async (...given: Parameters<WiringTarget['wire']> extends [unknown, ...infer R] ? R : never) => {
      const { apiKeyPassthrough, apiKeySecret } = await target.wire(call, ...given);
      return [apiKeyPassthrough, apiKeySecret];
    };
    const secret = { name: 'team-key', key: 'K' };
    assert.deepEqual(await shown(ollamaModel()), [undefined, undefined]);
    assert.deepEqual(await shown(ollamaModel(), { passthrough: true }), [true, undefined]);
    assert.deepEqual(await shown(ollamaModel(), { passthrough: false, secret }), [undefined, 'team-key']);
    assert.deepEqual(await shown(ollamaModel()), [undefined, undefined]);
    assert.deepEqual(await shown(servedModel({ shared: false })), [true, undefined]);
    const refused = target.wire(call, servedModel({ shared: false }), { passthrough: false, secret });
    assert.match(await refusal(refused), /^invalid_request /);
  });

  test(`${title}: somebody else's is seen where that counts, and is never touched`, async t => {
    const { target, write, nameOf } = await begin(t);
    write('theirs', 'https://models.example.com/v1', 'qwen3-4b');
    write(nameOf('m:1'), 'http://172.21.0.1:11434', 'm:1');
    const before = (await knownBy(target)).refs;
    assert.equal((await knownBy(target)).of(servedModel())?.name, 'theirs');
    assert.equal((await knownBy(target)).of(servedModel({ shared: false })), undefined);
    assert.equal((await knownBy(target)).of(ollamaModel('m:1')), undefined);
    assert.match(await refusal(target.wire(call, ollamaModel('m:1'))), /^conflict .*is not managed by model-manager/);
    await target.unwire(call, 'ollama', 'm:1');
    assert.deepEqual(await target.wiredOn(call, 'ollama'), []);
    assert.deepEqual(await target.backendsOf(call, 'm:1'), []);
    assert.deepEqual((await knownBy(target)).refs, before);
  });
}
