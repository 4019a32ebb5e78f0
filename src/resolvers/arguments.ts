import type { ArgBuilder } from '@pothos/core';
import { z } from 'zod';
import type { SchemaShape } from './builder.ts';

/** Bytes of a model reference at most: longer than any registry's names. */
const maxReferenceBytes = 512;

/** A caller's text, quoted and short enough for a message. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

function referenceProblem(name: string, text: string): string | undefined {
  const bytes = Buffer.byteLength(text);
  if (text.trim() === '') return `"${name}" is required`;
  if (bytes > maxReferenceBytes) {
    return `"${name}" has ${bytes} bytes, a model reference has at most ${maxReferenceBytes}`;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(text)) {
    return `"${name}" is ${shown(text)}, a model reference has no control characters`;
  }
  if (text.split('/').includes('..')) return `"${name}" is ${shown(text)}, a model reference has no ".." in its path`;
  return undefined;
}

/** The check of a model reference: not blank, at most 512 bytes, no control characters, no `..` path segment. */
function modelReference(name: string) {
  return z
    .string()
    .superRefine((text, context) => {
      const message = referenceProblem(name, text);
      if (message) context.addIssue({ code: 'custom', message });
    })
    .meta({ minLength: 1, maxLength: maxReferenceBytes });
}

type Arguments = ArgBuilder<PothosSchemaTypes.ExtendDefaultTypes<SchemaShape>>;

export const modelArg = (t: Arguments) =>
  t.string({
    required: true,
    validate: modelReference('model'),
    description: 'Reference of the model as the backend spells it, such as `qwen3:8b` or `hf.co/org/repo:Q4_K_M`.',
  });

export const optionalModelArg = (t: Arguments) =>
  t.string({
    validate: modelReference('model').nullish(),
    description: 'Reference of the model as the backend spells it.',
  });

export const backendArg = (t: Arguments) =>
  t.string({ description: 'Name of the backend. Only needed where several have the model.' });

export const onlyBackendArg = (t: Arguments) =>
  t.string({ description: 'Name of the only backend to ask; all of them when absent.' });

const pageSize = z
  .number()
  .refine(size => size >= 1 && size <= 1000, { error: issue => `"first" is ${issue.input}, it must be 1 to 1000` })
  .nullish()
  .meta({ minimum: 1, maximum: 1000 });

export const pageArgs = (t: Arguments) => ({
  first: t.int({ validate: pageSize, description: 'How many at most, 1 to 1000; all when absent.' }),
  after: t.id({ description: 'Start after this item: the `endCursor` of the page before.' }),
});
