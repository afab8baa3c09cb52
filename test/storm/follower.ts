/** Another system that keeps a copy of an object's records, as docs/guides/follow-changes.md tells it to. */
import type { Client } from './client.ts';

interface Entry {
  readonly id: string;
  readonly change: 'upserted' | 'deleted' | 'accessLost';
  readonly etag: string | null;
}

export class Follower {
  readonly client: Client;
  readonly object: string;
  /** Tags by id. */
  readonly copy = new Map<string, string>();
  /** Times that the cursor was outdated and the copy was made anew. */
  restarts = 0;
  #cursor = '';

  private constructor(client: Client, object: string) {
    this.client = client;
    this.object = object;
  }

  static async begin(client: Client, object: string): Promise<Follower> {
    const follower = new Follower(client, object);
    await follower.#startOver();
    return follower;
  }

  /** Takes in what has changed since the last time. */
  async follow(): Promise<void> {
    for (let cursor: string | null = this.#cursor; cursor; ) {
      const query = new URLSearchParams({ cursor, take: '200' });
      const { status, body, text } = await this.client.get(`/data/${this.object}/changes?${query}`);
      if (status === 400 && body.code === 'SYNC_TOKEN_EXPIRED') {
        this.restarts++;
        return this.#startOver();
      }
      if (status !== 200) throw new Error(`Changes of ${this.object}: ${status} ${text}`);
      for (const { id, change, etag } of body.records as Entry[])
        if (change === 'upserted') this.copy.set(id, etag!);
        else this.copy.delete(id);
      this.#cursor = body.resumeCursor;
      cursor = body.nextCursor;
    }
  }

  /** Tags of all records that the user sees, by id. */
  async list(): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query = new URLSearchParams({ take: '200', includeEtag: 'true', fields: 'id' });
      if (cursor) query.set('cursor', cursor);
      const { status, body, text } = await this.client.get(`/data/${this.object}?${query}`);
      if (status !== 200) throw new Error(`List of ${this.object}: ${status} ${text}`);
      for (const record of body.records) found.set(record.id, record._etag);
      cursor = body.nextCursor;
    }
    return found;
  }

  async #startOver(): Promise<void> {
    this.#cursor = (await this.client.get(`/data/${this.object}/changes`)).body.resumeCursor;
    const listed = await this.list();
    this.copy.clear();
    for (const [id, etag] of listed) this.copy.set(id, etag);
  }
}
