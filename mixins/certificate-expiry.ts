/**
 * When the certificates of a process expire: those in files that its settings name, and those of the servers that it is
 * connected to. An expired one stops no open connection, so nothing else shows it before the next connection or restart.
 * Files are read again when they change; servers are asked once an hour, because a connection may last for months.
 * Source: docs/reference/operations-cluster.md#certificates.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { DetailedPeerCertificate } from 'node:tls';
import type { CertificateFile } from '../config/certificates.ts';
import { platformTime } from '../lib/values/clock.ts';
import type { Metrics, Sample } from './metrics/metrics.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** As long before its end a certificate is a warning in the log, and an alert. */
const NOTICE_MS = 21 * DAY_MS;

export interface CertifiedServer {
  /** When the certificate of the newest connection expires, milliseconds since 1970; null: there was none. */
  readonly certificateExpiresAt: number | null;
  /** Opens a connection of its own, which shows the present certificate. */
  meet(): Promise<void>;
}

export interface CertificateSources {
  readonly files: readonly CertificateFile[];
  /** By the variable that has their address. */
  readonly servers: ReadonlyMap<string, CertifiedServer>;
}

interface Expiry {
  readonly setting: string;
  readonly kind: CertificateFile['kind'] | 'server';
  readonly expiresAt: number;
}

export class CertificateExpiries {
  readonly #sources: CertificateSources;
  readonly #warn: (message: string) => void;
  /** By path: the certificates of a file as it was last. */
  readonly #read = new Map<string, { readonly version: string; readonly dates: readonly number[] }>();
  readonly #warnedAt = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;

  constructor(sources: CertificateSources, warn: (message: string) => void, everyMs = HOUR_MS) {
    this.#sources = sources;
    this.#warn = warn;
    this.#report();
    this.#timer = setInterval(() => void this.#look(), everyMs).unref();
  }

  register(metrics: Metrics): void {
    metrics.gauges(
      'erp_certificate_expires_timestamp_seconds',
      'When a certificate that this process uses expires.',
      ['setting', 'kind'],
      () => this.#expiries().map(({ setting, kind, expiresAt }): Sample => [{ setting, kind }, expiresAt / 1_000]),
    );
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const servers = [...this.#sources.servers.values()].filter((server) => server.certificateExpiresAt !== null);
    // A server that cannot be reached, or is refused for its certificate, is reported by what needs it.
    await Promise.allSettled(servers.map((server) => server.meet()));
    this.#report();
  }

  #expiries(): Expiry[] {
    const { files, servers } = this.#sources;
    const found: Expiry[] = [];
    for (const { setting, kind, path } of files) {
      const dates = this.#datesIn(path);
      // Of authorities a later one takes over from an earlier one in the same file; the process presents its whole chain.
      if (dates.length > 0) found.push({ setting, kind, expiresAt: (kind === 'own' ? Math.min : Math.max)(...dates) });
    }
    for (const [setting, { certificateExpiresAt: expiresAt }] of servers)
      if (expiresAt !== null) found.push({ setting, kind: 'server', expiresAt });
    return found;
  }

  #datesIn(path: string): readonly number[] {
    try {
      const { mtimeMs, ino, size } = statSync(path);
      const version = `${mtimeMs} ${ino} ${size}`;
      const known = this.#read.get(path);
      if (known?.version === version) return known.dates;
      const dates = certificatesIn(readFileSync(path, 'utf8')).map(({ validTo }) => Date.parse(validTo));
      this.#read.set(path, { version, dates });
      return dates;
    } catch {
      // Half written, or away for a moment; a file that stays unreadable is reported by what needs it.
      return this.#read.get(path)?.dates ?? [];
    }
  }

  /** At most one line a day for each certificate. */
  #report(): void {
    const now = platformTime();
    for (const { setting, kind, expiresAt } of this.#expiries()) {
      const name = `${setting} ${kind}`;
      if (expiresAt - now > NOTICE_MS) this.#warnedAt.delete(name);
      else if (now - (this.#warnedAt.get(name) ?? 0) >= DAY_MS) {
        this.#warnedAt.set(name, now);
        const expired = expiresAt <= now;
        const days = Math.floor(Math.abs(expiresAt - now) / DAY_MS);
        this.#warn(
          `The certificate of ${setting} (${kind}) ${expired ? `expired ${days} days ago` : `expires in ${days} days`}, ` +
            `at ${new Date(expiresAt).toISOString()}: new connections fail from then on; replace it.`,
        );
      }
    }
  }
}

const certificatesIn = (pem: string): X509Certificate[] =>
  [...pem.matchAll(/BEGIN CERTIFICATE-----([^-]+)/g)].map(
    ([, base64 = '']) => new X509Certificate(Buffer.from(base64, 'base64')),
  );

/** The earliest end in a verified chain; null: the peer showed no certificate. */
export function chainExpiresAt(certificate: DetailedPeerCertificate | null | undefined): number | null {
  const dates: number[] = [];
  const seen = new Set<string>();
  for (let next = certificate; next?.valid_to && !seen.has(next.fingerprint256); next = next.issuerCertificate) {
    seen.add(next.fingerprint256);
    dates.push(Date.parse(next.valid_to));
  }
  return dates.length === 0 ? null : Math.min(...dates);
}
