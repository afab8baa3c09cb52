/** One mutation on its way through the steps. The steps of each operation stand in create.ts, update.ts and delete.ts. */

import type { RecordLevel } from '../../../lib/access/sharing.ts';
import type { ObjectAccess } from '../../../lib/access/types.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, type Violation } from '../../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import type { SqlValue } from '../../../lib/schema/field-types/types.ts';
import type { FieldMeta, ObjectMeta } from '../../../lib/schema/snapshot.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import type { IdempotencyKey } from '../../../mixins/mutation/key.ts';
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

/** One field of a body, ready for SQL. */
export interface Given {
  readonly field: FieldMeta;
  /** What is stored; for a reference what was parsed, the lookup decides. */
  readonly value: SqlValue;
  readonly lookup: Lookup | null;
}

/** SQL of the ids that references were found to name, by reference. */
export type Referred = ReadonlyMap<Given, string>;

/** What came with the lock: how far the user reaches the record, or that they may not edit a parent they name. */
export type Reached = RecordLevel | 'parent';

export interface Effect {
  readonly kind: 'create' | 'update' | 'delete' | 'transition' | 'notification' | 'event';
  readonly objectApiName: string;
  /** null: the record does not exist yet, or the effect stands for several. */
  readonly id: string | null;
  readonly fields: readonly string[];
  /** Records that the effect stands for, when it names none of them. */
  readonly count?: number;
}

/** A rule that fired, as far as the caller is shown. */
export interface Shown {
  readonly ruleApiName: string;
  readonly ids: readonly string[];
  readonly hiddenMatchCount: number;
}

/** What a confirmation covers, by hash. */
export interface ShownMatches {
  /** Rules and matches that were shown. */
  readonly m: readonly string[];
  /** Hidden matches that were reported, by rule. */
  readonly h: Readonly<Record<string, number>>;
}

export interface Confirmation {
  readonly id: string;
  readonly expiresAt: Date;
  readonly shown: ShownMatches;
  /** Nothing was found that was not shown. */
  covers(found: readonly Shown[]): boolean;
}

/** The external id that a record is addressed by. */
export interface ExternalKey {
  readonly field: FieldMeta;
  /** As it is compared. */
  readonly value: SqlValue;
  /** As a body would hold it. */
  readonly given: string | number;
}

export type Mutation = 'create' | 'update' | 'delete' | 'restore' | 'transition' | 'share' | 'unshare';

/** What is to be done. */
export interface Task {
  readonly mutation: Mutation;
  readonly call: OperationCall;
  readonly body: Record<string, unknown>;
  /** The external id that the record is addressed by; null: its own id. */
  readonly external: ExternalKey | null;
}

export interface MutationDeps {
  readonly platform: Platform;
  readonly tenants: Tenants;
  /** Seals what is handed to callers: 32 bytes, the same in every process of the deployment. */
  readonly sealingKey: () => Uint8Array;
  /** Called after a commit that changed User records. */
  readonly usersChanged: (tenantId: string) => Promise<void>;
  /** Asks auth whether a username is free on the whole platform; throws UNIQUE_VALUE_CONFLICT. */
  readonly checkUsername: (tenantId: string, userId: string, username: string) => Promise<void>;
}

export interface Write {
  readonly deps: MutationDeps;
  readonly mutation: Mutation;
  readonly request: RequestContext;
  readonly call: OperationCall;
  /** The work is rolled back: it must do nothing that a rollback does not undo, such as taking a number. */
  readonly checkOnly: boolean;
  /** What a dry run would change; see noteEffect. */
  readonly effects: Effect[];
  readonly key: IdempotencyKey;
  readonly view: View;
  readonly object: ObjectMeta;
  readonly access: ObjectAccess;
  /** Schema of the tenant, quoted. */
  readonly schema: string;
  /** Id of the record, also of one that is about to be created. */
  readonly id: string;
  /** The connection; in update and delete already inside the transaction. */
  readonly tx: Tx;
  /** Sends the last statement of the transaction, together with COMMIT. */
  readonly commit: (statement: Statement) => Promise<{ rows: unknown[][]; rowCount: number }>;

  /** The external id that the record is addressed by; null: its own id. */
  readonly external: ExternalKey | null;
  /** What auth says about the username in the body of a user; null: it is free, or none is given. */
  readonly usernameConflict: PlatformError | null;

  body: Record<string, unknown>;
  given: readonly Given[];
  invalid: Violation[];
  denied: readonly Violation[];
  /** Versions that If-Match accepts; empty for a create. */
  ifMatch: readonly string[];
  recordVersion: number;
  /** Names this transaction in its events. */
  readonly transactionId: string;
  /** Which of the records that the transaction changes this is. */
  readonly place: { readonly index: number; readonly size: number };
  /** Part of another mutation, which has the key and commits. */
  readonly within: boolean;
  /** Ids of the records that this mutation has made so far, beside its own. */
  readonly made: readonly string[];
  /** How far sharing lets the user reach the locked record. */
  reached: Reached;
  /** Stored values that rules need, by apiName. */
  stored: Readonly<Record<string, unknown>>;
  /** Fields whose values differ from what is stored. */
  changed: readonly Given[];
  /** The confirmation of duplicates that goes with this write, and the matches it was needed for. */
  confirmed: { readonly confirmation: Confirmation; readonly matches: Record<string, unknown> | null } | null;
  reply: OperationReply | null;
}

/** A step decides one thing. It throws to refuse, and leaves `reply` when there is nothing more to do. */
export type Step = (write: Write) => void | Promise<void>;

export async function runSteps(write: Write, steps: readonly Step[]): Promise<OperationReply> {
  for (const step of steps) {
    await step(write);
    if (write.reply) return write.reply;
  }
  throw new PlatformError('INTERNAL_ERROR', 'The write ended without an answer.');
}

const ETAG_LIST = /^\s*(?:"[!#-~\x80-\xff]*"\s*(?:,\s*|$))+$/;

/**
 * The ETags of an If-Match header (RFC 9110 section 13.1.1). `*` and weak tags are refused: a write never happens
 * without having seen what it changes.
 */
export function parseIfMatch(header: string | undefined): string[] {
  if (header === undefined || header.trim() === '')
    throw new PlatformError('IF_MATCH_REQUIRED', 'Send the ETag of the record as If-Match.');
  if (!ETAG_LIST.test(header) || header.trim().endsWith(','))
    throw new PlatformError('IF_MATCH_INVALID', 'If-Match takes one or more strong ETags, such as "1a".');
  return header.match(/"[^"]*"/g) ?? [];
}
