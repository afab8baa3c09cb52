/**
 * The versioned documents, at /versions and below the prefix of the API: the same bytes at both, from every process.
 * Source: docs/reference/versioning.md.
 */
import Negotiator from 'negotiator';
import { API_PREFIX, LATEST_DOCUMENTS_PATH, LLMS_PATH, VERSIONS_ROOT } from '../../../lib/addresses.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { archives, type DocumentFile, type Version } from '../../../mixins/documents/archives.ts';
import { contentTypeOf, HTML_TYPE, IMMUTABLE, pagePolicy } from '../../../web/assets.ts';
import type { Exchange } from '../edge/exchange.ts';
import { commonHeaders, type ReplyOptions, send, sendFile, sharedVary } from '../edge/reply.ts';
import { ANY_ORIGIN } from '../pipeline/call.ts';

const LATEST = 'latest';
const ADDRESS = /^\/versions\/([^/]{1,40})\/docs(?:\/(.*))?$/;

const DRAFT = 'no-cache';
const REDIRECT = 'public, max-age=300';

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': pagePolicy(),
  'Referrer-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
};

/** For lists of what is reachable. */
export const DOCUMENT_PAGES: readonly string[] = [
  LLMS_PATH,
  `${VERSIONS_ROOT}{version}/docs/…`,
  `${API_PREFIX}${VERSIONS_ROOT}{version}/docs/…`,
];

/** The requested file, and whether its representation was negotiated. */
interface Asked {
  readonly name: string;
  readonly negotiated: boolean;
}

export class VersionedDocuments {
  readonly #archives = archives();

  /** Answers a request below `/versions/`; returns how many bytes the answer has before compression. */
  async answer(x: Exchange, options: ReplyOptions): Promise<number> {
    x.label = 'documents';
    x.allowedOrigin = ANY_ORIGIN;
    if (x.method !== 'GET' && x.method !== 'HEAD')
      throw new PlatformError('METHOD_NOT_ALLOWED', 'The documents can only be read.', {
        headers: { Allow: 'GET, HEAD' },
      });
    if (x.path === LLMS_PATH) return this.#answerLlms(x, options);
    const prefix = x.path.startsWith(API_PREFIX) ? API_PREFIX : '';
    const [, given = '', path] = ADDRESS.exec(x.path.slice(prefix.length)) ?? [];
    const version = given === LATEST ? this.#archives.latest : this.#archives.find(given);
    if (!version) throw noVersion(given);
    const archive = await this.#archives.open(version);
    const asked = path === undefined ? { name: 'index.html', negotiated: false } : nameOf(path, archive, x);
    const file = archive.get(asked.name);
    if (!file)
      throw new PlatformError('ROUTE_NOT_FOUND', `Version ${version.version} of the documents has no such file.`);
    // Links of the page are relative to the folder, and so need its slash.
    if (given === LATEST || path === undefined)
      return redirect(x, `${prefix}${VERSIONS_ROOT}${version.version}/docs/${path ?? ''}`, options);
    return reply(x, version, asked, file, options);
  }

  /** The address stays when there is a new version, so that caches ask each time. */
  async #answerLlms(x: Exchange, options: ReplyOptions): Promise<number> {
    const { latest } = this.#archives;
    const name = LLMS_PATH.slice(1);
    const file = latest && (await this.#archives.open(latest)).get(name);
    if (!latest || !file) throw new PlatformError('ROUTE_NOT_FOUND', 'There are no documents.');
    return reply(x, { ...latest, published: null }, { name, negotiated: false }, file, options);
  }
}

function noVersion(given: string): PlatformError {
  return given === ''
    ? new PlatformError('ROUTE_NOT_FOUND', 'The documents are below /versions/{version}/docs/.')
    : new PlatformError(
        'DOCS_VERSION_NOT_FOUND',
        `There are no documents of this version; ${LATEST_DOCUMENTS_PATH} leads to the newest.`,
      );
}

/** A page without its suffix is HTML, or Markdown to those who prefer it. */
function nameOf(path: string, archive: ReadonlyMap<string, unknown>, x: Exchange): Asked {
  const whole = path === '' ? 'index' : path;
  if (archive.has(whole) || !archive.has(`${whole}.html`)) return { name: whole, negotiated: false };
  const preferred = new Negotiator(x).mediaType(['text/html', 'text/markdown']);
  return { name: `${whole}.${preferred === 'text/markdown' ? 'md' : 'html'}`, negotiated: true };
}

/** `to` is the name of a file that there is. */
function redirect(x: Exchange, to: string, options: ReplyOptions): number {
  send(x, 302, commonHeaders(x, options, { Location: to, 'Cache-Control': REDIRECT }, sharedVary()), null);
  return 0;
}

async function reply(
  x: Exchange,
  { published }: Version,
  { name, negotiated }: Asked,
  { body, checksum }: DocumentFile,
  options: ReplyOptions,
): Promise<number> {
  const contentType = contentTypeOf(name);
  const headers = {
    'Cache-Control': published === null ? DRAFT : IMMUTABLE,
    ...(contentType === HTML_TYPE ? PAGE_HEADERS : {}),
  };
  const variesOn = negotiated ? ['Accept'] : [];
  return sendFile(x, { body, contentType, etag: `"${checksum}"`, headers, variesOn }, options);
}
