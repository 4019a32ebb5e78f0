import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve } from '../../src/commands/serve.ts';
import { parseServe } from '../../src/config/parse.ts';
import { startCluster } from '../../src/demo/cluster.ts';
import { openServer } from '../../src/kubernetes/access.ts';
import { documentMap, documentText, namespace, namespaceOf } from '../support/cluster.ts';
import { silent } from '../support/gateway.ts';
import { send, within } from '../support/server.ts';

test('a gateway is ready once backend documents are read', async () => {
  await using cluster = await startCluster({
    objects: [namespaceOf(namespace), documentMap('ollama', documentText('ollama'))],
  });
  cluster.fault({ kind: 'delay', ms: 300, resource: 'configmaps' });
  const argv = ['--listen', '127.0.0.1:0', '--namespace', namespace, '--disable-wiring'];
  const { settings } = parseServe(argv, {}, { buildable: [] });
  const { url, stop } = await serve(settings, silent, {}, openServer(cluster.url));
  try {
    const early = await send(`${url}/readyz`);
    assert.deepEqual([early.status, early.text], [503, 'backend documents are not read yet']);
    assert.equal((await send(`${url}/healthz`)).status, 200);
    let ready = early;
    await within(
      (async () => {
        while (ready.status !== 200) ready = await send(`${url}/readyz`);
      })(),
      'it is ready',
    );
    assert.equal(ready.text, 'ok');
    assert.deepEqual((await send(`${url}/api/v1/backend`)).json.backends, ['ollama']);
  } finally {
    await stop();
  }
});
