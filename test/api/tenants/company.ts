/** A company on the platform, created like an operator does, with an administrator who can sign in. */
import { call } from '../../../contracts/call.ts';
import type { TenantTemplate } from '../../../contracts/metadata.ts';
import { signIn, type Tokens } from '../../../scripts/sign-in.ts';
import { type Api, api } from '../../support/client.ts';
import type { TestPlatform } from '../../support/platform.ts';

export const PASSWORD = 'a long enough password';

export interface Company {
  readonly tenantId: string;
  readonly key: string;
  readonly adminName: string;
  readonly adminId: string;
  readonly tokens: Tokens;
  readonly admin: Api;
}

export async function makeCompany(
  { broker, baseUrl }: TestPlatform,
  key: string,
  template: TenantTemplate = 'empty',
): Promise<Company> {
  const { tenantId } = await call(broker, 'metadata.tenants.create', { key, name: `${key} Ltd`, template });
  await call(broker, 'auth.domains.add', { tenantId, domain: `${key}.example` });
  const adminName = `ann@${key}.example`;
  const users = [
    { username: adminName, email: adminName, displayName: 'Ann', profileApiName: 'Administrator', password: PASSWORD },
  ];
  const { userIds } = await call(broker, 'data.users.provision', { tenantId, users });
  const tokens = await signIn({ baseUrl, user: adminName, password: PASSWORD });
  return { tenantId, key, adminName, adminId: userIds[adminName]!, tokens, admin: api(baseUrl, tokens.access_token) };
}

/** The response of the token endpoint to a refresh token. */
export const refresh = (baseUrl: string, refreshToken: string): Promise<Response> =>
  fetch(`${baseUrl}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'refresh_token', client_id: 'erp-cli', refresh_token: refreshToken }),
  });

/** A state that every process reaches within seconds, with or without the event. */
export async function within(seconds: number, check: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + seconds * 1_000; ; ) {
    if (await check()) return;
    if (performance.now() > end) throw new Error(`It was not so within ${seconds} s.`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
