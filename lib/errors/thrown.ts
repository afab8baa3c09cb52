/** Reads what was thrown, which need not be an Error. */

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The code that errors of Node, PostgreSQL and most libraries carry. */
export const codeOf = (error: unknown): string | undefined =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;

export const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
