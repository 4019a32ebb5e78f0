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

function detail(step: Step): string {
  const took = step.state === 'done' ? tookWords(step) : '';
  return [took, said(step)].filter(Boolean).join(', ').replace(/\s+/g, ' ');
}

function tookWords({ since, finishedAt, cached }: Step): string {
  const took = since && finishedAt ? formatDuration(Math.max(0, finishedAt.getTime() - since.getTime())) : '';
  return [took && `took ${took}`, cached ? 'cached' : ''].filter(Boolean).join(', ');
}

const clipped = (line: string, width: number) => (line.length > width ? `${line.slice(0, width - 1)}…` : line);

/** Where it is in the end: all steps, and what the one that it is at says in full. */
export function summaryLines({ steps, phase, status, reason, message, node }: Timeline): string[] {
  const rows = steps.map(step => [words[step.name], states[step.state], tookWords(step)]);
  const table = [['step', 'state', 'time'], ...rows].map(([step = '', state = '', took = '']) =>
    `  ${step.padEnd(20)} ${state.padEnd(12)} ${took}`.trimEnd(),
  );
  const at = steps.find(({ state }) => state === 'failed' || state === 'inProgress');
  const why = (at && said(at)) || (message ?? reason);
  return [
    ...table,
    '',
    `${phase === 'ready' ? 'ready' : `${phase}, ${status}`}${node ? ` on ${node}` : ''}`,
    ...(why ? [why] : []),
  ];
}
