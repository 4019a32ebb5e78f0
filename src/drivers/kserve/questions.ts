/** What is answered on demand: whether a model fits, why it does not, and what the Hub has. */
import type { Call } from '../../call.ts';
import type { FitExplanation, FitResult, SearchResult } from '../../domain.ts';
import { asGatewayError, unavailable } from '../../errors.ts';
import type { KubernetesClient } from '../../kubernetes/client.ts';
import { configMaps } from '../../kubernetes/resource.ts';
import type { FitRequest } from '../driver.ts';
import { type Discovery, parseDiscovery, readFailure, withoutDocument } from './discovery.ts';
import {
  type CacheContent,
  type FitFacts,
  type FitQuestion,
  isWhole,
  judgeFit,
  type Limit,
  questionOf,
  withCache,
} from './fit.ts';
import { isRepository, parseReference } from './hub/reference.ts';
import type { Hub } from './hub.ts';
import type { CacheLocation } from './nodes/cacheLocation.ts';
import { reservationsOf } from './nodes/reservations.ts';
import { presetsServing } from './presets.ts';
import { whyNot } from './whyNot.ts';
import { readValue } from './world/seen.ts';
import type { Configured, Surroundings, World } from './world.ts';

interface Options {
  readonly backend: string;
  readonly world: World;
  readonly hub: Hub;
  readonly client: Pick<KubernetesClient, 'get'>;
  /** What is known of the content of the claim on a node, or as a whole. */
  contentOn(call: Call, node: string | undefined): Promise<CacheContent>;
}

/** A model that fits, and what it is asked as. */
interface Placed {
  readonly question: FitQuestion;
  readonly fit: FitResult;
  /** Nothing of the weights is missing in the cache. */
  readonly isThere: boolean;
  readonly location: CacheLocation | undefined;
}

/** Everything that a fit is judged by, and what of it is not known. */
interface Gathered {
  readonly question: FitQuestion;
  readonly facts: FitFacts;
  readonly notes: readonly string[];
}

export type Questions = ReturnType<typeof createQuestions>;

export function createQuestions({ backend, world, hub, client, contentOn }: Options) {
  async function gather(call: Call, request: FitRequest, against: Limit): Promise<Gathered> {
    const [configured, around, nodes] = await Promise.all([
      readValue(world.configured, call),
      readValue(world.surroundings, call),
      readValue(world.nodes, call),
    ]);
    const question = asked(request, around);
    const { settings } = around;
    const { repository, revision } = question;
    const found = await hub.weights(call, repository, revision, settings.downloads.ignorePatterns);
    return {
      question,
      facts: {
        backend,
        nodes,
        hub: found,
        tokenConfigured: settings.hub.tokenSecret !== undefined,
        against,
        withoutDocument: lacking(configured),
        ...rulesIn(around),
      },
      notes: [...around.notes.reservations, ...around.notes.cache],
    };
  }

  const lacking = ({ discovery, isDiscovered }: Configured) =>
    isDiscovered ? undefined : withoutDocument(discovery, world.ref);

  /** The same with the document as it is now, past everything that is watched. */
  async function again(call: Call, gathered: Gathered): Promise<Gathered> {
    const configured = world.configuredBy(await reread(call));
    if (!configured.isDiscovered) {
      return { ...gathered, facts: { ...gathered.facts, withoutDocument: lacking(configured) } };
    }
    const around = await readValue(world.around(configured.settings), call);
    const facts = { ...gathered.facts, ...rulesIn(around), withoutDocument: undefined };
    return { ...gathered, facts, notes: [...around.notes.reservations, ...around.notes.cache] };
  }

  async function reread(call: Call): Promise<Discovery> {
    const { name, namespace } = world.ref;
    try {
      return parseDiscovery(await client.get(call, configMaps, name, namespace), world.ref);
    } catch (error) {
      if (call.signal.aborted) throw error;
      const { code, message } = asGatewayError(error, call.requestId);
      if (code === 'not_found') return { state: 'missing' };
      return { state: 'unreadable', problem: readFailure(world.ref, message) };
    }
  }

  /** With the document read once more where the want of it may be why. */
  async function settled(call: Call, request: FitRequest, against: Limit) {
    const gathered = await gather(call, request, against);
    const judgement = judgeFit(gathered.question, gathered.facts);
    if (!judgement.wantsDocument) return { ...gathered, judgement };
    const second = await again(call, gathered);
    return { ...second, judgement: judgeFit(second.question, second.facts) };
  }

  async function place(call: Call, request: FitRequest, against: Limit): Promise<Placed> {
    const { question, facts, judgement, notes } = await settled(call, request, against);
    const content = judgement.asksCache ? await contentOn(call, judgement.asksCache.node) : {};
    const result = withCache(judgement, question, facts, content);
    // What a verdict was made without is part of it.
    const fit = notes.length === 0 ? result : { ...result, reason: [result.reason, ...notes].join('; ') };
    const isThere = fit.cached === true && isWhole(question, content, fit.downloadBytes);
    return { question, fit, isThere, location: facts.location };
  }

  return {
    place,

    /** What a request asks for, by what is watched. Throws as `place` does, for a request that makes no sense. */
    ask: async (call: Call, request: FitRequest): Promise<FitQuestion> =>
      asked(request, await readValue(world.surroundings, call)),

    checkFit: async (call: Call, request: FitRequest): Promise<FitResult> => (await place(call, request, 'budget')).fit,

    async explain(call: Call, request: FitRequest): Promise<FitExplanation> {
      const { question, facts, notes } = await settled(call, request, 'budget');
      const { obstacles, nodes, sizes } = whyNot(question, facts);
      const unknown = notes.map(text => ({ code: 'unknown', text, change: 'let the gateway read it' }));
      return {
        backend,
        model: question.model,
        preset: question.preset?.name,
        obstacles: [...obstacles, ...unknown],
        nodes: nodes.map(({ node, fits, obstacles }) => ({ node, eligible: fits, obstacles })),
        sizes: sizes.map(({ instanceType, obstacles }) => ({ instanceType, obstacles })),
      };
    },

    async search(call: Call, { query, limit }: { readonly query: string; readonly limit: number }) {
      const [hits, { value: around }] = await Promise.all([
        hub.search(call, query, limit),
        world.surroundings.read(call),
      ]);
      return hits.map((hit): SearchResult => {
        const presets = presetsServing(around?.presets ?? [], hit.id).map(({ name }) => name);
        return { backend, ...hit, presets: presets.length > 0 ? presets : undefined };
      });
    },
  };
}

/** Without presets only a repository can be asked for: of a preset one could not tell whether there is one. */
function asked(request: FitRequest, { presets, presetsError, notes }: Surroundings): FitQuestion {
  const isRepositoryAlone = !request.preset && isRepository(parseReference(request.model ?? '').repository);
  if (presetsError && !isRepositoryAlone) throw presetsError;
  const late = notes.reservations.find(note => note.startsWith('presets:'));
  if (!presetsError && late && presets.length === 0 && !isRepositoryAlone) throw unavailable(late);
  return questionOf(presets, request);
}

export const rulesIn = ({ settings, location, served, presets }: Surroundings) => ({
  settings,
  location,
  reserved: reservationsOf(served, presets),
});
