import { PlatformError } from './platform-error.ts';

/** REQUEST_TOO_LARGE for a body of more than `maxBytes`. `remedy`: a sentence that says what to do instead. */
export const tooLarge = (maxBytes: number, remedy?: string): PlatformError =>
  new PlatformError(
    'REQUEST_TOO_LARGE',
    `The body exceeds the limit of ${maxBytes} bytes.${remedy === undefined ? '' : ` ${remedy}`}`,
    { details: { maxBytes } },
  );
