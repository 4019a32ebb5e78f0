import type { Call } from '../call.ts';
import type {
  AgentAccess,
  BackendKind,
  BackendStatus,
  Capabilities,
  Deletion,
  FitExplanation,
  FitResult,
  InventoryRefresh,
  LoadedModel,
  Loading,
  Manifest,
  Model,
  NodeInfo,
  Permit,
  Preset,
  PullProgress,
  SearchResult,
  Target,
} from '../domain.ts';
import type { GatewayError } from '../errors.ts';
import type { Source } from '../live/source.ts';

export interface PullRequest {
  readonly model: string;
  readonly preset?: string | undefined;
  readonly node?: string | undefined;
}

/** A download that goes on at the backend. */
export interface UnfinishedPull {
  readonly request: PullRequest;
  /** As `pull`, of the one that runs. */
  follow(call: Call): AsyncIterable<PullProgress>;
}

export interface LoadRequest {
  /** The backend's own spelling. */
  readonly model: string;
  /** As the caller wrote it, or the server's default. */
  readonly keepAlive: string;
  /** The listed model, where the driver decides by its capabilities. */
  readonly listed?: Model | undefined;
}

interface SearchRequest {
  /** As the caller wrote it; not blank. */
  readonly query: string;
  /** How many results at most. */
  readonly limit: number;
}

/** A model, a preset, or both; and the node when it is to be that one. None is blank. */
export interface FitRequest {
  readonly model?: string | undefined;
  readonly preset?: string | undefined;
  readonly node?: string | undefined;
}

/** What serving a model comes to: everything is decided, and nothing done yet. */
export interface ServePlan {
  /** As it is listed, or as its preset would bring it. */
  readonly model: Model;
  /** Name of the preset. */
  readonly preset: string;
  readonly fit: FitResult;
  /** What serves it already: then there is nothing to create. */
  readonly serving?: LoadedModel | undefined;
  /** The objects to create, in their order. */
  readonly manifests: readonly Manifest[];
  /** How agents will reach it, by what is known before it is ready. */
  readonly access: AgentAccess;
}

/** What a download comes to. */
export interface PullPlan {
  readonly present: boolean;
  readonly fit: FitResult;
  /** Name of what downloads the same already. */
  readonly joins?: string | undefined;
  /** The objects to create, in their order. */
  readonly manifests: readonly Manifest[];
  /** What is over and gives way. */
  readonly deletes: readonly Deletion[];
}

/** What removing a model comes to. */
export interface RemovePlan {
  /** The objects that do it. */
  readonly manifests: readonly Manifest[];
  readonly deletes: readonly Deletion[];
}

/** What serves a model and is to go. */
export interface UnservePlan {
  /** At least one. */
  readonly serving: readonly LoadedModel[];
  /** Which object each of them is: another of its name is not meant. */
  readonly objects: readonly { readonly namespace: string; readonly name: string; readonly uid: string }[];
}

/** What is done to models, as capabilities name it. */
export type ModelAction = 'pull' | 'load' | 'unload' | 'delete';

/** A model that something may be done to: a listed one, or the one that a preset brings. */
export type ActedOn = Pick<Model, 'name' | 'path' | 'preset' | 'running'>;

/** What came of it. */
export interface Unserved {
  /** Those of the plan that are being deleted now; at least one. */
  readonly gone: readonly LoadedModel[];
  /** Why the others are not. */
  readonly failure?: GatewayError | undefined;
  readonly inventory: InventoryRefresh;
}

/** Sources in the place of the methods of the same name. A failure is in their observations. */
interface Observed {
  readonly status: Source<BackendStatus>;
  readonly models: Source<readonly Model[]>;
  readonly loaded: Source<readonly LoadedModel[]>;
  readonly nodes: Source<readonly NodeInfo[]>;
  readonly presets: Source<readonly Preset[]>;
}

/**
 * One kind of backend behind one interface. It speaks its server's wire format and nothing else: no GraphQL, no REST, no
 * MCP, no sibling. It says what it can do as data, and has just the methods its capabilities promise.
 *
 * Every method throws a `GatewayError`: `not_found` for a model the server does not know, `invalid_request` for what the
 * server calls invalid, `backend_error` for everything else, with the server's own words. Every method ends when
 * `call.signal` aborts.
 */
export interface Driver {
  readonly kind: BackendKind;
  /** Name of the backend it serves; stamped on every row. */
  readonly name: string;
  readonly capabilities: Capabilities;
  readonly loading: Loading;
  /** The cluster it serves on, when that is not the gateway's own; stamped on every row. */
  readonly target?: Target | undefined;
  /** As the gateway dials it. */
  readonly endpoint: string;
  /** As agents dial it; absent where every model has an address of its own. */
  readonly agentEndpoint?: string | undefined;

  /** What the backend pushes: it is followed, where others are asked again and again. */
  readonly observed?: Observed | undefined;

  /** Whether the server is there and what it is. Unhealthy is an answer, not an error. */
  describe(call: Call): Promise<BackendStatus>;
  models(call: Call): Promise<Model[]>;

  /** The canonical spelling of a reference: equal for two references that name the same model. */
  canonical(reference: string): string;
  /** The listed model that a reference names, by the backend's own rules. */
  find(models: readonly Model[], reference: string): Model | undefined;
  /**
   * What a reference that names no listed model stands for: the model that a preset would bring, the named one where one is
   * named. Throws `invalid_request` where several presets could be meant, and `not_found` for a named one there is not. Has
   * `presets`, where those can be named in place of models.
   */
  offered?(call: Call, reference: string, preset?: string): Promise<Model | undefined>;

  /** How agents reach a model; undefined while nothing serves it. */
  agentAccess(model: Model): AgentAccess | undefined;

  /** Models in memory. Has `loadedModels`. */
  loaded?(call: Call): Promise<LoadedModel[]>;
  /** Equal for two pulls that bring the same to the same place; absent where that is one and the same model. */
  pullKey?(request: PullRequest): string;
  /** Downloads a model; ends when it is complete, throws when it is not. A later pull resumes. Has `pull`. */
  pull?(call: Call, request: PullRequest): AsyncIterable<PullProgress>;
  /** What `pull` would do now. Throws what a pull fails with before it downloads anything. */
  planPull?(call: Call, request: PullRequest): Promise<PullPlan>;
  /** Downloads that began before this process and are not over. Has `pull`, where they go on without it. */
  unfinished?(call: Call): Promise<UnfinishedPull[]>;
  /** Throws what a load is refused with before the server is asked. */
  checkLoad?(request: LoadRequest): void;
  /**
   * Whether the caller may do something to a model, to any when none is given, as far as that is known before it is tried: by
   * the driver's own rules and by the rights of the caller. Absent where capabilities and `checkLoad` are all there is.
   */
  permit?(call: Call, action: ModelAction, model?: ActedOn): Promise<Permit>;
  /** Brings a model into memory; resolves when it is there. Has `load`. */
  load?(call: Call, request: LoadRequest): Promise<void>;
  /** Lets go of a model; a model that is not loaded is no error. Has `unload`. */
  unload?(call: Call, model: Model): Promise<void>;
  /**
   * In the place of `load`, on backends that serve models as objects of their own, which come up by themselves. Throws what
   * a load is refused with, so that nothing is ever half created: `unavailable` where nothing would bring it up,
   * `does_not_fit`, `conflict` where an object of that name serves something else.
   */
  planServe?(call: Call, request: FitRequest): Promise<ServePlan>;
  /** Creates what the plan has; answers it on its way. */
  serve?(call: Call, plan: ServePlan): Promise<LoadedModel>;
  /** Resolves to how agents reach the model as soon as it answers requests; throws when it is gone before, or not in time. */
  whenServed?(call: Call, plan: ServePlan): Promise<AgentAccess>;
  /**
   * In the place of `unload`. `reference`: a model, an object or a preset. Throws `not_found` where nothing serves it and
   * `conflict` where one of those that do is somebody else's.
   */
  planUnserve?(call: Call, reference: string): Promise<UnservePlan>;
  /** Deletes what the plan has, whatever state it is in. Does not wait until it is gone. Throws when nothing of it goes. */
  unserve?(call: Call, plan: UnservePlan): Promise<Unserved>;
  /** What `remove` would do; absent where that is no more than the files. Throws why a model cannot be removed. */
  planRemove?(call: Call, model: Model): Promise<RemovePlan>;
  /** Removes a model from disk. Has `delete`. */
  remove?(call: Call, model: Model): Promise<void>;
  /** Has `nodeInventory`. */
  nodes?(call: Call): Promise<NodeInfo[]>;
  /** The ways to serve models that are known to work. Has `presets`. */
  presets?(call: Call): Promise<Preset[]>;
  /** Repositories of the hub, most downloads first, each with the presets that serve it. Has `search`. */
  search?(call: Call, request: SearchRequest): Promise<SearchResult[]>;
  /**
   * Whether and where a model can be served. That it cannot is an answer; `not_found` is a repository that neither the hub
   * nor a preset knows, `invalid_request` one that its token may not read. Has `fitCheck`.
   *
   * One answer may ask for many, all with the same `call`: what they have in common is read once for it.
   */
  checkFit?(call: Call, request: FitRequest): Promise<FitResult>;
  /** What stands in the way of a model, and what would change it. Throws as `checkFit` does. Has `fitCheck`. */
  explain?(call: Call, request: FitRequest): Promise<FitExplanation>;
}
