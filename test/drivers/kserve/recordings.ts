/** The recorded serves. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { parseRecording, type Recording } from '../../../src/drivers/kserve/recording.ts';

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
