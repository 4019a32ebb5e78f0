import { homedir } from 'node:os';
import { join } from 'node:path';
import { createCall } from '../call.ts';
import { parseRecord } from '../config/recording.ts';
import { type DiscoveryRef, parseDiscovery } from '../drivers/kserve/discovery.ts';
import { type Recorded, recordServe } from '../drivers/kserve/recording/recorder.ts';
import { checkFlags, discoveryRefOf, settingsOf } from '../drivers/kserve/settings.ts';
import type { Timeline } from '../drivers/kserve/timeline.ts';
import { formatDuration } from '../drivers/kserve/units.ts';
import { messageOf } from '../errors.ts';
import { openAccess, openServer } from '../kubernetes/access.ts';
import { createKubernetesClient } from '../kubernetes/client.ts';
import { configMaps } from '../kubernetes/resource.ts';
import { createWatches } from '../kubernetes/watches.ts';
import { createLogger, visible } from '../log.ts';
import { refuseExisting, writeRecording } from './recording/file.ts';
import { beginningOf, newsLines } from './recording/lines.ts';

const endings: Readonly<Record<Recorded['ending'], string>> = {
  ready: 'it is ready',
  failed: 'it failed, and came no further for 10 minutes',
  gone: 'the object is gone',
  stopped: 'stopped',
};

/** Puts a serve on record until it is over or somebody stops it, and writes the file. Ends the process. */
export async function runRecord(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const { settings: given, warnings } = parseRecord(argv, env);
  for (const warning of warnings) console.error(warning);
  if (given.output !== '') refuseExisting(given.output);
  const kubeconfig = given.kubeconfig === '' ? join(homedir(), '.kube', 'config') : given.kubeconfig;
  const { inCluster, kubeContext: context, reference, server } = given;
  const client = createKubernetesClient(
    server === undefined ? await openAccess({ kubeconfig, context, inCluster }, env) : openServer(server),
  );

  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    // The second one ends it whatever is under way.
    process.on(name, () => (stop.signal.aborted ? process.exit(1) : stop.abort()));
  }
  const log = createLogger({ format: 'text', verbose: given.verbose, stream: process.stderr });
  // What cannot be read is in the recording.
  if (!given.verbose) log.level = 'error';
  const call = createCall({ log, signal: stop.signal });
  const flags = checkFlags(given.kserve);
  const discovery = discoveryRefOf(flags, undefined, env.POD_NAMESPACE);
  const { document, note } = await documentAt(discovery);
  if (note) console.error(visible(note));
  const settings = settingsOf({ flags, discovery, document });

  const began = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const fileOf = (object: string) => given.output || `${object}-${began}.yaml`;
  const width = process.stdout.columns ?? Number.POSITIVE_INFINITY;
  let before: Timeline | undefined;
  let writing = Promise.resolve();

  const { recording, ending } = await recordServe({
    client,
    watches: createWatches({ client, log }),
    call,
    settings,
    discovery,
    reference,
    waiting: () => console.log(`waiting for ${reference} to be served in ${settings.namespace}; Ctrl-C ends it`),
    told(recording, next) {
      const { object, namespace, instants } = recording;
      if (!before) {
        refuseExisting(fileOf(object));
        console.log(`recording ${object} in ${namespace} to ${fileOf(object)}; Ctrl-C ends it and keeps what there is`);
      }
      const elapsed = (instants.at(-1)?.at ?? 0) - beginningOf(recording);
      for (const line of newsLines(before, next, elapsed, width)) console.log(visible(line));
      // So that not all is lost when the process is.
      if (next.phase !== before?.phase) {
        writing = writing.then(() => writeRecording(fileOf(object), recording));
        writing.catch(() => stop.abort());
      }
      before = next;
    },
  });
  await writing;
  if (!recording) {
    console.log(`nothing was recorded: ${reference} was not served in ${settings.namespace}`);
    process.exit(1);
  }
  await writeRecording(fileOf(recording.object), recording);
  const [first, last] = [recording.instants[0]?.at ?? 0, recording.instants.at(-1)?.at ?? 0];
  const { length } = recording.instants;
  console.log(
    `${endings[ending]}: ${length} ${length === 1 ? 'instant' : 'instants'} in ${formatDuration(last - first)}, written to ${fileOf(recording.object)}`,
  );
  process.exit(0);

  /** How the platform says that models are served, or what is poorer without it. */
  async function documentAt(ref: typeof discovery) {
    try {
      const read = parseDiscovery(await client.get(call, configMaps, ref.name, ref.namespace), ref);
      if (read.state === 'present') return { document: read.document };
      return { note: noteWithout(ref, read.state === 'unreadable' ? read.problem : 'it is not there') };
    } catch (error) {
      return { note: noteWithout(ref, messageOf(error)) };
    }
  }
}

/** What is missing, what that costs, and the way out. */
const noteWithout = ({ namespace, name }: DiscoveryRef, why: string) =>
  `no discovery ConfigMap ${namespace}/${name} (${why}): where models are served, their cache, their presets and the size ` +
  'of their weights are taken from flags and defaults; say in which namespace it is with --kserve-discovery-namespace';
