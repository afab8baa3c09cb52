/** The frame of the few pages that the gateway itself answers. */
import { hash } from 'node:crypto';
import { escapeHtml } from '../../lib/values/html.ts';
import { DESIGN } from '../../lib/values/page-design.ts';

const STYLE = `${DESIGN}body{max-width:44rem;margin:3rem auto;padding:0 1rem}`;
const STYLE_HASH = hash('sha256', STYLE, 'base64');

export const HTML_TYPE = 'text/html; charset=utf-8';

/** Names and values of the headers that go with each of these pages. */
export const HTML_HEADERS: readonly string[] = [
  'Content-Security-Policy',
  `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
  'Referrer-Policy',
  'same-origin',
  'X-Frame-Options',
  'DENY',
];

/** A page with the title as its heading; `body` is HTML. */
export const htmlPage = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
  `<title>${escapeHtml(title)}</title><style>${STYLE}</style><main><h1>${escapeHtml(title)}</h1>${body}</main></html>`;
