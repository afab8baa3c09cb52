/** Every page of sign-in and account in each of its states, most of which a person reaches only with a device at hand. */
import { IDENTITY_SCOPES, SCOPES } from '../../lib/operation.ts';
import * as addresses from '../../web/account/address.ts';
import * as account from '../../web/account/page.ts';
import { type ConsentView, consent } from '../../web/consent/page.ts';
import { forgotten, noMails, requested } from '../../web/sign-in/forgotten.ts';
import * as pages from '../../web/sign-in/pages.ts';
import * as secondStep from '../../web/sign-in/second-step.ts';
import * as singleSignOn from '../../web/sign-in/single-sign-on.ts';

const step = (text: string): secondStep.StepView => ({ action: '/a', csrf: text, username: text, formTargets: [] });

const SIGN_ON_CODES = [
  'SINGLE_SIGN_ON_EXPIRED',
  'SINGLE_SIGN_ON_CANCELLED',
  'SINGLE_SIGN_ON_FAILED',
  'USER_UNKNOWN',
  'USER_INACTIVE',
  'IDENTITY_OF_ANOTHER',
  'IDENTITY_NOT_VERIFIED',
  'CLIENT_NOT_ALLOWED',
] as const;
/** From everything that can be asked for to a sign-in alone. */
function consentPages(text: string): pages.Page[] {
  const view: ConsentView = {
    action: '/a',
    csrf: text,
    clientName: text,
    agent: true,
    username: text,
    tenantName: text,
    resources: ['api', 'mcp'],
    scopes: [...Object.keys(IDENTITY_SCOPES), ...Object.keys(SCOPES), text],
    redirectHost: text,
    publishedAt: text,
    canSwitch: true,
    formTargets: [],
  };
  return [
    consent(view),
    consent({
      ...view,
      agent: false,
      resources: ['mcp'],
      scopes: ['setup:read', 'metadata:deploy'],
      canSwitch: false,
    }),
    consent({ ...view, agent: false, resources: [], scopes: ['openid', 'profile', 'email'], publishedAt: null }),
  ];
}

/** With this text wherever text comes from outside. */
export const signInPages = (text: string): pages.Page[] => [
  ...[
    null,
    { kind: 'refused' as const, provider: null },
    { kind: 'refused' as const, provider: text },
    { kind: 'passkeyRefused' as const },
    { kind: 'wait' as const, seconds: 3 },
  ].map((problem) =>
    pages.signIn({
      action: '/a',
      csrf: text,
      clientName: text,
      username: text,
      again: problem ? null : 'tooOld',
      demoPassword: problem ? null : text,
      forgotten: text,
      problem,
      passkeyOptions: text,
      formTargets: [],
    }),
  ),
  ...[null, { kind: 'empty' as const }, { kind: 'wait' as const, seconds: 3 }].map((problem) =>
    forgotten({ action: '/a', client: text, signIn: text, back: '/a', problem }),
  ),
  requested({ again: '/a', back: '/a' }),
  noMails(),
  ...[null, text].map((earlierAddress) =>
    addresses.address({ action: '/a', username: text, address: text, earlierAddress }),
  ),
  addresses.addressConfirmed(text),
  addresses.addressNotNotified(),
  ...[true, false].map((passwordReplaced) => addresses.addressRestored(text, { passwordReplaced })),
  addresses.addressLinkSpent(),
  ...[
    null,
    { by: 'code' as const, kind: 'refused' as const, text },
    { by: 'recovery' as const, kind: 'refused' as const, text },
    { by: 'passkey' as const, kind: 'wait' as const, seconds: 1 },
  ].flatMap((problem) => [
    secondStep.secondStep({
      ...step(text),
      authenticator: true,
      recoveryCodes: true,
      passkeyOptions: text,
      problem,
    }),
    secondStep.setUp({
      ...step(text),
      passkeyOptions: text,
      setup: { sealed: text, secret: text, qrCode: '<svg></svg>' },
      problem,
    }),
  ]),
  singleSignOn.departure({ label: text, url: new URL('https://login.corp.example/authorize?a=1&b="2"') }),
  singleSignOn.notAvailable({ label: text, back: '/a' }),
  singleSignOn.noPassword({ label: text }),
  ...SIGN_ON_CODES.map((code) => singleSignOn.refused({ code, label: text, username: text, back: '/a' })),
  secondStep.recoveryCodes({ ...step(text), codes: [text] }),
  secondStep.secondFactorReady(step(text)),
  ...[true, false].map((recent) =>
    account.account({
      action: '/a',
      csrf: text,
      username: text,
      tenantName: text,
      timezone: 'Europe/Berlin',
      recent,
      passkeysMax: 10,
      passkeys: [{ id: text, name: text, backedUp: true, createdAt: text, lastUsedAt: text }],
      authenticator: true,
      recoveryCodes: 3,
      connections: ['one', 'two', 'three'].map((id) => ({
        connectionId: id,
        clientId: id === 'three' ? 'other' : 'same',
        clientName: text,
        scopes: id === 'one' ? [...Object.keys(SCOPES), ...Object.keys(IDENTITY_SCOPES)] : ['data:read', text],
        createdAt: '2026-01-02T03:04:05Z',
        lastUsedAt: id === 'one' ? '2026-02-03T04:05:06Z' : null,
        agent: id === 'three',
      })),
      moreConnections: true,
      calendarLinkAt: recent ? '2026-03-04T05:06:07Z' : null,
      passkeyOptions: text,
      done: text,
      problem: recent ? text : null,
    }),
  ),
  account.calendarLink({ action: '/a', url: text }),
  account.setUpAppPage({
    action: '/a',
    csrf: text,
    username: text,
    setup: { sealed: text, secret: text, qrCode: '<svg></svg>' },
    problem: text,
  }),
  account.sessionsEnded('/a'),
  ...consentPages(text),
  pages.deviceCode(text, text),
  pages.deviceCode(text, text, 'NotFoundError'),
  pages.deviceConfirm(text, text, text),
  pages.deviceDone(text),
  pages.signOut(text),
  pages.signedOut(),
  pages.setPassword({ action: '/a', formToken: 'x', username: text, problem: text, minChars: 10 }),
  pages.passwordSet(text),
  pages.linkSpent(),
  ...[400, 404, 405, 503].map((status) => pages.failure({ code: text, description: text, status, requestId: text })),
  pages.unavailable(text),
];
