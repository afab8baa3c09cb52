/** The frame of mutations that take bytes, or look at them, before they begin. */
import { hash } from 'node:crypto';
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
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

/** The work, or the outcome of an earlier execution of the request, after which the work itself may be refused. */
export async function orEarlier(
  deps: FilesDeps,
  request: RequestContext,
  call: OperationCall,
  work: () => Promise<OperationReply>,
): Promise<OperationReply> {
  try {
    return await work();
  } catch (error) {
    const earlier = error instanceof PlatformError && error.status < 500 && (await earlierReply(deps, request, call));
    if (earlier) return earlier;
    throw error;
  }
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
