/** Violations of values that a write refuses. */

import type { ViolationCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { pointerPart } from '../../../lib/errors/pointer.ts';
import { VIOLATIONS_MAX } from '../../../lib/errors/violation-list.ts';

/** RFC 6901 pointer to a member of the body. */
export const pointerTo = (name: string): string => `/${pointerPart(name)}`;

/** The violation of a value that the caller can neither see nor have sent. */
export const unseenValue = (code: ViolationCode): Violation =>
  violation('', code, 'A value you cannot set conflicts with the values you sent.');

/** 422 with all violations that an answer shows. */
export function validationFailed(violations: readonly Violation[], done = 'saved'): PlatformError {
  const more = violations.length > VIOLATIONS_MAX;
  const count = more ? `more than ${VIOLATIONS_MAX}` : violations.length;
  return new PlatformError(
    'VALIDATION_FAILED',
    `The record was not ${done}: ${count} ${violations.length === 1 ? 'problem' : 'problems'}.`,
    { errors: violations.slice(0, VIOLATIONS_MAX) },
  );
}
