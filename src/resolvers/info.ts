import { builder, type Gateway } from './builder.ts';
import { WiringInfoRef } from './serving/modelConfig.ts';

const InfoRef = builder.objectRef<Gateway>('Info').implement({
  description: 'What this gateway is.',
  fields: t => ({
    version: t.string({ resolve: ({ build }) => build.version }),
    commit: t.string({ description: 'Revision of its source.', resolve: ({ build }) => build.commit }),
    built: t.string({ description: 'When it was built, in RFC 3339.', resolve: ({ build }) => build.built }),
    tools: t.stringList({ description: 'Names of its MCP tools.', resolve: ({ tools }) => tools }),
    backends: t.stringList({
      description: 'Names of its backends in order.',
      resolve: ({ registry }) => registry.backends.map(backend => backend.name),
    }),
    wiring: t.field({
      type: WiringInfoRef,
      nullable: true,
      description: 'Where it makes models known to agents; null when it does not.',
      resolve: ({ wiring }) => wiring?.info,
    }),
  }),
});

builder.queryField('info', t => t.field({ type: InfoRef, resolve: (_root, _args, { gateway }) => gateway }));
