/** Whether and where a model can be served, as a function of what is known. */
import type { FitResult } from '../../domain.ts';
import type { KubernetesObject } from '../../kubernetes/resource.ts';
import { type CacheContent, cachedIn } from './fit/cached.ts';
import { candidatesAmong, listedNodes, rulesFor } from './fit/candidates.ts';
import { fitsOn, type Limit, memoryObstacle } from './fit/memory.ts';
import { declarationClause, type Need, needOf } from './fit/need.ts';
import { growthObstacle, poolVerdict } from './fit/poolSizes.ts';
import type { FitQuestion } from './fit/question.ts';
import type { HubFacts } from './hub/facts.ts';
import type { JudgedNode, NodeRules } from './nodes.ts';

export { type CacheContent, isWhole } from './fit/cached.ts';
export type { Limit } from './fit/memory.ts';
export { type FitQuestion, questionOf } from './fit/question.ts';

/** What a fit is judged by. */
export interface FitFacts extends NodeRules {
  readonly backend: string;
  readonly nodes: readonly KubernetesObject[];
  readonly hub: HubFacts;
  /** There is a token for the Hub. */
  readonly tokenConfigured: boolean;
  readonly against: Limit;
  /** Why there is no discovery document, as `withoutDocument` says it: a refusal may be for that. */
  readonly withoutDocument?: string | undefined;
}

export interface Judgement {
  readonly result: FitResult;
  /** There is a place for the model, so its cache is of interest: that of a node, or the claim as a whole. */
  readonly asksCache: { readonly node: string | undefined } | undefined;
  /** No node came into question and there is no document: with it the answer may be another one. */
  readonly wantsDocument: boolean;
}

/** A fit without its cache. Throws as `needOf` and `poolVerdict` do. */
export function judgeFit(question: FitQuestion, facts: FitFacts): Judgement {
  const need = needOf(question, facts.hub, facts.settings.defaultOverheadBytes);
  const rules = rulesFor(question.preset, facts);
  const listed = listedNodes(facts.nodes, question.preset, rules);
  const candidates = candidatesAmong(listed, question, rules);
  const result = resultOf(question, facts, need);
  if ('nodes' in candidates) {
    const { nodes } = candidates;
    // There is no empty list of candidates. What is most free need not be what is largest.
    const best = nodes.find(each => !memoryObstacle(need, each, facts.against)) ?? (nodes[0] as JudgedNode);
    const onNode = { ...result, ...verdictOn(best, need, facts) };
    return { result: onNode, asksCache: { node: best.node.name }, wantsDocument: false };
  }
  const wantsDocument = question.node === undefined && facts.withoutDocument !== undefined;
  const pool = rules.settings.gpuPool;
  if (pool && question.node === undefined && !growthObstacle(pool, listed)) {
    const verdict = poolVerdict(pool, question, need);
    const reason = verdict.reason + need.fallback;
    return {
      result: { ...result, ...verdict, reason, budgetSource: 'pool-scale-from-zero' },
      asksCache: { node: undefined },
      wantsDocument,
    };
  }
  const reasons = wantsDocument
    ? [facts.withoutDocument, ...(listed.length > 0 ? [candidates.why] : [])]
    : [candidates.why];
  const reason = reasons.join('; ') + need.fallback;
  const refusal = { ...result, fits: false, reason, retryable: wantsDocument || undefined };
  return { result: refusal, asksCache: undefined, wantsDocument };
}

/** The fit with what is known of its cache. */
export function withCache(
  { result, asksCache }: Judgement,
  question: FitQuestion,
  { settings, location }: NodeRules,
  content: CacheContent,
): FitResult {
  return asksCache ? { ...result, ...cachedIn(question, settings, location, content) } : result;
}

export const fitOf = (question: FitQuestion, facts: FitFacts, content: CacheContent): FitResult =>
  withCache(judgeFit(question, facts), question, facts, content);

function resultOf(question: FitQuestion, { backend, tokenConfigured }: FitFacts, need: Need) {
  return {
    backend,
    model: question.model,
    preset: question.preset?.name,
    presets: question.presets.length > 0 ? question.presets : undefined,
    weightsBytes: need.weightsBytes,
    weightsSource: need.weightsSource,
    declaredWeightsBytes: need.declaredWeightsBytes,
    overheadBytes: need.overheadBytes,
    requiredBytes: need.requiredBytes,
    downloadBytes: need.downloadBytes,
    gated: need.gated,
    private: need.private,
    tokenConfigured,
  };
}

function verdictOn(judged: JudgedNode, need: Need, { against, tokenConfigured }: FitFacts) {
  const obstacle = memoryObstacle(need, judged, against);
  const declared = obstacle?.code === 'no-budget' ? '' : declarationClause(need, !obstacle);
  const gated = need.gated && !tokenConfigured ? '; the repository is gated and no hub token is configured' : '';
  return {
    fits: !obstacle,
    reason: (obstacle?.text ?? fitsOn(need, judged, against)) + declared + gated + need.fallback,
    node: judged.node.name,
    budgetBytes: judged.budgetBytes || undefined,
    budgetSource: judged.source,
    reservedBytes: judged.reservedBytes,
    freeBytes: judged.budgetBytes ? judged.freeBytes : undefined,
  };
}
