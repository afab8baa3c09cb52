/** Reads the pages of passkeys and second factors in tests. */
import assert from 'node:assert/strict';
import { TOTP } from 'otpauth';
import type { Seen } from './browser.ts';

/** The options that the page passes to its passkey script. */
export const optionsOn = (page: Seen): string => {
  const [, options] = /data-options="([^"]*)"/.exec(page.html) ?? [];
  assert.ok(options, `passkey options on: ${page.html.slice(-2500)}`);
  return options.replaceAll('&quot;', '"').replaceAll('&amp;', '&');
};

export const secretOn = (page: Seen): string => {
  const [, secret] = /class="secret">([A-Z2-7 ]+)</.exec(page.html) ?? [];
  assert.ok(secret, `a key on: ${page.html.slice(-2500)}`);
  return secret.replaceAll(' ', '');
};

export const sealedOn = (page: Seen): string => /name="setup" value="([^"]*)"/.exec(page.html)?.[1] ?? '';

export const codesOn = (page: Seen): string[] =>
  [...page.html.matchAll(/<li>([0-9A-Z-]{19})<\/li>/g)].map(([, code]) => code!);

export const codeFor = (secret: string, steps = 0): string =>
  new TOTP({ secret }).generate({ timestamp: Date.now() + steps * 30_000 });
