/**
 * What happens between an authorization request and its answer: a person signs in and allows access or refuses it. The
 * request waits in the provider's Interaction, tied to this browser by a cookie; forms are refused unless they come
 * from a page that this server gave to this browser.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { errors, type Interaction, type Provider } from 'oidc-provider';
import { MULTI_FACTOR_ACR } from '../../contracts/auth.ts';
import { requestId } from '../../lib/values/ids.ts';
import { marksOf } from './client-marks.ts';
import type { Clients, KnownClient } from './clients.ts';
import { csrfFor, isSameText } from './csrf.ts';
import { acrOf } from './factors/assurance.ts';
import type { SecondFactors } from './factors/factors.ts';
import { afterPassword, binding, continueSignIn, passkeySignIn, type SignInStep } from './factors/sign-in-steps.ts';
import type { Answer, Form } from './form.ts';
import { formTarget } from './pages/layout.ts';
import * as pages from './pages/pages.ts';
import { signIn } from './passwords.ts';
import { apiResource } from './provider/paths.ts';
import { requestedAcrs } from './provider/step-up.ts';
import type { AttemptOrigin, Refusal } from './refusals.ts';
import type { AuthStore } from './store/store.ts';

export interface InteractionParts {
  provider: Provider;
  store: AuthStore;
  clients: Clients;
  factors: SecondFactors;
  cookieKey: string;
  /** A person has just signed in. */
  signedIn(tenantId: string, userId: string): void;
  /** Somebody was refused to sign in. */
  signInRefused(refusal: Refusal, origin: AttemptOrigin): void;
}

const originOf = (client: { clientId: string }, ip: string, { headers }: IncomingMessage): AttemptOrigin => ({
  clientId: client.clientId,
  ip,
  requestId: [headers['x-request-id'] ?? []].flat()[0] ?? requestId(),
});

const BROWSER_COOKIE = 'erp_browser';
const BROWSER_KNOWN_SECONDS = 180 * 86_400;

/** By which a browser is known in which somebody has signed in. */
const browserOf = ({ headers }: IncomingMessage): string | null =>
  new RegExp(`(?:^|; *)${BROWSER_COOKIE}=([\\w-]{43})(?:;|$)`).exec(headers.cookie ?? '')?.[1] ?? null;

const browserCookie = (value: string): string =>
  `${BROWSER_COOKIE}=${value}; path=/; max-age=${BROWSER_KNOWN_SECONDS}; httponly; samesite=lax`;

const words = (value: unknown): string[] => (typeof value === 'string' ? value.split(' ').filter(Boolean) : []);

/** Handles one request to /oauth2/interaction/<uid>. Throws SessionNotFound when this browser did not start it. */
export async function interact(
  parts: InteractionParts,
  uid: string,
  form: Form | null,
  address: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Answer> {
  const { provider, clients, cookieKey } = parts;
  const interaction = await provider.interactionDetails(request, response);
  if (interaction.uid !== uid) throw new errors.SessionNotFound('interaction session not found');
  const client = await clients.find(String(interaction.params['client_id']));
  if (!client?.active) throw new errors.InvalidRequest('the client is switched off');
  // A yes counts for the client as it was when the page was shown.
  const shown = interaction.prompt.name === 'consent' ? ` ${marksOf(client).declaration}` : '';
  const csrf = csrfFor(cookieKey, `interaction ${uid}${shown}`);
  if (form && !isSameText(form.get('csrf') ?? '', csrf))
    throw new errors.InvalidRequest('the form is not from this page, or the application has changed since');
  const finish = async (result: Record<string, unknown>): Promise<Answer> => {
    const returnTo = new URL(await provider.interactionResult(request, response, result));
    return { redirect: returnTo.pathname + returnTo.search };
  };
  if (form?.get('decision') === 'cancel')
    return finish({ error: 'access_denied', error_description: 'The person did not allow it.' });

  const action = `/oauth2/interaction/${uid}`;
  const formTargets = interaction.deviceCode ? [] : formTarget(interaction.params['redirect_uri']);
  if (interaction.prompt.name === 'login') {
    const refused = (refusal: Refusal): void => parts.signInRefused(refusal, originOf(client, address, request));
    const step: SignInStep = {
      ...parts,
      uid,
      address,
      refused,
      clientTenantId: client.tenantId,
      secondFactorRequested: requestedAcrs(interaction.params).includes(MULTI_FACTOR_ACR),
      view: { action, csrf, formTargets },
      finish: ({ accountId, amr }) => finish({ login: { accountId, amr, acr: acrOf(amr) } }),
    };
    const next = await continueSignIn(step, form);
    if (next) return next;
    const hint = interaction.params['login_hint'];
    const view: pages.SignInView = {
      action,
      csrf,
      passkeyOptions: await parts.factors.passkeys.signInOptions(binding(step), null),
      clientName: client.name,
      username: form?.get('username') ?? (typeof hint === 'string' ? hint : ''),
      problem: null,
      formTargets,
    };
    if (!form) return pages.signIn(view);
    if (form.get('decision') === 'passkey') {
      const answer = await passkeySignIn(step, form.get('credential') ?? '');
      if ('refused' in answer) return pages.signIn({ ...view, problem: { kind: 'passkeyRefused' } });
      if ('waitSeconds' in answer)
        return pages.signIn({ ...view, problem: { kind: 'wait', seconds: answer.waitSeconds } });
      return answer;
    }
    const result = await signIn(parts, {
      username: form.get('username') ?? '',
      password: form.get('password') ?? '',
      address,
      browser: browserOf(request),
      tenantId: client.tenantId,
    });
    if (result.outcome !== 'signedIn') refused(result.refusal);
    if (result.outcome === 'refused') return pages.signIn({ ...view, problem: { kind: 'refused' } });
    if (result.outcome === 'wait') return pages.signIn({ ...view, problem: { kind: 'wait', seconds: result.seconds } });
    response.appendHeader('set-cookie', browserCookie(result.browser));
    return afterPassword(step, result.credential);
  }
  return consent(parts, interaction, client, form, { action, csrf, formTargets }, finish);
}

async function consent(
  { provider, store }: InteractionParts,
  interaction: Interaction,
  client: KnownClient,
  form: Form | null,
  view: { action: string; csrf: string; formTargets: readonly string[] },
  finish: (result: Record<string, unknown>) => Promise<Answer>,
): Promise<Answer> {
  const userId = interaction.session?.accountId;
  const credential = userId ? await store.credentials.byUser(userId) : null;
  // The provider checked this before; checked again here, because this is where access is given.
  if (!credential?.active || (client.tenantId !== null && client.tenantId !== credential.tenantId))
    throw new errors.SessionNotFound('the signed-in user cannot use this client');
  const scopes = words(interaction.params['scope']);
  if (form?.get('decision') !== 'allow') {
    const redirect = interaction.deviceCode ? null : URL.parse(String(interaction.params['redirect_uri'] ?? ''));
    return pages.consent({
      ...view,
      clientName: client.name,
      username: credential.username,
      scopes,
      redirectHost: redirect?.host || null,
    });
  }
  // Always a new grant: one authorization can end without another one of the same client.
  const grant = new provider.Grant({ accountId: credential.userId, clientId: client.clientId });
  grant.clientMarks = marksOf(client);
  grant.addOIDCScope(scopes.join(' '));
  grant.addResourceScope(apiResource(provider.issuer), scopes.filter((scope) => scope !== 'openid').join(' '));
  return finish({ consent: { grantId: await grant.save() } });
}
