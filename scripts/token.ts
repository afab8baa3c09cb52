/**
 * `npm run --silent token -- --user sam@demo.example [--code 123456] [--scope "data:read data:write"] [--client demo-App]
 * [--base-url URL]`:
 * signs a user in through the real authorization-code flow with PKCE (RFC 6749, RFC 7636), as the client `erp-cli` or another one
 * that may have its scopes (`--scope`) and lists `http://127.0.0.1/callback`, as a browser
 * without JavaScript would, and prints the access token alone on stdout. Without --scope: all scopes of the client.
 * The password is in DEMO_PASSWORD (default: that of the demo tenants), the code of an authenticator app in --code. Problems go to stderr, with exit code 1.
 */

import { codeOf } from '../lib/errors/thrown.ts';
import { readArguments, refuse } from './arguments.ts';
import { signIn } from './sign-in.ts';

const COMMAND = {
  name: 'token',
  usage:
    'npm run --silent token -- --user NAME [--code 123456] [--scope "data:read data:write"] [--client CLIENT_ID] ' +
    '[--base-url URL]\n\nPrints an access token of the user, whose password is in DEMO_PASSWORD.',
};

try {
  const { values } = readArguments(COMMAND, {
    options: {
      user: { type: 'string' },
      code: { type: 'string' },
      scope: { type: 'string' },
      client: { type: 'string' },
      'base-url': { type: 'string' },
    },
  });
  if (!values.user) refuse(COMMAND, 'Say who signs in: --user sam@demo.example');
  const password = process.env['DEMO_PASSWORD'] || 'demo-password';
  const baseUrl = (values['base-url'] ?? process.env['BASE_URL'] ?? `http://localhost:${process.env['PORT'] || 3000}`)
    .trim()
    .replace(/\/+$/, '');
  const { access_token } = await signIn({
    baseUrl,
    user: values.user,
    password,
    code: values.code,
    scope: values.scope,
    ...(values.client === undefined ? {} : { clientId: values.client }),
  });
  console.log(access_token);
} catch (error) {
  const cause = error instanceof Error ? codeOf(error.cause) : undefined;
  console.error(`token: ${error instanceof Error ? error.message : error}${cause ? ` (${cause})` : ''}`);
  process.exitCode = 1;
}
