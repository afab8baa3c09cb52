/**
 * The provider has pages of its own that send a form at once: the answer of an authorization with
 * response_mode=form_post goes to the client's address, a change of the signed-in user to the sign-out. They are shown
 * as pages of ours, with the headers that every page has.
 */
import type { Context } from 'oidc-provider';
import { formTarget } from '../../../web/sign-in/layout.ts';
import { passOn, passOnHeaders } from '../../../web/sign-in/pass-on.ts';
import { showWith } from './show.ts';

const FORM = /<form method="post" action="([^"]*)">/;
const AFTER_INPUTS = '<noscript>';
/** Values are escaped. */
const INPUT = /<input type="hidden" [^<>]*>/g;

export async function formPages(ctx: Context, next: () => Promise<void>): Promise<void> {
  await next();
  const redirect = ctx.status >= 300 && ctx.status < 400;
  if (ctx.type !== 'text/html' || redirect || ctx.response.get('content-security-policy')) return;
  const page = String(ctx.body);
  const form = FORM.exec(page);
  const action = form?.[1];
  if (!form || action === undefined) throw new Error('The provider has answered with an unknown page.');
  // A sign-out that belongs to an authorization ends at its client as well, and browsers check the whole way.
  const targets = [action.replaceAll('&amp;', '&'), ctx.oidc.entities.Interaction?.params.redirect_uri];
  const shown = passOn({
    action,
    inputs: (page.slice(form.index, page.indexOf(AFTER_INPUTS, form.index)).match(INPUT) ?? []).join('\n'),
    formTargets: [...new Set(targets.flatMap(formTarget))].filter((target) => target !== ctx.oidc.provider.issuer),
    status: ctx.status,
  });
  showWith(ctx, shown, passOnHeaders(shown));
}
