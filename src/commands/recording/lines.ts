/** A serve as lines for people. Pure text. */
import type { Step } from '../../domain.ts';
import type { Recording } from '../../drivers/kserve/recording.ts';
import type { Timeline } from '../../drivers/kserve/timeline.ts';
import { formatDuration } from '../../drivers/kserve/units.ts';

const words: Readonly<Record<Step['name'], string>> = {
  scheduling: 'scheduling',
  nodeStarting: 'node starting',
  downloadingWeights: 'downloading weights',
  pullingImage: 'pulling image',
  loading: 'loading',
  routing: 'routing',
  ready: 'ready',
};

const states: Readonly<Record<Step['state'], string>> = {
  pending: 'pending',
  inProgress: 'in progress',
  done: 'done',
  failed: 'failed',
};

/** When the object was made, as far as it says; else the first instant. */
export function beginningOf({ instants, object }: Recording): number {
  const [first] = instants;
  const found = first?.objects.find(({ kind, metadata }) => kind === 'LLMInferenceService' && metadata.name === object);
  const created = Date.parse(found?.metadata.creationTimestamp ?? '');
  return Number.isNaN(created) ? (first?.at ?? 0) : created;
}

/** `+0:04:08` */
function elapsedWords(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const two = (amount: number) => String(amount).padStart(2, '0');
  return `+${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** One line for each step that is in another state than before, or in it for another reason. */
export function newsLines(before: Timeline | undefined, next: Timeline, elapsed: number, width: number): string[] {
  const news = next.steps.filter(step => {
    const known = before?.steps.find(({ name }) => name === step.name);
    if (step.state === 'pending') return known !== undefined && known.state !== 'pending';
    // What a step that is over says of itself may change as events expire: that is no news.
    return !known || known.state !== step.state || (step.state !== 'done' && said(known) !== said(step));
  });
  const isLeaving = next.phase === 'terminating' && before?.phase !== 'terminating';
  const lines = [
    ...news.map(step => [words[step.name].padEnd(20), states[step.state].padEnd(12), detail(step)].join(' ')),
    ...(isLeaving ? ['terminating'] : []),
  ];
  return lines.map(line => clipped(`${elapsedWords(elapsed)}  ${line}`.trimEnd(), width));
}

/** Some messages repeat their reason. */
const said = ({ reason, message }: Step) =>
  [reason, reason && message?.startsWith(`${reason} `) ? message.slice(reason.length + 1) : message]
    .filter(Boolean)
    .join(': ');

/** What a step that is over says of itself is how long it took; being ready takes no time. */
function detail(step: Step): string {
  if (step.state !== 'done') return said(step).replace(/\s+/g, ' ');
  const took = timeOf(step);
  return [took && step.name !== 'ready' && `took ${took}`, step.cached && 'cached'].filter(Boolean).join(', ');
}

/** In milliseconds; undefined until it is over. */
const tookMs = ({ since, finishedAt }: Step) =>
  since && finishedAt ? Math.max(0, finishedAt.getTime() - since.getTime()) : undefined;

function timeOf(step: Step): string {
  const took = tookMs(step);
  return took === undefined ? '' : formatDuration(took);
}

const clipped = (line: string, width: number) => (line.length > width ? `${line.slice(0, width - 1)}…` : line);

/** Characters of the longest bar. */
const longestBar = 24;

/** All steps, with the time that each took, and a bar for how much of the whole that is. */
export function tableLines({ steps }: Timeline): string[] {
  const longest = Math.max(...steps.map(step => tookMs(step) ?? 0), 1);
  const bar = (step: Step) => '█'.repeat(Math.round(((tookMs(step) ?? 0) / longest) * longestBar));
  const rows = steps.map(step => [
    words[step.name],
    states[step.state],
    timeOf(step),
    step.cached ? 'cached' : bar(step),
  ]);
  return [['step', 'state', 'time', ''], ...rows].map(([step = '', state = '', took = '', beside = '']) =>
    `  ${step.padEnd(20)} ${state.padEnd(12)} ${took.padEnd(8)} ${beside}`.trimEnd(),
  );
}

/** Where it is, and what the step that it is at says in full. */
export function standLines({ steps, phase, status, reason, message, node }: Timeline, beginning: number): string[] {
  const at = steps.find(({ state }) => state === 'failed' || state === 'inProgress');
  const why = (at && said(at)) || (message ?? reason);
  const readyAt = phase === 'ready' ? steps.find(({ name }) => name === 'ready')?.finishedAt?.getTime() : undefined;
  const after = readyAt === undefined ? '' : ` after ${formatDuration(Math.max(0, readyAt - beginning))}`;
  return [
    `${phase === 'ready' ? `ready${after}` : `${phase}, ${status}`}${node ? ` on ${node}` : ''}`,
    ...(why ? [why] : []),
  ];
}

/** A span of which nothing is told: `          … 2h52m later` */
export const quietLine = (ms: number) => `${' '.repeat('+0:00:00  '.length)}… ${spanWords(ms)} later`;

/** A time as one says it, to the second, and to the minute from an hour on: `2h52m`, `4m`, `4m10s`. */
export function spanWords(ms: number): string {
  const unit = ms < 3_600_000 ? 1_000 : 60_000;
  return formatDuration(Math.round(ms / unit) * unit).replace(/(?<=[hm])(?:0m)?0s$/, '');
}
