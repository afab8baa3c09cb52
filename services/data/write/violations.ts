/** What a write says about values that it refuses. */

import type { ViolationCode } from '../../../lib/errors/catalogue.ts';
import { PlatformError, type Violation, violation } from '../../../lib/errors/platform-error.ts';
import { pointerPart } from '../../../lib/errors/pointer.ts';

/** RFC 6901 pointer to a member of the body. */
export const pointerTo = (name: string): string => `/${pointerPart(name)}`;

/** What is wrong with a value that the caller can neither see nor have sent. */
export const unseenValue = (code: ViolationCode): Violation =>
  violation('', code, 'A value that this connection cannot set does not go together with the others.');

/** 422 with everything that is wrong. */
export function validationFailed(violations: readonly Violation[], done = 'saved'): PlatformError {
  const count = violations.length === 1 ? '1 problem' : `${violations.length} problems`;
  return new PlatformError('VALIDATION_FAILED', `The record was not ${done}: ${count}.`, { errors: [...violations] });
}
