/** What the containers of a download do: scripts for any POSIX shell, with the usual tools. */
import { markerFolder } from '../inventory/entry.ts';
import { cacheRoot } from '../inventory/scripts.ts';
import { quotedForShell } from '../jobs/shell.ts';

/** How a download ends that nothing was written for; the Job does not try it again. */
export const stalledExitCode = 3;
/** In the download image: takes a source and a folder. */
const initializer = '/storage-initializer/scripts/initializer-entrypoint';

/** Makes the directories that a download writes to, and shows that it can. What is there already keeps its mode. */
export const prepareScript = (directory: string, root = cacheRoot) => `
umask 0
for dir in ${quotedForShell(`${root}/${directory}`)} ${quotedForShell(`${root}/${markerFolder}`)}; do
  if ! [ -d "$dir" ]; then mkdir -m 0777 "$dir"; fi
  probe="$dir/.probe-$$"
  if ! (: > "$probe") 2>/dev/null; then
    echo "cannot write to $dir as user $(id -u) of groups $(id -G): the volume must honour the pod's fsGroup 1000, or let that group write"
    exit 1
  fi
  rm -f "$probe"
done
`;

/**
 * Runs the initializer and says every ten seconds how much there is. Two sizes are measured: the apparent one, which is the
 * progress, and the allocated one, since a file that is written in pieces has its full length from the first of them. While
 * the allocated size stays the same, a clock runs. It is that of the system's uptime, which nobody sets.
 *
 * An old marker goes before anything is written, and a new one is there at once or not at all.
 */
export const downloadScript = (run = initializer) => `
export LC_ALL=C HF_HUB_DISABLE_PROGRESS_BARS=1

apparent() {
  find "$MM_DST" -type f -exec stat -c %s {} + 2>/dev/null | awk '{ bytes += $1 } END { printf "%.0f", bytes }'
}
allocated() { du -sk "$MM_DST" 2>/dev/null | awk '{ printf "%.0f", $1 * 1024 }'; }
uptime() { read -r seconds rest < /proc/uptime && echo "\${seconds%%.*}"; }

step=10
if [ "$MM_STALL_SECONDS" -lt "$step" ]; then step=$MM_STALL_SECONDS; fi
rm -f "$MM_MARKER"
echo "PROGRESS $(apparent)"

${quotedForShell(run)} "$MM_SRC" "$MM_DST" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null; exit 143' TERM INT

size=$(allocated)
grown=$(uptime)
looked=$grown
while kill -0 "$child" 2>/dev/null; do
  sleep 1
  now=$(uptime)
  if [ $((now - looked)) -lt "$step" ]; then continue; fi
  looked=$now
  bytes=$(apparent)
  echo "PROGRESS $bytes"
  latest=$(allocated)
  if [ "$latest" != "$size" ]; then
    size=$latest
    grown=$now
  elif [ $((now - grown)) -ge "$MM_STALL_SECONDS" ]; then
    if [ "$size" -lt "$bytes" ]; then bytes=$size; fi
    echo "DOWNLOAD STALLED: no bytes written to $MM_DST for $((now - grown))s ($bytes bytes on disk, HF_HUB_DISABLE_XET=$HF_HUB_DISABLE_XET HF_HUB_ENABLE_HF_TRANSFER=$HF_HUB_ENABLE_HF_TRANSFER); partial files stay for a retry"
    kill -TERM "$child" 2>/dev/null
    exit ${stalledExitCode}
  fi
done
wait "$child"
code=$?
if [ "$code" -ne 0 ]; then
  echo "DOWNLOAD FAILED rc=$code"
  exit 1
fi

echo "PROGRESS $(apparent)"
completed=$(date -u +%Y-%m-%dT%H:%M:%SZ)
written="$MM_MARKER.$$"
if printf '{"model":"%s","revision":"%s","dir":"%s","bytesExpected":%s,"completedAt":"%s","job":"%s"}\\n' \\
  "$MM_MODEL" "$MM_REVISION" "$MM_DIRNAME" "\${MM_BYTES:-0}" "$completed" "$MM_JOB" > "$written" &&
  mv -f "$written" "$MM_MARKER"; then
  echo DONE
else
  echo "the marker $MM_MARKER cannot be written"
  echo "DOWNLOAD FAILED rc=1"
  exit 1
fi
`;
