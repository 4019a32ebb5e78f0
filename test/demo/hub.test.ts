import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { type HubModel, type HubOptions, library, manualClock, startHub } from '../../src/demo/hub.ts';

const bounded = { timeout: 10_000 };

const id = 'acme/tiny';
const config = '{"model_type":"llama"}\n';
const tiny: HubModel = {
  id,
  files: [
    { path: 'config.json', text: config },
    { path: 'model.safetensors', bytes: 3_000_000 },
    { path: 'original/notes/a b.md', text: 'hello' },
    { path: 'tokenizer.json', bytes: 12_000_000 },
  ],
  revisions: { 'refs/pr/1': [{ path: 'config.json', text: '{}' }] },
  downloads: 5,
};
const closed: HubModel = { ...tiny, id: 'acme/closed', gated: 'manual' };
const secret: HubModel = { ...tiny, id: 'acme/secret', private: true };
const good = 'hf_readsAllOfThem';
const poor = 'hf_readsNoneOfThem';

async function started(t: TestContext, options: HubOptions = {}) {
  const tokens = { [good]: [closed.id, secret.id], [poor]: [] };
  const hub = await startHub({ models: [tiny, closed, secret], tokens, ...options });
  t.after(() => hub.close());
  return {
    hub,
    /** One answer, redirects as they are. */
    get: (path: string, { token, ...init }: RequestInit & { token?: string } = {}) =>
      fetch(path.startsWith('http') ? path : hub.url + path, {
        redirect: 'manual',
        ...init,
        headers: { ...init.headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
      }),
  };
}

const locationOf = (answer: Response) => answer.headers.get('location') ?? '';

describe('repositories', bounded, () => {
  test('one says what it is, at a branch, a tag or a commit', async t => {
    const { hub, get } = await started(t);
    const document = await (await get(`/api/models/${id}`)).json();
    assert.equal(document.id, id);
    assert.deepEqual([document.gated, document.private, document.sha], [false, false, hub.commit(id)]);
    assert.deepEqual(document.siblings[0], { rfilename: 'config.json' });
    const other = await (await get(`/api/models/${id}/revision/refs%2Fpr%2F1?blobs=true`)).json();
    assert.equal(other.sha, hub.commit(id, 'refs/pr/1'));
    assert.deepEqual(
      other.siblings.map(({ rfilename, size }: { rfilename: string; size: number }) => [rfilename, size]),
      [['config.json', 2]],
    );
    const same = await (await get(`/api/models/${id}/revision/${document.sha}`)).json();
    assert.equal(same.sha, document.sha);
    assert.match(document.sha, /^[0-9a-f]{40}$/);
  });

  test('a former name and other letters lead to the name it has', async t => {
    const { get } = await started(t, { renamed: { 'old/tiny': id } });
    for (const name of ['old/tiny', 'ACME/Tiny']) {
      const answer = await get(`/api/models/${name}/tree/main?recursive=true`);
      assert.deepEqual([answer.status, locationOf(answer)], [307, `/api/models/${id}/tree/main?recursive=true`]);
    }
  });

  test('a search finds words of names, and what is secret just for who may see it', async t => {
    const { get } = await started(t, { models: [...library, tiny, secret] });
    const ids = async (query: string, token?: string) =>
      (await (await get(`/api/models?${query}`, token === undefined ? {} : { token })).json()).map(
        (row: { id: string }) => row.id,
      );
    assert.deepEqual(await ids('search=QWEN3&sort=downloads&direction=-1'), ['Qwen/Qwen3-0.6B', 'Qwen/Qwen3-8B']);
    assert.deepEqual(await ids('search=qwen3+8b'), ['Qwen/Qwen3-8B']);
    assert.equal((await ids('sort=downloads&limit=2')).length, 2);
    assert.deepEqual(await ids('search=secret'), []);
    assert.deepEqual(await ids('search=secret', good), [secret.id]);
    assert.equal((await get('/api/models?limit=0')).status, 400);
    const [short] = await (await get('/api/models?search=tiny')).json();
    assert.equal('gated' in short, false);
    const [full] = await (await get('/api/models?search=tiny&full=true')).json();
    assert.deepEqual([full.gated, full.author], [false, 'acme']);
  });
});

describe('file lists', bounded, () => {
  test('have directories and files, sizes and what is kept elsewhere', async t => {
    const { get } = await started(t);
    const rows = await (await get(`/api/models/${id}/tree/main?recursive=true`)).json();
    assert.deepEqual(
      rows.map(({ type, path, size }: Record<string, unknown>) => [type, path, size]),
      [
        ['file', 'config.json', config.length],
        ['file', 'model.safetensors', 3_000_000],
        ['directory', 'original', 0],
        ['directory', 'original/notes', 0],
        ['file', 'original/notes/a b.md', 5],
        ['file', 'tokenizer.json', 12_000_000],
      ],
    );
    assert.equal(rows[1].lfs.size, 3_000_000);
    assert.match(rows[1].lfs.oid, /^[0-9a-f]{64}$/);
    assert.equal(rows[0].lfs, undefined);
    const blob = createHash('sha1').update(`blob ${config.length}\0${config}`).digest('hex');
    assert.equal(rows[0].oid, blob);
  });

  test('are of one directory unless asked otherwise', async t => {
    const { get } = await started(t);
    const paths = async (path: string) =>
      (await (await get(`/api/models/${id}/tree/main${path}`)).json()).map((row: { path: string }) => row.path);
    assert.deepEqual(await paths(''), ['config.json', 'model.safetensors', 'original', 'tokenizer.json']);
    assert.deepEqual(await paths('/original'), ['original/notes']);
    assert.equal((await get(`/api/models/${id}/tree/main/nothing`)).headers.get('x-error-code'), 'EntryNotFound');
  });

  test('come in pages, each with the address of the next', async t => {
    const { get } = await started(t, { pageEntries: 4 });
    const first = await get(`/api/models/${id}/tree/main?recursive=true`);
    const [, next = ''] = /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '') ?? [];
    assert.match(next, /^http:\/\/127\.0\.0\.1:\d+\/api\/models\/acme\/tiny\/tree\/main\?recursive=true&cursor=/);
    const second = await get(next);
    assert.deepEqual([(await first.json()).length, (await second.json()).length], [4, 2]);
    assert.equal(second.headers.get('link'), null);
  });
});

describe('files', bounded, () => {
  test('small ones are in a cache on the same host', async t => {
    const { hub, get } = await started(t);
    const answer = await get(`/${id}/resolve/main/original/notes/a%20b.md`);
    assert.equal(answer.status, 307);
    assert.equal(answer.headers.get('x-repo-commit'), hub.commit(id));
    assert.match(
      locationOf(answer),
      new RegExp(`^/api/resolve-cache/models/${id}/${hub.commit(id)}/original/notes/a%20b\\.md\\?`),
    );
    const content = await get(locationOf(answer));
    assert.deepEqual([content.status, await content.text()], [200, 'hello']);
    assert.equal(content.headers.get('etag'), answer.headers.get('etag'));
  });

  test('large ones are on the CDN, at an address that is good for an hour', async t => {
    const clock = manualClock();
    const { hub, get } = await started(t, { clock });
    const answer = await get(`/${id}/resolve/main/model.safetensors`, { method: 'HEAD' });
    assert.equal(answer.status, 302);
    assert.equal(answer.headers.get('x-linked-size'), '3000000');
    const location = locationOf(answer);
    assert.ok(location.startsWith(`${hub.cdn.url}/`), location);
    const content = Buffer.from(await (await get(location)).arrayBuffer());
    assert.equal(content.length, 3_000_000);
    const hash = createHash('sha256').update(content).digest('hex');
    assert.equal(answer.headers.get('x-linked-etag'), `"${hash}"`);

    assert.equal((await get(location, { token: good })).status, 400, 'a token has no business there');
    assert.equal((await get(location.replace(/.$/, 'x'))).status, 403);
    await clock.advance(3_600_000);
    assert.equal((await get(location)).status, 403);
  });

  test('ranges are what they are of', async t => {
    const { get } = await started(t);
    const location = locationOf(await get(`/${id}/resolve/main/model.safetensors`));
    const whole = Buffer.from(await (await get(location)).arrayBuffer());
    const table: [range: string, start: number, end: number][] = [
      ['bytes=0-0', 0, 1],
      ['bytes=65530-65545', 65_530, 65_546],
      ['bytes=2999990-', 2_999_990, 3_000_000],
      ['bytes=-7', 2_999_993, 3_000_000],
      ['bytes=2999999-9999999', 2_999_999, 3_000_000],
    ];
    for (const [range, start, end] of table) {
      const answer = await get(location, { headers: { range } });
      assert.equal(answer.status, 206, range);
      assert.equal(answer.headers.get('content-range'), `bytes ${start}-${end - 1}/3000000`);
      assert.deepEqual(Buffer.from(await answer.arrayBuffer()), whole.subarray(start, end));
    }
    const beyond = await get(location, { headers: { range: 'bytes=3000000-' } });
    assert.deepEqual([beyond.status, beyond.headers.get('content-range')], [416, 'bytes */3000000']);
    assert.equal((await get(location, { headers: { range: 'bytes=0-1,4-5' } })).status, 200);
  });

  test('of sixteen billion bytes the last ones are there at once', async t => {
    const { get } = await started(t, { models: library });
    const path = '/Qwen/Qwen3-8B/resolve/main/model-00005-of-00005.safetensors';
    const answer = await get(locationOf(await get(path)), { headers: { range: 'bytes=-16' } });
    assert.equal((await answer.arrayBuffer()).byteLength, 16);
    assert.match(answer.headers.get('content-range') ?? '', /\/32\d{8}$/);
  });

  test('what is not there has a name for it', async t => {
    const { get } = await started(t);
    const code = async (path: string, token?: string) => {
      const { status, headers } = await get(path, token === undefined ? {} : { token });
      return [status, headers.get('x-error-code')];
    };
    assert.deepEqual(await code(`/${id}/resolve/main/none.json`), [404, 'EntryNotFound']);
    assert.deepEqual(await code(`/${id}/resolve/none/config.json`), [404, 'RevisionNotFound']);
    assert.deepEqual(await code(`/api/models/${id}/tree/none`), [404, 'RevisionNotFound']);
    assert.deepEqual(await code('/api/models/acme/none', good), [404, 'RepoNotFound']);
    assert.deepEqual(await code('/api/datasets'), [404, null]);
    assert.equal((await get(`/api/models/${id}`, { method: 'DELETE' })).status, 404);
  });
});

describe('access', bounded, () => {
  const paths = (model: string) => [
    `/api/models/${model}`,
    `/api/models/${model}/tree/main`,
    `/${model}/resolve/main/config.json`,
    `/${model}/resolve/main/model.safetensors`,
  ];

  test('everybody sees a gated repository, and its files open for who accepted its terms', async t => {
    const { hub, get } = await started(t);
    const statuses = async (token?: string) =>
      Promise.all(paths(closed.id).map(async path => (await get(path, token === undefined ? {} : { token })).status));
    assert.deepEqual(await statuses(), [200, 200, 401, 401]);
    assert.deepEqual(await statuses(poor), [200, 200, 403, 403]);
    assert.deepEqual(await statuses(good), [200, 200, 200, 302]);
    const cache = `/api/resolve-cache/models/${closed.id}/${hub.commit(closed.id)}/config.json`;
    assert.equal((await get(cache)).status, 401, 'nor is there a way around');
  });

  test('a private repository is not there for anybody else', async t => {
    const { get } = await started(t);
    for (const model of [secret.id, 'acme/none'])
      for (const path of paths(model)) {
        assert.equal((await get(path)).status, 401, path);
        assert.equal((await get(path, { token: poor })).status, 404, path);
      }
    for (const path of paths(secret.id)) assert.ok((await get(path, { token: good })).status < 400, path);
  });

  test('a token that was never issued is refused even for what is open', async t => {
    const { get } = await started(t);
    for (const path of paths(id)) assert.equal((await get(path, { token: 'hf_made_up' })).status, 401, path);
    assert.equal((await get(`/api/models/${id}`, { token: '__proto__' })).status, 401);
  });
});

describe('what goes wrong', bounded, () => {
  test('the whole Hub can be silent, slow, limited, or somebody else', async t => {
    const clock = manualClock();
    const { hub, get } = await started(t, { clock });
    hub.trouble({ kind: 'page' });
    assert.equal((await get(`/api/models/${id}`)).headers.get('content-type'), 'text/html');
    hub.trouble({ kind: 'limited', seconds: 7 });
    const limited = await get('/api/models');
    assert.deepEqual([limited.status, limited.headers.get('retry-after')], [429, '7']);
    hub.trouble({ kind: 'limited', seconds: 55, header: 'ratelimit' });
    assert.equal((await get('/api/models')).headers.get('ratelimit'), '"api";r=0;t=55');
    hub.trouble({ kind: 'slow', ms: 5_000 });
    const slow = get(`/api/models/${id}`);
    await clock.sleeping();
    await clock.advance(5_000);
    assert.equal((await slow).status, 200);
    hub.trouble({ kind: 'silent' });
    const abort = new AbortController();
    const silent = get('/api/models?search=x', { signal: abort.signal });
    const request = await hub.requested('/api/models', 3);
    abort.abort();
    await assert.rejects(silent);
    assert.equal(await request.ended, 'cut');
    hub.trouble(undefined);
    assert.equal((await get(`/api/models/${id}`)).status, 200);
  });

  test('content comes as fast as the line is, and then not at all', async t => {
    const clock = manualClock();
    const { hub, get } = await started(t, { clock });
    hub.line({ bytesPerSecond: 5_000_000, stopsAfterBytes: 1_200_000 });
    const abort = new AbortController();
    const location = locationOf(await get(`/${id}/resolve/main/model.safetensors`));
    const reading = (await get(location, { signal: abort.signal })).body?.getReader();
    assert.ok(reading);
    let bytes = 0;
    const until = async (wanted: number) => {
      while (bytes < wanted) bytes += (await reading.read()).value?.byteLength ?? 0;
      return bytes;
    };
    await clock.sleeping();
    await clock.advance(100);
    assert.equal(await until(500_000), 500_000);
    await clock.sleeping();
    await clock.advance(100);
    assert.equal(await until(1_000_000), 1_000_000);
    await clock.sleeping();
    await clock.advance(100);
    assert.equal(await until(1_200_000), 1_200_000);
    const more = reading.read();
    await clock.advance(1_800_000);
    abort.abort();
    await assert.rejects(more, /abort/i);
    hub.line({});
    assert.equal((await (await get(location)).arrayBuffer()).byteLength, 3_000_000);
  });

  test('it can be stopped, and comes back where it was', async t => {
    const { hub, get } = await started(t);
    await hub.stop();
    await assert.rejects(get(`/api/models/${id}`));
    await hub.start();
    assert.equal((await get(`/api/models/${id}`)).status, 200);
  });
});

test('the same models are the same commits, and other content is another commit', bounded, async t => {
  const [one, two] = [await started(t), await started(t)];
  assert.equal(one.hub.commit(id), two.hub.commit(id));
  const before = one.hub.commit(id);
  one.hub.publish({ ...tiny, files: [{ path: 'config.json', text: '{}' }] });
  assert.notEqual(one.hub.commit(id), before);
  assert.throws(() => one.hub.commit(id, 'none'), /no such revision: acme\/tiny none/);
});

test('the library has nine models, with indexes that name files there are', bounded, async t => {
  const { hub, get } = await started(t, { models: library, tokens: { [good]: library.map(model => model.id) } });
  assert.equal(library.length, 9);
  for (const model of library) {
    const rows = await (await get(`/api/models/${model.id}/tree/main?recursive=true`, { token: good })).json();
    const paths = new Set(rows.map((row: { path: string }) => row.path));
    const index = model.files.find(({ path }) => path === 'model.safetensors.index.json');
    if (!index || !('text' in index)) continue;
    const { weight_map: map } = JSON.parse(index.text);
    for (const file of Object.values(map)) assert.ok(paths.has(file), `${model.id} ${file}`);
    const shards = [...paths].filter(path => /^model-.*\.safetensors$/.test(String(path)));
    assert.equal(new Set(Object.values(map)).size, shards.length, model.id);
  }
  assert.ok(hub.requests.length >= 8);
});
