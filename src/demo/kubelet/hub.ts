/** What a downloader asks the Hub before it begins. */

export interface RemoteFile {
  readonly path: string;
  readonly bytes: number;
}

type Found = { readonly files: readonly RemoteFile[] } | { readonly problem: string };

/** The files that a download is about, by its environment; or why it gets none, as its log has it. */
export async function filesOf(env: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Found> {
  try {
    return await asked(env, signal);
  } catch (error) {
    signal.throwIfAborted();
    return { problem: `the Hub does not answer: ${error instanceof Error ? error.message : error}` };
  }
}

async function asked(env: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Found> {
  const { MM_SRC: source = '', HF_ENDPOINT: hub, HF_TOKEN: token, STORAGE_IGNORE_PATTERNS: ignored = '[]' } = env;
  const [, repository, revision = 'main'] = /^hf:\/\/([^/:]+\/[^/:]+)(?::(.+))?$/.exec(source) ?? [];
  if (repository === undefined) return { problem: `cannot recognize storage type for ${source}` };
  if (hub === undefined) return { problem: 'huggingface.co: there is no way out of the emulated cluster' };
  const ask = (path: string, method: string) =>
    fetch(`${hub}${path}`, {
      method,
      signal,
      redirect: 'manual',
      ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
    });
  const listed = await ask(`/api/models/${repository}/revision/${encodeURIComponent(revision)}?blobs=true`, 'GET');
  if (listed.status !== 200) return { problem: refusal(listed) };
  const { siblings } = (await listed.json()) as { siblings: { rfilename: string; size: number }[] };
  const patterns: unknown = JSON.parse(ignored);
  const tests = (Array.isArray(patterns) ? patterns : []).map(pattern => globTest(String(pattern)));
  const files = siblings
    .map(({ rfilename: path, size: bytes }) => ({ path, bytes }))
    .filter(({ path }) => !tests.some(test => test.test(path)));
  const [first] = files;
  if (!first) return { problem: `${repository} has no file to download` };
  // Everybody may see which files a gated repository has, and not everybody may read them.
  const read = await ask(`/${repository}/resolve/${encodeURIComponent(revision)}/${first.path}`, 'HEAD');
  return read.status < 400 ? { files } : { problem: refusal(read) };
}

const refusal = ({ status, headers }: Response) =>
  `huggingface_hub.errors.HfHubHTTPError: ${status}: ${headers.get('x-error-message') ?? 'no reason given'}`;

/** As `fnmatch` has it: a star goes over slashes, too. */
const globTest = (pattern: string) =>
  new RegExp(
    `^${pattern
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
    's',
  );
