/** The definitions of Karpenter and of its part for AWS; and what a pool of nodes is made of. */

const preserved = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };

interface Column {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
}

const column = (name: string, jsonPath: string): Column => ({ name, type: 'string', jsonPath });
const ready = column('Ready', '.status.conditions[?(@.type=="Ready")].status');
const age: Column = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

const definition = (group: string, plural: string, kind: string, columns: readonly Column[]) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Cluster',
    names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: columns,
        schema: preserved,
      },
    ],
  },
});

const label = (key: string) => `.metadata.labels.${key.replaceAll('.', '\\.')}`;

export const karpenterDefinitions = (): readonly object[] => [
  definition('karpenter.sh', 'nodepools', 'NodePool', [
    column('NodeClass', '.spec.template.spec.nodeClassRef.name'),
    ready,
    age,
  ]),
  definition('karpenter.sh', 'nodeclaims', 'NodeClaim', [
    column('Type', label('node.kubernetes.io/instance-type')),
    column('Capacity', label('karpenter.sh/capacity-type')),
    column('Zone', label('topology.kubernetes.io/zone')),
    column('Node', '.status.nodeName'),
    ready,
    age,
  ]),
  definition('karpenter.k8s.aws', 'ec2nodeclasses', 'EC2NodeClass', [ready, age]),
];

const isReady = (since: string) => ({ type: 'Ready', status: 'True', reason: 'Ready', lastTransitionTime: since });

interface PoolPlan {
  readonly name: string;
  readonly nodeClass: string;
  /** Of its nodes. */
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly object[];
  readonly instanceTypes: readonly string[];
  /** Where its nodes are; wherever its class has a subnet when absent. */
  readonly zones?: readonly string[];
  /** RFC 3339. */
  readonly since: string;
}

/** A pool of nodes that are made when they are needed. */
export function nodePool({ name, nodeClass, labels, taints, instanceTypes, zones, since }: PoolPlan): object {
  const anyOf = (key: string, values: readonly string[]) => ({ key, operator: 'In', values });
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      template: {
        metadata: { labels },
        spec: {
          nodeClassRef: { group: 'karpenter.k8s.aws', kind: 'EC2NodeClass', name: nodeClass },
          taints,
          requirements: [
            anyOf('node.kubernetes.io/instance-type', instanceTypes),
            anyOf('karpenter.sh/capacity-type', ['on-demand']),
            ...(zones ? [anyOf('topology.kubernetes.io/zone', zones)] : []),
          ],
        },
      },
      disruption: { consolidationPolicy: 'WhenEmpty' },
    },
    status: { conditions: [isReady(since)] },
  };
}

/** What the cloud makes nodes of: with a subnet in each zone. */
export const nodeClass = (name: string, zones: readonly string[], since: string): object => ({
  apiVersion: 'karpenter.k8s.aws/v1',
  kind: 'EC2NodeClass',
  metadata: { name },
  spec: {
    role: 'nodes',
    amiSelectorTerms: [{ alias: 'bottlerocket@latest' }],
    subnetSelectorTerms: [{ tags: { role: 'nodes' } }],
    securityGroupSelectorTerms: [{ tags: { role: 'nodes' } }],
  },
  status: {
    subnets: zones.map((zone, index) => ({ id: `subnet-0${index}a${index}`, zone })),
    conditions: [isReady(since)],
  },
});
