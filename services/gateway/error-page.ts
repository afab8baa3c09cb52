/** Errors for people: outside the API a browser gets a page where programs get the Error body. */
import Negotiator from 'negotiator';
import { CATALOGUE } from '../../lib/errors/catalogue.ts';
import type { PlatformError } from '../../lib/errors/platform-error.ts';
import { escapeHtml } from '../../lib/values/html.ts';
import type { Exchange } from './exchange.ts';
import { HTML_HEADERS, HTML_TYPE, htmlPage } from './html.ts';
import { errorHeaders, type ReplyOptions, send } from './reply.ts';

/** True when the client prefers a page to JSON, as browsers do that open an address. */
export const prefersPage = ({ req }: Exchange): boolean =>
  req.headers.accept?.includes('text/html') === true &&
  new Negotiator(req).mediaType(['application/json', 'text/html']) === 'text/html';

/** Sends the error as a page, with the status and the headers that the Error body would have. */
export function sendErrorPage(x: Exchange, error: PlatformError, options: ReplyOptions): void {
  const headers = errorHeaders(x, error, options);
  headers.push('Content-Type', HTML_TYPE, ...HTML_HEADERS);
  send(x, error.status, headers, Buffer.from(errorPage(error, x.requestId)));
}

function errorPage({ code, message, retryAfterSeconds: seconds }: PlatformError, requestId: string): string {
  const wait = seconds === undefined ? '' : ` Try again in ${seconds === 1 ? 'one second' : `${seconds} seconds`}.`;
  return htmlPage(
    CATALOGUE[code].title,
    `<p>${escapeHtml(message)}${wait}</p><p><a href="/">ERP platform</a></p>` +
      `<p><small><code>${code}</code>, request <code>${escapeHtml(requestId)}</code></small></p>`,
  );
}
