import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseEndpoint } from '../src/endpoint.ts';

test('an endpoint is trimmed and loses its trailing slashes', () => {
  const table: [string, string][] = [
    ['http://127.0.0.1:11434', 'http://127.0.0.1:11434'],
    ['  https://models.example.com/ollama// ', 'https://models.example.com/ollama'],
    ['HTTP://Host.Docker.Internal:11434/', 'HTTP://Host.Docker.Internal:11434'],
    ['http://[fd00::1]:11434', 'http://[fd00::1]:11434'],
  ];
  for (const [value, endpoint] of table) assert.deepEqual(parseEndpoint(value), { endpoint });
});

test('what is no endpoint is refused with the value in the words', () => {
  const table: [string, RegExp][] = [
    ['', /must be an http\(s\) URL, got ""/],
    ['172.21.0.1:11434', /must be an http\(s\) URL, got "172\.21\.0\.1:11434"/],
    ['host.docker.internal:11434', /must be an http\(s\) URL/],
    ['ftp://host', /must be an http\(s\) URL, got "ftp:\/\/host"/],
    ['file:///etc/passwd', /must be an http\(s\) URL/],
    ['http:host', /must be an http\(s\) URL/],
    ['http:///host', /must be an http\(s\) URL/],
    ['http://', /must be an http\(s\) URL/],
    ['http://ho\nst', /must be an http\(s\) URL/],
    ['http://host:99999', /must be an http\(s\) URL/],
    ['http://host?x=1', /must not carry a query/],
    ['http://host/#x', /must not carry a query or a fragment/],
    ['http://169.254.169.254/', /link-local or metadata address, got "http:\/\/169\.254\.169\.254\/"/],
    ['http://2852039166', /link-local or metadata/],
    ['http://[fd00:ec2::254]', /link-local or metadata/],
    ['http://[fe80::1]:11434', /link-local or metadata/],
    ['http://[::ffff:169.254.169.254]', /link-local or metadata/],
  ];
  for (const [value, words] of table) {
    const checked = parseEndpoint(value);
    assert.match('problem' in checked ? checked.problem : '(accepted)', words, value);
  }
});

test('a password in an endpoint is refused and not repeated', () => {
  for (const value of ['http://me:s3cret@host', 'http://me:s3/cret@host', 'me:s3cret@host:11434', 'https://s3cret@h']) {
    const checked = parseEndpoint(value);
    assert.ok('problem' in checked, value);
    assert.doesNotMatch(checked.problem, /s3|cret/);
  }
});
