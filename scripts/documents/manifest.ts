/**
 * `ai-manifest.json`: what an assistant or a program needs to use the API with nothing but this file and what it names.
 * It is made from the operation rows, the guidance, the error catalogue, the pages and the examples of the rows; the same
 * input gives the same bytes. Source: docs/reference/assistant-manifest.md.
 */
import { hash } from 'node:crypto';
import { EXAMPLES } from '../../contracts/examples.ts';
import { GUIDANCE } from '../../contracts/guidance.ts';
import { OPERATIONS } from '../../contracts/operations.ts';
import { API_VERSION } from '../../lib/addresses.ts';
import { CATALOGUE, ERROR_CODES, isRetryable } from '../../lib/errors/catalogue.ts';
import type { Operation } from '../../lib/operation.ts';
import { ownEntry } from '../../lib/schema/lookup.ts';
import { required } from '../../lib/values/required.ts';
import { capabilities } from '../../services/gateway/public/capabilities.ts';
import { contact, LICENSE } from '../../services/gateway/public/openapi.ts';
import { describedOperations } from './described.ts';
import { audienceOf } from './manifest/audiences.ts';
import { API, authentication } from './manifest/authentication.ts';
import { RULES } from './manifest/rules.ts';
import { WORKFLOWS } from './manifest/workflows.ts';
import type { Page } from './page.ts';

export interface Version {
  readonly pages: readonly Page[];
  /** The text of `openapi.json`. */
  readonly openapi: string;
}

/** The manifest as an object. */
export function manifest({ pages, openapi }: Version): object {
  const { limits, mcp } = instance();
  return {
    manifestVersion: 1,
    apiVersion: API_VERSION,
    generatedAt: released(pages),
    description:
      'Addresses with {base_url} are templates; all others are relative to this file. `workflows` say what to do, `operations` how each request looks, `rules` what always holds.',
    baseUrlTemplate: API,
    openapi: { url: 'openapi.json', sha256: sha256(openapi) },
    capabilities: { url: `${API}/capabilities` },
    auth: authentication(OPERATIONS),
    rules: RULES,
    workflows: WORKFLOWS,
    operations: operations(openapi),
    errors: ERROR_CODES.map((code) => ({
      code,
      status: CATALOGUE[code].status,
      retryable: isRetryable(code),
      remedy: CATALOGUE[code].remedy,
      url: `errors/${code}.md`,
    })),
    guides: pages.flatMap((page) => {
      const { path, title, markdown } = page;
      const audience = audienceOf(path);
      if (audience === null) return [];
      return [
        { id: path, title, url: `${path}.md`, sha256: sha256(markdown), audience, tokensApprox: tokens(markdown) },
      ];
    }),
    mcp,
    limits,
    license: LICENSE,
    contact: contact('{base_url}'),
  };
}

/** The day of the version in the changelog: a time of the build would make other bytes of the same input. */
function released(pages: readonly Page[]): string | null {
  const changelog = pages.find(({ path }) => path === 'changelog')?.markdown ?? '';
  const version = API_VERSION.replaceAll('.', '\\.');
  const [, day] = new RegExp(`^## \\[?${version}\\]? - (\\d{4}-\\d{2}-\\d{2})`, 'm').exec(changelog) ?? [];
  return day === undefined ? null : `${day}T00:00:00.000Z`;
}

/** Limits common to every instance of this version; rates depend on the deployment. */
function instance(): { limits: object; mcp: object } {
  const { limits, mcp } = capabilities(OPERATIONS, '{base_url}', NO_RATES);
  const { ratePolicies: _, ...constant } = limits;
  return { limits: { ...constant, rates: { url: `${API}/capabilities`, left: 'me.limits.get' } }, mcp };
}

const NO_RATES = { connection: 0, tenant: 0, anonymous: 0, daily: 0, concurrency: 0, concurrencyCostly: 0 };

function operations(openapi: string): object[] {
  const described = describedOperations(JSON.parse(openapi));
  return OPERATIONS.map((row) => {
    const { whenToUse, whenNotToUse, preconditions, commonErrors } = required(GUIDANCE, row.operationId);
    const { parameters, requestBody } = required(described, row.operationId);
    const recorded = ownEntry(EXAMPLES, row.operationId);
    if (!recorded) throw new Error(`${row.operationId} has no recorded example: run npm run examples.`);
    const { errors = {}, ...example } = recorded;
    const json = new Set((row.queryParameters ?? []).filter((one) => one.json).map(({ name }) => name));
    return {
      operationId: row.operationId,
      method: row.method,
      path: row.path,
      summary: row.summary,
      whenToUse,
      whenNotToUse,
      // A list in every row: programs compare it with the scopes of their token.
      scopes: typeof row.scopes === 'string' ? [] : row.scopes,
      ...(row.scopes === 'public' ? { public: true } : {}),
      ...(row.oneOfScopes ? { oneOfScopes: row.oneOfScopes } : {}),
      ...(row.permission ? { permission: row.permission } : {}),
      risk: row.risk,
      cost: row.cost,
      mutation: row.mutation,
      ...(row.checkedBy ? { checkedBy: row.checkedBy.operationId } : {}),
      preconditions: [...preconditions, ...headersNeeded(row)],
      parameters: parameters.map(({ name, in: place, required }) => ({
        name,
        in: place,
        required: required === true,
        ...(json.has(name) ? { json: true } : {}),
      })),
      requestBody: requestBody
        ? { required: requestBody.required === true, contentTypes: Object.keys(requestBody.content) }
        : null,
      success: [...new Set([row.response.status, ...(row.alternatives ?? []).map(({ status }) => status)])],
      commonErrors: commonErrors.map((code) => ({
        code,
        remedy: CATALOGUE[code].remedy,
        ...(errors[code] ? { example: errors[code] } : {}),
      })),
      example,
    };
  });
}

/** Requirements on the form of every request of this kind. */
function headersNeeded({ mutation, precondition, stepUp }: Operation): string[] {
  return [
    ...(mutation ? ['An `Idempotency-Key` of its own, kept until the outcome is known.'] : []),
    ...(precondition === 'expectedRevision' ? ['The revision, as `expectedRevision` or `X-Expected-Revision`.'] : []),
    ...(stepUp === true ? ['Where the tenant demands it, a recent sign-in with two factors.'] : []),
  ];
}

const sha256 = (text: string): string => hash('sha256', text);

/** Tokens of a text, as most models count English with code: four characters each. */
const tokens = (text: string): number => Math.ceil(text.length / 4);
