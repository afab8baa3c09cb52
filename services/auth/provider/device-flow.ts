/** A device without a browser (RFC 8628): the pages on which a person types its code. */
import type { Context } from 'oidc-provider';
import * as pages from '../../../web/sign-in/pages.ts';
import { PATHS } from './paths.ts';
import { hiddenValue, show } from './show.ts';

export const USER_CODE_MAX_CHARS = 20;

export const DEVICE_FLOW = {
  enabled: true,
  charset: 'base-20',
  mask: '****-****',
  // The provider would store the device's User-Agent, of any length, which is shown nowhere.
  deviceInfo: () => ({}),
  userCodeInputSource: (ctx: Context, form: string, _out: unknown, error: Context) =>
    show(ctx, pages.deviceCode(hiddenValue(form, 'xsrf'), ctx.state.userCode ?? error?.userCode ?? '', error?.name)),
  userCodeConfirmSource: (ctx: Context, form: string, client: Context, _device: unknown, userCode: string) =>
    show(ctx, pages.deviceConfirm(hiddenValue(form, 'xsrf'), userCode, client.clientName ?? client.clientId)),
  successSource: (ctx: Context) => show(ctx, pages.deviceDone(ctx.oidc.client.clientName ?? 'your device')),
};

/** The way through the device pages; `sessionCookie` is the name of the provider's session cookie. */
export const devicePages =
  (sessionCookie: string) =>
  async (ctx: Context, next: () => Promise<void>): Promise<void> => {
    const first = ctx.path === PATHS.code_verification;
    if (first && ctx.method === 'GET' && ctx.query.user_code) {
      // verification_uri_complete (section 3.3.1): the provider would submit the code by script; we fill it into the
      // form, and the person sends it.
      ctx.state.userCode = String(ctx.query.user_code).slice(0, USER_CODE_MAX_CHARS);
      ctx.query = {};
    } else if (
      (ctx.path.startsWith(`${PATHS.code_verification}/`) || (first && ctx.method === 'POST')) &&
      !ctx.cookies.get(sessionCookie)
    ) {
      // The way begins at the first page; without its cookie there is nothing to continue.
      ctx.status = 303;
      ctx.redirect(PATHS.code_verification);
      return;
    }
    await next();
  };
