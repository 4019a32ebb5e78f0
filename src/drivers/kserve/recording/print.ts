/** From the data of a recording to its text. */
import { stringify } from 'yaml';
import type { Instant, Recording } from '../recording.ts';
import { formatDuration } from '../units.ts';
import { format } from './parse.ts';

/** As `parseRecording` reads it back. */
export function printRecording({ about, object, namespace, settings, instants }: Recording): string {
  const { scaleUpTimeout, ...others } = settings;
  const written = {
    ...format,
    about,
    object,
    namespace,
    settings: { ...others, scaleUpTimeout: formatDuration(scaleUpTimeout) },
    instants: instants.map(writtenInstant),
  };
  return stringify(written, { lineWidth: 0, aliasDuplicateObjects: false });
}

const writtenInstant = ({ name, about, at, objects, gone, ...others }: Instant) => ({
  name,
  about,
  at: new Date(at).toISOString().replace(/\.000Z$/, 'Z'),
  ...(objects.length > 0 && { objects }),
  ...(gone.length > 0 && { gone }),
  ...others,
});
