/** Refusals about approvals that several services answer with. */
import { PlatformError } from './platform-error.ts';

/** People cannot be asked about what they cannot be shown whole. */
export const approvalTooLarge = (part: 'preview' | 'body', maxBytes: number): PlatformError =>
  new PlatformError('APPROVAL_TOO_LARGE', `The ${part} of the request is longer than ${maxBytes} bytes.`, {
    details: { part, maxBytes },
  });
