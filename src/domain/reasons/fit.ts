/** What can stand in the way of a model, and what would take it away. */
import type { ReasonEntry } from './entry.ts';

export const fitReasons = {
  unreadable: {
    where: ['fit'],
    texts: { problem: 'its Node object cannot be read: {problem}' },
    changes: { problem: 'mend the Node object of {node}' },
    meaning: 'The Node object has a field of another form than Kubernetes knows, so nothing can be said of the node.',
  },
  'not-ready': {
    where: ['fit'],
    texts: { condition: 'not ready' },
    changes: { condition: 'its Ready condition turns True; its conditions say why it is not' },
    meaning: 'Kubernetes does not put pods on the node now: it is starting, or something is wrong with it.',
    remedy: 'Nothing while the node is starting. Otherwise `kubectl describe node`: its conditions say what is wrong.',
  },
  'serving-selector': {
    where: ['fit'],
    texts: { labels: 'outside the serving node selector ({selector})' },
    changes: { labels: 'label the node {selector}, or widen the serving node selector' },
    meaning: 'Models are served on nodes with certain labels, and this one lacks them.',
  },
  'pool-selector': {
    where: ['fit'],
    texts: { labels: 'outside the GPU pool node selector ({selector})' },
    changes: { labels: 'label the node {selector}, or widen the GPU pool node selector' },
    meaning: 'The node is not of the GPU pool.',
  },
  taint: {
    where: ['fit'],
    texts: {
      off: 'taint {taints} not tolerated (set the GPU pool taint)',
      offOrPools: 'taint {taints} not tolerated (set the GPU pool taint)',
    },
    changes: {
      off: 'take {taints} off the node',
      offOrPools: "take {taints} off the node, or make it the GPU pool's",
    },
    meaning: 'A taint keeps pods off the node, and pods of models do not tolerate it.',
    remedy:
      'Take the taint off the node. If it is meant to keep other pods away from GPUs, make it the taint of the GPU pool in the discovery document instead.',
  },
  'cache-claim': {
    where: ['fit'],
    texts: { pinned: 'cache claim {claim} is pinned to {nodes}' },
    changes: { pinned: 'keep the cache on a volume that every node can mount' },
    meaning: 'The weights lie on a volume that this node cannot mount.',
  },
  'preset-selector': {
    where: ['fit'],
    texts: { labels: "outside the preset's node selector ({selector})" },
    changes: { labels: 'label the node {selector}, or choose a preset that runs on it' },
    meaning: 'The preset wants nodes with certain labels, and this one lacks them.',
  },
  'no-accelerator': {
    where: ['fit'],
    texts: { signs: 'not an accelerator node ({signs})' },
    changes: {
      signs: 'install the GPU operator or its device plugin on the node, or choose a preset that runs on the CPU',
    },
    meaning: 'The node has no GPU that Kubernetes knows of.',
  },
  'claim-elsewhere': {
    where: ['fit'],
    texts: { nodes: 'passed over for {nodes}, where the cache claim {claim} is' },
    changes: { nodes: 'name this node in the request' },
    meaning: 'The model would fit, but other nodes that fit have the cache.',
  },
  'no-budget': {
    where: ['fit'],
    texts: { source: 'node {node} reports no memory budget ({source})' },
    changes: { source: 'annotate the node with {annotation}, in GiB' },
    meaning: 'Nobody says how much memory models may take on the node.',
    remedy:
      'Annotate the node with the memory that models may take there, in GiB; the change that comes with it names the annotation.',
  },
  memory: {
    where: ['fit'],
    texts: {
      reserved: '{need} exceed the {limit} available on {node} ({source} budget {budget}{clause})',
      tooLarge: '{need} exceed the {limit} available on {node} ({source} budget {budget}{clause})',
      size: '{asked} requested, {left} left for the predictor',
    },
    changes: {
      reserved: 'unload models there: they reserve {reserved}',
      tooLarge: 'a node with {required} for models, or a smaller model',
      size: 'a size that leaves {asked}, or a preset that requests less',
    },
    meaning: 'The model takes more memory than is there, or than running models leave.',
    remedy:
      'Unload models there if they reserve what is missing. Otherwise choose a larger node or size, a smaller model, or a preset that requests less.',
  },
  cpu: {
    where: ['fit'],
    texts: { size: '{asked} requested, {left} left for the predictor' },
    changes: { size: 'a size that leaves {asked}, or a preset that requests less' },
    meaning: 'The pod asks for more cores than a machine of this size has left for it.',
    remedy: 'Choose a larger size, or a preset that requests less.',
  },
  gpus: {
    where: ['fit'],
    texts: { size: '{gpus} GPU requested, it has {has}' },
    changes: { size: 'a size with {gpus} GPU, or a preset that requests fewer' },
    meaning: 'The pod asks for more GPUs than a machine of this size has.',
    remedy: 'Choose a size with more GPUs, or a preset that requests fewer.',
  },
  'gpu-memory': {
    where: ['fit'],
    texts: { size: '{need} exceed the {memory} on the {gpus} GPU the predictor requests' },
    changes: { size: 'a size with {each} on each GPU, or a smaller model' },
    meaning: 'The model takes more memory than the GPUs of its pod have.',
    remedy: 'Choose a size with larger GPUs, or a smaller model.',
  },
  'pool-unknown': {
    where: ['fit'],
    texts: { selector: 'the GPU pool has no node selector: nobody knows whether it has a node' },
    changes: { selector: 'set the GPU pool node selector' },
    meaning: 'Sizes only count while the pool has no node, and whether it has one is not known.',
  },
  'pool-has-nodes': {
    where: ['fit'],
    texts: {
      one: 'the GPU pool has a node ({selector}): only what it has counts',
      several: 'the GPU pool has nodes ({selector}): only what it has counts',
    },
    changes: {
      one: 'make room on the nodes it has, or scale the pool by hand',
      several: 'make room on the nodes it has, or scale the pool by hand',
    },
    meaning: 'Sizes only count while the pool has no node: what it has decides.',
  },
  requests: {
    where: ['fit'],
    texts: { problem: '{problem}' },
    changes: { problem: 'correct the quantity in the preset' },
    meaning: 'The preset requests an amount that Kubernetes could not read.',
  },
  'no-document': {
    where: ['fit'],
    texts: { problem: '{problem}' },
    changes: { problem: 'the discovery document is published and can be read' },
    meaning: 'How models are served here is not known, and that may be why no place was found.',
    remedy:
      'Publish the discovery document, or let the gateway read it: the message says which ConfigMap it is and what went wrong. Then ask again.',
  },
  'no-node': {
    where: ['fit'],
    texts: { problem: '{problem}' },
    changes: { problem: 'add a node that models are served on, or name one that is there' },
    meaning: 'No node comes into question.',
  },
  gated: {
    where: ['fit'],
    texts: { token: 'the repository is gated and no hub token is configured' },
    changes: { token: 'give the backend a hub token with access to the repository' },
    meaning: 'The Hub gives the weights only to those who accepted their terms.',
  },
  unknown: {
    where: ['fit'],
    texts: { problem: '{problem}' },
    changes: { problem: 'let the gateway read it' },
    meaning: 'Something could not be read, and the answer was made without it.',
    remedy: 'Let the gateway read what the message names, then ask again.',
  },
} as const satisfies Record<string, ReasonEntry>;
