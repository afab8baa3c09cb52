/** Our pages as answers of the provider. */
import type { Context } from 'oidc-provider';
import * as pages from '../../../web/sign-in/pages.ts';

export const show = (ctx: Context, page: pages.Page): void => showWith(ctx, page, pages.headers(page));

export function showWith(ctx: Context, page: pages.Page, headers: Record<string, string>): void {
  ctx.status = page.status;
  ctx.type = 'html';
  for (const [name, value] of Object.entries(headers)) ctx.set(name, value);
  ctx.body = pages.render(page);
}

/** As the gateway names the request. */
export const requestIdOf = (ctx: Context): string | null => ctx.get('x-request-id') || null;

/** The hidden value of a form that the provider made; our pages need only that value. */
export function hiddenValue(form: string, name: string): string {
  return new RegExp(`name="${name}" value="([^"]*)"`).exec(form)?.[1] ?? '';
}
