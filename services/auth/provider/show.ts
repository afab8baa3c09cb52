/** Our pages as answers of the provider. */
import type { Context } from 'oidc-provider';
import * as pages from '../pages/pages.ts';

export function show(ctx: Context, page: pages.Page): void {
  ctx.status = page.status;
  ctx.type = 'html';
  for (const [name, value] of Object.entries(pages.headers(page))) ctx.set(name, value);
  ctx.body = pages.render(page);
}

/** The hidden value of a form that the provider made; our pages need only that value. */
export function hiddenValue(form: string, name: string): string {
  return new RegExp(`name="${name}" value="([^"]*)"`).exec(form)?.[1] ?? '';
}
