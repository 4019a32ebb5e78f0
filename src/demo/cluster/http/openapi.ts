import { noSuchResource } from '../status.ts';
import { schemaOf } from '../store/catalogue.ts';
import { apiVersionOf, type Kind } from '../store/kinds.ts';

/**
 * What there is at `/openapi/v3` and below: as much as clients need in order to know that the server checks fields by
 * itself, how custom objects look, and nothing of the fields of built-in kinds. Throws `NotFound`.
 */
export function openApi(path: string, kinds: readonly Kind[]): object {
  const served = kinds.flatMap(kind => kind.versions.map(version => ({ kind, version, root: rootOf(kind, version) })));
  const rest = path.replace(/^\/openapi\/v3\/?/, '');
  if (rest === '') {
    const paths = served.map(({ root }) => [root, { serverRelativeURL: `/openapi/v3/${root}` }]);
    return { paths: Object.fromEntries(paths) };
  }
  const found = served.filter(({ root }) => root === rest);
  if (found.length === 0) throw noSuchResource();
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'v1.33.4' },
    paths: Object.fromEntries(found.map(({ kind, version }) => pathOf(kind, version))),
    components: { schemas: Object.fromEntries(found.map(({ kind, version }) => namedSchema(kind, version))) },
  };
}

/** `api/v1`, `apis/apps/v1` */
const rootOf = ({ group }: Kind, version: string) => `${group === '' ? 'api' : 'apis'}/${apiVersionOf(group, version)}`;

const gvk = ({ group, kind }: Kind, version: string) => ({ group, version, kind });

/** `dev.kagent.v1alpha2.ModelConfig` */
const schemaName = ({ group, kind }: Kind, version: string) =>
  [...(group || 'core').split('.').reverse(), version, kind].join('.');

function pathOf(kind: Kind, version: string) {
  const place = kind.namespaced ? 'namespaces/{namespace}/' : '';
  const parameter = (name: string) => ({ name, in: 'query', schema: { type: 'string', uniqueItems: true } });
  const content = { 'application/json': { schema: { $ref: `#/components/schemas/${schemaName(kind, version)}` } } };
  const operation = (action: string, ...parameters: string[]) => ({
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': gvk(kind, version),
    parameters: parameters.map(parameter),
    responses: { 200: { description: 'OK', content } },
  });
  return [
    `/${rootOf(kind, version)}/${place}${kind.plural}/{name}`,
    {
      get: operation('get'),
      put: operation('put', 'dryRun', 'fieldManager', 'fieldValidation'),
      patch: operation('patch', 'dryRun', 'fieldManager', 'fieldValidation', 'force'),
    },
  ];
}

function namedSchema(kind: Kind, version: string) {
  const schema = schemaOf(kind, version) ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  return [schemaName(kind, version), { ...schema, 'x-kubernetes-group-version-kind': [gvk(kind, version)] }];
}
