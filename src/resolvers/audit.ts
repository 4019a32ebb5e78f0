import type { GraphQLSchema } from 'graphql';
import { audited, leaveRefusal, type Target } from '../audit/entry.ts';
import type { GatewayError } from '../errors.ts';
import type { Context } from './builder.ts';

type Arguments = Readonly<Record<string, unknown>>;

/** Makes every mutation leave its entry in the audit trail, by whichever face it comes. One that only says what it would do is a read. */
export function withAudit(graph: GraphQLSchema): GraphQLSchema {
  for (const [action, field] of Object.entries(graph.getMutationType()?.getFields() ?? {})) {
    const { resolve } = field;
    if (!resolve) throw new Error(`mutation ${action} has no resolver`);
    field.resolve = (root, args: Arguments, context: Context, info) => {
      const work = () => resolve(root, args, context, info);
      if (args.dryRun === true) return work();
      return audited(context.call, { action, face: context.face }, answer => targetOf(args, answer), work);
    };
  }
  return graph;
}

/**
 * Leaves the entry of a mutation whose resolver was never asked, for what was asked made no sense. `args` is what was, as far
 * as one can tell.
 */
export function leaveRefused({ call, face }: Context, action: string, args: Arguments, error: GatewayError): void {
  if (args.dryRun !== true) leaveRefusal(call, { action, face }, targetOf(args, undefined), error);
}

type Named = string | { readonly name?: string } | undefined;

/** What the answers of mutations have of their target; each has some of it. */
interface Answer {
  readonly backend?: Named;
  readonly view?: { readonly backend?: Named };
  readonly job?: { readonly id: string; readonly backend: string };
  readonly id?: string;
  readonly model?: string;
  readonly modelConfig?: { readonly name?: string };
  readonly configMap?: { readonly name?: string };
  readonly running?: { readonly resource?: string };
  readonly resources?: readonly string[];
}

/** By what was asked, and by what was answered, which knows better. */
function targetOf(args: Arguments, answered: unknown): Target {
  const answer = (answered ?? {}) as Answer;
  const { job, view, backend = job?.backend ?? view?.backend, modelConfig, configMap, running, resources } = answer;
  const asked = (name: string) => short(args[name]);
  return {
    backend: nameOf(backend) ?? asked('backend') ?? asked('kind'),
    model: asked('model') ?? asked('preset') ?? short(answer.model),
    object: configMap?.name ?? modelConfig?.name ?? running?.resource ?? (resources?.join(', ') || undefined),
    job: job?.id ?? (args.id === undefined ? undefined : (answer.id ?? asked('id'))),
  };
}

const nameOf = (named: Named) => (typeof named === 'string' ? named : named?.name);

/** What was refused for its length would make lines of any length. */
function short(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.trim() === '') return undefined;
  const text = value.trim();
  return text.length > 512 ? `${text.slice(0, 512)}…` : text;
}
