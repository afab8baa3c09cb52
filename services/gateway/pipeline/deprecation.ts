/**
 * Operations that are going to be gone: what their answers say, and when they are. Pure.
 * Source: docs/reference/versioning.md#deprecation.
 */
import type { Deprecation, Operation } from '../../../lib/operation.ts';

const DAY_MS = 86_400_000;

const startOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);

/** There is no such operation any more. */
export const isPastSunset = ({ deprecated }: Operation, now: number): boolean =>
  deprecated !== undefined && now >= startOf(deprecated.sunset);

/** Names and values of the headers of RFC 9745 and RFC 8594, with links below the address of the documents. */
export function deprecationHeaders(
  { since, sunset, replacement, documentation }: Deprecation,
  documents: string,
): string[] {
  const links = [
    `<${documents}/${documentation}>; rel="deprecation"; type="text/html"`,
    `<${documents}/reference/versioning>; rel="sunset"; type="text/html"`,
    ...(replacement === null
      ? []
      : [`<${documents}/operations/${replacement}>; rel="successor-version"; type="text/html"`]),
  ];
  return [
    ...['Deprecation', `@${startOf(since) / 1_000}`],
    ...['Sunset', new Date(startOf(sunset)).toUTCString()],
    ...['Link', links.join(', ')],
  ];
}

/** The same as a sentence of the description. */
export function deprecationNotice({ since, sunset, replacement }: Deprecation): string {
  const instead = replacement === null ? 'Nothing takes its place.' : `Use \`${replacement}\` in its place.`;
  const last = new Date(startOf(sunset) - DAY_MS).toISOString().slice(0, 10);
  return `Deprecated since ${since}; there until ${last}. ${instead}`;
}
