/** The type that a file is served with: what its bytes show counts, and what its sender declares for plain text alone. */
import { fileTypeFromBuffer } from 'file-type';

/** Bytes at the beginning of a content that are examined. */
export const HEAD_BYTES = 4_100;

const UNKNOWN = 'application/octet-stream';
/** Texts that no browser runs or renders as a page. */
const PLAIN =
  /^(?:text\/(?:plain|csv|markdown|calendar|vcard|tab-separated-values)|application\/(?:json|yaml|x-ndjson))$/;
/** Types that a browser could run, however they are recognized. */
const ACTIVE = /html|svg|xml$|javascript|ecmascript/;

export async function contentTypeOf(declared: string | null, head: Uint8Array): Promise<string> {
  const found = await fileTypeFromBuffer(head).catch(() => undefined); // a damaged file is of no known type
  if (found) return ACTIVE.test(found.mime) ? UNKNOWN : found.mime;
  const [essence = ''] = (declared ?? '').toLowerCase().split(';', 1);
  const type = essence.trim();
  return PLAIN.test(type) && isText(head) ? type : UNKNOWN;
}

/** UTF-8 without control characters that no text has; its end may be in the middle of a character. */
function isText(head: Uint8Array): boolean {
  if (head.some((byte) => byte < 9 || (byte > 13 && byte < 27))) return false;
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true });
    return true;
  } catch {
    return false;
  }
}
