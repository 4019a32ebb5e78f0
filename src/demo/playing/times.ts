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

/** The same data with all its times that much later, in milliseconds: whole seconds. Each keeps the precision it is written in. */
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

/** `2026-10-05T08:00:02.214551Z`: times of an API server are in UTC. */
function later(time: string, ms: number): string {
  const at = Date.parse(time);
  if (Number.isNaN(at) || !time.endsWith('Z')) return time;
  const seconds = new Date(at + ms).toISOString().slice(0, 19);
  return `${seconds}${time.slice(19)}`;
}
