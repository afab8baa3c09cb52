/** Common to all reads of this service: signature, dependencies and the handling of failures. */

import { setTimeout as pause } from 'node:timers/promises';
import type { Asker, RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import type { SealingKeys } from '../../../lib/values/sealed.ts';
import { type Database, isConnectionError, sqlState } from '../../../mixins/database/database.ts';
import { unavailableOf } from '../../../mixins/database/unavailable.ts';
import { isServiceUnavailable, serviceUnavailable } from '../../../mixins/service-unavailable.ts';
import type { Tenants } from '../tenants.ts';
import type { PreparedReads } from './prepared.ts';

export interface ReadDeps {
  readonly database: Database;
  readonly tenants: Tenants;
  /** 32 bytes, the same in every process. */
  readonly sealingKeys: SealingKeys;
  readonly statements: PreparedReads;
  /** Of this process; counted from before they wait for a connection. */
  readonly aggregates: { running: number };
}

export type Read<Input extends OperationCall> = (
  deps: ReadDeps,
  request: RequestContext,
  call: Input,
) => Promise<OperationReply>;

const READ_ATTEMPTS_MAX = 3;

/**
 * Runs a read and repeats it after a lost connection or when a deployment held a lock; other failures become errors of
 * the catalogue.
 */
export async function runRead<By extends Asker, Input, Answer>(
  read: (deps: ReadDeps, request: By, input: Input) => Promise<Answer>,
  deps: ReadDeps,
  request: By,
  input: Input,
): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await read(deps, request, input);
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      const passing = isConnectionError(error) || PASSING_STATES.has(sqlState(error) ?? '');
      if (passing && attempt < READ_ATTEMPTS_MAX && platformTime() < request.deadline) {
        await pause(20 * 4 ** attempt);
        continue;
      }
      const failed = unavailableOf(error);
      if (failed) throw failed;
      if (isServiceUnavailable(error)) throw serviceUnavailable(error);
      const invalid = invalidValue(error);
      if (invalid) throw invalid;
      throw new PlatformError('INTERNAL_ERROR', 'The records could not be read.', { cause: error });
    }
  }
}

/** The refusal of a value that PostgreSQL does not take; null: something else failed. */
export const invalidValue = (error: unknown): PlatformError | null =>
  sqlState(error)?.startsWith('22')
    ? new PlatformError('FILTER_VALUE_INVALID', 'A value of the query is out of range for its field.', { cause: error })
    : null;

/** Serialization failure, deadlock, lock timeout. */
const PASSING_STATES: ReadonlySet<string> = new Set(['40001', '40P01', '55P03']);

export const notModified = (etag: string): OperationReply => ({ status: 304, headers: { ETag: etag }, body: null });
