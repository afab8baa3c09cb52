/** Entity tags, and conditional headers that name them (RFC 9110 sections 8.8.3 and 13.1). */
import { hash } from 'node:crypto';

const NEXT_STRONG_ETAG = /[ \t]*("[\x21\x23-\x7e]*")[ \t]*(,|$)/gy;

/** The tag of an answer that is this body, and no other. */
export const strongEtag = (body: string | Uint8Array): string => `"${hash('sha256', body, 'base64url').slice(0, 22)}"`;

/** A client names the version that it read, or the few that it would accept. */
const IF_MATCH_TAGS_MAX = 10;

export const IF_MATCH_RULE =
  `If-Match must be one strong ETag, such as "1a", or up to ${IF_MATCH_TAGS_MAX} of them separated by commas; ` +
  '* and weak tags are not accepted.';

/**
 * The tags of an If-Match header; null when it has too many, or others than strong ones: a write never happens without
 * knowing what it changes.
 */
export function strongEtags(ifMatch: string): string[] | null {
  const tags: string[] = [];
  for (const [, tag = '', separator] of ifMatch.matchAll(NEXT_STRONG_ETAG)) {
    if (tags.length === IF_MATCH_TAGS_MAX) return null;
    tags.push(tag);
    if (separator === '') return tags;
  }
  return null;
}

/** True when If-None-Match names the tag; weak comparison (RFC 9110 section 13.1.2). */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((tag) => {
    const given = tag.trim();
    return given === '*' || given === etag || given === `W/${etag}`;
  });
}
