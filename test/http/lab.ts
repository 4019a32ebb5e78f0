/** A graph whose only thing is a list in a cell: it counts what serving a subscription costs. */
import assert from 'node:assert/strict';
import {
  GraphQLBoolean,
  GraphQLFloat,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';
import { createCell } from '../../src/live/cell.ts';
import { type Rows, type RowsPayload, rowsEvents } from '../../src/live/events.ts';
import { keepRows } from '../../src/live/rows.ts';
import type { Source } from '../../src/live/source.ts';
import { served } from '../../src/resolvers/lists.ts';

export interface Thing {
  readonly name: string;
  readonly text?: string;
  /** What a resolver throws instead of the name. */
  readonly broken?: Error;
}

export interface Lab {
  readonly schema: GraphQLSchema;
  /** Replaces the list. */
  set(...things: Thing[]): void;
  readonly counts: {
    /** Subscriptions begun below the transports, and those that stand. */
    subscribed: number;
    listening: number;
    /** Executions of each event in each form. */
    readonly executions: Map<string, number>;
    /** Times an answer was made JSON. */
    serialised: number;
  };
  /** The next event throws, instead of saying what changed. */
  breakEvents(error: Error): void;
}

const nonNull = <T extends ConstructorParameters<typeof GraphQLNonNull>[0]>(type: T) => new GraphQLNonNull(type);

export function createLab(...first: Thing[]): Lab {
  const cell = createCell<Rows<Thing>>({ rows: first, errors: [] });
  const counts = { subscribed: 0, listening: 0, executions: new Map<string, number>(), serialised: 0 };
  const keep = keepRows<Thing>(thing => thing.name);
  let broken: Error | undefined;

  function keyOf(thing: Thing): string {
    if (broken) throw broken;
    return thing.name;
  }

  const source: Source<Rows<Thing>> = {
    get current() {
      return cell.current;
    },
    read: call => cell.read(call),
    subscribe(listener) {
      counts.listening++;
      const stop = cell.subscribe(listener);
      return () => {
        counts.listening--;
        stop();
      };
    },
  };

  /** Notes that it is written. */
  const Counted = new GraphQLScalarType<unknown>({
    name: 'Counted',
    serialize: value => ({
      toJSON() {
        counts.serialised++;
        return value;
      },
    }),
  });
  const Thing = new GraphQLObjectType<Thing>({
    name: 'Thing',
    fields: {
      name: {
        type: GraphQLString,
        resolve({ name, broken }) {
          if (broken) throw broken;
          return name;
        },
      },
      text: { type: GraphQLString },
    },
  });
  const Event = new GraphQLObjectType<RowsPayload<Thing>>({
    name: 'ThingsEvent',
    fields: {
      revision: { type: nonNull(GraphQLFloat) },
      snapshot: { type: nonNull(GraphQLBoolean) },
      things: { type: nonNull(new GraphQLList(nonNull(Thing))), resolve: event => event.rows },
      removed: { type: nonNull(new GraphQLList(GraphQLString)) },
      counted: { type: nonNull(Counted), resolve: () => 1 },
    },
  });
  const schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { zero: { type: GraphQLInt, resolve: () => 0 } } }),
    subscription: new GraphQLObjectType({
      name: 'Subscription',
      fields: {
        things: {
          type: nonNull(Event),
          args: { tag: { type: GraphQLString }, size: { type: GraphQLInt, defaultValue: 1 } },
          subscribe() {
            counts.subscribed++;
            return served(rowsEvents(source, keyOf));
          },
          resolve(payload: RowsPayload<Thing>) {
            const form = `${payload.revision} ${payload.snapshot ? 'snapshot' : 'changes'}`;
            counts.executions.set(form, (counts.executions.get(form) ?? 0) + 1);
            return payload;
          },
        },
      },
    }),
  });
  return {
    schema,
    counts,
    set: (...things) => cell.set({ rows: keep(cell.current?.value?.rows, things), errors: [] }),
    breakEvents(error) {
      broken = error;
      cell.set({ rows: [{ name: 'unnamed' }], errors: [] });
    },
  };
}

/** Asks for everything. */
export const watchThings =
  'subscription ($tag: String, $size: Int = 1) { things(tag: $tag, size: $size) { revision snapshot things { name } removed counted } }';

/** Asks for the texts too. */
export const watchTexts = watchThings.replace('name', 'name text');

/** No event was executed twice in the same form. */
export function assertExecutedOnce({ counts }: Lab): void {
  for (const [form, times] of counts.executions) assert.equal(times, 1, `${form} was executed ${times} times`);
}
