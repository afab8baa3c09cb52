/** Order of texts by code point: neither by UTF-16 units, where 🙂 would stand before ﬁ, nor by a locale. */

/** Negative, zero or positive, as `sort` wants it. */
export function byCodePoint(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x === y) continue;
    const surrogates = [x, y].map((unit) => unit >= 0xd800 && unit <= 0xdfff);
    if (surrogates[0] !== surrogates[1]) return surrogates[0] ? 1 : -1;
    return x - y;
  }
  return a.length - b.length;
}

/** The code point of the first character of a text that has one. */
export function firstCodePoint(text: string): number {
  const code = text.codePointAt(0);
  if (code === undefined) throw new Error('Assertion failed: an empty text has no first character');
  return code;
}
