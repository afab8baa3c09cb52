/** Answers as data for the bus. */
import type { HttpReply } from '../../contracts/auth.ts';
import * as pages from './pages/pages.ts';

export function reply(status: number, headers: Record<string, string>, body: string): HttpReply {
  return { status, headers: { 'x-content-type-options': 'nosniff', ...headers }, body: Buffer.from(body) };
}

export const pageReply = (page: pages.Page): HttpReply =>
  reply(page.status, { 'content-type': 'text/html; charset=utf-8', ...pages.headers(page) }, pages.render(page));

export const failureReply = (code: string, description: string | null, status: number): HttpReply =>
  pageReply(pages.failure(code, description, status));

export const unavailableReply = (): HttpReply => pageReply(pages.unavailable());
