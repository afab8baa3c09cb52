/** Digests in headers (RFC 9530); SHA-256 alone. */

const SHA_256 = /^sha-256=:([A-Za-z0-9+/]{43}=):$/;

/** The SHA-256 of a Content-Digest header in lower-case hex; null: it has none that is well formed. */
export function sha256Of(contentDigest: string): string | null {
  for (const member of contentDigest.split(',')) {
    const [, base64] = SHA_256.exec(member.trim()) ?? [];
    if (base64 !== undefined) return Buffer.from(base64, 'base64').toString('hex');
  }
  return null;
}

/** The member of a digest header for a SHA-256 in hex. */
export const digestHeader = (sha256: string): string => `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`;
