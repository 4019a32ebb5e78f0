import assert from 'node:assert/strict';
import { test } from 'node:test';
import { publishedKinds, skip } from '../support/crds.ts';
import { startLab } from './lab.ts';
import { lemonadeModel, ollamaModel, servedModel } from './modelConfigs.ts';

test('everything that is written is what the published definition says', { skip }, async t => {
  for (const apiVersion of ['auto', 'v1alpha2', 'v1alpha3']) {
    const published = publishedKinds('modelconfigs.kagent.dev');
    const { kagent, callOf, modelConfigs } = await startLab(t, { apiVersion, published });
    const secret = { name: 'team-key', key: 'K' };
    for (const model of [ollamaModel(), lemonadeModel(), servedModel({ key: 'placeholder' })])
      for (const apiKey of [undefined, { passthrough: true }, { passthrough: false, secret }, undefined])
        await kagent.wire(callOf(), model, apiKey);
    const ref = await kagent.wire(callOf(), servedModel());
    assert.equal(ref.apiVersion, `kagent.dev/${apiVersion === 'auto' ? 'v1alpha3' : apiVersion}`);
    assert.equal(modelConfigs().length, 3);
  }
});
