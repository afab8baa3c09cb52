/**
 * Errors for people: outside the API a browser gets a page where programs get the Error body. It says what happened, what
 * one can do about it, and by which id the request is found.
 */

import { DOCUMENTS_PATH, LATEST_DOCUMENTS_PATH } from '../lib/addresses.ts';
import { CATALOGUE } from '../lib/errors/catalogue.ts';
import type { PlatformError } from '../lib/errors/platform-error.ts';
import { escapeHtml } from '../lib/values/html.ts';
import { DESIGN } from '../lib/values/page-design.ts';
import { ERROR_TITLES } from '../lib/values/page-frame.ts';
import { pageKind } from './page-kind.ts';

const PAGE = pageKind(`${DESIGN}
dl{display:grid;grid-template-columns:auto minmax(0,1fr);gap:.25rem 1rem;margin:1.5rem 0 0;color:var(--soft);
font-size:.9rem}dd{margin:0;overflow-wrap:anywhere}
`);

/** For people, in place of what the catalogue says to programs. */
interface Words {
  readonly title: string;
  readonly advice: string;
}

const WORDS: ReadonlyMap<number, Words> = new Map([
  [404, { title: ERROR_TITLES[404], advice: 'The address may be mistyped, or it may be one of an earlier version.' }],
  [405, { title: ERROR_TITLES[405], advice: 'Open the address of the page without sending anything to it.' }],
  [429, { title: 'Too many requests', advice: 'Your network has sent more requests than it may in a minute.' }],
  [
    500,
    { title: 'Something went wrong', advice: 'It is our fault. If it happens again, report the id of the request.' },
  ],
  [503, { title: ERROR_TITLES[503], advice: 'The platform is starting or stopping, or a part of it is away.' }],
]);

export const ERROR_PAGE_HEADERS = PAGE.headers;

export function errorPage(error: PlatformError, { method, requestId }: { method: string; requestId: string }): string {
  const { code, message, status, retryable, retryAfterSeconds: seconds } = error;
  const { title, advice } = WORDS.get(status) ?? { title: CATALOGUE[code].title, advice: '' };
  const wait = seconds === undefined ? '' : ` Try again in ${seconds === 1 ? 'one second' : `${seconds} seconds`}.`;
  const newest = code === 'DOCS_VERSION_NOT_FOUND' ? `<a href="${LATEST_DOCUMENTS_PATH}">Newest documents</a> · ` : '';
  // An empty address is that of the page, with all that was asked for.
  const again = retryable && method === 'GET' ? '<a href="">Try again</a> · ' : '';
  return PAGE.render(
    title,
    `<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(message)}${wait}</p>
${advice === '' ? '' : `<p>${advice}</p>\n`}<p>${again}${newest}<a href="/">Start page</a></p>
<dl><dt>Error</dt><dd>${status}, <a href="${DOCUMENTS_PATH}/errors/${code}"><code>${code}</code></a></dd><dt>Request</dt><dd><code>${escapeHtml(requestId)}</code></dd></dl>`,
  );
}
