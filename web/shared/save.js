/** Gives the user a file that the page has made. */

/** Text is moved into blobs of this size, which the browser may keep on disk. */
const PIECE_CHARS = 4 * 1024 * 1024;

/**
 * @param {string} name
 * @param {string} type
 * @param {AsyncIterable<string>} texts
 */
export async function saveTexts(name, type, texts) {
  /** @type {Blob[]} */
  const pieces = [];
  let open = '';
  for await (const text of texts) {
    open += text;
    if (open.length < PIECE_CHARS) continue;
    pieces.push(new Blob([open]));
    open = '';
  }
  const address = URL.createObjectURL(new Blob([...pieces, open], { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // Revoked late: the download may not have started yet.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
