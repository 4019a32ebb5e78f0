import type { Features } from './features.ts';
import { recipeOf, type State } from './models.ts';

const processor = 'AMD RYZEN AI MAX+ 395 w/ Radeon 8060S';
const drive = 1_022_505_254_912;

/** The description of a machine with an NPU and 96 GB for both processors, as each release words it. */
export function systemDocument(state: State, features: Features): Record<string, unknown> {
  const used = [...state.catalog.values()].reduce((sum, { bytes, downloaded }) => sum + (downloaded ? bytes : 0), 0);
  const gpu = {
    available: true,
    family: 'gfx1151',
    integrated: true,
    name: 'AMD Radeon 8060S',
    vram_gb: 32,
    virtual_mem_gb: 43,
  };
  const npu = { available: true, family: 'XDNA2', name: 'AMD NPU (NPU Strix Halo)', utilization: 0 };
  const noGpu = [{ available: false, error: 'No NVIDIA discrete GPU found', name: '' }];
  return {
    'OS Version': 'Linux-6.14.0-37-generic (Ubuntu 24.04.3 LTS)',
    'Physical Memory': '86.07 GB',
    Processor: processor,
    cloud: { providers: [] },
    devices: {
      cpu: { available: true, cores: 16, threads: 32, family: 'x86_64', name: processor },
      ...(features.oneAmdGpuList ? { amd_gpu: [gpu] } : { amd_igpu: gpu, amd_dgpu: [] }),
      ...(features.npuIsAmd ? { amd_npu: npu } : { npu }),
      ...(features.oneAmdGpuList ? { nvidia_gpu: noGpu } : { nvidia_dgpu: noGpu }),
    },
    ...(features.storage
      ? {
          model_storage: {
            path: '/var/lib/lemonade/hub',
            total_bytes: drive,
            used_bytes: used,
            free_bytes: Math.max(0, drive - used),
          },
        }
      : {}),
    no_fetch_executables: false,
    recipes: recipesOf(state),
  };
}

const recipesOf = (state: State) =>
  Object.fromEntries(
    [...new Set([...state.catalog.values()].map(recipeOf))].sort().map(recipe => [
      recipe,
      {
        default_backend: 'default',
        backends: { default: { state: 'installed', version: '1.0', devices: ['amd_gpu'] } },
      },
    ]),
  );
