/**
 * New ids for users. The id of a user is one of the whole installation, because tokens name a user by it: where one is
 * taken, the users of the imported tenant get others, wherever they are named. Pure.
 */
import { createHash } from 'node:crypto';

/** As PostgreSQL writes them. */
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
/** Behind the time and the version of a UUID. */
const REST_AT = 'tttttttt-tttt-v'.length;

/** The id that a user gets in a tenant: of the same time, so that users stay in their order. */
export function newUserId(tenantId: string, userId: string): string {
  const digest = createHash('sha256').update(`${tenantId}/${userId}`).digest('hex');
  const variant = '89ab'.charAt(Number.parseInt(digest.charAt(3), 16) & 3);
  return `${userId.slice(0, REST_AT)}${digest.slice(0, 3)}-${variant}${digest.slice(4, 7)}-${digest.slice(7, 19)}`;
}

/** Puts the new ids of users into the JSON of a row. */
export class UserIds {
  readonly #ids: ReadonlyMap<string, string>;

  constructor(tenantId: string, userIds: Iterable<string>) {
    this.#ids = new Map([...userIds].map((id) => [id, newUserId(tenantId, id)]));
  }

  renamed(text: string): string {
    return text.replace(UUID, (id) => this.#ids.get(id) ?? id);
  }
}
