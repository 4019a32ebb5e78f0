/** What the pods do that look at the cache and remove from it: scripts for any POSIX shell, with the usual tools. */
import { quotedForShell } from '../jobs/shell.ts';
import { markerFolder, modelEndings } from './entry.ts';

/** Where the claim is mounted in every pod of ours. */
export const cacheRoot = '/cache';

/**
 * Prints every directory at the top of the cache as `parseScan` reads it. Names are of other people's making: one with a tab
 * or a line break in it must not look like two lines, and what tools say about a file must not get among them, so it is
 * thrown away. No link is followed. Sums are printed as whole numbers, which the usual format of awk is not beyond 2 GiB.
 */
export const scanScript = (root = cacheRoot) => `
export LC_ALL=C
root=${quotedForShell(root)}

printable() { printf '%s' "$1" | tr '\\001-\\037\\177' '?'; }

sums() {
  find "$1" -xdev -type f -exec stat -c %s {} + 2>/dev/null |
    awk '{ bytes += $1; files += 1 } END { printf "%.0f\\t%.0f", bytes, files }'
}

has_model() {
  for file in "$1"/config.json ${modelEndings.map(ending => `"$1"/*.${ending}`).join(' ')}; do
    [ -f "$file" ] && return 0
  done
  return 1
}

if ! [ -r "$root" ] || ! [ -x "$root" ]; then
  echo "cannot read $root"
  exit 1
fi
for dir in "$root"/*; do
  if [ -L "$dir" ] || ! [ -d "$dir" ]; then continue; fi
  name=$(printable "\${dir##*/}")
  model=0
  if has_model "$dir"; then model=1; fi
  printf 'DIR\\t%s\\t%s\\t%s\\t%s\\n' "$name" "$(sums "$dir")" "$(stat -c %Y "$dir" 2>/dev/null)" "$model"
  marker="$root/${markerFolder}/\${dir##*/}.json"
  if [ -f "$marker" ] && ! [ -L "$marker" ]; then
    printf 'MARKER\\t%s\\t%s\\n' "$name" "$(head -c 4096 "$marker" 2>/dev/null | tr '\\001-\\037\\177' ' ')"
  fi
done
echo END
`;

/**
 * Removes the directory that `MM_DIRNAME` names, and its marker before it: a directory half of which is gone must not look
 * complete.
 */
export const removeScript = (root = cacheRoot) => `
root=${quotedForShell(root)}
case "$MM_DIRNAME" in
  '' | .* | */*)
    echo "refusing to remove cache directory \\"$MM_DIRNAME\\""
    exit 1
    ;;
esac
dir="$root/$MM_DIRNAME"
if [ -L "$dir" ] || ! [ -d "$dir" ]; then
  echo "there is no directory $MM_DIRNAME in the cache"
  exit 1
fi
rm -f -- "$root/${markerFolder}/$MM_DIRNAME.json" && rm -rf -- "$dir" && echo REMOVED
`;
