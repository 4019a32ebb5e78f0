import { decoded } from '../../host/server.ts';

/** What a request is about, as far as its line says. */
export interface Target {
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; `discovery`, `health`, `other`. */
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  /** Plural; '' when the request is about no resource. */
  readonly plural: string;
  /** '' for the resource itself. */
  readonly subresource: string;
  /** '' for all of them, and for those that have none. */
  readonly namespace: string;
  /** '' for all of them; where a field selector asks for one name, that one. */
  readonly name: string;
  /** Whether the name is in the path. */
  readonly isOne: boolean;
  /** What follows the subresource: the path to a proxied service. */
  readonly rest: string;
}

const namespaceSubresources = ['status', 'finalize'];

const nowhere = {
  group: '',
  version: '',
  plural: '',
  subresource: '',
  namespace: '',
  name: '',
  isOne: false,
  rest: '',
};

export function targetOf(method: string, path: string, query: URLSearchParams): Target {
  const [root = '', ...parts] = path.split('/').slice(1).map(decoded);
  if (['healthz', 'readyz', 'livez'].includes(root)) return { ...nowhere, verb: 'health' };
  if (['api', 'apis', 'openapi', 'version'].includes(root)) {
    const isCore = root === 'api';
    const [group = '', version = '', ...rest] = isCore ? ['', ...parts] : parts;
    const isResource = (isCore || root === 'apis') && rest.length > 0 && rest[0] !== '';
    return isResource
      ? resourceTarget(method, query, group, version, rest)
      : { ...nowhere, group, version, verb: 'discovery' };
  }
  return { ...nowhere, verb: 'other' };
}

function resourceTarget(
  method: string,
  query: URLSearchParams,
  group: string,
  version: string,
  parts: readonly string[],
): Target {
  const isInside = parts[0] === 'namespaces' && parts.length > 2 && !namespaceSubresources.includes(parts[2] as string);
  const namespace = isInside ? (parts[1] as string) : '';
  const [plural = '', inPath = '', subresource = '', ...rest] = isInside ? parts.slice(2) : parts;
  const isOne = inPath !== '';
  const verb = verbOf(method, query, isOne);
  const name = isOne ? inPath : nameIn(query.get('fieldSelector') ?? '');
  return {
    verb,
    group,
    version,
    plural,
    subresource,
    // A namespace is in itself, as far as rights are concerned.
    namespace: plural === 'namespaces' && group === '' && isOne ? inPath : namespace,
    name,
    isOne,
    rest: rest.length > 0 ? `/${rest.join('/')}` : '',
  };
}

function verbOf(method: string, query: URLSearchParams, isOne: boolean): string {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (isOne) return 'get';
      return ['1', 'true'].includes(query.get('watch') ?? '') ? 'watch' : 'list';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return isOne ? 'delete' : 'deletecollection';
    default:
      return method.toLowerCase();
  }
}

const nameIn = (selector: string) => /(?:^|,)metadata\.name==?([^,]+)/.exec(selector)?.[1] ?? '';
