/** How models come up that somebody serves in the cluster of the demo: how fast, from where, and which ones do not. */
import { library } from '../hub.ts';
import type { ServingOptions } from '../kserve.ts';
import type { RemoteFile } from '../kubelet/hub.ts';
import { cacheClaim, gatewayEndpoint } from './places.ts';
import { GB } from './units.ts';

/** One that is not in the cache takes half a minute once it has a node. */
const pace = {
  controllerMs: 500,
  startMs: 500,
  // What takes longer than 15 s was no cache, whoever looks at it.
  bytesPerSecond: 0.9 * GB,
  progressMs: 1_000,
  cachedMs: 2_000,
  pullMs: 5_000,
  loadMs: 4_000,
  probeMs: 1_500,
  routeMs: 1_500,
  backoffMs: 4_000,
  stopMs: 1_500,
};

/** Of presets that are there to be seen failing. */
export const wrongImage = 'ghcr.io/llm-d/llm-d-cuda:v0.4.O';
export const wrongArguments = 'qwen3-0-6b-wrong-args';

const crashLog = `Traceback (most recent call last):
  File "/opt/vllm/bin/vllm", line 10, in <module>
    sys.exit(main())
  File "/opt/vllm/lib/python3.12/site-packages/vllm/engine/arg_utils.py", line 1372, in create_engine_config
    model_config = self.create_model_config()
ValueError: User-specified max_model_len (131072) is greater than the derived max_model_len \
(max_position_embeddings=40960). This may lead to incorrect model outputs or CUDA errors.
`;

export const loadingOptions = (opened: readonly string[]): Omit<ServingOptions, 'clock' | 'kubelet'> => ({
  pace,
  claim: cacheClaim,
  gateway: gatewayEndpoint,
  repositories: repositoriesFor(opened),
  faults: { [wrongArguments]: { kind: 'crash', afterMs: 3_000, log: crashLog } },
  missingImages: [wrongImage],
});

/** Those of the Hub, as far as a token opens them. */
function repositoriesFor(opened: readonly string[]): ServingOptions['repositories'] {
  return id => {
    const model = library.find(each => each.id === id);
    if (!model) return { problem: `huggingface_hub.errors.RepositoryNotFoundError: 404: no repository ${id}` };
    const isClosed = (model.private || model.gated) && !opened.includes(id);
    if (isClosed) return { problem: `huggingface_hub.errors.GatedRepoError: 401: access to ${id} is restricted` };
    const files: RemoteFile[] = model.files.map(file => ({
      path: file.path,
      bytes: 'bytes' in file ? file.bytes : Buffer.byteLength(file.text),
    }));
    return { files };
  };
}
