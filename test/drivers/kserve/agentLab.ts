/** Pods of the agents that know what is in the cache of their node. */
import { type JobLab, serving } from './jobLab.ts';
import { settingsWith } from './world.ts';

const labels = { 'model-manager.giantswarm.io/component': 'cache-agent' };

export function agentPod(
  lab: JobLab,
  { name = 'agent-1', node = 'spark-01', ready = 'True', podIP = '127.0.0.1' as string | undefined, more = {} } = {},
) {
  lab.cluster.put({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: serving, labels, ...more },
    spec: { nodeName: node, containers: [{ name: 'agent', image: 'x' }] },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready }], podIP },
  });
}

export const settingsFor = (port: number | string) =>
  settingsWith({ cache: { enabled: true } }, { inventoryMode: 'daemonset', inventoryAgentPort: String(port) });
