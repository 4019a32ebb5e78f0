/** What is generated of the chart, from its values and from the code. */
import { stringify } from 'yaml';
import { backendKinds } from '../../src/domain.ts';
import { type Permission, permissions } from '../../src/kubernetes/permissions.ts';
import { readmeOf } from './readme.ts';
import { schemaOf } from './schema.ts';
import { readValues } from './values.ts';

/** By path in the chart. */
export function chartFiles(values: string): Readonly<Record<string, string>> {
  const sections = readValues(values);
  return {
    'README.md': readmeOf(sections),
    'values.schema.json': `${JSON.stringify(schemaOf(sections), null, 2)}\n`,
    'files/gateway.yaml': `# Made from the code by \`npm run chart\`.\n${stringify(gatewayFacts(), { lineWidth: 120 })}`,
  };
}

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
