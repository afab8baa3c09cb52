/** Refusals of files that cannot be read. */
import { PlatformError } from '../../../lib/errors/platform-error.ts';

export const invalidData = (message: string, details?: Readonly<Record<string, unknown>>): PlatformError =>
  new PlatformError('BULK_DATA_INVALID', message, details ? { details: { ...details } } : {});

/** The text of a file in pieces; throws BULK_DATA_INVALID for what is not UTF-8. A byte order mark is left out. */
export async function* textOf(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    for await (const bytes of source) yield decoder.decode(bytes, { stream: true });
    yield decoder.decode();
  } catch (error) {
    if (error instanceof TypeError)
      throw invalidData('The file is not valid UTF-8: save it in this encoding, as “CSV UTF-8” in spreadsheets.');
    throw error;
  }
}
