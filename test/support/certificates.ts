/** Certificates of servers of the tests. */

/** PEM; who trusts `cert` trusts the server. */
export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

export async function selfSigned(host: string, expiresAt?: Date): Promise<Certificate> {
  const { SubjectAlternativeNameExtension, X509CertificateGenerator } = await import('@peculiar/x509');
  const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  const cert = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${host}`,
    ...(expiresAt ? { notBefore: new Date(0), notAfter: expiresAt } : {}),
    keys,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    extensions: [new SubjectAlternativeNameExtension([{ type: 'dns', value: host }])],
  });
  const key = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  return { key: `-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----`, cert: cert.toString('pem') };
}
