/** Files with certificates that the settings of a process name. Source: docs/reference/operations-cluster.md#certificates. */

/** `authority`: certificates that others are checked against; `own`: the certificate that the process presents. */
export interface CertificateFile {
  /** The variable that names the file. */
  readonly setting: string;
  readonly kind: 'authority' | 'own';
  readonly path: string;
}

const VARIABLES: Readonly<Record<string, CertificateFile['kind']>> = {
  NODE_EXTRA_CA_CERTS: 'authority',
  NATS_CA_FILE: 'authority',
  NATS_CERT_FILE: 'own',
  SMTP_CA_FILE: 'authority',
  OTEL_EXPORTER_OTLP_CERTIFICATE: 'authority',
  OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: 'own',
};
const PARAMETERS: Readonly<Record<string, CertificateFile['kind']>> = { sslrootcert: 'authority', sslcert: 'own' };

/** `databases`: addresses by the variable that has them. */
export function certificateFiles(
  env: Readonly<Record<string, string | undefined>>,
  databases: Readonly<Record<string, string | null>>,
): CertificateFile[] {
  const files = Object.entries(VARIABLES).map(([setting, kind]) => ({ setting, kind, path: env[setting] || null }));
  for (const [setting, url] of Object.entries(databases))
    for (const [parameter, kind] of Object.entries(PARAMETERS))
      files.push({ setting, kind, path: url === null ? null : new URL(url).searchParams.get(parameter) });
  return files.flatMap(({ path, ...file }) => (path ? [{ ...file, path }] : []));
}
