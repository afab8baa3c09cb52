/** The body of a DataRow message (PostgreSQL protocol 3.0) with these column texts. */
export function dataRow(texts: readonly (string | null)[]): Buffer {
  const parts: Buffer[] = [];
  const number = (value: number, bytes: 2 | 4): void => {
    const buffer = Buffer.alloc(bytes);
    if (bytes === 2) buffer.writeInt16BE(value);
    else buffer.writeInt32BE(value);
    parts.push(buffer);
  };
  number(texts.length, 2);
  for (const text of texts) {
    const bytes = text === null ? null : Buffer.from(text);
    number(bytes?.length ?? -1, 4);
    if (bytes) parts.push(bytes);
  }
  return Buffer.concat(parts);
}
