import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agentAddressOf, hostNameOf } from '../../src/drivers/address.ts';

test('agents are given the agent host, else the endpoint, with the path once at its end', () => {
  const table: [string | undefined, string | undefined, string][] = [
    [undefined, undefined, 'http://e:1'],
    ['  ', undefined, 'http://e:1'],
    [' http://box:1234// ', undefined, 'http://box:1234'],
    ['http://box:1234', '/v1', 'http://box:1234/v1'],
    ['http://box:1234/v1/', '/v1', 'http://box:1234/v1'],
    [undefined, '/v1', 'http://e:1/v1'],
    ['https://x/lm/v1', '/v1', 'https://x/lm/v1'],
    ['http://box:1234/v10', '/v1', 'http://box:1234/v10/v1'],
  ];
  for (const [agentHost, path, address] of table) assert.equal(agentAddressOf(agentHost, 'http://e:1', path), address);
});

test('the node is named by the host of the address agents dial', () => {
  const table: [string, string][] = [
    ['http://172.21.0.1:11434', '172.21.0.1'],
    ['http://[fd00::1]:11434', 'fd00::1'],
    ['https://models.example.com/ollama/', 'models.example.com'],
    ['host.docker.internal:11434', 'host.docker.internal'],
    [' box ', 'box'],
    ['not an address', 'not an address'],
  ];
  for (const [address, name] of table) assert.equal(hostNameOf(address), name);
});
