/**
 * The steps between an authorization request and its answer: a person signs in and allows access or refuses it. The
 * request waits in the provider's Interaction, tied to this browser by a cookie; forms are refused unless they come
 * from a page that this server gave to this browser.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { errors, type Interaction, type Provider } from 'oidc-provider';
import { MULTI_FACTOR_ACR } from '../../contracts/auth.ts';
import { marksOf } from '../../lib/access/client-marks.ts';
import type { ExternalClientMeta } from '../../lib/schema/snapshot.ts';
import { requestId } from '../../lib/values/ids.ts';
import { USERNAME_MAX_CHARS } from '../../lib/values/user-names.ts';
import { consent as consentPage } from '../../web/consent/page.ts';
import { formTarget } from '../../web/sign-in/layout.ts';
import * as pages from '../../web/sign-in/pages.ts';
import * as singleSignOnPages from '../../web/sign-in/single-sign-on.ts';
import { type Clients, hasDocument, type KnownClient } from './clients.ts';
import { csrfFor, isSameText } from './csrf.ts';
import { acrOf, isMultiFactor } from './factors/assurance.ts';
import type { SecondFactors } from './factors/factors.ts';
import {
  afterFirstFactor,
  afterPassword,
  binding,
  continueSignIn,
  passkeySignIn,
  type SignInStep,
} from './factors/sign-in-steps.ts';
import { forgottenAddress } from './forgotten-page.ts';
import type { Answer, Form } from './form.ts';
import { deviceOf } from './mail/device.ts';
import type { Mail } from './mail/mail.ts';
import { signIn } from './passwords.ts';
import { declaredScopes } from './provider/metadata-documents.ts';
import { apiResource, interactionPath, PATHS, resourceAt } from './provider/paths.ts';
import { forAssistants, isIdentityScope } from './provider/scopes.ts';
import { requestedAcrs } from './provider/step-up.ts';
import { SUSPENDED_DESCRIPTION, SUSPENDED_ERROR } from './provider/suspended.ts';
import type { AttemptOrigin, Refusal } from './refusals.ts';
import type { TenantProvider } from './single-sign-on/providers.ts';
import type { SingleSignOn } from './single-sign-on/single-sign-on.ts';
import type { AuthStore } from './store/store.ts';

interface InteractionParts {
  provider: Provider;
  store: AuthStore;
  clients: Clients;
  factors: SecondFactors;
  singleSignOn: SingleSignOn;
  cookieKey: string;
  mail: Mail;
  /** Shown where people sign in; null: it is not public, or there is no demo. */
  demoPassword: string | null;
  /** A person has just signed in. */
  signedIn(tenantId: string, userId: string): void;
  /** A sign-in was refused. */
  signInRefused(refusal: Refusal, origin: AttemptOrigin): void;
}

const originOf = (client: { clientId: string }, ip: string, { headers }: IncomingMessage): AttemptOrigin => ({
  clientId: client.clientId,
  ip,
  requestId: [headers['x-request-id'] ?? []].flat()[0] ?? requestId(),
});

const BROWSER_COOKIE = 'erp_browser';
const BROWSER_KNOWN_SECONDS = 180 * 86_400;

/** Cookie of a browser with a past sign-in. */
export const browserIn = ({ cookie }: { cookie?: string | string[] | undefined }): string | null =>
  new RegExp(`(?:^|; *)${BROWSER_COOKIE}=([\\w-]{43})(?:;|$)`).exec([cookie ?? []].flat().join('; '))?.[1] ?? null;
export const browserOf = ({ headers }: IncomingMessage): string | null => browserIn(headers);

const browserCookie = (value: string): string =>
  `${BROWSER_COOKIE}=${value}; path=/; max-age=${BROWSER_KNOWN_SECONDS}; httponly; samesite=lax`;

const words = (value: unknown): string[] => (typeof value === 'string' ? value.split(' ').filter(Boolean) : []);

/** One request of a user who signs in or is asked for consent. */
interface Visit {
  parts: InteractionParts;
  interaction: Interaction;
  client: KnownClient;
  form: Form | null;
  address: string;
  request: IncomingMessage;
  response: ServerResponse;
  view: { action: string; csrf: string; formTargets: readonly string[] };
  /** Ends the interaction with what has come of it. */
  finish(result: Record<string, unknown>): Promise<Answer>;
}

/** Handles one request to /oauth2/interaction/<uid>. Throws SessionNotFound when this browser did not start it. */
export async function interact(
  parts: InteractionParts,
  uid: string,
  form: Form | null,
  address: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Answer> {
  const { provider, cookieKey } = parts;
  const interaction = await provider.interactionDetails(request, response);
  if (interaction.uid !== uid) throw new errors.SessionNotFound('interaction session not found');
  const client = await clientOf(parts, interaction);
  if (!client?.active) throw new errors.InvalidRequest('the client is switched off');
  // A yes counts for the client as it was when the page was shown.
  const shown = interaction.prompt.name === 'consent' ? ` ${marksOf(client).declaration}` : '';
  const csrf = csrfFor(cookieKey, `interaction ${uid}${shown}`);
  if (form && !isSameText(form.get('csrf') ?? '', csrf))
    throw new errors.InvalidRequest('the form is not from this page, or the application has changed since');
  const formTargets = interaction.deviceCode ? [] : formTarget(interaction.params['redirect_uri']);
  const view = { action: interactionPath(uid), csrf, formTargets };
  const finish = async (result: Record<string, unknown>): Promise<Answer> => {
    const returnTo = new URL(await provider.interactionResult(request, response, result));
    return { redirect: returnTo.pathname + returnTo.search };
  };
  if (form?.get('decision') === 'cancel')
    return finish({ error: 'access_denied', error_description: 'The person did not allow it.' });
  const visit: Visit = { parts, interaction, client, form, address, request, response, view, finish };
  return interaction.prompt.name === 'login' ? login(visit) : consent(visit);
}

/** A client that several tenants may have is found as that of the person who has signed in. */
async function clientOf(
  { clients, store }: InteractionParts,
  { params, session }: Interaction,
): Promise<KnownClient | null> {
  const clientId = String(params['client_id']);
  const user = hasDocument(clientId) && session ? await store.credentials.byUser(session.accountId) : null;
  const ofTenant = user ? await clients.find(clientId, user.tenantId) : null;
  return ofTenant?.active ? ofTenant : clients.find(clientId);
}

/** The first page of a sign-in, or the step that has been reached. */
async function login(visit: Visit): Promise<Answer> {
  const { parts, client, form, request } = visit;
  const step = signInStep(visit);
  const answer = form ? null : answerOfProvider(request);
  if (answer) return afterProvider(visit, step, answer);
  const next = await continueSignIn(step, form);
  if (next) return next;
  const view = await signInView(visit, step);
  if (!form) return pages.signIn(view);
  if (form.get('decision') === 'passkey') return byPasskey(visit, step, view, form.get('credential') ?? '');
  // The page after a name depends on its domain, not on whether the user exists.
  const provider = await parts.singleSignOn.providerOf(form.get('username') ?? '', client.tenantId);
  if (provider && !form.get('password')) return toProvider(visit, provider, view);
  return byPassword(visit, step, view, form, provider);
}

/** The provider's answer in the browser's return; null: the browser comes from elsewhere. */
function answerOfProvider({ url }: IncomingMessage): URLSearchParams | null {
  const query = new URLSearchParams(url?.split('?')[1] ?? '');
  return query.has('state') ? query : null;
}

/** On the way to the provider, by a page: browsers do not let a form lead to an address that its page did not name. */
async function toProvider(visit: Visit, provider: TenantProvider, view: pages.SignInView): Promise<Answer> {
  const { parts, interaction, address } = visit;
  const { params, prompt } = interaction;
  const maxAge = Number(params['max_age'] ?? params['oauth_max_age'] ?? Number.NaN);
  const url = await parts.singleSignOn.depart(provider, {
    uid: interaction.uid,
    address,
    baseUrl: parts.provider.issuer,
    loginHint: view.username.trim().slice(0, USERNAME_MAX_CHARS),
    maxAge: Number.isSafeInteger(maxAge) && maxAge >= 0 ? maxAge : null,
    again: prompt.reasons.includes('login_prompt'),
    secondFactor: requestedAcrs(params).includes(MULTI_FACTOR_ACR),
  });
  const { label } = provider.meta;
  return url === null
    ? singleSignOnPages.notAvailable({ label, back: view.action })
    : singleSignOnPages.departure({ label, url });
}

/** A person has come back from the provider. */
async function afterProvider(visit: Visit, step: SignInStep, answer: URLSearchParams): Promise<Answer> {
  const { parts, interaction, client, view, finish } = visit;
  const { uid } = interaction;
  const result = await parts.singleSignOn.arrive({ uid, baseUrl: parts.provider.issuer, answer });
  if ('refused' in result) {
    const { refused: code, provider, userId, username } = result;
    // The page of the next step, loaded again.
    if (code === 'SINGLE_SIGN_ON_EXPIRED') return (await continueSignIn(step, null)) ?? expiredPage(view.action);
    if (code !== 'SINGLE_SIGN_ON_CANCELLED') step.refused({ code, tenantId: provider?.tenantId ?? null, userId });
    const label = provider?.meta.label ?? '';
    return singleSignOnPages.refused({ code, label, username, back: view.action });
  }
  const { tenantId, userId } = 'suspended' in result ? { tenantId: result.suspended, userId: null } : result.credential;
  if ((client.tenantId ?? tenantId) !== tenantId) {
    step.refused({ code: 'CLIENT_NOT_ALLOWED', tenantId, userId });
    return singleSignOnPages.refused({ code: 'CLIENT_NOT_ALLOWED', label: '', username: null, back: view.action });
  }
  // When the tenant has just been resumed, the person begins anew.
  if ('suspended' in result) return (await step.refusedTenant(tenantId)) ?? expiredPage(view.action);
  const { credential, amr, authTime } = result;
  await parts.store.credentials.recordSignIn(tenantId, credential.userId);
  const asSigned: SignInStep['finish'] = async (login) =>
    (await mayUse(visit, login.accountId))
      ? finish({ login: { ...login, acr: acrOf(login.amr), ...(authTime === null ? {} : { ts: authTime }) } })
      : step.finish(login);
  // A factor added here proves the person now.
  const isComplete = isMultiFactor(amr);
  return afterFirstFactor({ ...step, finish: isComplete ? asSigned : step.finish }, credential, amr);
}

const expiredPage = (back: string): Answer =>
  singleSignOnPages.refused({ code: 'SINGLE_SIGN_ON_EXPIRED', label: '', username: null, back });

function signInStep(visit: Visit): SignInStep {
  const { parts, interaction, client, address, request, view, finish } = visit;
  return {
    ...parts,
    uid: interaction.uid,
    address,
    browser: browserOf(request),
    refused: (refusal) => parts.signInRefused(refusal, originOf(client, address, request)),
    refusedTenant: async (tenantId) =>
      (await parts.clients.isSuspended(tenantId))
        ? finish({ error: SUSPENDED_ERROR, error_description: SUSPENDED_DESCRIPTION })
        : null,
    clientTenantId: client.tenantId,
    outbox: parts.mail.outbox,
    device: deviceOf(request.headers['user-agent'] ?? ''),
    secondFactorRequested: requestedAcrs(interaction.params).includes(MULTI_FACTOR_ACR),
    view,
    mayUsePasskey: async (user) => (await parts.singleSignOn.replacesPassword(user)) === null,
    finish: async (login) =>
      (await mayUse(visit, login.accountId))
        ? finish({ login: { ...login, acr: acrOf(login.amr) } })
        : finish({ error: 'access_denied', error_description: 'The tenant of the user has no such client.' }),
  };
}

/** True when the user's tenant has the client, for clients of no particular tenant. */
async function mayUse({ parts, client, address, request }: Visit, userId: string): Promise<boolean> {
  if (!hasDocument(client.clientId)) return true;
  const user = await parts.store.credentials.byUser(userId);
  if (!user) return false;
  const { tenantId } = user;
  if ((await parts.clients.find(client.clientId, tenantId))?.active) return true;
  parts.signInRefused({ tenantId, userId, code: 'CLIENT_NOT_ALLOWED' }, originOf(client, address, request));
  return false;
}

async function signInView(visit: Visit, step: SignInStep): Promise<pages.SignInView> {
  const { parts, interaction, client, form, view } = visit;
  const again = askedAgain(interaction);
  return {
    ...view,
    passkeyOptions: await parts.factors.passkeys.signInOptions(binding(step), null),
    clientName: client.name,
    username: form?.get('username') ?? (await expectedUsername(visit, again !== null)),
    again,
    demoPassword: parts.demoPassword,
    forgotten: parts.mail.outbox.enabled
      ? forgottenAddress({ client: client.clientId, signIn: interaction.uid })
      : null,
    problem: null,
  };
}

/** The reason why a signed-in user must sign in again. */
function askedAgain({ prompt: { reasons }, session }: Interaction): pages.SignInView['again'] {
  if (!session?.accountId || reasons.includes('account_not_usable')) return null;
  if (reasons.includes('second_factor_missing')) return 'tooWeak';
  return reasons.includes('max_age') || reasons.includes('sign_in_too_old') ? 'tooOld' : null;
}

/** The user that the application expects, or who has signed in with this browser. */
async function expectedUsername({ parts, interaction }: Visit, again: boolean): Promise<string> {
  const hint = interaction.params['login_hint'];
  if (typeof hint === 'string') return hint;
  const userId = again ? interaction.session?.accountId : undefined;
  return (userId && (await parts.store.credentials.byUser(userId))?.username) || '';
}

async function byPasskey(
  { response }: Visit,
  step: SignInStep,
  view: pages.SignInView,
  credential: string,
): Promise<Answer> {
  const browser = step.browser ?? randomBytes(32).toString('base64url');
  const answer = await passkeySignIn({ ...step, browser }, credential);
  if ('refused' in answer) return pages.signIn({ ...view, problem: { kind: 'passkeyRefused' } });
  if ('waitSeconds' in answer) return pages.signIn({ ...view, problem: { kind: 'wait', seconds: answer.waitSeconds } });
  response.appendHeader('set-cookie', browserCookie(browser));
  return answer;
}

async function byPassword(
  visit: Visit,
  step: SignInStep,
  view: pages.SignInView,
  form: Form,
  provider: TenantProvider | null,
): Promise<Answer> {
  const { parts, client, address, request, response } = visit;
  const breaksGlass = provider?.meta.passwordSignIn === false;
  const result = await signIn(parts, {
    username: form.get('username') ?? '',
    password: form.get('password') ?? '',
    address,
    browser: browserOf(request),
    mayUsePassword: breaksGlass ? (user) => parts.singleSignOn.mayBreakGlass(user) : null,
    tenantId: client.tenantId,
  });
  if (result.outcome !== 'signedIn') step.refused(result.refusal);
  if (result.outcome === 'refused')
    return pages.signIn({ ...view, problem: { kind: 'refused', provider: provider?.meta.label ?? null } });
  if (result.outcome === 'wait') return pages.signIn({ ...view, problem: { kind: 'wait', seconds: result.seconds } });
  response.appendHeader('set-cookie', browserCookie(result.browser));
  const secondFactorRequested = step.secondFactorRequested || breaksGlass;
  return afterPassword({ ...step, browser: result.browser, secondFactorRequested }, result.credential);
}

/**
 * The same request from its beginning, so that another person can sign in. A device cannot: its code was used to get here.
 */
async function signInAnew(interaction: Interaction): Promise<Answer> {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(interaction.params))
    if (value !== undefined && name !== 'prompt' && name !== 'login_hint')
      for (const one of [value].flat()) parameters.append(name, String(one));
  const prompts = words(interaction.params['prompt']).filter((prompt) => prompt !== 'login');
  parameters.set('prompt', ['login', ...prompts].join(' '));
  await interaction.destroy();
  return { redirect: `${PATHS.authorization}?${parameters}` };
}

async function consent({ parts, interaction, client, form, view, finish }: Visit): Promise<Answer> {
  if (form?.get('decision') === 'switch' && !interaction.deviceCode) return signInAnew(interaction);
  const { provider, store } = parts;
  const userId = interaction.session?.accountId;
  const session = interaction.session && (await provider.Session.findByUid(interaction.session.uid));
  const credential = userId ? await store.credentials.byUser(userId) : null;
  // The provider checked this before; checked again here, because this is where access is given.
  if (!credential?.active || 'document' in client || (client.tenantId ?? credential.tenantId) !== credential.tenantId)
    throw new errors.SessionNotFound('the signed-in user cannot use this client');
  // The provider has checked which resources the client asks for.
  const { resource = apiResource(provider.issuer) } = interaction.params;
  const addresses = [resource].flat().map(String);
  const resources = addresses.flatMap((address) => resourceAt(provider.issuer, address) ?? []);
  const requested = words(interaction.params['scope']);
  const withheld = [
    ...(hasDocument(client.clientId) ? undeclared(requested, client.meta) : []),
    ...(resources.includes('api') ? [] : uselessForAssistants(requested)),
  ];
  const scopes = requested.filter((scope) => !withheld.includes(scope));
  if (form?.get('decision') !== 'allow') {
    const tenant = await parts.clients.tenant({ tenantId: credential.tenantId });
    const redirect = interaction.deviceCode ? null : URL.parse(String(interaction.params['redirect_uri'] ?? ''));
    return consentPage({
      ...view,
      clientName: client.name,
      agent: client.meta?.agent ?? false,
      username: credential.username,
      tenantName: tenant?.name ?? '',
      resources,
      scopes,
      redirectHost: redirect?.host || null,
      publishedAt: hasDocument(client.clientId) ? new URL(client.clientId).host : null,
      canSwitch: !interaction.deviceCode,
    });
  }
  // Always a new grant: one authorization can end without another one of the same client.
  const grant = new provider.Grant({ accountId: credential.userId, clientId: client.clientId });
  grant.clientMarks = marksOf(client);
  grant.sessionGeneration = session?.sessionGeneration;
  grant.addOIDCScope(scopes.join(' '));
  grant.rejectOIDCScope(withheld.join(' '));
  const given = scopes.filter((scope) => !isIdentityScope(scope)).join(' ');
  for (const one of addresses) {
    grant.addResourceScope(one, given);
    grant.rejectResourceScope(one, withheld.join(' '));
  }
  return finish({ consent: { grantId: await grant.save() } });
}

/** Scopes that a client with a metadata document requests beyond those that the tenant allows. */
const undeclared = (requested: readonly string[], meta: ExternalClientMeta | null): string[] => {
  const declared = meta === null ? [] : declaredScopes(meta);
  return requested.filter((scope) => scope !== 'openid' && !declared.includes(scope));
};

/** Scopes that tokens for the assistants' endpoint cannot have: consent is not requested for them. */
const uselessForAssistants = (requested: readonly string[]): string[] => {
  const useful = forAssistants(requested);
  return requested.filter((scope) => scope !== 'openid' && !useful.includes(scope));
};
