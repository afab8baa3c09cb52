/** Answers as data for the bus. */
import type { HttpReply, HttpRequest } from '../../contracts/auth.ts';
import * as pages from './pages/pages.ts';

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

export const unavailableReply = (request: HttpRequest): HttpReply => pageReply(pages.unavailable(requestIdOf(request)));

/** As the gateway names the request. */
function requestIdOf({ headers }: HttpRequest): string | null {
  const id = headers['x-request-id'];
  return typeof id === 'string' ? id : null;
}
