/**
 * A kind of component is one row: where its files stand, what is in them, what it needs, what must hold, and what it
 * adds to the snapshot. Comparing, storing, undoing and retrieving are the same for all kinds.
 */
import type { TObject } from 'typebox';
import type { Access } from '../../../lib/access/types.ts';
import type { ComponentTypeName, ObjectMeta, RateLimitOverrides, Snapshot } from '../../../lib/schema/snapshot.ts';
import type { FieldComponent } from './bodies/custom-field.ts';
import type { Changes } from './changes.ts';
import type { BodyOf, Component, ComponentOf, ComponentType, State } from './component.ts';

/** Described in docs/reference/metadata.md#validate. */
export const PROBLEM_CODES = [
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
  'UNPUBLISHED_OBJECT',
  'LARGE_TABLE',
  'ACTS_AS_USER',
  'DOMAIN_NOT_VERIFIED',
  'WITHOUT_EFFECT',
  'FEATURE_NOT_AVAILABLE',
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
  /** Facts in addition to the message, by code: `{records}`, `{members}`, `{max}`. */
  details?: Record<string, unknown> & { readonly records?: RecordCount };
}

/** A number of records that a message tells in words which can be hidden: services/metadata/counts.ts makes both. */
export type RecordCount = number & { readonly __told: true };

/** The user whose permissions limit a plan, in the current configuration. */
export interface Acting {
  readonly actor: Access;
  /** The users as whom clients act, by username in lower case. */
  readonly clientUsers: ReadonlyMap<string, Access>;
}

/** Input of a check: the present and the planned configuration. */
export interface CheckContext {
  readonly before: State;
  readonly after: State;
  /**
   * Keys of components that are not in `after` because of what is wrong with their files: that is said already, and what
   * names them is not wrong for it.
   */
  readonly unread: ReadonlySet<string>;
  /** Deleted components that are still kept; `changedAtVersion`, `updatedAt` and `updatedById` are of the deletion. */
  readonly retained: State;
  /** The plan brings deleted components back. */
  readonly restores: boolean;
  /** Components that may lose data, by key: the destructive manifest names them, and the flag is set. */
  readonly alters: ReadonlySet<string>;
  /** The actor is the platform itself, which may make standard (`__c`-less) names. */
  readonly platform: boolean;
  /** null: the platform, which needs no permission. */
  readonly acting: Acting | null;
  /** The most that the tenant's limits can be set to; null: the platform sets what it wants. */
  readonly ceilings: Readonly<Record<keyof RateLimitOverrides, number>> | null;
  /** The mail domains that are verified for the tenant; null: not known at this moment. */
  readonly verifiedDomains: ReadonlySet<string> | null;
  /** Fields of an object in the configuration to be, by apiName. */
  fieldsOf(object: string): ReadonlyMap<string, FieldComponent>;
  /** The end of a message about a name that is none of these: what it may mean, after `prefix`; mostly empty. */
  meant(name: string, names: Iterable<string>, prefix?: string): string;
  problem(
    code: Problem['code'],
    component: Component,
    pointer: string,
    message: string,
    more?: {
      remedy?: string;
      details?: Record<string, unknown>;
      /** Offset in the text at `pointer`, in UTF-16 units. */
      offset?: number;
    },
  ): void;
  /**
   * Position of a value of a component's file, or, with `offset`, of a place in a text; nulls when the file is not in the
   * project.
   */
  position(component: Component, pointer: string, offset?: number): { line: number | null; column: number | null };
  warning(code: Problem['code'], component: Component, pointer: string, message: string): void;
}

/** Lists and maps that are still being filled. */
type Open<T> = T extends readonly (infer V)[] ? V[] : string extends keyof T ? Record<string, T[keyof T]> : T;

export type ObjectDraft = { -readonly [K in keyof ObjectMeta]: Open<ObjectMeta[K]> };

/** The snapshot while it is being compiled. */
export type Draft = {
  -readonly [K in keyof Snapshot]: K extends 'objects' ? Record<string, ObjectDraft> : Open<Snapshot[K]>;
};

export interface Reference {
  readonly type: string;
  readonly fullName: string;
  /** Pointer at which the component names it. */
  readonly pointer: string;
  /** The kind's own check says when it is missing, and knows better where. */
  readonly ownCheck?: boolean;
  /** Of a field: its value is shown to those who see what comes of it, or it is set without asking for permission. */
  readonly access?: 'read' | 'edit';
  /** A permission on it: it works on without, and is in the way of its deletion only. */
  readonly permission?: true;
}

/** Form of a name, for a program and in words. */
export interface Naming {
  readonly is: (name: string) => boolean;
  readonly form: string;
}

export interface Kind<S extends TObject = TObject> extends ComponentType<S> {
  /** As documented: `<Object>.<Field>`. */
  readonly memberFormat: string;
  readonly reversible: boolean;
  /** Types of which its components name others; none when absent. */
  readonly dependsOn?: readonly ComponentTypeName[];
  /** Form of its apiNames, when it differs from that of other kinds. */
  readonly naming?: Naming;
  /** The table of an object has columns or indexes for its components. */
  readonly inTable?: true;
  /** Components that must exist, in the project or in the tenant. */
  references?(body: BodyOf<ComponentType<S>>): Reference[];
  /** Everything that the schema cannot say. Called for new and changed components. */
  check?(component: ComponentOf<ComponentType<S>>, context: CheckContext): void;
  /** A component that did not change itself must be checked again, for these changes can break it. */
  isAffected?(component: ComponentOf<ComponentType<S>>, changes: Changes): boolean;
  /** Rules over the whole configuration; called once per plan, when a component of this kind changes. */
  checkAll?(context: CheckContext): void;
  /** Adds a component to the snapshot; called in the order of the registry for every component. */
  compile?(component: ComponentOf<ComponentType<S>>, draft: Draft, state: State): void;
  /** Adds what depends on several components, after all of them have been compiled. */
  link?(draft: Draft): void;
}

/** The entry of a kind: its schema gives the bodies of its components their type. */
export const defineKind = <S extends TObject>(kind: Kind<S>): Kind<S> => kind;
