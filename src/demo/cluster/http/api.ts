import { parse } from 'yaml';
import type { Clock } from '../../host/clock.ts';
import { document, type Reply, text } from '../../host/reply.ts';
import { applyPatch, PatchError, parsePatch, patchTypes } from '../patch.ts';
import type { ApiRequest, Routes } from '../routes.ts';
import { badRequest, forbidden, methodNotAllowed, noSuchResource, notFound, StatusError } from '../status.ts';
import { schemaOf } from '../store/catalogue.ts';
import { apiVersionOf, type Kind, resourceOf, tableOf } from '../store/kinds.ts';
import { isRecord, type KubernetesObject, recordOf, withFields } from '../store/object.ts';
import { fitted } from '../store/schema.ts';
import { keyOf } from '../store/store.ts';
import { kept, shown } from '../store/views.ts';
import { checkFurther, create, find, type Registry, type RemoveOptions, remove, replace } from '../store/writes.ts';
import { discovered, serverVersion } from './discovery.ts';
import { openApi } from './openapi.ts';
import { fromProtobuf, protobufType } from './protobuf.ts';
import { listed, selection } from './reads.ts';
import { checkAccess, type Rights } from './rights.ts';
import { showing } from './table.ts';
import { type Watches, watched } from './watching.ts';

/** What answers requests. */
export interface Api {
  readonly registry: Registry;
  readonly rights: Rights;
  readonly routes: Routes;
  readonly watches: Watches;
  readonly clock: Clock;
}

/** A request, with what breaks its connection. */
export interface Incoming extends ApiRequest {
  cut(): void;
}

/** The answer to a request. Throws a `StatusError`. */
export async function answerTo(api: Api, request: Incoming): Promise<Reply> {
  const { registry, rights } = api;
  const { verb, path, headers } = request;
  if (verb === 'health') return text('ok');
  if (path === '/version') return json(serverVersion);
  if (verb === 'other') throw noSuchPath();
  const user = rights.userOf(headers.authorization);
  if (verb === 'discovery') {
    if (path.startsWith('/openapi/v3')) return json(openApi(path, registry.catalogue.kinds()));
    if (path.startsWith('/openapi')) throw noSuchPath();
    const { document: found, contentType } = discovered(path, headers.accept ?? '', registry.catalogue.kinds());
    return document(found, 200, contentType ?? 'application/json');
  }
  if (request.plural === 'selfsubjectaccessreviews') return json(reviewed(rights, user, request), 201);
  checkAccess(rights, user, accessOf(request));
  return answerAbout(api, kindOf(registry, request), request);
}

const accessOf = ({ verb, group, plural: resource, subresource, namespace, name }: Incoming) => ({
  verb,
  group,
  resource,
  subresource,
  namespace,
  name,
});

const json = (value: unknown, status = 200) => document(value, status, 'application/json');

/** What a server that has never heard of a group answers: no document at all. */
const noSuchPath = () => new PlainError(404, '404 page not found\n');

/** A refusal that is no `Status`. */
export class PlainError extends Error {
  readonly status: number;

  constructor(status: number, words: string) {
    super(words);
    this.status = status;
  }
}

function kindOf({ catalogue }: Registry, { group, version, plural, namespace, isOne }: Incoming): Kind {
  const kind = catalogue.resource(group, plural);
  if (!kind?.versions.includes(version)) {
    const isOwn = catalogue.kinds().some(each => each.group === group && !each.definition);
    throw isOwn ? noSuchResource() : noSuchPath();
  }
  const isInside = namespace !== '' && plural !== 'namespaces';
  if (isInside ? !kind.namespaced : kind.namespaced && isOne) throw noSuchResource();
  return kind;
}

async function answerAbout(api: Api, kind: Kind, request: Incoming): Promise<Reply> {
  const { registry, routes } = api;
  const { verb, subresource, version, namespace, name, query } = request;
  const place = kind.namespaced ? namespace : '';
  const show = (object: KubernetesObject) => shown(kind, version, object);
  const view = showing(request.headers.accept ?? '', query, kind, version, registry.now);

  if (subresource !== '') {
    const route = routes[`${resourceOf(kind)}/${subresource}`];
    if (route) return route(request, registry);
    if (!kind.subresources.includes(subresource) || subresource !== 'status') throw noSuchResource();
  } else if (!kind.verbs.includes(verb)) throw methodNotAllowed();

  switch (verb) {
    case 'get':
      return json(view.object(show(find(registry, kind, name, place))));
    case 'list':
      return json(view.list(listed(registry.store, kind, version, place, query)));
    case 'watch': {
      const { store } = registry;
      const { watches, clock } = api;
      return watched({
        store,
        kind,
        version,
        namespace: place,
        query,
        view,
        clock,
        watches,
        gone: request.gone,
        cut: request.cut,
      });
    }
    case 'create': {
      if (kind.namespaced && place === '') throw methodNotAllowed();
      return json(
        show(create(registry, kind, inPlace(registry, documentOf(request), request, kind), writeOptions(request))),
        201,
      );
    }
    case 'update':
      return json(
        show(replace(registry, kind, inPlace(registry, documentOf(request), request, kind), writeOptions(request))),
      );
    case 'patch':
      return patched(api, kind, request);
    case 'delete':
      return json(removed(registry, kind, request));
    case 'deletecollection': {
      if (kind.namespaced && place === '') throw methodNotAllowed();
      return json(removedAll(registry, kind, request));
    }
    default:
      throw methodNotAllowed();
  }
}

/**
 * An object as the store keeps it, from what came in the body of a request or out of a patch: of the kind, and at the place
 * that the path names. Throws `BadRequest`, and `Invalid` for what its schema does not allow.
 */
function inPlace(registry: Registry, input: unknown, request: Incoming, kind: Kind): KubernetesObject {
  const { version, isOne, namespace, name, query } = request;
  if (!isRecord(input)) throw badRequest('the body of the request is no object');
  const expected = apiVersionOf(kind.group, version);
  const { apiVersion = expected, kind: said = kind.kind } = input;
  if (apiVersion !== expected) {
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
    );
  }
  if (said !== kind.kind) {
    throw badRequest(`the kind in the data (${said}) does not match the expected kind (${kind.kind})`);
  }
  const metadata = recordOf(input.metadata);
  if (kind.namespaced && metadata.namespace && metadata.namespace !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  if (isOne && metadata.name && metadata.name !== name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
  }
  const place = { name: isOne ? name : metadata.name, namespace: kind.namespaced ? namespace : undefined };
  const object = {
    apiVersion: expected,
    kind: kind.kind,
    ...input,
    metadata: withFields(metadata, place) as unknown as KubernetesObject['metadata'],
  };
  checkFurther(registry, kind, object);
  return kept(kind, fitted(kind, version, object, query.get('fieldValidation') === 'Strict'));
}

/** The body as a document; undefined when it is empty. */
function documentOf({ raw, headers }: Incoming): unknown {
  if (raw.byteLength === 0) return undefined;
  const type = headers['content-type']?.split(';')[0]?.trim() ?? 'application/json';
  try {
    if (type === 'application/json') return JSON.parse(raw.toString());
    if (type === 'application/yaml') return parse(raw.toString());
  } catch (error) {
    throw badRequest(`the object provided is unrecognized: couldn't get version/kind; ${(error as Error).message}`);
  }
  const found = type === protobufType ? fromProtobuf(raw) : undefined;
  if (found) return found;
  throw new StatusError(
    415,
    'UnsupportedMediaType',
    'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml',
  );
}

function writeOptions({ query, headers, subresource }: Incoming) {
  return {
    subresource: subresource || undefined,
    fieldManager: query.get('fieldManager') ?? headers['user-agent']?.split('/')[0],
    dryRun: query.getAll('dryRun').includes('All'),
  };
}

function patched({ registry, rights }: Api, kind: Kind, request: Incoming): Reply {
  const { headers, raw, query, version, namespace, name, user } = request;
  const type = headers['content-type'] ?? '';
  const isApply = type.startsWith(patchTypes.apply);
  const options = writeOptions(request);
  const place = kind.namespaced ? namespace : undefined;
  const current = registry.store.get(tableOf(kind), keyOf(name, place));
  if (!current && (!isApply || request.subresource !== '')) throw notFound(kind, name);
  const force = query.get('force');
  const fieldManager = isApply ? (query.get('fieldManager') ?? undefined) : options.fieldManager;
  const next = asStatus(() => {
    const patch = parsePatch(type, raw.toString());
    return applyPatch(type, current && shown(kind, version, current), isApply ? ownPart(kind, request, patch) : patch, {
      fieldManager,
      now: registry.now(),
      subresource: options.subresource,
      schema: schemaOf(kind, version),
      ...(force !== null && { force: force === 'true' }),
    });
  });
  const object = inPlace(registry, next, request, kind);
  if (current) {
    return json(shown(kind, version, replace(registry, kind, object, { ...options, tracked: isApply })));
  }
  checkAccess(rights, user, { ...accessOf(request), verb: 'create' });
  return json(shown(kind, version, create(registry, kind, object, { ...options, tracked: true })), 201);
}

/** What server-side apply may own: all but `status`, or through that subresource nothing else. */
function ownPart(kind: Kind, { subresource }: Incoming, wanted: unknown): unknown {
  if (!isRecord(wanted) || !kind.subresources.includes('status')) return wanted;
  if (subresource === '') return withFields(wanted, { status: undefined });
  const { apiVersion, kind: said, metadata, status } = wanted;
  const { name, namespace } = recordOf(metadata);
  return withFields({ apiVersion, kind: said }, { metadata: withFields({}, { name, namespace }), status });
}

/** What a patch is refused with; the API server does not say of which object. */
function asStatus<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    const { status, reason, message, causes } = error;
    throw new StatusError(status, reason, message, causes.length > 0 ? { causes } : {});
  }
}

function removeOptions(request: Incoming): RemoveOptions {
  const { query } = request;
  const body = recordOf(documentOf(request));
  const { uid, resourceVersion } = recordOf(body.preconditions);
  const grace = body.gracePeriodSeconds ?? query.get('gracePeriodSeconds') ?? undefined;
  const orphans = body.orphanDependents ?? query.get('orphanDependents');
  const policy = body.propagationPolicy ?? query.get('propagationPolicy') ?? (String(orphans) === 'true' && 'Orphan');
  return {
    uid: uid === undefined ? undefined : String(uid),
    resourceVersion: resourceVersion === undefined ? undefined : String(resourceVersion),
    gracePeriodSeconds: grace === undefined || grace === null ? undefined : Number(grace),
    propagationPolicy: policy ? String(policy) : undefined,
    dryRun: query.getAll('dryRun').includes('All') || (Array.isArray(body.dryRun) && body.dryRun.includes('All')),
  };
}

const lasting = ['default', 'kube-public', 'kube-system'];

/** The object when it is still there, or its kind is one whose objects are given back; else that it is gone. */
function removed(registry: Registry, kind: Kind, request: Incoming): object {
  const { name, version } = request;
  if (resourceOf(kind) === 'namespaces' && lasting.includes(name)) {
    throw forbidden(kind.plural, kind.group, name, 'this namespace may not be deleted');
  }
  const place = kind.namespaced ? request.namespace : undefined;
  const { object, isGone } = remove(registry, kind, name, place, removeOptions(request));
  if (!isGone || ['pods', 'services', 'namespaces'].includes(resourceOf(kind))) return shown(kind, version, object);
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: { name, ...(kind.group && { group: kind.group }), kind: kind.plural, uid: object.metadata.uid },
  };
}

function removedAll(registry: Registry, kind: Kind, request: Incoming): object {
  const { version, namespace, query } = request;
  const test = selection(kind, kind.namespaced ? namespace : '', query);
  const options = removeOptions(request);
  const found = registry.store
    .list(tableOf(kind))
    .map(object => shown(kind, version, object))
    .filter(test);
  const items = found.map(({ metadata }) => remove(registry, kind, metadata.name, metadata.namespace, options).object);
  return {
    apiVersion: apiVersionOf(kind.group, version),
    kind: kind.listKind,
    metadata: { resourceVersion: String(registry.store.version) },
    items: items.map(object => shown(kind, version, object)),
  };
}

/** Whether the user may do what a SelfSubjectAccessReview asks about. */
function reviewed(rights: Rights, user: string, request: Incoming): object {
  const input = recordOf(documentOf(request));
  const { resourceAttributes, nonResourceAttributes } = recordOf(input.spec);
  const asked = recordOf(resourceAttributes);
  const word = (field: string) => String(asked[field] ?? '');
  const allowed = nonResourceAttributes
    ? true
    : rights.allows(user, {
        verb: word('verb'),
        group: word('group'),
        resource: word('resource'),
        subresource: word('subresource'),
        namespace: word('namespace'),
        name: word('name'),
      });
  return {
    kind: 'SelfSubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: { creationTimestamp: null },
    spec: input.spec ?? {},
    status: { allowed, ...(!allowed && { reason: 'no rule allows it' }) },
  };
}
