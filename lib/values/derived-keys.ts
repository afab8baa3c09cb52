/**
 * Keys that are derived from the secret of the deployment, one per purpose. While the secret is replaced there are two
 * of each: what is new is sealed with the first, what was sealed with the other one still opens.
 * Source: docs/reference/configuration.md#the-secret.
 */
import { hkdfSync } from 'node:crypto';

const KEY_BYTES = 32;

/** The deployment's secret; null when none is set. */
export interface DeploymentSecrets {
  readonly secret: string | null;
  /** Accepted besides while the secret is replaced, never used for anything new. */
  readonly previousSecret: string | null;
}

/** The keys of a purpose, the one for everything new first; none without a secret. */
export const derivedKeys = ({ secret, previousSecret }: DeploymentSecrets, purpose: string): Buffer[] =>
  (secret === null ? [] : [secret, ...(previousSecret === null ? [] : [previousSecret])]).map((one) =>
    Buffer.from(hkdfSync('sha256', one, '', purpose, KEY_BYTES)),
  );
