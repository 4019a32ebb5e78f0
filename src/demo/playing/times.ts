/** The fields of objects that hold a time, wherever in them they are. */
const fields: ReadonlySet<string> = new Set([
  'creationTimestamp',
  'deletionTimestamp',
  'startTime',
  'completionTime',
  'startedAt',
  'finishedAt',
  'lastTransitionTime',
  'lastUpdateTime',
  'lastProbeTime',
  'lastHeartbeatTime',
  'firstTimestamp',
  'lastTimestamp',
  'eventTime',
  'lastObservedTime',
  'timeAdded',
]);

/** The same data with all its times that much later, in milliseconds. Each keeps the precision it is written in. */
export function moved(value: unknown, ms: number): unknown {
  if (Array.isArray(value)) return value.map(each => moved(each, ms));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      fields.has(name) && typeof each === 'string' ? later(each, ms) : moved(each, ms),
    ]),
  );
}

function later(time: string, ms: number): string {
  const at = Date.parse(time);
  if (Number.isNaN(at)) return time;
  const written = new Date(at + ms).toISOString();
  const fraction = /\.(\d+)/.exec(time)?.[1];
  if (fraction === undefined) return written.replace(/\.\d+Z$/, 'Z');
  return written.replace('Z', fraction.slice(3).replace(/\d/g, '0').concat('Z'));
}
