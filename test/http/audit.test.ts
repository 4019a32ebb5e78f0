import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { serverAudits } from 'graphql-http';
import { startServer } from '../support/server.ts';

describe('GraphQL over HTTP, by the audit of its authors', async () => {
  const server = await startServer();
  after(() => server.close());
  const audits = serverAudits({ url: server.graphqlUrl });

  test('it has as many audits as when this was written', () => assert.equal(audits.length, 61));

  for (const audit of audits) {
    test(`${audit.id} ${audit.name}`, async () => {
      const result = await audit.fn();
      assert.equal(result.status, 'ok', 'reason' in result ? result.reason : undefined);
    });
  }
});
