/** The frame of mutations that take bytes, or look at them, before they begin. */
import { hash } from 'node:crypto';
import type { RequestContext } from '../../lib/context.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import { answerOf, findKey, idempotencyKey } from '../../mixins/mutation/key.ts';
import { mutate } from '../../mixins/mutation/mutate.ts';
import type { Unit } from '../../mixins/mutation/unit.ts';
import type { FilesDeps } from './deps.ts';

/** The outcome of an earlier execution of the request, before bytes are asked for in vain; null: there is none. */
export async function earlierReply(
  { database }: FilesDeps,
  request: RequestContext,
  call: OperationCall,
): Promise<OperationReply | null> {
  const key = idempotencyKey(call, request);
  return answerOf(await database.tenant(request.tenantId, (tx) => findKey(tx, key)), key);
}

/** The call with what its headers say in its fingerprint. */
export const withHeaders = <Call extends OperationCall & { fingerprint: string }>(
  call: Call,
  ...said: unknown[]
): Call => ({
  ...call,
  fingerprint: hash('sha256', JSON.stringify([call.fingerprint, ...said])),
});

export const change = (
  { database }: FilesDeps,
  request: RequestContext,
  call: OperationCall,
  work: (unit: Unit) => Promise<OperationReply>,
): Promise<OperationReply> => mutate(database, request, call, { role: { service: 'files' }, work });

/** An event about a file. */
export const emitFile = (
  unit: Pick<Unit, 'emit'>,
  kind: 'ready' | 'quarantined' | 'deleted',
  { fileId, sha256 }: { readonly fileId: string; readonly sha256: string },
): void => unit.emit({ type: `files.file.${kind}`, recordId: fileId, data: { fileId, sha256 } });
