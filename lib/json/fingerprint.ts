/** Decides whether two mutations are the same request: docs/reference/http.md, "Idempotency". */
import { createHash, hash } from 'node:crypto';
import canonicalize from 'canonicalize';

export interface FingerprintParts {
  method: string;
  /** Path as routed, without the query. */
  path: string;
  /** Decoded names and values of the query, in any order. */
  query: readonly (readonly [string, string])[];
  ifMatch: string | undefined;
  expectedRevision: string | undefined;
  duplicateConfirmation: string | undefined;
  agentRunId: string | undefined;
  /** The parsed JSON body, or the raw bytes of any other body; undefined when there is none. */
  body: unknown;
}

/** Names and values sorted by code unit and percent-encoded, so that the order in the address does not matter. */
export function canonicalQuery(query: readonly (readonly [string, string])[]): string {
  return query
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .sort()
    .join('&');
}

/** SHA-256 in lower-case hex over the parts; bodies are compared in canonical form (RFC 8785). */
export const fingerprint = (parts: FingerprintParts): string => completeFingerprint(fingerprintHead(parts), parts.body);

/** All parts but the body, for requests whose body is parsed elsewhere. */
export const fingerprintHead = (parts: Omit<FingerprintParts, 'body'>): string =>
  `${parts.method}\n${parts.path}\n${canonicalQuery(parts.query)}\n${parts.ifMatch ?? ''}\n${parts.expectedRevision ?? ''}\n` +
  `${parts.duplicateConfirmation ?? ''}\n${parts.agentRunId ?? ''}\n`;

/** The fingerprint of a request from what `fingerprintHead` gave and its body. */
export function completeFingerprint(head: string, body: unknown): string {
  const hashed =
    body === undefined
      ? ''
      : body instanceof Uint8Array
        ? hash('sha256', body)
        : hash('sha256', canonicalize(body) ?? '');
  return fingerprintWithDigest(head, hashed);
}

/** The same of a body that is known by its SHA-256 (hex). */
export const fingerprintWithDigest = (head: string, sha256: string): string =>
  createHash('sha256').update(`${head}${sha256}`).digest('hex');
