/** The page of the documentation that explains every reason. */
import { type CataloguedReason, catalogue, stepNames } from '../domain.ts';

const intro = `# Reasons

Why a model is not there yet, why it failed, or why it does not fit: the gateway says so with a word and a message. Look up the word
below: what it means, what to do, and then the messages that come with it, whole or in parts, with what changes in \`{braces}\`.
\`<pod>\` is the pod of the model, in the namespace that models are served in.

The same is in the graph, and beside each step of a served model:

\`\`\`graphql
{
  reasons(code: "CapacityUnavailable") { meaning remedy }
  loadedModels { items { name steps { name state reason message explanation { meaning remedy } } } }
}
\`\`\`

This page is written by \`npm run schema\` from the table that all messages are taken from.`;

interface Chapter {
  readonly title: string;
  readonly about: string;
  has(reason: CataloguedReason): boolean;
}

/** Each reason is in one. */
const chapters: readonly Chapter[] = [
  {
    title: 'Steps of a served model',
    about:
      '`reason` of a step in `loadedModels`. The model as a whole may have the word of its pod or its object beside it.',
    has: ({ where, from }) => from === undefined && where.some(isStep),
  },
  {
    title: 'Words of other programs',
    about:
      '`reason` of a step or of a served model, as Kubernetes, Karpenter or KServe gave it, mostly with its own message. They have more words than these; others are passed on as they come.',
    has: ({ from }) => from !== undefined,
  },
  {
    title: 'Wiring',
    about: '`wiring.reason` of a model: whether agents got to know it.',
    has: ({ where }) => where.includes('wiring'),
  },
  {
    title: 'Cache inventory',
    about:
      'Why what is cached is not being counted now, or is counted later. Answers have the text alone; the last count stands meanwhile.',
    has: ({ where }) => where.includes('inventory'),
  },
  {
    title: 'Fit',
    about:
      '`code` of the obstacles that `explainFit` names, with the same texts in a fit check and in a refused load. Some texts are only what went wrong elsewhere, and are not listed.',
    has: ({ where }) => where.includes('fit'),
  },
];

const steps: readonly string[] = stepNames;
const isStep = (place: string) => steps.includes(place);

export function reasonsPage(): string {
  const parts = chapters.map(({ title, about, has }) => ({ title, about, reasons: catalogue.filter(has) }));
  const index = parts.map(({ title, reasons }) => `- ${title}: ${reasons.map(linkTo).join(', ')}`);
  const sections = parts.map(({ title, about, reasons }) => [`## ${title}`, about, ...reasons.map(entry)].join('\n\n'));
  return `${[intro, index.join('\n'), ...sections].join('\n\n')}\n`;
}

const linkTo = ({ code }: CataloguedReason) => `[${code}](#${code.toLowerCase().replace(/ /g, '-')})`;

function entry(reason: CataloguedReason): string {
  const { code, meaning, remedy, texts } = reason;
  const says = texts.map(text => text.replace(/^[;.:]? +|: $/g, '')).filter(text => !/^\{\w+\}$/.test(text));
  const lines = [`### ${code}`, placeWords(reason) + meaning, `**What to do:** ${sentence(remedy)}`];
  if (says.length > 0) lines.push(says.map(text => `- \`${text}\``).join('\n'));
  return lines.join('\n\n');
}

/** Whose word it is, and the steps that it shows at. */
function placeWords({ where, from }: CataloguedReason): string {
  const at = where.filter(isStep).map(step => `\`${step}\``);
  const words = [from, at.length > 0 ? `at ${at.join(', ')}` : undefined].filter(Boolean).join(', ');
  return words ? `*${words.replace(/^./, first => first.toUpperCase())}.* ` : '';
}

/** A change is written small and without a full stop. */
const sentence = (text: string) =>
  `${text.replace(/^[a-z]/, first => first.toUpperCase())}${/[.!?]$/.test(text) ? '' : '.'}`;
