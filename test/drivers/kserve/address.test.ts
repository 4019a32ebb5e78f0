import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressOf, isClusterLocal } from '../../../src/drivers/kserve/serving/address.ts';

const served = { name: 'nova-4b', namespace: 'model-serving' };
const inCluster = 'http://nova-4b-kserve-workload-svc.model-serving.svc.cluster.local:8000';
const gatewayEndpoint = 'https://models.example.com';

test('a model answers where it is published, else behind the gateway, else in its cluster', () => {
  assert.equal(addressOf(served), inCluster);
  assert.equal(addressOf({ ...served, gatewayEndpoint }), 'https://models.example.com/model-serving/nova-4b');
  const published = ['https://first.example.com/a/', 'https://second.example.com'];
  assert.equal(addressOf({ ...served, gatewayEndpoint, published }), 'https://first.example.com/a');
});

test('what is published and is no address does not count', () => {
  const published = [undefined, null, 5, '', '/a', 'ftp://x', 'https://', { url: 'http://x' }, ' http://y:1/v// '];
  assert.equal(addressOf({ ...served, published }), 'http://y:1/v');
  assert.equal(addressOf({ ...served, published: published.slice(0, -1) }), inCluster);
});

test('https inside a cluster is http, unless a port says so', () => {
  const dialled = (url: string) => addressOf({ ...served, published: [url] });
  assert.equal(dialled('https://a.ns.svc.cluster.local/'), 'http://a.ns.svc.cluster.local');
  assert.equal(dialled('HTTPS://a.ns.svc/x'), 'http://a.ns.svc/x');
  for (const url of [
    'https://a.ns.svc.cluster.local:8000',
    'https://a.ns.svc:443/x',
    'http://a.ns.svc',
    'https://svc.example.com',
    'https://a.svcs.example.com',
    'https://models.example.com/a.svc',
  ]) {
    assert.equal(dialled(url), url);
  }
});

test('which addresses are only ones inside their cluster', () => {
  for (const url of ['http://a.b.svc', 'https://a.b.SVC:8000/x', 'http://u:p@a.b.svc.cluster.local']) {
    assert.equal(isClusterLocal(url), true, url);
  }
  for (const url of ['https://models.example.com', 'https://svc', 'https://x.com/a.svc', 'https://a.b.svc@x.com', '']) {
    assert.equal(isClusterLocal(url), false, url);
  }
});
