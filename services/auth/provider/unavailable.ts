/** Answers 503 while the database, another service or the document of a client is away. */
import type { Context } from 'oidc-provider';
import * as pages from '../../../web/sign-in/pages.ts';
import { isUnavailable } from '../unavailable.ts';
import { DOCUMENT_FAILURE_KEPT_SECONDS, isDocumentUnread } from './metadata-documents.ts';
import { requestIdOf, show } from './show.ts';

/** Remembers for `answerUnavailable` that a request failed for that reason. */
export function noteUnavailable(ctx: Context, error: unknown): void {
  ctx.state.unavailable ||= isUnavailable(error);
}

/** A client whose document cannot be read just now is no unknown client: it would throw its tokens away. */
export function noteDocumentUnread(ctx: Context, error: unknown): void {
  if (!isDocumentUnread(error)) return;
  ctx.state.unavailable = true;
  ctx.state.retryAfterSeconds = DOCUMENT_FAILURE_KEPT_SECONDS;
}

export async function answerUnavailable(ctx: Context, next: () => Promise<void>): Promise<void> {
  try {
    await next();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    ctx.state.unavailable = true;
  }
  // A redirect reports the failure to the client; any other answer says here that the request may be repeated.
  if (!ctx.state.unavailable || (ctx.status >= 300 && ctx.status < 400)) return;
  const page = pages.unavailable(requestIdOf(ctx));
  if (ctx.accepts('json', 'html') === 'html') show(ctx, page);
  else ctx.body = { error: 'temporarily_unavailable', error_description: 'try again in a moment' };
  ctx.status = page.status;
  ctx.set('retry-after', String(ctx.state.retryAfterSeconds ?? page.retryAfterSeconds));
}
