/**
 * A kind of component is one row: where its files stand, what is in them, what it needs, what must hold, and what it
 * adds to the snapshot. Comparing, storing, undoing and retrieving are the same for all kinds.
 */
import type { TObject } from 'typebox';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import type { YamlValue } from '../yaml/parse.ts';

export type Body = { readonly [key: string]: YamlValue };

export interface Component<B = Body> {
  readonly type: string;
  readonly fullName: string;
  readonly path: string;
  readonly body: B;
  readonly yaml: string;
  /** SHA-256 (hex) of `yaml`. */
  readonly hash: string;
  /** Shipped with the platform; only the platform changes it. */
  readonly system: boolean;
  readonly changedAtVersion: number;
  readonly updatedAt: string;
  readonly updatedById: string | null;
}

/** A tenant's components by `key(type, fullName)`. Read-only; the planner makes new ones. */
export type State = ReadonlyMap<string, Component>;

export const componentKey = (type: string, fullName: string): string => `${type}:${fullName}`;

/** The components of a type that belong to objects, by object. */
export const componentsByObject = (state: State, type: string): Map<string, Component[]> =>
  Map.groupBy(
    [...state.values()].filter((component) => component.type === type),
    ({ body }) => String(body['object']),
  );

const PROBLEM_CODES = [
  'TYPE_UNKNOWN',
  'YAML_SCHEMA_INVALID',
  'PACKAGE_FILE_MISMATCH',
  'MEMBER_NOT_FOUND',
  'NAME_INVALID',
  'NAME_CONFLICT',
  'NAME_RESERVED',
  'DEPENDENCY_MISSING',
  'DEPENDENT_EXISTS',
  'REFERENCE_INVALID',
  'EXPRESSION_INVALID',
  'STATE_MODEL_INVALID',
  'FIELD_TYPE_CHANGE_UNSUPPORTED',
  'DATA_INCOMPATIBLE',
  'SYSTEM_COMPONENT_READ_ONLY',
  'COMPONENT_PERMISSION_DENIED',
  'LIMIT_EXCEEDED',
  'DESTRUCTIVE_CHANGES_NOT_ALLOWED',
  'DESTRUCTIVE_MANIFEST_REQUIRED',
  'DESTRUCTIVE_FLAG_UNUSED',
  'COMPONENT_UNCHANGED',
  'UNPUBLISHED_OBJECT',
  'DEPRECATED_PROPERTY',
  'LARGE_TABLE',
] as const;

export interface Problem {
  code: (typeof PROBLEM_CODES)[number];
  type: string;
  fullName: string;
  path: string | null;
  line: number | null;
  column: number | null;
  message: string;
  remedy: string | null;
  /** Facts beside the message, by code: `{records}`, `{members}`, `{max}`. */
  details?: Record<string, unknown>;
}

/** What a check sees: the configuration as it is and as it would be. */
export interface CheckContext {
  readonly before: State;
  readonly after: State;
  /** The actor is the platform itself, which may make standard (`__c`-less) names. */
  readonly platform: boolean;
  /** System permissions of the actor; null: the platform, which needs none. */
  readonly permissions: ReadonlySet<string> | null;
  /** Fields of an object in the configuration to be, by apiName. */
  fieldsOf(object: string): ReadonlyMap<string, Component>;
  problem(
    code: Problem['code'],
    component: Component,
    pointer: string,
    message: string,
    more?: {
      remedy?: string;
      details?: Record<string, unknown>;
      /** Where in the text that stands at `pointer`, in UTF-16 units. */
      offset?: number;
    },
  ): void;
  /**
   * Where a value of a component's file stands, or, with `offset`, a place in a text; nulls when the file is not in the
   * project.
   */
  position(component: Component, pointer: string, offset?: number): { line: number | null; column: number | null };
  warning(code: Problem['code'], component: Component, pointer: string, message: string): void;
}

/** The snapshot while it is being compiled. */
export type Draft = {
  -readonly [K in keyof Snapshot]: Snapshot[K] extends Readonly<Record<string, infer V>>
    ? Record<string, V>
    : Snapshot[K];
};

export interface Reference {
  readonly type: string;
  readonly fullName: string;
  /** Where the component names it. */
  readonly pointer: string;
  /** The kind's own check says when it is missing, and knows better where. */
  readonly ownCheck?: boolean;
}

export interface Kind {
  readonly type: string;
  /** As documented: `<Object>.<Field>`. */
  readonly memberFormat: string;
  /** `{object}` and `{apiName}` stand for names. */
  readonly pathPattern: string;
  /** Belongs to an object: member `<Object>.<apiName>`, key `object`. */
  readonly child: boolean;
  /** JSON Schema of the file; the order of its properties is the order of the keys. */
  readonly schema: TObject;
  readonly reversible: boolean;
  /** The table of an object has columns or indexes for its components. */
  readonly inTable?: true;
  /** Components that must exist, in the project or in the tenant. */
  references?(body: Body): Reference[];
  /** Everything that the schema cannot say. Called for new and changed components. */
  check?(component: Component, context: CheckContext): void;
  /** Rules over the whole configuration; called once per plan, when a component of this kind changes. */
  checkAll?(context: CheckContext): void;
  /** Called in the order of the registry for every component. */
  compile?(component: Component, draft: Draft, state: State): void;
}
