/**
 * State shared by the steps of a mutation. The steps of each operation stand in create.ts, update.ts, delete.ts and so on.
 */

import type { RecordLevel } from '../../../lib/access/sharing.ts';
import type { Access, ObjectAccess } from '../../../lib/access/types.ts';
import { PlatformError, type Violation } from '../../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import type { SqlValue } from '../../../lib/schema/field-types/types.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { IF_MATCH_RULE, strongEtags } from '../../../lib/values/etags.ts';
import type { SealingKeys } from '../../../lib/values/sealed.ts';
import type { Sql } from '../../../mixins/database/sql.ts';
import type { Templates } from '../../../mixins/database/templates.ts';
import type { Unit } from '../../../mixins/mutation/unit.ts';
import type { Platform } from '../../../mixins/platform.ts';
import type { Tenants } from '../tenants.ts';
import type { View } from '../view.ts';

/** How the record that a reference names is found. */
export interface Lookup {
  /** Objects it may belong to, of those the user can read. */
  readonly targets: readonly {
    readonly object: ObjectMeta;
    /** Field of the target that is compared: its id, or an external id. */
    readonly by: FieldMeta;
    readonly value: SqlValue;
  }[];
}

/** A field and its new value, ready for SQL. */
export interface FieldValue {
  readonly field: FieldMeta;
  /** The stored value; for a reference the parsed one, which the lookup resolves. */
  readonly value: SqlValue;
  readonly lookup: Lookup | null;
}

/** SQL of the ids that references were found to name, by reference. */
export type ResolvedReferences = ReadonlyMap<FieldValue, string>;

/** How far the user reaches the locked record; `parent`: they may not edit a parent that the body names. */
export type ReachLevel = RecordLevel | 'parent';

/** The request of a mutation of records, as the gateway has checked it. */
export type MutationCall = OperationCall & { path: { objectApiName: string } };

/** A duplicate rule that fired, and the matches that the caller may see. */
export interface ReportedMatches {
  readonly ruleApiName: string;
  readonly ids: readonly string[];
  readonly hiddenMatchCount: number;
}

/** Hash of the matches that a confirmation covers. */
export interface ConfirmedMatches {
  /** Rules and matches that were shown. */
  readonly m: readonly string[];
  /** Hidden matches that were reported, by rule. */
  readonly h: Readonly<Record<string, number>>;
}

export interface Confirmation {
  readonly id: string;
  readonly expiresAt: Date;
  readonly shown: ConfirmedMatches;
  /** Nothing was found that was not shown. */
  covers(found: readonly ReportedMatches[]): boolean;
}

/** The external id that a record is addressed by. */
export interface ExternalKey {
  readonly field: FieldMeta;
  /** As it is compared. */
  readonly value: SqlValue;
  /** As a body would hold it. */
  readonly given: string | number;
  /** The record that was found by it; null: none. */
  readonly found: FoundRecord | null;
}

/** A record in one version. */
export interface FoundRecord {
  readonly id: string;
  readonly recordVersion: number;
}

export type Mutation = 'create' | 'update' | 'delete' | 'restore' | 'transition' | 'share' | 'unshare';

/** The requested write. */
export interface Task {
  readonly mutation: Mutation;
  readonly call: MutationCall;
  readonly body: Record<string, unknown>;
  /** The external id that the record is addressed by; null: its own id. */
  readonly external: ExternalKey | null;
}

export interface MutationDeps {
  readonly platform: Platform;
  readonly tenants: Tenants;
  /** Seals what is handed to callers: 32 bytes, the same in every process of the deployment. */
  readonly sealingKeys: SealingKeys;
  /** Of the statements of frequent writes. */
  readonly templates: Templates<Write>;
  /** Called after a commit that changed User records. */
  readonly usersChanged: (tenantId: string) => Promise<void>;
  /** Asks auth whether a username is free in the tenant; throws UNIQUE_VALUE_CONFLICT. */
  readonly checkUsername: (tenantId: string, userId: string, username: string) => Promise<void>;
}

/** The task of a mutation: one record on its way through the steps. What it shares with other tasks is in `unit`. */
export interface Write {
  readonly unit: Unit;
  readonly deps: MutationDeps;
  readonly mutation: Mutation;
  /** The operation on this record: an upsert is addressed as the create or update that it becomes. */
  readonly call: MutationCall;
  readonly view: View;
  readonly object: ObjectMeta;
  readonly access: ObjectAccess;
  /** Id of the record, also of one that is about to be created. */
  readonly id: string;
  /** The external id that the record is addressed by; null: its own id. */
  readonly external: ExternalKey | null;
  /** Auth's problem with the username in a user's body; null: it is free, or none is given. */
  readonly usernameConflict: PlatformError | null;
  /** Versions that If-Match accepts; empty for a create. */
  readonly ifMatch: readonly string[];
  /** A part of the unit that is a request of its own: it uses up a confirmation of duplicates that comes with it. */
  readonly ownRequest: boolean;
  /** Place of the record among those that the unit changes. */
  readonly place: { readonly index: number; readonly size: number };
  /** Ids of the other records that the unit has created so far. */
  readonly created: readonly string[];

  // Results of the steps, in their order.
  body: Record<string, unknown>;
  given: readonly FieldValue[];
  invalid: Violation[];
  denied: readonly Violation[];
  recordVersion: number;
  /** How far sharing lets the user reach the locked record. */
  reached: ReachLevel;
  /** Stored values that rules need, by apiName. */
  stored: Readonly<Record<string, unknown>>;
  /** Fields whose values differ from what is stored. */
  changed: readonly FieldValue[];
  /** The confirmation of duplicates that comes with this write, and the matches it was needed for. */
  confirmed: { readonly confirmation: Confirmation; readonly matches: Record<string, unknown> | null } | null;
  reply: OperationReply | null;
}

/** A task before its first step. */
export const newWrite = (
  task: Pick<Write, 'unit' | 'deps' | 'mutation' | 'call' | 'view' | 'access' | 'id' | 'body'> & Partial<Write>,
): Write => ({
  object: task.access.object,
  external: null,
  usernameConflict: null,
  ifMatch: [],
  ownRequest: false,
  place: { index: 0, size: 1 },
  created: [],
  given: [],
  invalid: [],
  denied: [],
  recordVersion: 0,
  reached: 'read',
  stored: {},
  changed: [],
  confirmed: null,
  reply: null,
  ...task,
});

/** A change of a record as far as its content decides who may make it. */
export interface ContentChange {
  /** null: a new record. */
  readonly id: string | null;
  readonly stored: Readonly<Record<string, unknown>>;
  readonly given: ReadonlyMap<string, unknown>;
}

export interface StandardObject {
  /** Its writes change who may do what: they lock the versions of the tenant exclusively. */
  readonly changesAccess: boolean;
  /** Its checks read every stored field of the record, not those alone that rules depend on. */
  readonly readsEveryField: boolean;
  /** Error for callers who may not delete its records. */
  readonly deleteRefusal: string;
  /** Why its records are not shared by hand. */
  readonly shareRefusal: string;
  /** The refusal of a username that is taken in the tenant; null: there is none. Asked before the transaction. */
  usernameConflict(
    deps: MutationDeps,
    tenantId: string,
    userId: string,
    access: ObjectAccess,
    task: Task,
  ): Promise<PlatformError | null>;
  /** Completes the body before it is read. */
  completeBody(write: Write): void;
  /** Permissions on the content, once the stored record is known. */
  permit(write: Write): void;
  /** Why a user may not make the change, whatever their permissions on object and fields; null: they may. */
  changeRefusal(access: Access, change: ContentChange): PlatformError | null;
  /** Stored fields that `changeRefusal` reads. */
  readonly fieldsOfChange: readonly string[];
  /** Checks of the content. */
  check(write: Write): void | Promise<void>;
  /** CTEs of the statement that stores a record; `from` has its record_id. */
  storeSql(write: Write, sql: Pick<Sql, 'bind'>, from: string): readonly string[];
  /** Runs after a commit that changed one of its records. */
  committed(deps: MutationDeps, tenantId: string): Promise<void>;
}

/** A step decides one thing. It throws to refuse, and leaves `reply` when there is nothing more to do. */
export type Step = (write: Write) => void | Promise<void>;

export async function runSteps(write: Write, steps: readonly Step[]): Promise<OperationReply> {
  for (const step of steps) {
    await step(write);
    if (write.reply) return write.reply;
  }
  throw new PlatformError('INTERNAL_ERROR', 'The steps of the write ended without a reply.');
}

/** The ETags of an If-Match header, or 400. */
export function parseIfMatch(header: string | undefined): string[] {
  if (header === undefined || header.trim() === '')
    throw new PlatformError('IF_MATCH_REQUIRED', 'Send the ETag of the record as If-Match.');
  const etags = strongEtags(header);
  if (etags === null) throw new PlatformError('IF_MATCH_INVALID', IF_MATCH_RULE);
  return etags;
}
