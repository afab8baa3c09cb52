/** A provisioning client (SCIM), as identity providers send their requests. */
import assert from 'node:assert/strict';
import { tokenFor } from './client.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
type Anything = any;

interface ScimAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Anything;
}

export type ScimSend = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<ScimAnswer>;

const PATCH_OP = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';
const ERROR = 'urn:ietf:params:scim:api:messages:2.0:Error';
export const CORE_USER = 'urn:ietf:params:scim:schemas:core:2.0:User';
export const ENTERPRISE_USER = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';

/** Requests below /scim/v2 with a token; every answer with a body is application/scim+json. */
export const scimClient =
  (baseUrl: string, token: string | null): ScimSend =>
  async (method, path, body, headers = {}) => {
    const raw = typeof body === 'string' || body instanceof Uint8Array;
    const response = await fetch(`${baseUrl}/scim/v2${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/scim+json; charset=utf-8' }),
        accept: 'application/scim+json',
        ...headers,
      },
      ...(body === undefined ? {} : { body: raw ? (body as string) : JSON.stringify(body) }),
    });
    const text = await response.text();
    if (text !== '') assert.match(response.headers.get('content-type') ?? '', /^application\/scim\+json/, text);
    return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
  };

/** The same for a user, by the token of the demo's client. */
export const scimFor = async (baseUrl: string, user: string, scope = 'users:manage'): Promise<ScimSend> =>
  scimClient(baseUrl, await tokenFor(baseUrl, user, scope));

/** The answer, which must have this status. */
export async function expect(status: number, answer: Promise<ScimAnswer>): Promise<Anything> {
  const { status: found, body } = await answer;
  assert.equal(found, status, JSON.stringify(body));
  return body;
}

/** The error, in the form of RFC 7644 section 3.12. */
export async function refused(status: number, answer: Promise<ScimAnswer>, scimType?: string): Promise<Anything> {
  const { status: found, body, headers } = await answer;
  assert.equal(found, status, JSON.stringify(body));
  assert.deepEqual(body.schemas, [ERROR]);
  assert.equal(body.status, String(status));
  assert.equal(body.scimType, scimType, JSON.stringify(body));
  assert.ok(body.detail.length > 0);
  assert.equal(body.requestId, headers.get('x-request-id'));
  return body;
}

export const patch = (...Operations: object[]): object => ({ schemas: [PATCH_OP], Operations });

export const filtered = (filter: string): string => `?filter=${encodeURIComponent(filter)}`;
