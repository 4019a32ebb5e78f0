import { z } from 'zod';
import { searchLimit, searchModels } from '../../backends/hub.ts';
import type { SearchResult } from '../../domain.ts';
import type { Rows } from '../../live/events.ts';
import { onlyBackendArg } from '../arguments.ts';
import { builder, faces } from '../builder.ts';
import { FailureRef, keyedErrors } from '../lists.ts';

/** Unknown is null here and 0 in the old faces. */
const zeroWhenUnknown = faces({ whenNull: 0 });

const SearchResultRef = builder.objectRef<SearchResult>('SearchResult').implement({
  description: 'A repository of the hub.',
  fields: t => ({
    reference: t.exposeString('id', { description: 'What pulls and fit checks take: `owner/name`.' }),
    backendName: t.exposeString('backend', { description: 'Name of the backend that found it.' }),
    author: t.exposeString('author', { nullable: true }),
    downloads: t.exposeInt('downloads', { nullable: true, extensions: zeroWhenUnknown }),
    likes: t.exposeInt('likes', { nullable: true, extensions: zeroWhenUnknown }),
    gated: t.exposeBoolean('gated', { description: 'Its terms have to be accepted first.' }),
    private: t.exposeBoolean('private'),
    pipelineTag: t.exposeString('pipelineTag', { nullable: true, description: 'Such as `text-generation`.' }),
    library: t.exposeString('library', { nullable: true, description: 'Such as `transformers`.' }),
    tags: t.exposeStringList('tags', { nullable: true }),
    lastModified: t.expose('lastModified', {
      type: 'DateTime',
      nullable: true,
      extensions: faces({ whenNull: '0001-01-01T00:00:00Z' }),
    }),
    presets: t.exposeStringList('presets', {
      nullable: true,
      description: 'Names of the presets that serve exactly this repository.',
    }),
  }),
});

interface Found extends Rows<SearchResult> {
  readonly query: string;
}

const SearchResultList = builder.objectRef<Found>('SearchResultList').implement({
  description: 'What a search found, most downloads first.',
  fields: t => ({
    query: t.exposeString('query', { description: 'As it was asked.' }),
    items: t.field({ type: [SearchResultRef], resolve: ({ rows }) => rows }),
    errors: t.field({
      type: [FailureRef],
      nullable: true,
      description: 'The backends that could not answer, if there are any.',
      extensions: keyedErrors,
      resolve: ({ errors }) => (errors.length > 0 ? errors : null),
    }),
  }),
});

/** Told, not checked: a limit out of bounds gives the usual number. */
const limit = z.number().nullish().meta({ minimum: 0, maximum: searchLimit.most });

builder.queryField('searchModels', t =>
  t.field({
    type: SearchResultList,
    nullable: true,
    description: 'Searches the hub that backends get their models from.',
    args: {
      query: t.arg.string({ required: true, description: 'Words to look for, such as `qwen3 awq`.' }),
      limit: t.arg.int({
        validate: limit,
        defaultValue: searchLimit.usual,
        description: `How many at most, 1 to ${searchLimit.most}; ${searchLimit.usual} when out of that range.`,
      }),
      backend: onlyBackendArg(t.arg),
    },
    resolve: async (_root, args, { gateway, call }) => ({
      query: args.query,
      ...(await searchModels(gateway, call, args)),
    }),
  }),
);
