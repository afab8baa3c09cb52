/** Positions in the log of a tenant, sealed for their user and client. */

import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { CURSOR_MESSAGES, cursorError, openPayload, sealPayload } from '../../../lib/query/cursor.ts';
import type { Seal } from '../../../lib/values/sealed.ts';

export interface LogPosition {
  readonly epoch: string;
  /** Events with greater numbers follow. */
  readonly sequence: number;
}

const PURPOSE = 'events';
const POINTER = 'query:cursor';

/** As it is sealed: cursors that callers hold must open after an update of the platform. */
interface Payload {
  readonly e: string;
  readonly s: number;
}

export const sealPosition = ({ epoch, sequence }: LogPosition, seal: Seal): string =>
  sealPayload({ e: epoch, s: sequence } satisfies Payload, seal, PURPOSE);

/** @throws PlatformError 400 CURSOR_INVALID. */
export function openPosition(cursor: string, seal: Seal, pointer = POINTER): LogPosition {
  const payload = openPayload<Payload>(cursor, seal, PURPOSE);
  if (!payload) throw cursorError('CURSOR_INVALID', CURSOR_MESSAGES.invalid, pointer);
  return { epoch: payload.e, sequence: payload.s };
}

/** `oldestCursor`: the position before the oldest event that is kept. */
export function positionExpired(isOld: boolean, oldestCursor: string): PlatformError {
  const reason = isOld
    ? `Events behind the cursor are not kept any more: they are kept for ${LIMITS.event_retention_days} days.`
    : 'The database was restored from a backup, or another server took over.';
  return new PlatformError(
    'SYNC_TOKEN_EXPIRED',
    `${reason} Read what you follow anew, then continue from oldestCursor.`,
    { errors: [violation(POINTER, 'SYNC_TOKEN_EXPIRED', reason)], details: { oldestCursor } },
  );
}
