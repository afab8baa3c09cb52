/** Where the contents of files are kept. Source: docs/reference/configuration.md. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A bucket; credentials are those that the SDK finds in the environment or gets from the machine. */
export interface S3Config {
  readonly by: 's3';
  readonly bucket: string;
  /** Before every key; empty, or with a slash at its end. */
  readonly prefix: string;
  /** null: Amazon's. */
  readonly endpoint: string | null;
  /** null: that of the environment. */
  readonly region: string | null;
  /** Callers reach the store by this address, so that they can be sent there for contents. */
  readonly redirects: boolean;
}

export type FilesConfig = { readonly by: 'folder'; readonly folder: string } | S3Config;

const PARAMETERS: ReadonlySet<string> = new Set(['region', 'endpoint', 'redirects']);
const FORM =
  'FILES_URL must be file:///<folder>, or s3://<bucket>/<prefix> with ?region=, ?endpoint= and ?redirects=true where needed';

/** Adds what is wrong to `problems`. */
export function readFiles(
  env: Readonly<Record<string, string | undefined>>,
  dataDir: string,
  problems: string[],
): FilesConfig {
  const inDataDir = { by: 'folder', folder: join(dataDir, 'files') } as const;
  const text = env['FILES_URL'];
  if (!text) return inDataDir;
  const url = URL.parse(text);
  if (url?.protocol === 'file:' && url.host === '' && url.search === '')
    return { by: 'folder', folder: fileURLToPath(url) };
  const unknown = [...(url?.searchParams.keys() ?? [])].filter((name) => !PARAMETERS.has(name));
  const redirects = url?.searchParams.get('redirects') ?? 'false';
  const endpoint = url?.searchParams.get('endpoint') ?? null;
  const isEndpoint = endpoint === null || /^https?:$/.test(URL.parse(endpoint)?.protocol ?? '');
  const isUnderstood = unknown.length === 0 && isEndpoint && /^(?:true|false)$/.test(redirects);
  if (url?.protocol !== 's3:' || url.host === '' || url.username !== '' || !isUnderstood) {
    // The address is not repeated: it may hold a password, though it has no place for one.
    problems.push(`${FORM}, without a user and password.`);
    return inDataDir;
  }
  const prefix = url.pathname.split('/').filter(Boolean).join('/');
  return {
    by: 's3',
    bucket: url.host,
    prefix: prefix === '' ? '' : `${prefix}/`,
    endpoint,
    region: url.searchParams.get('region'),
    redirects: redirects === 'true',
  };
}

export type ClamdConfig = { readonly host: string; readonly port: number } | { readonly path: string };

/** Where contents are scanned; null: they are not. Adds what is wrong to `problems`. */
export function readClamd(env: Readonly<Record<string, string | undefined>>, problems: string[]): ClamdConfig | null {
  const text = env['CLAMD_URL'];
  if (!text) return null;
  const url = URL.parse(text);
  if (url?.protocol === 'tcp:' && url.hostname !== '' && url.port !== '')
    return { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port) };
  if (url?.protocol === 'unix:' && url.host === '' && url.pathname.length > 1)
    return { path: fileURLToPath(`file://${url.pathname}`) };
  problems.push('CLAMD_URL must be tcp://<host>:<port> or unix:///<path>.');
  return null;
}
