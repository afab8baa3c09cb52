/** Versions of what a service keeps, as ETags: a change names the one that it has read. */
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { strongEtags } from '../../lib/values/etags.ts';

interface Versioned {
  readonly version: number;
}

export const etagOf = ({ version }: Versioned): string => `"${version.toString(36)}"`;

/**
 * Refuses a change of another version than the one that is kept. `what`: its kind, such as `file`.
 * @throws PlatformError 412 ETAG_MISMATCH.
 */
export function requireVersion(kept: Versioned, ifMatch: string, what: string): void {
  const currentETag = etagOf(kept);
  if (!strongEtags(ifMatch)?.includes(currentETag))
    throw new PlatformError('ETAG_MISMATCH', `The ${what} has changed since it was read.`, {
      details: { currentETag },
    });
}
