import { codeOf } from '../lib/errors/thrown.ts';

/** OpenSSL's error codes for a certificate chain that no trusted authority has signed. */
const UNTRUSTED =
  /^(?:UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT)|(?:DEPTH_ZERO_)?SELF_SIGNED_CERT|CERT_UNTRUSTED|CERT_SIGNATURE_FAILURE)/;

export const isUntrustedCertificate = (error: unknown): boolean => UNTRUSTED.test(codeOf(error) ?? '');
