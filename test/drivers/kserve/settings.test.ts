import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kserveFlags } from '../../../src/config/kserve.ts';
import { ConfigError } from '../../../src/config/settings.ts';
import { checkFlags, discoveryRefOf, settingsOf, withoutGpus } from '../../../src/drivers/kserve/settings.ts';
import { flagsOf, settingsWith } from './world.ts';

const full = {
  namespace: 'models',
  gpuResourceName: 'amd.com/gpu',
  runtimeClassName: 'nvidia',
  nodeSelector: { a: 'b' },
  gpuPool: {
    taint: { key: 'gpu', effect: 'NoSchedule' },
    nodeSelector: { pool: 'found' },
    instances: [
      {
        instanceType: 'g6.xlarge',
        vcpu: 4,
        memoryGiB: 16,
        gpus: 1,
        gpuMemoryGiB: 24,
        usableVcpu: 3,
        usableMemoryGiB: 12,
      },
    ],
  },
  cache: { enabled: true, claimName: 'weights', mountPath: '/weights', redirectPolicy: true },
  presets: { namespace: 'catalogue', labelSelector: 'x=y' },
  gateway: { enabled: true, endpoint: 'https://models.example.com//' },
};
const registered = { target: { servingNamespace: 'registered' }, discovery: { namespace: 'there', name: 'document' } };

test('without flags and document the defaults count', () => {
  assert.deepEqual(settingsWith(undefined), {
    namespace: 'model-serving',
    gpuResource: 'nvidia.com/gpu',
    cache: {
      enabled: true,
      claim: 'hf-cache',
      mountPath: '/mnt/models',
      redirectPolicy: false,
      nodes: [],
      indexConfigMap: 'model-manager-cache-index',
    },
    runtimeClass: undefined,
    nodeSelector: {},
    gpuPool: undefined,
    scheduler: false,
    presets: { namespace: 'agent-platform', selector: 'agent-platform.giantswarm.io/serving-preset=true' },
    gatewayEndpoint: undefined,
    hub: { endpoint: 'https://huggingface.co', tokenSecret: undefined, timeout: 4000 },
    downloads: {
      image: 'gsoci.azurecr.io/giantswarm/storage-initializer:v0.20.0',
      toolImage: 'gsoci.azurecr.io/giantswarm/alpine:3.22.1',
      ignorePatterns: [],
      stallTimeout: 600_000,
      jobTtl: 3_600_000,
    },
    inventory: {
      mode: 'pod',
      ttl: 120_000,
      timeout: 120_000,
      agentSelector: 'model-manager.giantswarm.io/component=cache-agent',
      agentPort: 8081,
    },
    budgetSource: 'auto',
    defaultOverheadBytes: 30 * 2 ** 30,
    readyTimeout: 7_200_000,
    pollInterval: 5000,
    scaleUpTimeout: 600_000,
  });
});

test('what the document says goes before defaults', () => {
  const { namespace, gpuResource, cache, runtimeClass, nodeSelector, gpuPool, presets, gatewayEndpoint } =
    settingsWith(full);
  assert.deepEqual(
    { namespace, gpuResource, runtimeClass, nodeSelector, presets, gatewayEndpoint },
    {
      namespace: 'models',
      gpuResource: 'amd.com/gpu',
      runtimeClass: 'nvidia',
      nodeSelector: { a: 'b' },
      presets: { namespace: 'catalogue', selector: 'x=y' },
      gatewayEndpoint: 'https://models.example.com',
    },
  );
  assert.deepEqual(
    [cache.enabled, cache.claim, cache.mountPath, cache.redirectPolicy],
    [true, 'weights', '/weights', true],
  );
  assert.deepEqual(gpuPool?.instances?.[0]?.size, 'xlarge');
});

test('flags go before the document, when somebody gave them', () => {
  const settings = settingsWith(full, {
    namespace: 'flagged',
    gpuResource: 'flag.com/gpu',
    cacheClaim: 'flag-claim',
    cacheMountPath: '/flag',
    presetNamespace: 'flag-presets',
    presetSelector: 'flag=1',
    hfEndpoint: 'http://mirror:8080/',
    hfTokenSecret: 'hub',
    hfTokenSecretKey: 'key',
    downloadIgnorePatterns: ' *.bin, ,original/* ',
    cacheNodes: 'b, a ,b',
    scaleUpTimeout: '0',
    defaultOverheadGib: '2.5',
  });
  assert.equal(settings.namespace, 'flagged');
  assert.equal(settings.gpuResource, 'flag.com/gpu');
  assert.deepEqual(settings.presets, { namespace: 'flag-presets', selector: 'flag=1' });
  assert.deepEqual([settings.cache.claim, settings.cache.mountPath], ['flag-claim', '/flag']);
  assert.deepEqual(settings.cache.nodes, ['a', 'b']);
  assert.deepEqual(settings.hub, {
    endpoint: 'http://mirror:8080',
    tokenSecret: { name: 'hub', key: 'key' },
    timeout: 4000,
  });
  assert.deepEqual(settings.downloads.ignorePatterns, ['*.bin', 'original/*']);
  assert.deepEqual([settings.scaleUpTimeout, settings.defaultOverheadBytes], [0, 2.5 * 2 ** 30]);
  const blank = settingsWith(full, { gpuResource: ' ', presetSelector: '  ' });
  assert.equal(blank.gpuResource, 'amd.com/gpu', 'white space is nothing');
});

test('a document that does not say so has no cache, but a flag that names a claim turns it on', () => {
  const enabled = (spec: object | undefined, cacheClaim = '') => settingsWith(spec, { cacheClaim }).cache.enabled;
  assert.equal(enabled(undefined), true);
  assert.equal(enabled({}), false);
  assert.equal(enabled({ cache: {} }), false);
  assert.equal(enabled({ cache: { enabled: false, claimName: 'x' } }), false);
  assert.equal(enabled({ cache: { enabled: false } }, 'mine'), true);
});

test('a gateway that is off has no endpoint', () => {
  const endpoint = (gateway: object) => settingsWith({ gateway }).gatewayEndpoint;
  assert.equal(endpoint({ enabled: false, endpoint: 'https://x' }), undefined);
  assert.equal(endpoint({ endpoint: 'https://x' }), undefined);
  assert.equal(endpoint({ enabled: true, endpoint: ' / ' }), undefined);
  assert.equal(endpoint({ enabled: true, endpoint: 'https://x/' }), 'https://x');
});

test('what registered the backend goes before all, each part of its pool for itself', () => {
  const taint = { key: 'mine' } as const;
  const flags = { namespace: 'flagged' };
  const merged = (gpuPool: object | undefined, router?: { scheduler?: boolean }) =>
    settingsWith(full, flags, { registered: { ...registered, gpuPool, router } });
  assert.equal(merged(undefined).namespace, 'registered');
  assert.deepEqual(merged(undefined).gpuPool?.nodeSelector, { pool: 'found' });
  assert.deepEqual(merged({ taint }).gpuPool?.taint, taint);
  assert.deepEqual(merged({ taint }).gpuPool?.nodeSelector, { pool: 'found' });
  assert.equal(merged({ taint }).gpuPool?.instances?.length, 1);
  assert.deepEqual(merged({ nodeSelector: { pool: 'mine' } }).gpuPool?.nodeSelector, { pool: 'mine' });
  assert.equal(merged({ nodeSelector: {} }).gpuPool?.nodeSelector, undefined, 'a selector can be taken away');
  assert.equal(merged({ instances: [] }).gpuPool?.instances, undefined);
  assert.deepEqual([merged({}).scheduler, merged({}, { scheduler: true }).scheduler], [false, true]);
});

test('where the discovery document is', () => {
  const ref = (flags: Parameters<typeof flagsOf>[0], own?: string) => discoveryRefOf(flagsOf(flags), undefined, own);
  const name = 'agent-platform-model-serving';
  assert.deepEqual(ref({}, 'own'), { namespace: 'own', name });
  assert.deepEqual(ref({ discoveryNamespace: 'flag', discoveryConfigmap: 'c' }, 'own'), {
    namespace: 'flag',
    name: 'c',
  });
  assert.deepEqual(ref({ namespace: 'serving' }), { namespace: 'serving', name });
  assert.deepEqual(ref({}, ' '), { namespace: 'model-serving', name });
  assert.deepEqual(discoveryRefOf(flagsOf({ discoveryNamespace: 'flag' }), registered, 'own'), registered.discovery);
  const settings = settingsOf({ flags: checkFlags(flagsOf()), registered, discovery: registered.discovery });
  assert.equal(settings.presets.namespace, 'there', 'presets are beside the document unless somebody says otherwise');
});

test('a start with a mode that nobody knows is refused, with all that is wrong', () => {
  const problems = (written: Parameters<typeof flagsOf>[0]) => {
    try {
      checkFlags(flagsOf(written));
    } catch (error) {
      assert.ok(error instanceof ConfigError);
      return error.problems;
    }
    return [];
  };
  assert.deepEqual(problems({}), []);
  assert.deepEqual(problems({ inventoryMode: 'daemonset', budgetSource: 'allocatable' }), []);
  assert.deepEqual(problems({ inventoryMode: 'ds' }), ['kserve inventory mode "ds": want pod or daemonset']);
  assert.deepEqual(problems({ inventoryMode: '', budgetSource: 'gpus' }), [
    'kserve inventory mode "": want pod or daemonset',
    'kserve budget source "gpus": want auto, gpu-labels or allocatable',
  ]);
});

test('a model that needs no GPU knows no pool', () => {
  const { gpuPool, runtimeClass, budgetSource, nodeSelector } = withoutGpus(settingsWith(full));
  assert.deepEqual([gpuPool, runtimeClass, budgetSource], [undefined, undefined, 'allocatable']);
  assert.deepEqual(nodeSelector, { a: 'b' }, 'what is for all models is for this one too');
});

test('every flag has a variable of its name, a default that passes its check, and one sentence', () => {
  for (const { flag, variables, kind, default: standard, defaultMeans, help } of Object.values(kserveFlags)) {
    assert.match(flag, /^kserve(-[a-z]+)+$/);
    assert.deepEqual(variables, [flag.toUpperCase().replaceAll('-', '_')]);
    assert.ok(kind.check.safeParse(standard).success, flag);
    assert.ok(standard !== '' || defaultMeans, `${flag} tells its default`);
    assert.match(help, /^[A-Z].*\.$/, flag);
  }
});

test('what flags do not take', () => {
  const problem = (name: keyof typeof kserveFlags, text: string) =>
    kserveFlags[name].kind.check.safeParse(text).error?.issues[0]?.message;
  for (const port of ['0', '-1', '65536', '80a', '', '1e3']) {
    assert.equal(problem('inventoryAgentPort', port), `"${port}" is not a port; write a number from 1 to 65535`);
  }
  for (const gib of ['-1', 'NaN', 'lots', '1e9', '', '5000000', 'Infinity']) {
    const expected = `"${gib}" is not an amount of GiB; write a number such as 30 or 2.5`;
    assert.equal(problem('defaultOverheadGib', gib), expected);
  }
  assert.equal(problem('namespace', 'No Namespace') === undefined, false);
  assert.equal(problem('hfTimeout', '-4s') === undefined, false);
});
