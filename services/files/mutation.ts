/** The frame of mutations that take bytes, or look at them, before they begin. */
import { hash } from 'node:crypto';
import type { RequestContext } from '../../lib/context.ts';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import { answerOf, findKey, idempotencyKey } from '../../mixins/mutation/key.ts';
import { mutate } from '../../mixins/mutation/mutate.ts';
import type { Unit } from '../../mixins/mutation/unit.ts';
import type { FilesDeps } from './deps.ts';

/** The outcome of an earlier execution of the request, so that its bytes are not received again; null: there is none. */
export async function earlierReply(
  { database }: FilesDeps,
  request: RequestContext,
  call: OperationCall,
): Promise<OperationReply | null> {
  const key = idempotencyKey(call, request);
  return answerOf(await database.tenant(request.tenantId, (tx) => findKey(tx, key)), key);
}

/** Does the work. If it is refused because the same request was executed before, answers that outcome. */
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

/** The call, with `said` (values of headers) covered by its fingerprint. */
export const withHeaders = <Call extends OperationCall & { fingerprint: string }>(
  call: Call,
  ...said: unknown[]
): Call => ({
  ...call,
  fingerprint: hash('sha256', JSON.stringify([call.fingerprint, ...said])),
});

/** Runs a mutation of files, as the role of the service. */
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
