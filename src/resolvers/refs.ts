import type { Backend } from '../backends/backend.ts';
import type { BackendStatus, Job, LoadedModel, Model, NodeInfo, Preset } from '../domain.ts';
import type { WiringState } from '../wiring/wiring.ts';
import { builder } from './builder.ts';

/** A backend as the graph shows it: what was read of it already comes along. */
export interface BackendView {
  readonly backend: Backend;
  readonly status?: BackendStatus | undefined;
  readonly wiring?: WiringState | undefined;
}

// The things of the graph. Each is described in the file of its name; they refer to each other, so their names meet here.
export const BackendRef = builder.objectRef<BackendView>('Backend');
export const ModelRef = builder.objectRef<Model>('Model');
export const LoadedModelRef = builder.objectRef<LoadedModel>('LoadedModel');
export const JobRef = builder.objectRef<Job>('Job');
export const NodeInfoRef = builder.objectRef<NodeInfo>('NodeInfo');
export const PresetRef = builder.objectRef<Preset>('Preset');

interface Placed {
  readonly backend: string;
  readonly name: string;
}

/** The id of something a backend has, within its type. No backend's name holds a slash. */
export const placedId = ({ backend, name }: Placed) => `${backend}/${name}`;

export function parsePlacedId(id: string): Placed {
  const at = Math.max(0, id.indexOf('/'));
  return { backend: id.slice(0, at), name: id.slice(at + 1) };
}
