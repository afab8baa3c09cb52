/** Browsers and networks from which users have signed in. */
import { createHash } from 'node:crypto';
import { platformTime } from '../../../lib/values/clock.ts';
import { homeNetworkOf } from '../../../lib/values/network.ts';
import { formatTimestamp } from '../../../lib/values/time.ts';
import type { Database } from '../../../mixins/database/database.ts';
import type { MailDetails } from '../mail/kinds.ts';
import type { Outbox } from '../mail/outbox.ts';
import {
  type BeforeSignIn,
  beforeSignIn,
  knownOrigins,
  noteCompleteSignIn,
  rememberOrigins,
} from './known-origins.sql.ts';

/** Maximum per user; from further places they wait like a stranger while guesses are limited. */
const KEPT_PER_USER = 20;

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** By what the value of a browser's cookie, or a network, is known; never by itself. */
export const browserOrigin = (browser: string): Buffer => digest(`browser ${browser}`);
export const networkOrigin = (address: string): Buffer => digest(`network ${homeNetworkOf(address)}`);

export class KnownOrigins {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Those of the origins that the user has signed in from, in the order of the question. */
  async known(tenantId: string, userId: string, origins: readonly Buffer[]): Promise<Buffer[]> {
    const rows = await this.#database.shared('auth', tenantId, (tx) =>
      tx.all<{ origin: Buffer }>(knownOrigins(tenantId, userId, origins)),
    );
    return origins.filter((origin) => rows.some((row) => origin.equals(row.origin)));
  }

  /**
   * Remembers where a user has just signed in. Who had signed in before, and not in this browser, gets a mail about it.
   */
  async signedIn(
    { tenantId, userId }: { tenantId: string; userId: string },
    { network, browser, details }: { network: Buffer; browser: Buffer | null; details: MailDetails },
    outbox: Outbox,
  ): Promise<void> {
    const origins = browser === null ? [network] : [network, browser];
    await this.#database.shared('auth', tenantId, async (tx) => {
      const before = await tx.first<BeforeSignIn>(beforeSignIn(tenantId, userId, browser));
      if (before?.signedIn && !before.knownBrowser) {
        const at = formatTimestamp(platformTime());
        await outbox.add(tx, {
          tenantId,
          userId,
          kind: 'newSignIn',
          address: before.email,
          details: { at, ...details },
        });
      }
      await tx.query(noteCompleteSignIn(tenantId, userId));
      for (const statement of rememberOrigins(tenantId, userId, origins, KEPT_PER_USER)) await tx.query(statement);
    });
  }
}
