/**
 * Sharing a record by hand and taking it back: the record is locked like for any other change of it, so that two who
 * share at once, or one who deletes, come one after the other. Source: docs/reference/access.md#manual-shares.
 */

import type { Share } from '../../../lib/access/sharing.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { textProblem } from '../../../lib/schema/field-types/common.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { type LockRow, readLock } from '../write/checks.ts';
import { noticeUser } from '../write/notices.ts';
import { standardObject } from '../write/standard-objects.ts';
import { validationFailed } from '../write/violations.ts';
import type { Step, Write } from '../write/write.ts';
import { sharingDenied } from './shares.ts';
import {
  type GivenShare,
  lockForShareSql,
  shareExistsSql,
  shareSql,
  stateOfSharesSql,
  unshareSql,
} from './steps.sql.ts';

export const SHARE_STEPS: readonly Step[] = [share];
export const UNSHARE_STEPS: readonly Step[] = [takeBack];

/** The body, whose form the gateway has checked. */
function givenIn({ body }: Write): GivenShare {
  const { principalType, principalId, access, reason } = body;
  if (typeof principalId !== 'string' || !isPrincipalType(principalType) || (access !== 'read' && access !== 'edit'))
    throw new PlatformError('REQUEST_MALFORMED', 'A share has principalType, principalId and access.');
  return {
    principalType,
    principalId: principalType === 'user' ? principalId.toLowerCase() : principalId,
    access,
    reason: typeof reason === 'string' ? reason : null,
  };
}

const isPrincipalType = (value: unknown): value is Share['principalType'] =>
  value === 'user' || value === 'role' || value === 'group';

/**
 * Claims the key and locks the record for who may share it. False: the key had been used before, and `reply` is what it
 * stands for.
 */
async function lockRecord(write: Write): Promise<boolean> {
  const row = await write.unit.tx.one<LockRow & { mayShare: boolean }>(lockForShareSql(write));
  if (!(await readLock(write, row))) return false;
  if (!row.mayShare) throw sharingDenied();
  return true;
}

async function share(write: Write): Promise<void> {
  const given = givenIn(write);
  if (!(await lockRecord(write))) return;
  const { isUser, others } = await write.unit.tx.one<{ isUser: boolean; others: number }>(
    stateOfSharesSql(write, given),
  );
  refuseContent(write, given, isUser);
  if (others >= LIMITS.record_shares_max)
    throw new PlatformError('TOO_MANY_ITEMS', `A record may have at most ${LIMITS.record_shares_max} shares.`, {
      details: { max: LIMITS.record_shares_max },
    });
  if (isUser && given.principalType === 'user') await noticeUser(write, 'recordShared', given.principalId);
  const { body } = await write.unit.commit<{ body: string }>(
    shareSql(write, { ...given, reason: given.reason?.normalize('NFC') ?? null }),
  );
  write.reply = { status: 201, headers: {}, body: Buffer.from(body) };
}

async function takeBack(write: Write): Promise<void> {
  const shareId = (write.call.path['shareId'] ?? '').toLowerCase();
  const id = isUuid(shareId) ? shareId : null;
  if (!(await lockRecord(write))) return;
  const { exists } = await write.unit.tx.one<{ exists: boolean }>(shareExistsSql(write, id));
  if (!exists) throw new PlatformError('RECORD_NOT_FOUND', 'The record has no such share.');
  await write.unit.commit(unshareSql(write, id));
  write.reply = { status: 204, headers: {}, body: null };
}

/** 422 with all reasons against the share. */
function refuseContent({ view, object }: Write, given: GivenShare, isUser: boolean): void {
  const { principalType, principalId, reason } = given;
  const { roles, groups } = view.snapshot;
  const problems = [];
  const refusal = standardObject(object)?.shareRefusal;
  if (refusal) problems.push(violation('', 'REFERENCE_TYPE_INVALID', refusal));
  else if (object.sharingDefault === 'controlledByParent')
    problems.push(
      violation('', 'REFERENCE_TYPE_INVALID', `Records of ${object.apiName} follow their parent: share the parent.`),
    );
  const known =
    principalType === 'user' ? isUser : Object.hasOwn(principalType === 'role' ? roles : groups, principalId);
  if (!known) problems.push(violation('/principalId', 'REFERENCE_NOT_FOUND', `There is no such ${principalType}.`));
  const unfit = reason === null ? null : textProblem(reason);
  if (unfit !== null) problems.push(violation('/reason', 'FIELD_FORMAT_INVALID', `The reason ${unfit}`));
  if (problems.length > 0) throw validationFailed(problems, 'shared');
}
