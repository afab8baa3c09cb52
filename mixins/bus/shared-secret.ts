import { membersOf } from '../../lib/json/objects.ts';

/**
 * Processes know each other by the fingerprint of their PLATFORM_SECRET: one that seals what the others cannot open does
 * not join them. The database says so as well, but not of two that replace the same secret by different ones, nor of one
 * that has none and was there first. Source: docs/reference/configuration.md#the-secret.
 */

/** Of a process without a secret. */
const NONE = 'none';

/** Announced by a process: fingerprints of the secret that it seals with, and of those that it also opens. */
export interface SecretMetadata {
  readonly secrets: readonly string[];
}

export const secretMetadata = (fingerprints: readonly string[]): SecretMetadata => ({
  secrets: fingerprints.length > 0 ? fingerprints : [NONE],
});

/** Of a node's announcement; null: it has none, such as that of a console. */
function announced(metadata: unknown): readonly string[] | null {
  const { secrets } = membersOf(metadata);
  const isList = Array.isArray(secrets) && secrets.length > 0 && secrets.length <= 2;
  return isList && secrets.every((one) => typeof one === 'string') ? secrets : null;
}

/**
 * One of them opens what the other seals: the same secret, or a step of its replacement, in which the older ones cannot
 * open yet what is new.
 */
export function shareSecret({ secrets }: SecretMetadata, metadata: unknown): boolean {
  const others = announced(metadata);
  if (others === null) return true;
  const [own, other] = [secrets.slice(0, 1), others.slice(0, 1)];
  return own.some((one) => others.includes(one)) || other.some((one) => secrets.includes(one));
}

/** Why the process that starts does not join. */
export const otherSecret = ({ secrets }: SecretMetadata, node: string): string =>
  secrets[0] === NONE
    ? `PLATFORM_SECRET is not set, but ${node} on the same bus has one: set the same here.`
    : `This process has another PLATFORM_SECRET than ${node} on the same bus, or that one has none: set the same everywhere.`;
