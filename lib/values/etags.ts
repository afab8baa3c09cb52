/** Entity tags in conditional headers (RFC 9110 section 13.1). */

const STRONG_ETAGS = /^"[\x21\x23-\x7e]*"(?:[ \t]*,[ \t]*"[\x21\x23-\x7e]*")*$/;

export const IF_MATCH_RULE =
  'If-Match must be one or more strong ETags, such as "1a"; * and weak tags are not accepted.';

/** The tags of an If-Match header; null when it has others than strong ones: a write never happens without knowing what it changes. */
export function strongEtags(ifMatch: string): string[] | null {
  const text = ifMatch.trim();
  return STRONG_ETAGS.test(text) ? (text.match(/"[^"]*"/g) ?? []) : null;
}

/** True when If-None-Match names the tag; weak comparison (RFC 9110 section 13.1.2). */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((tag) => {
    const given = tag.trim();
    return given === '*' || given === etag || given === `W/${etag}`;
  });
}
