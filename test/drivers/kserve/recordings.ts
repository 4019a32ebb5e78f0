/** The recorded serves. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { parseRecording, type Recording, stateAt } from '../../../src/drivers/kserve/recording.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';

export const recordingFolder = new URL('../../fixtures/kserve/scenarios/', import.meta.url);

export const recordingNames: readonly string[] = readdirSync(recordingFolder)
  .map(file => file.replace(/\.yaml$/, ''))
  .toSorted();

export const recordingText = (name: string) => readFileSync(new URL(`${name}.yaml`, recordingFolder), 'utf8');

export function recordingOf(name: string): Recording {
  const read = parseRecording(recordingText(name));
  assert.ok('value' in read, 'problem' in read ? `${name}: ${read.problem}` : '');
  return read.value;
}

/** Number of the instant of that name. */
export function instantAt({ instants }: Recording, name: string): number {
  const index = instants.findIndex(each => each.name === name);
  assert.ok(index >= 0, `there is no instant ${name}`);
  return index;
}

/** The objects of an instant of a recorded serve. */
export function objectsAt(name: string, instant: string): readonly KubernetesObject[] {
  const recording = recordingOf(name);
  return stateAt(recording, instantAt(recording, instant)).objects;
}
