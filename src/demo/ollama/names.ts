/** A model's full name: `[host/][namespace/]model[:tag]` with the defaults filled in. */
export interface Name {
  readonly host: string;
  readonly namespace: string;
  readonly model: string;
  readonly tag: string;
}

const defaults = { host: 'registry.ollama.ai', namespace: 'library', tag: 'latest' };
const parts = ['host', 'namespace', 'model', 'tag'] as const;

const grammar = {
  host: /^\w[\w.:-]{0,349}$/,
  namespace: /^\w[\w-]{0,79}$/,
  model: /^\w[\w.-]{0,79}$/,
  tag: /^\w[\w.-]{0,79}$/,
};

/** The name that a reference spells, or nothing when it breaks the grammar. */
export function parseName(reference: string): Name | undefined {
  const bare = reference.replace(/^[^:/]*:\/\//, '');
  // The tag follows the last colon after the last slash: a colon before belongs to the host's port.
  const colon = bare.lastIndexOf(':');
  const tagged = colon > bare.lastIndexOf('/');
  const path = (tagged ? bare.slice(0, colon) : bare).split('/');
  const name = {
    host: path.slice(0, -2).join('/') || defaults.host,
    namespace: path.at(-2) ?? defaults.namespace,
    model: path.at(-1) ?? '',
    tag: tagged ? bare.slice(colon + 1) : defaults.tag,
  };
  return parts.every(part => grammar[part].test(name[part])) ? name : undefined;
}

/** The shortest spelling, which is what lists show: default host and namespace are dropped, the tag never. */
export function display({ host, namespace, model, tag }: Name): string {
  if (host !== defaults.host) return `${host}/${namespace}/${model}:${tag}`;
  if (namespace !== defaults.namespace) return `${namespace}/${model}:${tag}`;
  return `${model}:${tag}`;
}

export const full = ({ host, namespace, model, tag }: Name) => `${host}/${namespace}/${model}:${tag}`;

/** The name in the spelling of those that exist; the server folds each part on its own. */
export function inExistingSpelling(name: Name, existing: readonly Name[]): Name {
  const spelled = (part: (typeof parts)[number]) => {
    const known = existing.map(other => other[part]);
    if (known.includes(name[part])) return name[part];
    return known.find(other => other.toLowerCase() === name[part].toLowerCase()) ?? name[part];
  };
  return { host: spelled('host'), namespace: spelled('namespace'), model: spelled('model'), tag: spelled('tag') };
}

/** A reference without the suffix that says where the model should run: `:cloud`, `-cloud` on a tag, `:local`. */
export function splitSource(reference: string): { base: string; source?: 'cloud' | 'local'; conflict: boolean } {
  const { base, source } = cutSource(reference);
  if (!source) return { base, conflict: false };
  return { base, source, conflict: cutSource(base).source !== undefined };
}

function cutSource(reference: string): { base: string; source?: 'cloud' | 'local' } {
  const suffix = /^(.*):(cloud|local)$/is.exec(reference);
  if (suffix) return { base: suffix[1] ?? '', source: suffix[2]?.toLowerCase() === 'local' ? 'local' : 'cloud' };
  const tag = /^(.*:[^/:]+)-cloud$/is.exec(reference);
  return tag ? { base: tag[1] ?? '', source: 'cloud' } : { base: reference };
}

/** The name under which the stub of a cloud model is stored: `x:cloud`, `x:<tag>-cloud`. */
export function stubName(base: string): string {
  return base.lastIndexOf(':') > base.lastIndexOf('/') ? `${base}-cloud` : `${base}:cloud`;
}
