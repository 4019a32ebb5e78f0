/** The page of the documentation that explains every reason. */
import { type CataloguedReason, catalogue } from '../domain.ts';

const intro = `# Reasons

Why a model is not there yet, why it failed, or why it does not fit: the gateway says so with a word, and a message beside it. Look up
the word below. What it says in \`code\` is the message, with what changes in \`{braces}\`.

The same is in the graph, and beside each step of a served model:

\`\`\`graphql
{
  reasons(code: "CapacityUnavailable") { meaning remedy }
  loadedModels { items { name steps { name state reason message explanation { meaning remedy } } } }
}
\`\`\`

This page is written by \`npm run schema\` from the table that all messages are taken from.
`;

/** The chapters: each reason is in the first one that takes it. */
const chapters: readonly {
  readonly title: string;
  readonly about: string;
  takes(reason: CataloguedReason): boolean;
}[] = [
  {
    title: 'Fit',
    about: '`code` of the obstacles that `explainFit` names. A fit check and a refused load give the same texts.',
    takes: ({ where }) => where.includes('fit'),
  },
  {
    title: 'Wiring',
    about: '`wiring.reason` of a model: whether agents got to know it.',
    takes: ({ where }) => where.includes('wiring'),
  },
  {
    title: 'Cache inventory',
    about:
      'Why what is cached is not being counted now, or is counted later. Answers have the text alone; the last count stands meanwhile.',
    takes: ({ where }) => where.includes('inventory'),
  },
  {
    title: 'Words of other programs',
    about:
      '`reason` of a step or of a served model, as Kubernetes, Karpenter or KServe gave it, mostly with its own message. There are more than these; others come as they are.',
    takes: ({ from }) => from !== undefined,
  },
  {
    title: 'Steps of a served model',
    about: '`reason` of a step in `loadedModels`, and of the model while that step is the one it is at.',
    takes: () => true,
  },
];

/** In this order one meets them. */
const order = ['Steps of a served model', 'Words of other programs', 'Wiring', 'Cache inventory', 'Fit'];

export function reasonsPage(): string {
  const chapterOf = (reason: CataloguedReason) => chapters.find(({ takes }) => takes(reason))?.title;
  const parts = order.map(title => {
    const reasons = catalogue.filter(reason => chapterOf(reason) === title);
    const about = chapters.find(each => each.title === title)?.about ?? '';
    return { title, about, reasons };
  });
  const index = parts.map(({ title, reasons }) => `- ${title}: ${reasons.map(linkTo).join(', ')}`);
  const sections = parts.map(({ title, about, reasons }) => [`## ${title}`, about, ...reasons.map(entry)].join('\n\n'));
  return `${[intro, index.join('\n'), ...sections].join('\n\n').replace(/\n{3,}/g, '\n\n')}\n`;
}

const linkTo = ({ code }: CataloguedReason) => `[${code}](#${code.toLowerCase().replace(/ /g, '-')})`;

function entry(reason: CataloguedReason): string {
  const { code, meaning, remedy, texts } = reason;
  const says = texts.map(text => text.replace(/^[;.:]? +|: $/g, '')).filter(text => text !== '{problem}');
  const lines = [`### ${code}`, `${placeWords(reason)}${meaning}`, `**What to do:** ${sentence(remedy)}`];
  if (says.length > 0) lines.push(says.map(text => `- \`${text}\``).join('\n'));
  return lines.join('\n\n');
}

/** Where it shows, for those that show at steps. */
function placeWords({ where, from }: CataloguedReason): string {
  const steps = where.filter(place => !['status', 'wiring', 'inventory', 'fit'].includes(place));
  const places = steps.length > 0 ? `at ${steps.map(step => `\`${step}\``).join(', ')}` : '';
  const words = [from && `of ${from}`, places || (from && 'in the status')].filter(Boolean).join(', ');
  return words ? `*${words.replace(/^./, first => first.toUpperCase())}.* ` : '';
}

/** Changes begin small and end without a full stop. */
const sentence = (text: string) =>
  `${text.replace(/^[a-z]/, first => first.toUpperCase())}${/[.!?]$/.test(text) ? '' : '.'}`;
