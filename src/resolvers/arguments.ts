import type { ArgBuilder } from '@pothos/core';
import { z } from 'zod';
import { quoted } from '../errors.ts';
import type { SchemaShape } from './builder.ts';

/** Bytes of a model reference at most: longer than any registry's names. */
const maxReferenceBytes = 512;

const wayUp = /(?:^|[/\\]|%2f|%5c)(?:\.|%2e){2}(?:[/\\]|%2f|%5c|$)/i;
/** What backends have models from. */
const schemes = ['hf', 'http', 'https', 'oci', 's3', 'gs', 'pvc'];

function referenceProblem(name: string, text: string): string | undefined {
  if (text.trim() === '') return undefined;
  const bytes = Buffer.byteLength(text);
  if (bytes > maxReferenceBytes) {
    return `"${name}" has ${bytes} bytes, at most ${maxReferenceBytes} are allowed`;
  }
  if (/\p{Cc}/u.test(text)) {
    return `"${name}" is ${quoted(text)}, it must have no control characters`;
  }
  // However it is written: a backend may decode it once more.
  if (wayUp.test(text)) return `"${name}" is ${quoted(text)}, it must have no ".." in its path`;
  const [, scheme] = /^([a-z][a-z\d+.-]*):\/\//i.exec(text.trim()) ?? [];
  if (scheme !== undefined && !schemes.includes(scheme.toLowerCase())) {
    return `"${name}" is ${quoted(text)}, its scheme must be one of ${schemes.join(', ')}`;
  }
  return undefined;
}

/** The check of a reference that may be left blank: at most 512 bytes, no control characters, no `..` path segment, no strange scheme. */
const optionalReference = (name: string) =>
  z.string().superRefine((text, context) => {
    const message = referenceProblem(name, text);
    if (message) context.addIssue({ code: 'custom', message });
  });

const modelReference = optionalReference('model')
  .refine(text => text.trim() !== '', '"model" is required')
  .meta({ minLength: 1, maxLength: maxReferenceBytes });

type Arguments = ArgBuilder<PothosSchemaTypes.ExtendDefaultTypes<SchemaShape>>;

const usualReference =
  'Reference of the model as the backend spells it, such as `qwen3:8b` or `hf.co/org/repo:Q4_K_M`.';

export const modelArg = (t: Arguments, description = usualReference) =>
  t.string({ required: true, validate: modelReference, description });

/** A reference that another argument may stand in for. */
export const optionalReferenceArg = (t: Arguments, name: string, description: string) =>
  t.string({ validate: optionalReference(name).nullish().meta({ maxLength: maxReferenceBytes }), description });

export const backendArg = (t: Arguments) =>
  t.string({ description: 'Name of the backend. Only needed where several have the model.' });

export const onlyBackendArg = (t: Arguments) =>
  t.string({ description: 'Name of the only backend to ask; all of them when absent.' });

/** What an action on a model is asked with, and its plan too. */
export const pullArgs = (t: Arguments) => ({
  model: modelArg(t),
  backend: t.string({ description: 'Name of the backend; the default one when absent.' }),
  wire: t.boolean({ description: 'Wire the model into kagent when it is there.' }),
  preset: optionalReferenceArg(t, 'preset', 'Preset to download for; backends without presets ignore it.'),
  node: optionalReferenceArg(t, 'node', 'Node to download to; backends without nodes ignore it.'),
});

export const loadArgs = (t: Arguments) => ({
  model: optionalReferenceArg(t, 'model', 'Reference of the model as the backend spells it.'),
  preset: optionalReferenceArg(t, 'preset', 'A preset, in place of the model, on backends that have presets.'),
  backend: backendArg(t),
  keepAlive: t.string({
    description: 'How long it stays after its last use: `10m`, or `-1` for as long as the server runs.',
  }),
  node: optionalReferenceArg(t, 'node', 'Node to load on; backends without nodes ignore it.'),
});

export const unloadArgs = (t: Arguments) => ({ model: modelArg(t), backend: backendArg(t) });

export const deleteArgs = (t: Arguments) => ({
  model: modelArg(t),
  unwire: t.boolean({ defaultValue: true, description: 'Remove its wiring first.' }),
  backend: backendArg(t),
});

const pageSize = z
  .number()
  .refine(size => size >= 1 && size <= 1000, { error: issue => `"first" is ${issue.input}, it must be 1 to 1000` })
  .nullish()
  .meta({ minimum: 1, maximum: 1000 });

export const pageArgs = (t: Arguments) => ({
  first: t.int({ validate: pageSize, description: 'How many at most, 1 to 1000; all when absent.' }),
  after: t.id({ description: 'Start after this item: the `endCursor` of the page before.' }),
});
