/** The kinds that the gateway speaks of as their projects publish them: in the emulated cluster, and of what it writes. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type EmulatedCluster, startCluster } from '../../../src/demo/cluster.ts';
import { kagentDefinition } from '../../../src/demo/kagent.ts';
import { type Definition, publishedKinds, skip } from '../../support/crds.ts';
import { startLab } from '../../wiring/lab.ts';
import { lemonadeModel, ollamaModel, servedModel } from '../../wiring/modelConfigs.ts';

const namespace = 'default';

interface Written {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

describe('published kinds', { skip }, () => {
  let cluster: EmulatedCluster;
  let definitions: readonly Definition[];
  before(async () => {
    const kinds = publishedKinds();
    definitions = kinds.objects;
    cluster = await startCluster(kinds);
  });
  after(() => cluster?.close());

  async function asked(method: string, path: string, body?: object, contentType = 'application/json') {
    const init = body && { body: JSON.stringify(body), headers: { 'content-type': contentType } };
    const answer = await fetch(cluster.url + path, { method, signal: AbortSignal.timeout(30_000), ...init });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  }

  const pathOf = (apiVersion: string, plural: string) => `/apis/${apiVersion}/namespaces/${namespace}/${plural}`;

  test('are all served, in all their versions', async () => {
    assert.ok(definitions.length > 0);
    for (const { spec } of definitions) {
      for (const version of spec.versions) {
        const { body } = await asked('GET', `/apis/${spec.group}/${version.name}`);
        const names = (body.resources as { name: string; kind: string }[]).map(({ name, kind }) => `${name} ${kind}`);
        assert.ok(names.includes(`${spec.names.plural} ${spec.names.kind}`), `${spec.names.plural} ${version.name}`);
      }
    }
  });

  const modelConfig = (name: string, spec: object, apiVersion = 'kagent.dev/v1alpha2') => ({
    apiVersion,
    kind: 'ModelConfig',
    metadata: { name },
    spec,
  });
  const llm = (name: string, spec: object) => ({
    apiVersion: 'serving.kserve.io/v1alpha2',
    kind: 'LLMInferenceService',
    metadata: { name },
    spec,
  });

  const fitting: Readonly<Record<string, readonly [plural: string, object: Written]>> = {
    'a ModelConfig': [
      'modelconfigs',
      modelConfig('fits', { provider: 'Ollama', model: 'a', ollama: { host: 'http://a:1', options: { k: '1' } } }),
    ],
    'an LLMInferenceService': [
      'llminferenceservices',
      llm('fits', { model: { uri: 'hf://a/b', name: 'a' }, replicas: 1, template: { containers: [{ name: 'main' }] } }),
    ],
    'an InferenceService': [
      'inferenceservices',
      {
        apiVersion: 'serving.kserve.io/v1beta1',
        kind: 'InferenceService',
        metadata: { name: 'fits' },
        spec: { predictor: { model: { modelFormat: { name: 'huggingface' }, storageUri: 'hf://a/b' } } },
      },
    ],
  };
  for (const [what, [plural, object]] of Object.entries(fitting)) {
    test(`${what} that fits is taken`, async () => {
      const { status, body } = await asked('POST', pathOf(object.apiVersion, plural), object);
      assert.equal(status, 201, String(body.message));
    });
  }

  const misfits: Readonly<Record<string, readonly [plural: string, object: Written, words: RegExp]>> = {
    'a provider that there is not': [
      'modelconfigs',
      modelConfig('a', { provider: 'Nobody', model: 'a' }),
      /^ModelConfig\.kagent\.dev "a" is invalid: .*spec\.provider: Unsupported value: "Nobody": supported values: "Anthropic"/,
    ],
    'another type': [
      'modelconfigs',
      modelConfig('b', { provider: 'Ollama', model: 3 }),
      /spec\.model: Invalid value: .*spec\.model in body must be of type string/,
    ],
    'nothing where something must be': [
      'inferenceservices',
      { apiVersion: 'serving.kserve.io/v1beta1', kind: 'InferenceService', metadata: { name: 'c' }, spec: {} },
      /^InferenceService\.serving\.kserve\.io "c" is invalid: .*spec\.predictor: Required value/,
    ],
    'a word for a number, deep down': [
      'llminferenceservices',
      llm('d', { model: { uri: 'a' }, template: { containers: [{ name: 'a', ports: [{ containerPort: 'http' }] }] } }),
      /spec\.template\.containers\[0\]\.ports\[0\]\.containerPort: Invalid value: .*must be of type integer/,
    ],
  };
  for (const [what, [plural, object, words]] of Object.entries(misfits)) {
    test(`${what} is refused`, async () => {
      const { status, body } = await asked('POST', pathOf(object.apiVersion, plural), object);
      assert.equal(status, 422, JSON.stringify(body));
      assert.match(String(body.message), words);
    });
  }

  test('what is put into the cluster must fit too, and have no other fields', () => {
    const put = (spec: object) => {
      const { metadata, ...rest } = modelConfig('put', spec);
      cluster.put({ ...rest, metadata: { ...metadata, namespace } });
    };
    put({ provider: 'Ollama', model: 'a' });
    const refusals: readonly (readonly [spec: object, words: string])[] = [
      [{ provider: 'Ollama', model: 'a', modle: 'b' }, 'unknown field "spec.modle"'],
      [{ provider: 'Ollama' }, 'spec.model: Required value'],
      [{ provider: 'Ollama', model: 3 }, 'spec.model: Invalid value: 3: spec.model in body must be of type string'],
    ];
    for (const [spec, words] of refusals) {
      assert.throws(() => put(spec), { message: `ModelConfig.kagent.dev "put" is invalid: ${words}` });
    }
  });

  test('server-side apply merges lists as the definition says', async () => {
    const path = `${pathOf('serving.kserve.io/v1alpha2', 'llminferenceservices')}/shared`;
    const apply = (by: string, ...names: string[]) => {
      const containers = names.map(name => ({ name, image: `${name}:1` }));
      const wanted = llm('shared', { model: { uri: 'hf://a/b' }, template: { containers } });
      return asked('PATCH', `${path}?fieldManager=${by}`, wanted, 'application/apply-patch+yaml');
    };
    const names = ({ body }: { body: Record<string, unknown> }) =>
      (body as { spec: { template: { containers: { name: string }[] } } }).spec.template.containers.map(
        ({ name }) => name,
      );
    assert.deepEqual(names(await apply('one', 'a')), ['a']);
    assert.deepEqual(names(await apply('two', 'b')), ['a', 'b']);
    assert.deepEqual(names(await apply('one', 'c')), ['b', 'c']);
  });
});

describe('kagent as it is published', { skip }, () => {
  const { objects, validate } = publishedKinds('modelconfigs.kagent.dev');

  for (const version of ['v1alpha2', 'v1alpha3']) {
    test(`has every field of what the gateway writes in ${version}`, async t => {
      const { kagent, callOf, modelConfigs, cluster } = await startLab(t, { versions: [version] });
      for (const model of [ollamaModel(), lemonadeModel(), servedModel()]) await kagent.wire(callOf(), model);
      assert.equal(modelConfigs().length, 3);
      for (const name of modelConfigs()) {
        const written = cluster.get('modelconfigs.kagent.dev', name, 'kagent');
        assert.equal(written?.apiVersion, `kagent.dev/${version}`);
        assert.deepEqual(validate(written), [], name);
      }
    });
  }

  interface Schema {
    readonly type?: string;
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly items?: Schema;
  }

  /** Fields that the one has and the other has not, or has as something else. */
  function foreign(own: Schema, published: Schema | undefined, path: string): readonly string[] {
    if (!published || own.type !== published.type) return [path];
    const items = own.items ? foreign(own.items, published.items, `${path}[]`) : [];
    const fields = Object.entries(own.properties ?? {}).flatMap(([name, schema]) =>
      foreign(schema, published.properties?.[name], `${path}.${name}`),
    );
    return [...items, ...fields];
  }

  test('has every field of the kagent that is emulated', () => {
    const emulated = kagentDefinition() as unknown as Definition;
    for (const { name, schema } of emulated.spec.versions) {
      const published = objects[0]?.spec.versions.find(version => version.name === name);
      assert.ok(published, name);
      assert.deepEqual(foreign(schema.openAPIV3Schema, published.schema.openAPIV3Schema, name), []);
    }
  });
});
