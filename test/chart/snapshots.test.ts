import { test } from 'node:test';
import { examples, renderText, skip } from './helm.ts';

// What an installation gets, to be looked at in a review. To take a change over:
// node --test --test-update-snapshots test/chart/snapshots.test.ts
for (const [name, values] of Object.entries({ defaults: {}, ...examples })) {
  test(`the objects of ${name} are those of its snapshot`, { skip }, t => {
    const path = new URL(`snapshots/${name}.yaml`, import.meta.url).pathname;
    t.assert.fileSnapshot(renderText(values), path, { serializers: [text => text] });
  });
}
