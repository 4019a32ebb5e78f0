/** What was found, as one line each. */
import type { Comparison, Spread } from './measure.ts';

export interface Row {
  readonly what: string;
  readonly unit: 'µs' | 'ms' | 'KiB' | 'MB';
  readonly ours: number;
  readonly reference: number;
  /** Ours as a multiple of the reference: on the clock, and in processor time of the server. */
  readonly ratio: { readonly wall: Spread; readonly cpu?: Spread } | undefined;
  /** The figure that decides, and what it may be at most; `aim` is what it should be. */
  readonly goal: { readonly figure: 'wall' | 'cpu' | 'ours'; readonly most: number; readonly aim?: number };
}

/** A row about one piece of work, in microseconds. */
export function rowOf(what: string, { ours, reference, ratio }: Comparison, goal: Row['goal']): Row {
  const figure = goal.figure === 'cpu' ? 'cpu' : 'wall';
  return { what, unit: 'µs', ours: ours[figure], reference: reference[figure], ratio, goal };
}

function figureOf({ ours, ratio, goal }: Row): number {
  return goal.figure === 'ours' ? ours : (ratio?.[goal.figure]?.median ?? Number.NaN);
}

function verdictOf(row: Row): 'ok' | 'must' | 'over' {
  const { most, aim = most } = row.goal;
  const figure = figureOf(row);
  return figure <= aim ? 'ok' : figure <= most ? 'must' : 'over';
}

export const jsonOf = (row: Row) => JSON.stringify({ ...row, figure: figureOf(row), verdict: verdictOf(row) });

const columns = ['what', 'ours', 'reference', 'ratio (clock)', 'ratio (processor)', 'goal', ''];
const digits = (value: number) => (Number.isNaN(value) ? '–' : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0));
const shownSpread = ({ median, low, high }: Spread) => `${digits(median)} (${digits(low)}–${digits(high)})`;

/** The table as aligned text. The ratio that the goal is about is marked. */
export function tableOf(rows: readonly Row[]): string {
  const cells = [columns, ...rows.map(cellsOf)];
  const widths = columns.map((_, column) => Math.max(...cells.map(line => line[column]?.length ?? 0)));
  const lines = cells.map(line =>
    line
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] as number) : cell.padStart(widths[column] as number),
      )
      .join('  ')
      .trimEnd(),
  );
  return lines.join('\n');
}

function cellsOf(row: Row): string[] {
  const { what, unit, ours, reference, ratio, goal } = row;
  const shown = (figure: 'wall' | 'cpu') => {
    const spread = ratio?.[figure];
    return spread ? `${goal.figure === figure ? '> ' : ''}${shownSpread(spread)}` : '';
  };
  const limit = goal.figure === 'ours' ? `${goal.most} ${unit}` : `${goal.most} ×`;
  return [
    what,
    `${digits(ours)} ${unit}`,
    `${digits(reference)} ${unit}`,
    shown('wall'),
    shown('cpu'),
    `≤ ${limit}${goal.aim === undefined ? '' : `, aim ${goal.aim} ×`}`,
    verdictOf(row),
  ];
}
