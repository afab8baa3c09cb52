/**
 * A sign-in beyond the password: a passkey alone, the second factor of those who have one, and setting one up where it
 * is required. What a person has proved so far waits in the database, tied to the interaction, for ten minutes.
 */
import { homeNetworkOf } from '../../../lib/values/network.ts';
import type { Page } from '../../../web/sign-in/layout.ts';
import * as pages from '../../../web/sign-in/second-step.ts';
import type { Answer, Form } from '../form.ts';
import type { Outbox } from '../mail/outbox.ts';
import type { Refusal } from '../refusals.ts';
import type { Credential } from '../store/credentials.ts';
import type { UserKey } from '../store/factors.ts';
import { browserOrigin, networkOrigin } from '../store/known-origins.ts';
import type { AuthStore } from '../store/store.ts';
import { isMultiFactor, PASSWORD_AMR, passkeyAmr, withSecondFactor } from './assurance.ts';
import { attemptFactor } from './factor-attempts.ts';
import type { SecondFactors } from './factors.ts';
import { makeRecoveryCodes, spendRecoveryCode } from './recovery-codes.ts';

const PROGRESS_SECONDS = 600;
const WRONG: Readonly<Record<pages.StepAnswer, string>> = {
  code: 'The code is not right, or was used already. Wait for the next one and try again.',
  recovery: 'This is none of your recovery codes, or it was used already.',
  passkey: 'The passkey was not accepted. Try again.',
};
const NOT_CREATED = 'The passkey could not be stored. Try again.';

interface Progress extends UserKey {
  username: string;
  /** Of the user when the first factor was checked. */
  sessionGeneration: number;
  amr: readonly string[];
}

export interface SignInStep {
  store: AuthStore;
  factors: SecondFactors;
  uid: string;
  address: string;
  /** The value of the browser's cookie; null without one. */
  browser: string | null;
  /** The browser's User-Agent. */
  device: { browser: string | null; system: string | null };
  outbox: Outbox;
  /** Of a client that belongs to one tenant. */
  clientTenantId: string | null;
  /** The application asks for a second factor, whatever the tenant's setting is. */
  secondFactorRequested: boolean;
  view: { action: string; csrf: string; formTargets: readonly string[] };
  signedIn(tenantId: string, userId: string): void;
  /** The step was not passed. */
  refused(refusal: Refusal): void;
  /** The end of the sign-in when the tenant is suspended: only who has proved who they are learns of it. */
  refusedTenant(tenantId: string): Promise<Answer | null>;
  /** True when a user may sign in with a passkey, without the provider of their domain. */
  mayUsePasskey(user: Credential): Promise<boolean>;
  finish(login: { accountId: string; amr: readonly string[]; sessionGeneration: number }): Promise<Answer>;
}

/** The step after a form or a visit; null: the first page of a sign-in, for username and password. */
export async function continueSignIn(step: SignInStep, form: Form | null): Promise<Answer | null> {
  const decision = form?.get('decision') ?? null;
  if (decision === 'signIn') return null;
  const progress = await load(step);
  if (!progress) return null;
  if (!form) return currentPage(step, progress);
  switch (decision) {
    case 'restart':
      await forget(step);
      return { redirect: step.view.action };
    case 'passkey':
      return secondPasskey(step, progress, form.get('credential') ?? '');
    case 'code':
      return secondAnswer(step, progress, 'code', ['otp'], () =>
        step.factors.authenticators.verify(progress, form.get('code') ?? ''),
      );
    case 'recovery':
      return recoveryCode(step, progress, form.get('recovery') ?? '');
    case 'addPasskey':
    case 'addApp':
      return setUpFactor(step, progress, decision, form);
    case 'finish':
      return isMultiFactor(progress.amr) ? complete(step, progress) : currentPage(step, progress);
    default:
      return currentPage(step, progress);
  }
}

/** The password was right: the sign-in is complete, or the second factor comes next. */
export const afterPassword = (step: SignInStep, credential: Credential): Promise<Answer> =>
  afterFirstFactor(step, credential, PASSWORD_AMR);

/** A factor was right, or a provider has said who it is; `amr` says how. What proved two factors already is complete. */
export async function afterFirstFactor(
  step: SignInStep,
  credential: Credential,
  amr: readonly string[],
): Promise<Answer> {
  const { tenantId, userId, username, sessionGeneration } = credential;
  const refused = await step.refusedTenant(tenantId);
  if (refused) return refused;
  const progress: Progress = { tenantId, userId, username, sessionGeneration, amr };
  if (isMultiFactor(amr)) return complete(step, progress);
  const { passkeys, authenticator } = await step.store.factors.counts(progress);
  const has = passkeys > 0 || authenticator;
  const required = has || step.secondFactorRequested || (await step.factors.isDemanded(progress));
  if (!required) return complete(step, progress);
  await save(step, progress);
  return currentPage(step, progress);
}

/** Signs in with a passkey alone; null when it is not accepted. */
export async function passkeySignIn(
  step: SignInStep,
  answer: string,
): Promise<Answer | { refused: true } | { waitSeconds: number }> {
  const used: { credential: Credential; sessionGeneration: number; amr: string[] }[] = [];
  const judged = await attemptFactor(step.store, { ...step, user: null }, async () => {
    const passkey = await step.factors.passkeys.verify(binding(step), answer);
    const credential = passkey && (await step.store.credentials.find(passkey.tenantId, passkey.userId));
    const usable = credential?.active && (step.clientTenantId ?? credential.tenantId) === credential.tenantId;
    if (passkey && credential && usable && (await step.mayUsePasskey(credential)))
      used.push({ credential, sessionGeneration: passkey.sessionGeneration, amr: passkeyAmr(passkey) });
    return used.length > 0;
  });
  if (judged.outcome === 'wait') return { waitSeconds: judged.seconds };
  const [accepted] = used;
  if (!accepted) return { refused: true };
  const { sessionGeneration, amr } = accepted;
  const { tenantId, userId, username } = accepted.credential;
  const refused = await step.refusedTenant(tenantId);
  if (refused) return refused;
  await step.store.credentials.recordSignIn(tenantId, userId);
  return complete(step, { tenantId, userId, username, sessionGeneration, amr });
}

/** Of the challenges that are accepted in this sign-in. */
export const binding = ({ uid }: Pick<SignInStep, 'uid'>): string => `sign-in ${uid}`;

async function secondPasskey(step: SignInStep, progress: Progress, answer: string): Promise<Answer> {
  let second: string[] = [];
  return secondAnswer(
    step,
    progress,
    'passkey',
    () => second,
    async () => {
      const passkey = await step.factors.passkeys.verify(binding(step), answer);
      if (passkey?.userId !== progress.userId) return false;
      second = passkeyAmr(passkey);
      return true;
    },
  );
}

async function recoveryCode(step: SignInStep, progress: Progress, typed: string): Promise<Answer> {
  return secondAnswer(step, progress, 'recovery', [], () => spendRecoveryCode(step.store, progress, typed));
}

async function secondAnswer(
  step: SignInStep,
  progress: Progress,
  by: pages.StepAnswer,
  amr: readonly string[] | (() => readonly string[]),
  check: () => Promise<boolean>,
): Promise<Answer> {
  const judged = await attemptFactor(step.store, { ...step, user: progress }, check);
  const { tenantId, userId } = progress;
  if (judged.outcome !== 'accepted')
    step.refused({
      code: judged.outcome === 'wait' ? 'SIGN_IN_BLOCKED' : 'SECOND_FACTOR_WRONG',
      tenantId,
      userId,
    });
  if (judged.outcome === 'wait') return currentPage(step, progress, { by, kind: 'wait', seconds: judged.seconds });
  if (judged.outcome === 'refused') return currentPage(step, progress, { by, kind: 'refused', text: WRONG[by] });
  const second = typeof amr === 'function' ? amr() : amr;
  return complete(step, { ...progress, amr: withSecondFactor(progress.amr, second) });
}

/** Only for a user without a second factor: otherwise a password alone would be enough to add one. */
async function setUpFactor(
  step: SignInStep,
  progress: Progress,
  decision: 'addPasskey' | 'addApp',
  form: Form,
): Promise<Answer> {
  const { passkeys, authenticator } = await step.store.factors.counts(progress);
  if (passkeys > 0 || authenticator) return currentPage(step, progress);
  const byPasskey = decision === 'addPasskey';
  const judged = await attemptFactor(step.store, { ...step, user: progress }, () =>
    byPasskey
      ? step.factors.passkeys.register(progress, binding(step), form.get('credential') ?? '', '')
      : step.factors.authenticators.confirm(progress, form.get('setup') ?? '', form.get('code') ?? ''),
  );
  const by = byPasskey ? 'passkey' : 'code';
  if (judged.outcome === 'wait') return currentPage(step, progress, { by, kind: 'wait', seconds: judged.seconds });
  if (judged.outcome === 'refused') {
    const text = byPasskey ? NOT_CREATED : WRONG.code;
    return currentPage(step, progress, { by, kind: 'refused', text }, form.get('setup') ?? undefined);
  }
  const amr = withSecondFactor(progress.amr, byPasskey ? ['user'] : ['otp']);
  await save(step, { ...progress, amr });
  const codes = await makeRecoveryCodes(step.store, progress);
  return pages.recoveryCodes({ ...viewOf(step, progress), codes });
}

async function currentPage(
  step: SignInStep,
  progress: Progress,
  problem: pages.StepProblem = null,
  sealedSetup?: string,
): Promise<Page> {
  const view = viewOf(step, progress);
  if (isMultiFactor(progress.amr)) return pages.secondFactorReady(view);
  const { passkeys, authenticator, recoveryCodes } = await step.store.factors.counts(progress);
  if (passkeys > 0 || authenticator)
    return pages.secondStep({
      ...view,
      authenticator,
      recoveryCodes: recoveryCodes > 0,
      passkeyOptions: passkeys > 0 ? await step.factors.passkeys.signInOptions(binding(step), progress) : null,
      problem,
    });
  return pages.setUp({
    ...view,
    passkeyOptions: await step.factors.passkeys.registrationOptions(progress, binding(step)),
    setup: step.factors.authenticators.setup(progress, sealedSetup),
    problem,
  });
}

const viewOf = ({ view }: SignInStep, { username }: Progress): pages.StepView => ({ ...view, username });

async function complete(step: SignInStep, { tenantId, userId, amr, sessionGeneration }: Progress): Promise<Answer> {
  await forget(step);
  const refused = await step.refusedTenant(tenantId);
  if (refused) return refused;
  // Only now: who knows the password alone makes no browser known.
  const browser = step.browser === null ? null : browserOrigin(step.browser);
  const details = { ...step.device, network: homeNetworkOf(step.address) };
  await step.store.knownOrigins.signedIn(
    { tenantId, userId },
    { network: networkOrigin(step.address), browser, details },
    step.outbox,
  );
  step.signedIn(tenantId, userId);
  return step.finish({ accountId: userId, amr, sessionGeneration });
}

const MODEL = 'SignInProgress';

async function load({ store, uid }: SignInStep): Promise<Progress | null> {
  const found = await store.artifacts.find(MODEL, 'id', uid);
  if (!found) return null;
  const { tenantId, userId, username, sessionGeneration, amr } = found.payload;
  if (typeof tenantId !== 'string' || typeof userId !== 'string' || typeof username !== 'string') return null;
  if (typeof sessionGeneration !== 'number') return null;
  return { tenantId, userId, username, sessionGeneration, amr: Array.isArray(amr) ? amr.map(String) : [] };
}

/** The account's id makes the end of all sessions of a user end this as well. */
async function save({ store, uid }: SignInStep, progress: Progress): Promise<void> {
  const row = { model: MODEL, id: uid, payload: progress, grantId: null, uid: null, userCode: null, network: null };
  const of = { accountId: progress.userId, signIn: progress };
  await store.artifacts.save({ ...row, ...of }, PROGRESS_SECONDS, { replace: true });
}

const forget = ({ store, uid }: SignInStep): Promise<void> => store.artifacts.delete(MODEL, uid);
