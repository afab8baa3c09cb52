import { PlatformError } from './platform-error.ts';

/** REQUEST_TOO_LARGE for a body of more than `maxBytes`. */
export const tooLarge = (maxBytes: number): PlatformError =>
  new PlatformError('REQUEST_TOO_LARGE', `The body exceeds the limit of ${maxBytes} bytes.`, { details: { maxBytes } });
