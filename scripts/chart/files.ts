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

/** The rules of a scope; those of the gateway's own namespace apart by whether they write. */
function rulesOf(scope: Permission['scope'], which: 'all' | 'reads' | 'writes' = 'all'): readonly Rule[] {
  return permissions
    .filter(row => row.scope === scope)
    .filter(row => which === 'all' || row.verbs.every(verb => reading.includes(verb)) === (which === 'reads'))
    .map(({ group, resource, resourceNames, verbs }) => ({
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
    ownReads: rulesOf('own', 'reads'),
    ownWrites: rulesOf('own', 'writes'),
    kagent: rulesOf('kagent'),
    discovery: rulesOf('discovery'),
    serving: rulesOf('serving'),
    default: rulesOf('default'),
    cluster: rulesOf('cluster'),
  },
});
