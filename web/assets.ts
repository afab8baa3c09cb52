/** Assets of our pages: files that are made once, at versioned addresses. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { strongEtag } from '../lib/values/etags.ts';
import type { SharedAnswer } from './kept.ts';

export const HTML_TYPE = 'text/html; charset=utf-8';

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  html: HTML_TYPE,
  md: 'text/markdown; charset=utf-8',
  json: 'application/json',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
};

/** By the end of the name. */
export const contentTypeOf = (name: string): string =>
  CONTENT_TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';

/** For what is always the same at its address. */
export const IMMUTABLE = 'public, max-age=31536000, immutable';

/**
 * The policy of a page with scripts: what it loads and asks comes from this host, nothing is inline, and no script makes
 * markup of a text. What a library needs besides is said by the page.
 */
export const pagePolicy = ({ images = "'self'", trustedTypes = true } = {}): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src ${images}`,
    "connect-src 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    ...(trustedTypes ? ["require-trusted-types-for 'script'", "trusted-types 'none'"] : []),
  ].join('; ');

type Asset = Omit<SharedAnswer, 'headers'>;

/** A file below `web/`. */
export const webFile = (path: string): Buffer => readFileSync(new URL(path, import.meta.url));

/** Finds the imports of a script of ours, also those of types, whose modules are loaded anyway. */
const IMPORTS = /(?:\bfrom |\bimport |\bimport\()'(\.[^'\n]+\.js)'/g;

/**
 * A script below `web/` and all that it imports, directly or not, in the order in which a browser finds them. They import
 * each other by relative paths, so each is to be served at the path that it has in `web/`.
 */
export function scriptsFrom(entry: string): ReadonlyMap<string, Buffer> {
  const found = new Map<string, Buffer>();
  const waiting = new Set([entry]);
  for (const path of waiting) {
    const body = webFile(path);
    found.set(path, body);
    for (const [, specifier = ''] of body.toString().matchAll(IMPORTS))
      waiting.add(posix.join(posix.dirname(path), specifier));
  }
  return found;
}

/** The files of a page, at `<root>/assets/<version>/<name>`. */
export class Assets {
  readonly #folder: string;
  readonly #version: string;
  readonly #files: ReadonlyMap<string, Asset>;

  constructor(root: string, files: readonly (readonly [name: string, body: Buffer])[]) {
    this.#folder = `${root}/assets/`;
    this.#files = new Map(
      files.map(([name, body]) => [name, { body, contentType: contentTypeOf(name), etag: strongEtag(body) }]),
    );
    this.#version = hash('sha256', Buffer.concat(files.map(([, body]) => body))).slice(0, 16);
  }

  /** Address of a file of this version. */
  address(name: string): string {
    return `${this.#folder}${this.#version}/${name}`;
  }

  /** The file at a path; for another version, while two versions of the gateway run, the present one, uncacheable. */
  at(path: string): SharedAnswer | undefined {
    if (!path.startsWith(this.#folder)) return undefined;
    const [, version, name = ''] = /^([0-9a-f]{16})\/(.+)$/.exec(path.slice(this.#folder.length)) ?? [];
    const file = this.#files.get(name);
    return file && { ...file, headers: { 'Cache-Control': version === this.#version ? IMMUTABLE : 'no-store' } };
  }
}
