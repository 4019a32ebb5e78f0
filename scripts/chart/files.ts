/** What is generated of the chart, from its values and from the code. */
import { stringify } from 'yaml';
import { takenPaths } from '../../src/config/values.ts';
import { backendKinds } from '../../src/domain.ts';
import { type Permission, permissions } from '../../src/kubernetes/permissions.ts';
import { readmeOf } from './readme.ts';
import { schemaOf } from './schema.ts';
import { readValues, type Value } from './values.ts';

/** By path in the chart. */
export function chartFiles(values: string): Readonly<Record<string, string>> {
  const sections = readValues(values);
  return {
    'README.md': readmeOf(sections),
    'values.schema.json': `${JSON.stringify(schemaOf(sections), null, 2)}\n`,
    'files/keys.yaml': `# Made from values.yaml by \`npm run chart\`.\n${stringify(sections.flatMap(each => needed(each.values)))}`,
    'files/gateway.yaml': `# Made from the code by \`npm run chart\`.\n${stringify(gatewayFacts(), { lineWidth: 120 })}`,
  };
}

/**
 * The keys that templates cannot do without, those above first. Lists and maps of anything are not among them: to say `null` of
 * one is how it is emptied.
 */
const needed = (values: readonly Value[]): readonly string[] =>
  values.flatMap(({ path, children, default: standard }) => {
    if (path === 'global') return [];
    if (children) return [path, ...needed(children)];
    return standard instanceof Object ? [] : [path];
  });

/** A rule of a Role. */
interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

const reading: readonly string[] = ['get', 'list', 'watch'];

const isRead = ({ verbs }: Permission) => verbs.every(verb => reading.includes(verb));

/** The rules of a scope; those that need a setting are apart. */
const rulesOf = (scope: Permission['scope'], isWanted: (row: Permission) => boolean = () => true): readonly Rule[] =>
  rulesFor(row => row.scope === scope && !row.only && isWanted(row));

function rulesFor(isWanted: (row: Permission) => boolean): readonly Rule[] {
  return permissions.filter(isWanted).map(({ group, resource, resourceNames, verbs }) => ({
    apiGroups: [group],
    resources: [resource],
    ...(resourceNames && { resourceNames: [...resourceNames] }),
    verbs: [...verbs],
  }));
}

/** What templates have to know of the program. */
const gatewayFacts = () => ({
  backends: [...backendKinds],
  takenPaths: [...takenPaths],
  rules: {
    ownReads: rulesOf('own', isRead),
    ownWrites: rulesOf('own', row => !isRead(row)),
    ownJobs: rulesFor(({ only }) => only === 'job-store=kubernetes'),
    kagent: rulesOf('kagent'),
    discovery: rulesOf('discovery'),
    serving: rulesOf('serving'),
    default: rulesOf('default'),
    cluster: rulesOf('cluster'),
  },
});
