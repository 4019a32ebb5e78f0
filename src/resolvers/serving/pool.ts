import { type GpuPool, type InstanceShape, type Taint, type Target, taintEffects } from '../../domain.ts';
import { builder, enumValues, faces } from '../builder.ts';

interface Label {
  readonly key: string;
  readonly value: string;
}

export const LabelRef = builder.objectRef<Label>('Label').implement({
  description: 'A label of Kubernetes.',
  fields: t => ({ key: t.exposeString('key'), value: t.exposeString('value') }),
});

/** Labels are a list here, and an object in the old faces. */
export const labelsOf = (labels: Readonly<Record<string, string>> | undefined): Label[] | undefined =>
  labels && Object.entries(labels).map(([key, value]) => ({ key, value }));
export const keyedLabels = faces({ keyed: { key: 'key', value: 'value' } });

export const TargetRef = builder.objectRef<Target>('Target').implement({
  description: "A cluster that is not the gateway's own.",
  fields: t => ({
    cluster: t.exposeString('cluster', { description: 'Name of the cluster.' }),
    organization: t.exposeString('organization', { nullable: true, description: 'Who the cluster belongs to.' }),
  }),
});

const TaintEffectEnum = builder.enumType('TaintEffect', {
  description: 'What a taint does to what does not tolerate it.',
  values: enumValues(taintEffects),
});

const TaintRef = builder.objectRef<Taint>('Taint').implement({
  description: 'A taint that models tolerate.',
  fields: t => ({
    key: t.exposeString('key'),
    value: t.exposeString('value', { nullable: true, description: 'Null: every value is tolerated.' }),
    effect: t.expose('effect', {
      type: TaintEffectEnum,
      nullable: true,
      description: 'Null: every effect is tolerated.',
    }),
  }),
});

const InstanceShapeRef = builder.objectRef<InstanceShape>('InstanceShape').implement({
  description: 'A type of machine, as its cloud sells it, and what Kubernetes leaves of it for models.',
  fields: t => ({
    instanceType: t.exposeString('instanceType'),
    size: t.exposeString('size', { nullable: true, description: 'Such as `2xlarge`.' }),
    vcpu: t.exposeInt('vcpu'),
    memoryGiB: t.exposeInt('memoryGiB'),
    gpus: t.exposeInt('gpus'),
    gpuMemoryGiB: t.exposeInt('gpuMemoryGiB', { description: 'Of one GPU.' }),
    usableVcpu: t.exposeFloat('usableVcpu'),
    usableMemoryGiB: t.exposeFloat('usableMemoryGiB'),
  }),
});

export const GpuPoolRef = builder.objectRef<GpuPool>('GpuPool').implement({
  description: 'The nodes that models are scheduled on.',
  fields: t => ({
    taint: t.expose('taint', { type: TaintRef, nullable: true }),
    nodeSelector: t.field({
      type: [LabelRef],
      nullable: true,
      description: 'Labels of those nodes.',
      extensions: keyedLabels,
      resolve: ({ nodeSelector }) => labelsOf(nodeSelector),
    }),
    instances: t.expose('instances', {
      type: [InstanceShapeRef],
      nullable: true,
      description: 'The machines it can grow by, in the order they are tried.',
    }),
  }),
});
