/** Ranges of bytes that a client asks for (RFC 9110 section 14). */

interface Range {
  readonly from: number;
  readonly bytes: number;
}

/**
 * The part of `size` bytes that a Range header names; null: all, as also where it is malformed, of another unit or names
 * several parts, which a server may ignore; `none`: it begins behind the end.
 */
export function rangeOf(header: string | undefined, size: number): Range | 'none' | null {
  const [, first = '', last = ''] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(header ?? '') ?? [];
  if (first === '' && last === '') return null;
  if (first === '') {
    const bytes = Math.min(Number(last), size);
    return bytes === 0 ? 'none' : { from: size - bytes, bytes };
  }
  const from = Number(first);
  const to = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < from) return null;
  return from >= size ? 'none' : { from, bytes: to - from + 1 };
}
