/**
 * The revision that a caller has read, from whichever place names it. Source: docs/reference/analytics.md#revisions.
 */
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import type { OperationHeaders } from '../../../lib/operation.ts';

/** The ETag of any viewer: who may change the dashboard by now may have read it when they only looked. */
const REVISION_TAG = /^"r([1-9]\d{0,9})(?:-[\w-]{12})?"$/;

/**
 * The expected revision of a change. The gateway has compared query and X-Expected-Revision; body and If-Match must say
 * the same. Throws EXPECTED_REVISION_REQUIRED, PARAMETER_CONFLICT or IF_MATCH_INVALID.
 */
export function expectedRevisionOf(
  { expectedRevision, ifMatch }: Pick<OperationHeaders, 'expectedRevision' | 'ifMatch'>,
  body: { readonly expectedRevision?: number } | null,
): number {
  const given: (readonly [pointer: string, revision: number])[] = [];
  if (body?.expectedRevision !== undefined) given.push(['/expectedRevision', body.expectedRevision]);
  if (expectedRevision !== undefined) given.push(['header:X-Expected-Revision', expectedRevision]);
  if (ifMatch !== undefined) {
    const revision = REVISION_TAG.exec(ifMatch)?.[1];
    if (revision === undefined)
      throw refusal('IF_MATCH_INVALID', 'header:If-Match', 'If-Match of a dashboard is its ETag, such as "r4".');
    given.push(['header:If-Match', Number(revision)]);
  }
  const [first] = given;
  if (!first)
    throw refusal(
      'EXPECTED_REVISION_REQUIRED',
      body === null ? 'header:X-Expected-Revision' : '/expectedRevision',
      'The revision that was read is required: expectedRevision, X-Expected-Revision or If-Match.',
    );
  const other = given.find(([, revision]) => revision !== first[1]);
  if (other) throw refusal('PARAMETER_CONFLICT', other[0], 'The expected revisions of the request differ.');
  return first[1];
}

const refusal = (code: ErrorCode, pointer: string, message: string): PlatformError =>
  new PlatformError(code, message, { errors: [violation(pointer, code, message)] });

/** 412 unless the dashboard still has the revision that the caller has read. */
export function requireRevision(expectedRevision: number, currentRevision: number): void {
  if (expectedRevision !== currentRevision)
    throw new PlatformError('REVISION_MISMATCH', 'The dashboard has changed since it was read.', {
      details: { expectedRevision, currentRevision },
    });
}
