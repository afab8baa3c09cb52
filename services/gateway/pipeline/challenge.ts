/** Refusals that say how a client gets what it lacks: a token, a scope, a newer sign-in (RFC 6750, RFC 9728, RFC 9470). */
import { MCP_PATH } from '../../../contracts/mcp.ts';
import { MCP_SCOPES } from '../../../contracts/mcp-offers.ts';
import { stepUpDemanded } from '../../../contracts/step-up.ts';
import { API_PREFIX, protectedResourceUrl } from '../../../lib/addresses.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { Scope } from '../../../lib/operation.ts';
import type { Call } from './call.ts';
import type { Gate } from './gate.ts';

/** First scope for clients of the assistants' endpoint; each tool names further ones. */
const MCP_FIRST_SCOPE: Scope = 'setup:read';

/** A failed authentication is charged to the caller's network, and says where to get a token. */
export async function refuseToken(gate: Gate, x: Call, error: unknown): Promise<never> {
  const { origin } = x.headers;
  if (origin !== undefined) await allowOrigin(gate, x, origin);
  if (!(error instanceof PlatformError) || error.status !== 401) throw error;
  x.budget = gate.budgets.anonymous(x.ip);
  x.charged = true;
  await gate.budgets.charge(x.budget, 1);
  throw challenge(gate, x, error);
}

function challenge(gate: Gate, x: Call, error: PlatformError): PlatformError {
  // A client of the endpoint for assistants asks for the scopes that it is refused for, and for more when it needs more.
  const asked = x.door === 'mcp' ? [`scope="${MCP_FIRST_SCOPE}"`] : [];
  const value =
    error.code === 'TOKEN_MISSING'
      ? `Bearer ${[...asked, resourceMetadata(gate, x)].join(', ')}`
      : bearerError(gate, x, 'invalid_token', error.message.replaceAll('"', "'"), asked);
  return new PlatformError(error.code, error.message, { headers: { 'WWW-Authenticate': value }, cause: error.cause });
}

/** The challenge of RFC 6750; `more`: parameters of the error. */
const bearerError = (gate: Gate, x: Call, error: string, description: string, more: readonly string[] = []): string =>
  `Bearer ${[`error="${error}"`, `error_description="${description}"`, ...more, resourceMetadata(gate, x)].join(', ')}`;

/** URL of the metadata for getting a token (RFC 9728). */
const resourceMetadata = ({ baseUrl }: Gate, { door }: Call): string =>
  `resource_metadata="${protectedResourceUrl(baseUrl, door === 'mcp' ? MCP_PATH : API_PREFIX)}"`;

export function scopeInsufficient(gate: Gate, x: Call, required: readonly Scope[], message: string): PlatformError {
  return new PlatformError('SCOPE_INSUFFICIENT', message, {
    details: { required: [...required], granted: [...(x.session?.scopes ?? [])], layer: 'scope' },
    headers: { 'WWW-Authenticate': scopeChallenge(gate, x, required, message) },
  });
}

function scopeChallenge(gate: Gate, x: Call, required: readonly Scope[], message: string): string {
  if (x.door !== 'mcp') return `Bearer error="insufficient_scope", scope="${required.join(' ')}"`;
  // Includes the present scopes: a new authorization would otherwise lose them.
  const kept = MCP_SCOPES.filter((scope) => required.includes(scope) || x.session?.scopes.includes(scope));
  return bearerError(gate, x, 'insufficient_scope', message, [`scope="${kept.join(' ')}"`]);
}

export function signInInsufficient(gate: Gate, x: Call): PlatformError {
  return stepUpDemanded(resourceMetadata(gate, x));
}

export async function allowOrigin(gate: Gate, x: Call, origin: string, clientId?: string): Promise<void> {
  // The answer is sent in either case; without the header the browser keeps it from the page.
  if (await Promise.resolve(gate.origins.allowed(origin, clientId)).catch(() => false)) x.allowedOrigin = origin;
}
