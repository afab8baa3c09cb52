/** Answers as data for the bus. */
import type { HttpReply, HttpRequest } from '../../contracts/auth.ts';
import * as pages from '../../web/sign-in/pages.ts';

export function reply(status: number, headers: Record<string, string>, body: string): HttpReply {
  return { status, headers: { 'x-content-type-options': 'nosniff', ...headers }, body: Buffer.from(body) };
}

export const pageReply = (page: pages.Page): HttpReply =>
  reply(page.status, { 'content-type': 'text/html; charset=utf-8', ...pages.headers(page) }, pages.render(page));

export const failureReply = (
  request: HttpRequest,
  code: string,
  description: string | null,
  status: number,
): HttpReply => pageReply(pages.failure({ code, description, status, requestId: requestIdOf(request) }));

/** A page for browsers; programs get the error of OAuth. */
export function unavailableReply(request: HttpRequest): HttpReply {
  const page = pages.unavailable(requestIdOf(request));
  if (String(request.headers['accept']).includes('text/html')) return pageReply(page);
  return reply(
    page.status,
    {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'retry-after': String(page.retryAfterSeconds),
    },
    JSON.stringify({ error: 'temporarily_unavailable', error_description: 'try again in a moment' }),
  );
}

/** As the gateway names the request. */
function requestIdOf({ headers }: HttpRequest): string | null {
  const id = headers['x-request-id'];
  return typeof id === 'string' ? id : null;
}
