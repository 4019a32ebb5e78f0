import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EmulatedOllama } from '../../src/demo/ollama.ts';
import { startEmulated } from '../support/emulated.ts';
import { fakeDriver } from '../support/gateway.ts';
import { refusalOf, serveRest } from '../support/rest.ts';

/** What else may answer where Ollama should, whatever it is asked. */
const strangers: readonly { what: string; answer: Partial<Parameters<EmulatedOllama['fault']>[0]>; words: RegExp }[] = [
  {
    what: 'a web page',
    answer: { contentType: 'text/html', body: '<!doctype html><title>Welcome</title>' },
    words: /did not answer like Ollama but with a web page titled "Welcome" \(HTTP 200\)$/,
  },
  {
    what: 'an error in a 200',
    answer: { body: '{"error":"Unexpected endpoint or method. (GET /api/tags). Returning 200 anyway"}' },
    words: /is LM Studio \(.*\); configure it as an lmstudio backend/,
  },
  {
    what: 'another document',
    answer: { body: '{"data":[],"object":"list"}' },
    words: /did not answer like Ollama but with the document \{"data":\[\],"object":"list"\} \(HTTP 200\)$/,
  },
  { what: 'nothing', answer: { body: '' }, words: /did not answer like Ollama but with an empty answer/ },
  {
    what: 'a login page elsewhere',
    answer: { status: 302, headers: { location: 'https://login.example/?token=secret' }, body: '' },
    words: /a redirect to https:\/\/login\.example\/ \(HTTP 302\); redirects are not followed/,
  },
];

for (const { what, answer, words } of strangers) {
  test(`${what} is not Ollama: unhealthy, refused with what was found, and the others answer`, async () => {
    const others = [fakeDriver({ name: 'lemonade', models: ['own:1b'] })];
    await using world = await startEmulated({ models: [{ name: 'a:1b' }], others });
    await using server = await serveRest({ gateway: world.gateway });
    for (const path of ['/api/version', '/api/tags', '/api/ps']) {
      world.ollama.fault({ kind: 'answer', path, body: '', ...answer } as Parameters<EmulatedOllama['fault']>[0]);
    }
    const { json } = await server.send('GET backends');
    assert.equal(json.backends[0].healthy, false);
    assert.match(json.backends[0].message, words);
    assert.doesNotMatch(json.backends[0].message, /secret/);
    assert.equal(json.backends[1].healthy, true);

    const models = await server.send('GET models');
    assert.equal(models.status, 200);
    assert.deepEqual(
      models.json.models.map(({ name }: { name: string }) => name),
      ['own:1b'],
    );
    assert.match(models.json.errors.ollama, words);

    const refusal = refusalOf(await server.send('GET models?backend=ollama'));
    assert.match(refusal, /^502 backend_error: ollama: GET \/api\/\w+: /);
    assert.match(refusal, words);
    assert.equal((await server.send('GET models/own:1b')).json.backend, 'lemonade');
    assert.match(refusalOf(await server.send('GET models/nope')), /^502 backend_error: ollama: ollama: GET /);

    const down = await server.send('GET /backendz');
    assert.equal(down.status, 503);
    assert.match(down.text, /^backend ollama not healthy: ollama: GET /);
  });
}
