/** What wiring and unwiring would do, by looking only. */
import type { Call } from '../../call.ts';
import type { Deletion, Manifest, WirableModel } from '../../domain.ts';
import type { KubernetesObject } from '../../kubernetes/resource.ts';
import type { WiringPlan } from '../wiring.ts';
import { look, type Place } from './look.ts';
import type { ModelConfig } from './modelConfig.ts';
import { changesOf, planOf } from './plan.ts';
import { missingSecret, ourSecret } from './secret.ts';
import { toRemove } from './unwire.ts';
import { notInstalled } from './wire.ts';

export async function previewWire(place: Place, call: Call, model: WirableModel): Promise<WiringPlan> {
  const seen = await look(place, call);
  if (!seen) throw notInstalled(place);
  const { namespace } = place;
  const plan = planOf(seen.index, model, place.prefix);
  if ('answer' in plan) return { manifests: [], deletes: [], known: plan.answer.ref };
  const { object, isSame, secret, superseded, unread } = changesOf(namespace, seen, plan, model);
  const missing = secret === undefined ? undefined : await missingSecret(place, call, secret);
  const left = await Promise.all(unread.map(name => ourSecret(place, call, name)));
  const manifests = [...(missing ? [manifestOf(missing)] : []), ...(isSame ? [] : [manifestOf(object)])];
  const gone = [...superseded.map(deletedModelConfig), ...left.flatMap(each => (each ? deletedSecret(each) : []))];
  const nothing = manifests.length === 0 && gone.length === 0;
  return { manifests, deletes: gone, ...(nothing && { known: plan.before?.ref }) };
}

export async function previewUnwire(
  place: Place,
  call: Call,
  backend: string,
  reference: string,
): Promise<readonly Deletion[]> {
  const gone = await toRemove(place, call, backend, reference);
  return gone ? [...gone.objects.map(deletedModelConfig), ...gone.secrets.map(deletedSecret)] : [];
}

/** What we say of an object, without what the server adds. */
function manifestOf({ metadata, ...object }: KubernetesObject & { readonly status?: unknown }): Manifest {
  const { status, apiVersion = '', kind = '', ...content } = object;
  const { name, namespace, labels, annotations } = metadata;
  const written = { name, namespace, labels, ...(annotations && { annotations }) };
  return { apiVersion, kind, metadata: written, ...content };
}

const deleted =
  (kind: string) =>
  ({ metadata: { name, namespace } }: KubernetesObject): Deletion => ({ kind, namespace, name });
const deletedModelConfig = deleted('ModelConfig') satisfies (object: ModelConfig) => Deletion;
const deletedSecret = deleted('Secret');
