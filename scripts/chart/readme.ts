/** The chart's README. */
import type { Section, Value } from './values.ts';

export function readmeOf(sections: readonly Section[]): string {
  const tables = sections.map(({ heading, values }) => {
    const rows = values.flatMap(leavesOf).map(({ path, default: standard, description }) => {
      return [`\`${path}\``, `\`${JSON.stringify(standard)}\``, description];
    });
    const lines = [['Key', 'Default', 'Meaning'], ['---', '---', '---'], ...rows].map(
      cells => `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`,
    );
    return `### ${heading}\n\n${lines.join('\n')}\n`;
  });
  return `${introduction}${tables.join('\n')}`;
}

const leavesOf = (value: Value): readonly Value[] => value.children?.flatMap(leavesOf) ?? [value];

const introduction = `<!-- Made from values.yaml by \`npm run chart\`. -->

# model-manager

Installs the gateway in a cluster: a pod or several, their Service, an account with the rights that it needs and no others, and what the
platform around it wants to be told of it.

\`\`\`sh
helm install model-manager helm/model-manager --namespace agent-platform --set 'backends={ollama}' \\
  --set ollama.endpoint=http://gpu-box:11434
\`\`\`

The folder \`ci\` has values for a laptop, KServe, OAuth, work as the caller, muster behind a Gateway, agents of the cache,
several replicas, and a demo.

- **A value that is not in the tables fails the installation**, and so does one that contradicts another; the sentence says what to
  do. What is below \`global\` is left alone. A key without a value, \`null\`, is none: leave the key out.
- **One pod**, for jobs are in the memory of the process. An upgrade stops the old pod before it starts the new one; downloads on KServe
  go on meanwhile and are followed again.
- **Or several**, with \`jobStore: kubernetes\`: jobs are objects in the namespace of the release then, pods are upgraded one after the
  other, are on different nodes where that can be, and have a PodDisruptionBudget.
- **Rights** come from the table that the program itself has of what it does at the API server (\`files/gateway.yaml\`): no wildcards,
  Secrets in the namespace of kagent only, and the one with the token for the Hub by its name. With \`oauth.downstream.enabled\` the
  account may read the documents of backends in its own namespace, and nothing else.
- **The pod** runs as a user that is not root, on a read-only file system, without capabilities, and without a token of its account
  where \`kubernetes.enabled\` is false.

## Values

`;
