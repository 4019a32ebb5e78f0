import { z } from 'zod';

/**
 * The documents of Lemonade's API, read forgivingly: unknown fields pass, a field that is not as expected is unknown, an
 * entry without a name is left out, and the rest stands. `undefined` = this is not that document.
 */

const text = z.string().min(1).optional().catch(undefined);
const flag = z.boolean().optional().catch(undefined);
const tokens = z.int().positive().optional().catch(undefined);
const rows = z.array(z.unknown());

const modelEntry = z.object({
  id: text,
  checkpoint: text,
  recipe: text,
  labels: rows.optional().catch(undefined),
  downloaded: flag,
  /** In GB: see `bytesOf`. */
  size: z.number().positive().optional().catch(undefined),
  context_length: tokens,
});
/** An entry of `GET /api/v1/models`, as far as it could be read. */
export type ModelEntry = z.infer<typeof modelEntry> & { readonly id: string };

const loadedEntry = z.object({
  model_name: text,
  device: text,
  // -1 is the server's word for "automatic".
  recipe_options: z.object({ ctx_size: tokens }).optional().catch(undefined),
  status: text,
  backend_health: text,
  pinned: flag,
});
/** An entry of `all_models_loaded`. Command lines, paths and addresses of the host are not among what is read. */
export type LoadedEntry = z.infer<typeof loadedEntry> & { readonly model_name: string };

const health = z
  .object({
    status: text,
    version: text,
    all_models_loaded: rows.optional().catch(undefined),
    model_loaded: text,
  })
  .refine(({ status, all_models_loaded }) => status !== undefined || all_models_loaded !== undefined);

export interface Health {
  readonly status?: string | undefined;
  readonly version?: string | undefined;
  readonly loaded: readonly LoadedEntry[];
}

/** The document of `GET /api/v1/health`. */
export function readHealth(document: unknown): Health | undefined {
  const { data } = health.safeParse(document);
  if (!data) return undefined;
  const { status, version, all_models_loaded, model_loaded } = data;
  // Servers before 9.0.6 hold one model and say only its name.
  const loaded = all_models_loaded ?? (model_loaded ? [{ model_name: model_loaded }] : []);
  return {
    status,
    version,
    loaded: loaded.flatMap(row => {
      const { data: entry } = loadedEntry.safeParse(row);
      const name = entry?.model_name;
      return entry && name?.trim() ? [{ ...entry, model_name: name }] : [];
    }),
  };
}

const list = z.object({ data: rows });

/** The entries of `GET /api/v1/models`, downloaded or not. */
export function readModels(document: unknown): ModelEntry[] | undefined {
  return list.safeParse(document).data?.data.flatMap(row => {
    const { data } = modelEntry.safeParse(row);
    const id = data?.id;
    return data && id?.trim() ? [{ ...data, id }] : [];
  });
}

/** Servers before the flag list what is downloaded and nothing else. */
export const isDownloaded = ({ downloaded }: ModelEntry) => downloaded !== false;

const device = z.object({ available: flag, name: text, family: text }).optional().catch(undefined);
/** One device, or a list of them. */
const devices = z
  .union([z.array(device), device.transform(one => [one])])
  .optional()
  .catch(undefined);

const systemInfo = z
  .object({
    'Physical Memory': z.union([z.string(), z.number()]).optional().catch(undefined),
    devices: z
      .object({
        cpu: device,
        amd_npu: device,
        amd_gpu: devices,
        nvidia_gpu: devices,
        // Names up to 9.3 and up to 10.2.
        npu: device,
        amd_igpu: devices,
        amd_dgpu: devices,
        nvidia_dgpu: devices,
      })
      .optional()
      .catch(undefined),
    model_storage: z.object({ path: text }).optional().catch(undefined),
  })
  .refine(info => info['Physical Memory'] !== undefined || info.devices !== undefined);

type Device = NonNullable<z.infer<typeof device>>;

/** What a host is, as far as it could be read. */
export interface SystemInfo {
  /** As the server writes it: `86.07 GB`, or why it cannot say. */
  readonly memory?: string | number | undefined;
  /** The server's word for the architecture: `x86_64`. */
  readonly cpuFamily?: string | undefined;
  /** The accelerator for models, when there is one that works. */
  readonly npu?: { readonly name?: string | undefined } | undefined;
  /** The graphics processors that work, AMD first. */
  readonly gpus: readonly { readonly name?: string | undefined }[];
  /** Folder of the models on the host. */
  readonly modelFolder?: string | undefined;
}

/** The document of `GET /api/v1/system-info`. */
export function readSystemInfo(document: unknown): SystemInfo | undefined {
  const { data } = systemInfo.safeParse(document);
  if (!data) return undefined;
  const { cpu, amd_npu, npu, amd_gpu, amd_igpu = [], amd_dgpu = [], nvidia_gpu, nvidia_dgpu } = data.devices ?? {};
  const gpus = [...(amd_gpu ?? [...amd_igpu, ...amd_dgpu]), ...(nvidia_gpu ?? nvidia_dgpu ?? [])];
  return {
    memory: data['Physical Memory'],
    cpuFamily: cpu?.family,
    npu: [amd_npu, npu].find(works),
    gpus: gpus.filter(works),
    modelFolder: data.model_storage?.path,
  };
}

/** Lists hold placeholders for what is not there, with `available: false` or without anything. */
const works = (one: Device | undefined): one is Device => one?.available ?? one?.name !== undefined;
