/** Why a served model is at a step, in words of ours. */
import type { ReasonEntry } from './entry.ts';

export const stepReasons = {
  WaitingForPod: {
    where: ['scheduling'],
    texts: { waiting: 'waiting for the predictor pod' },
    meaning: 'The LLMInferenceService exists, but KServe has not made a pod for it.',
    remedy:
      'Nothing at first: a pod comes within seconds. If none does within a minute, `kubectl describe llminferenceservice <name>`, and read the log of the KServe controller; a quota or an admission webhook may refuse the pod.',
  },
  NodeLaunching: {
    where: ['scheduling', 'status'],
    texts: {
      nominated: 'Karpenter nominated NodeClaim {claim}; no instance has launched yet',
      gone: 'Karpenter nominated NodeClaim {claim}, which is gone, and no refusal is recorded for the pool; it retries',
      claimUnread: 'whether NodeClaim {claim} launched could not be read ({problem})',
      eventsUnread: "Karpenter's events in default could not be read ({problem})",
    },
    meaning: 'No node has room for the pod. Karpenter wants to add one, and the cloud has not started it yet.',
    remedy:
      'Nothing, it goes on by itself, usually within two minutes. After ten, `kubectl describe nodeclaim <claim>`, and read the log of Karpenter. Where the message says that something could not be read, the gateway lacks that permission and knows less than it could.',
  },
  CapacityUnavailable: {
    where: ['scheduling', 'status'],
    texts: {
      refused: 'Karpenter could not launch a node: {claims} refused, the last ({claim}) at {time} — {reason}: ',
      quoted: '{text}; Karpenter retries while the pod waits',
      capacity: 'the cloud has no {types} capacity',
      inAnyZone: ' in any zone the pool allows ({zones})',
      inSomeZone: ' in {zones} at least — the claim was constrained to no zone',
      inZone: ' in {zones}, the zone {owner}',
      inZones: ' in {zones}, the zones {owner}',
      byCache: 'the pool is pinned to by the cache claim {claim} (its volume lives there)',
      byPool: 'the pool constrains its nodes to',
      byClaim: 'the claim was constrained to',
      elsewhere: '; it has capacity in {zones}',
      retries: '; Karpenter retries while the pod waits',
      noZoneLeft:
        '. No zone is left to move to; wider sizes or another accelerator (a re-run of create_node_pool) give Karpenter more to choose from, and it retries while the pod waits',
      otherZone:
        '. The way out is a pool in {zones} (create_node_pool with zones naming it); Karpenter retries while the pod waits',
      otherZoneUncached:
        '. The way out is a pool in {zones} (create_node_pool with zones naming it and cache: false), or removing the cache claim so the next pool is not pinned; Karpenter retries while the pod waits',
      poolUnread: 'what NodePool {pool} asks for could not be read ({problem})',
      zonesUnread: 'the zones the pool allows could not be read ({problem})',
      cacheUnread: 'where the cache claim lives could not be read ({problem})',
      overBudget: 'no node came within the scale-up budget of {duration}',
    },
    meaning:
      'The pod needs a new node, and none could be launched; most often the cloud has no such machine left in the zones that were asked for.',
    remedy:
      'Karpenter goes on trying, so it may pass by itself. To have it sooner, give Karpenter more to choose from, as the message says: another zone, other sizes, another accelerator. A cache claim whose volume lives in one zone ties the pool to that zone.',
  },
  LaunchFailed: {
    where: ['scheduling'],
    texts: {},
    meaning: 'A machine could not be launched, and Karpenter gave no word for why.',
    remedy: '`kubectl describe nodeclaim <claim>`, and read the log of Karpenter. It tries again by itself.',
  },
  NodeStarting: {
    where: ['nodeStarting', 'status'],
    texts: {
      nominated: 'nominated to node {node}',
      registering: 'NodeClaim {claim} launched an instance; the node is registering',
      launched: 'NodeClaim {claim} launched node {node}; its GPU is not allocatable yet',
      withoutGpu: 'node {node}: {resource} not allocatable yet',
    },
    meaning: 'The machine runs, but the node is not ready to take the pod: it registers, or its GPU is being set up.',
    remedy:
      'Nothing, it goes on by itself within a few minutes. After 15, see whether the node is Ready, and whether the pods of the GPU operator or device plugin run on it.',
  },
  DownloadingWeights: {
    where: ['downloadingWeights', 'status'],
    texts: {
      downloading: 'storage-initializer downloading the weights into the cache claim',
      bytes: ': {completed}',
      bytesOf: ': {completed} of {total}',
      cached: 'the cache claim already held the weights (storage-initializer finished in {duration})',
      byRuntime: 'no storage-initializer: the runtime fetches the weights itself',
    },
    meaning: 'The weights are being downloaded into the cache.',
    remedy: 'Nothing, it goes on by itself: large models take many minutes. A later start finds them in the cache.',
  },
  DownloadStalled: {
    where: ['downloadingWeights', 'status'],
    texts: {
      restarted: 'storage-initializer restarted {count}× ({last})',
      lastExit: 'last exit {code}',
      noExit: 'no termination recorded',
      unfinished: 'storage-initializer running for {duration} without finishing',
    },
    meaning: 'The download of the weights was broken off and began again, or takes longer than half an hour.',
    remedy:
      '`kubectl logs <pod> -c storage-initializer`, with `--previous` after a restart: the log tells a full volume, a refused token and a slow network apart. A download that is only slow may still finish; the step goes on then.',
  },
  Error: {
    where: ['downloadingWeights', 'loading', 'status'],
    texts: {
      downloadExited: 'storage-initializer exited {code}: {message}',
      exitUnknown: 'with an unknown code',
      noMessage: 'no message',
    },
    meaning: 'A container ended with an error.',
    remedy:
      'Read the message, then the log: `kubectl logs <pod> -c storage-initializer` if the weights were being downloaded, else `-c main`.',
    from: 'Kubernetes',
  },
  Pulling: {
    where: ['pullingImage'],
    texts: {},
    meaning: 'The image of the runtime is being pulled to the node.',
    remedy:
      'Nothing, it goes on by itself: images of runtimes have several gigabytes, and a new node has none of them.',
  },
  CrashLoop: {
    where: ['loading', 'status'],
    texts: {
      crashed: 'runtime crashed {count}× ({exit})',
      exit: 'exit {code}',
      exitReason: '{exit}, {reason}',
      exitUnknown: 'exit code unknown',
      line: ': {line}',
      noLine: "; no error line in the last {lines} lines of the crashed container's log",
      logUnread: "; the crashed container's log could not be read ({problem})",
      kubelet: '; {message}',
    },
    meaning: 'The runtime ended at least once while it loaded the model, and is being started again.',
    remedy:
      'The message holds the last error of its log. Out of memory: a smaller context length, more GPUs or a smaller model. An unknown argument or model type: another image of the runtime. Otherwise read the whole log, `kubectl logs <pod> -c main --previous`. Mend the preset, then unload and load the model.',
  },
  LoadingModel: {
    where: ['loading', 'status'],
    texts: { loading: 'the runtime is loading the model; the startup probe has not passed yet' },
    meaning: 'The runtime runs and loads the model. A failed probe in the message is usual until it is done.',
    remedy:
      'Nothing, it goes on by itself: from a minute to a quarter of an hour for large models. After that, `kubectl logs <pod> -c main`.',
  },
} as const satisfies Record<string, ReasonEntry>;
