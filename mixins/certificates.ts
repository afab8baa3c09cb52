/** What OpenSSL finds wrong with the chain of a server's certificate: no authority that we trust has signed it. */
const UNTRUSTED =
  /^(?:UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT)|(?:DEPTH_ZERO_)?SELF_SIGNED_CERT|CERT_UNTRUSTED|CERT_SIGNATURE_FAILURE)/;

export const isUntrustedCertificate = (error: unknown): boolean =>
  UNTRUSTED.test((error as { code?: string } | null)?.code ?? '');
