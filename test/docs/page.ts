/** The page for operators, taken apart: what it has people run, and what it quotes. */
import { globSync, readFileSync } from 'node:fs';

const root = new URL('../../', import.meta.url).pathname;
export const read = (path: string) => readFileSync(`${root}${path}`, 'utf8');

export const page = read('docs/operating.md');

interface Fence {
  readonly language: string;
  /** The word after the language. */
  readonly stage: string;
  readonly text: string;
  readonly line: number;
  /** Where it ends in the page. */
  readonly end: number;
}

/** Something to run, where, and what it prints. */
export interface Block {
  readonly stage: string;
  readonly script: string;
  /** Of the page. */
  readonly line: number;
  /** What stands below it as its output; `…` is anything. */
  readonly prints: string | undefined;
}

const fences: readonly Fence[] = [...page.matchAll(/^```(\w*) ?([\w-]*)\n([\s\S]*?)^```$/gm)].map(
  ({ 0: whole, 1: language = '', 2: stage = '', 3: text = '', index }) => ({
    language,
    stage,
    text,
    line: page.slice(0, index).split('\n').length,
    end: index + whole.length,
  }),
);

export const fencesOf = (language: string) => fences.filter(each => each.language === language);

export const languages = new Set(fences.map(({ language }) => language));

export const blocks: readonly Block[] = fencesOf('sh').map(({ stage, text, line, end }) => {
  const next = fences.find(each => each.end > end);
  // Only what follows at once is its output.
  const isOutput = next?.language === 'text' && page.slice(end).startsWith(`\n\n\`\`\`text\n${next.text}`);
  return { stage, script: text, line, prints: isOutput ? next.text : undefined };
});

const prose = page.replace(/^```[\s\S]*?^```$/gm, '').replace(/<!--[\s\S]*?-->/g, '');

const spansIn = (text: string) => [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span as string);

/** What the prose has in code letters. */
export const spans = spansIn(prose);

/** The rows of all tables below a heading, until the next of its rank or above, each as its cells. */
export function rowsBelow(heading: string): readonly (readonly string[])[] {
  const [, rank = ''] = /^(#+) /.exec(heading) ?? [];
  const [, rest = ''] = page.split(`\n${heading}\n`);
  const [section = ''] = rest.split(new RegExp(`^#{1,${rank.length}} `, 'm'));
  const lines = section.split('\n');
  return lines
    .filter(
      (line, index) => line.startsWith('| ') && !/^\|[ |-]+$/.test(line) && !/^\|[ |-]+$/.test(lines[index + 1] ?? ''),
    )
    .map(line =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map(cell => cell.trim()),
    );
}

const isSentence = (span: string) => span.includes(' ') && !/^(?:--|kubectl|helm)/.test(span);

/** Messages that tables of symptoms quote: what is in code letters in a first column, and sentences in the others. */
export const messages: readonly string[] = ['## What is wrong', '### Logs']
  .flatMap(heading => rowsBelow(heading))
  .flatMap(([seen = '', ...others]) => [...spansIn(seen), ...spansIn(others.join(' ')).filter(isSentence)]);

/** All texts of the program and of its chart; what they fill in is a NUL. */
export const texts: string = [
  ...globSync('src/**/*.ts', { cwd: root }).filter(path => !path.startsWith('src/demo/')),
  ...globSync('helm/model-manager/templates/*', { cwd: root }),
]
  .map(read)
  .join('\0')
  .replace(/['`] \+\n\s*['`]/g, '')
  .replace(/\$\{[^{}]*\}|\{\w+\}|%[qsd]/g, '\0')
  .replaceAll("\\'", "'");
