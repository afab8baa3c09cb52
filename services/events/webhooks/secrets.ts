/** The secrets of a subscription: sealed in the database, readable where deliveries are signed. */
import { platformTime } from '../../../lib/values/clock.ts';
import { type Seal, sealed, unsealed } from '../../../lib/values/sealed.ts';
import type { EventsDeps } from '../deps.ts';
import { newSecret, type Signing } from './signature.ts';
import type { KeptSecret, SubscriptionRow } from './subscription.sql.ts';

const PURPOSE = 'webhook secret';
/** An earlier secret signs as well, for so long. */
const OVERLAP_MS = 24 * 3_600_000;

const sealOf = ({ sealingKeys }: Pick<EventsDeps, 'sealingKeys'>, tenantId: string, subscriptionId: string): Seal => ({
  keys: sealingKeys,
  now: platformTime(),
  tenantId,
  userId: subscriptionId,
  clientId: '',
});

/** A new secret, and all that are kept with it. `secret`: what its receiver is told; null: its public key is enough. */
export function addSecret(
  deps: Pick<EventsDeps, 'sealingKeys'>,
  tenantId: string,
  subscriptionId: string,
  signing: Signing,
  earlier: readonly KeptSecret[] = [],
): { readonly secret: string | null; readonly publicKey: string | null; readonly secrets: readonly KeptSecret[] } {
  const now = platformTime();
  const made = newSecret(signing);
  const secret = sealed({ secret: made.secret }, sealOf(deps, tenantId, subscriptionId), PURPOSE);
  const kept = earlier.filter(({ until }) => until === null).map((one) => ({ ...one, until: now + OVERLAP_MS }));
  // A private key verifies nothing, and whoever has it can forge deliveries.
  const shown = made.publicKey === null ? made.secret : null;
  return { ...made, secret: shown, secrets: [{ secret, until: null }, ...kept] };
}

/** The secrets that are good now, the newest first. */
export function openSecrets(
  deps: Pick<EventsDeps, 'sealingKeys'>,
  tenantId: string,
  { subscriptionId, secrets }: SubscriptionRow,
): string[] {
  const seal = sealOf(deps, tenantId, subscriptionId);
  return secrets.flatMap(({ secret, until }) => {
    if (until !== null && until < seal.now) return [];
    const opened = unsealed<{ secret: string }>(secret, seal, PURPOSE);
    if (!opened) throw new Error('A secret of a webhook was sealed with a key that is not there any more.');
    return [opened.secret];
  });
}
