/** Pages of a list, by their cursors. The client and the command line share it. */

/** Every page from `cursor` on; `read` answers the page at a cursor, or the first one. */
export async function* pages<Page>(
  read: (cursor: string | undefined) => Promise<Page>,
  next: (page: Page) => string | null,
  cursor?: string,
): AsyncGenerator<Page, void, undefined> {
  for (let at = cursor; ; ) {
    const page = await read(at);
    yield page;
    const following = next(page);
    if (following === null) return;
    at = following;
  }
}
