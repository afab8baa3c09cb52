/** The frame of changes of files. */
import { hash } from 'node:crypto';
import type { RequestContext } from '../../lib/context.ts';
import type { OperationCall, OperationReply } from '../../lib/operation.ts';
import { mutate } from '../../mixins/mutation/mutate.ts';
import type { Unit } from '../../mixins/mutation/unit.ts';
import type { FilesDeps } from './deps.ts';

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
