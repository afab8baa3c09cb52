/**
 * Makes a mail from its row in the outbox at the moment at which it is sent: in the language of its user, with a link
 * that exists from now on. A mail that has become needless meanwhile is none.
 */
import { createHash, randomBytes } from 'node:crypto';
import { NOTIFICATIONS } from '../../../contracts/auth.ts';
import type { UserIdentity } from '../../../contracts/data.ts';
import { type Repetition, WEEKDAYS } from '../../../lib/repetition.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import {
  looksLikeLink,
  looksLikeName,
  looksLikeUsername,
  mailAddress,
  nameInMail,
} from '../../../lib/values/mail-address.ts';
import { dayIn, spanIn, timeIn } from '../../../lib/values/words-of-time.ts';
import type { Clients } from '../clients.ts';
import type { Credential } from '../store/credentials.ts';
import type { AuthStore } from '../store/store.ts';
import { signInName } from '../usernames.ts';
import { MAIL_KINDS, type MailedEvent, type MailedRequest } from './kinds.ts';
import type { Language, MailValues } from './languages/language.ts';
import { languageOf } from './languages/languages.ts';
import type { TakenMail } from './outbox.ts';
import { render } from './render.ts';
import type { Message } from './transport.ts';

const NAME_MAX_CHARS = 80;

/** Where links that end mails about notifications lead, with their token. */
export const UNSUBSCRIBE_ROOT = '/account/mails/';

interface MessageParts {
  readonly store: AuthStore;
  readonly clients: Clients;
  /** Public address of the platform, to which every link leads. */
  baseUrl(): string;
  user(of: { tenantId: string; userId: string }): Promise<UserIdentity | null>;
  /** True when the user may get a link that chooses a password. */
  mayHavePassword(user: Pick<Credential, 'tenantId' | 'userId' | 'username'>): Promise<boolean>;
}

/** The mail; null: it is no longer needed. */
export async function messageFor(parts: MessageParts, mail: TakenMail): Promise<Message | null> {
  const { tenantId, userId, kind, details } = mail;
  const [credential, tenant] = await Promise.all([
    parts.store.credentials.find(tenantId, userId),
    parts.clients.tenant({ tenantId }),
  ]);
  if (!credential || !tenant || tenant.suspended) return null;
  if (!(await isNeeded(parts, mail, credential))) return null;
  const user = await parts.user({ tenantId, userId });
  const language = languageOf(user?.locale, tenant.locale);
  const typed = await signInName(credential, parts);
  const inWords = (at: number): string => timeIn(language.tag, user?.timezone ?? tenant.timezone, at);
  const { linkSeconds } = MAIL_KINDS[kind];
  const link =
    kind === 'approvalRequested'
      ? `${parts.baseUrl()}/approvals/${details.approvalId}`
      : kind === 'notification'
        ? `${parts.baseUrl()}${NOTIFICATIONS.path}`
        : linkSeconds === null
          ? null
          : await linkFor(parts, mail, credential, linkSeconds);
  if (linkSeconds !== null && link === null) return null;
  const { notifications = null } = details;
  const unsubscribe = notifications && `${parts.baseUrl()}${UNSUBSCRIBE_ROOT}${notifications.unsubscribe}`;
  const { calendar = null } = details;
  const owner = personName(user?.displayName);
  // A mail about an event goes to somebody else than the user.
  const shownName = calendar ? null : owner;
  const values = {
    name: shownName,
    tenant: nameInMail(tenant.name, NAME_MAX_CHARS),
    signInName: looksLikeUsername(credential.username) ? nameInMail(typed, 4 * NAME_MAX_CHARS) : null,
    host: new URL(parts.baseUrl()).host,
    linkEnds: linkSeconds === null ? null : inWords(platformTime() + linkSeconds * 1_000),
    at: details.at === undefined ? null : inWords(Date.parse(details.at)),
    newAddress: details.newAddress ?? null,
    browser: details.browser ?? null,
    system: details.system ?? null,
    network: details.network ?? null,
    request: details.request === undefined ? null : requestIn(details.request, inWords),
    notifications,
    unsubscribe,
    event: calendar && eventIn(calendar, language, { name: owner, address: credential.email }),
  };
  return {
    id: mail.id,
    kind,
    to: { name: shownName ?? '', address: mail.address },
    language: language.tag,
    unsubscribe,
    replyTo: calendar && { name: owner ?? '', address: credential.email },
    calendar: calendar && { method: calendar.method, content: calendar.ics },
    ...render(language, language.kinds[kind](values), values, link),
  };
}

/** The name as it may stand in a mail; null: a stranger's words in our mail would be believed. */
export function personName(text: string | undefined): string | null {
  const name = nameInMail(text ?? '', NAME_MAX_CHARS);
  return looksLikeName(name) ? name : null;
}

const EVENT_TEXT_MAX_CHARS = 200;

function eventIn(
  { method, again, title, location, startAt, endAt, timezone, repetition = null }: MailedEvent,
  language: Language,
  { name, address }: { name: string | null; address: string },
): MailValues['event'] {
  return {
    change: method === 'CANCEL' ? 'canceled' : again ? 'changed' : 'invited',
    title: nameInMail(title, EVENT_TEXT_MAX_CHARS),
    location: location === null ? null : nameInMail(location, EVENT_TEXT_MAX_CHARS),
    when: spanIn(language.tag, timezone, Date.parse(startAt), Date.parse(endAt)),
    repeats: repetition && repetitionIn(repetition, language),
    organizer: name === null ? address : `${name} (${address})`,
  };
}

function repetitionIn({ pattern, count, until, exceptions }: Repetition, { tag, repetition }: Language): string {
  // The first day of 2024 is a Monday.
  const day = new Intl.DateTimeFormat(tag, { weekday: 'long', timeZone: 'UTC' });
  const days = (pattern?.weekdays ?? []).map((one) => day.format(Date.UTC(2024, 0, 1 + WEEKDAYS.indexOf(one))));
  return repetition({
    every: pattern && { ...pattern, weekdays: new Intl.ListFormat(tag).format(days) },
    count,
    until: until === null ? null : dayIn(tag, Date.parse(until)),
    exceptions,
  });
}

/** The words of a client or a user reach readers who believe a mail of ours: what is no name is left out. */
function requestIn(request: MailedRequest, inWords: (at: number) => string): MailValues['request'] {
  const { agentKey, operationId, summary, expiresAt } = request;
  return {
    clientName: personName(request.clientName),
    agentKey: looksLikeLink(agentKey) ? '…' : agentKey,
    inNameOf: personName(request.inNameOf),
    operationId,
    summary: nameInMail(summary, 2 * NAME_MAX_CHARS),
    until: inWords(Date.parse(expiresAt)),
  };
}

const isSameAddress = (one: string, other: string | null): boolean =>
  other !== null && one.toLowerCase() === mailAddress(other)?.toLowerCase();

/** True while the mail's reason and address still hold. */
async function isNeeded(
  { clients, mayHavePassword }: MessageParts,
  { tenantId, kind, address, details }: TakenMail,
  credential: Credential,
): Promise<boolean> {
  switch (kind) {
    case 'invitation':
      return (
        credential.active &&
        credential.passwordHash === null &&
        isSameAddress(address, credential.email) &&
        !(await clients.isIntegrationUser(tenantId, credential.username)) &&
        mayHavePassword(credential)
      );
    case 'passwordReset':
      return credential.active && isSameAddress(address, credential.email) && mayHavePassword(credential);
    case 'addressConfirmation':
      return credential.active && isSameAddress(address, credential.pendingEmail);
    case 'addressChanged':
      return (
        isSameAddress(address, credential.email) && isSameAddress(details.newAddress ?? '', credential.pendingEmail)
      );
    case 'notification':
      return credential.active && isSameAddress(address, credential.email) && details.notifications !== undefined;
    case 'calendarEvent':
      return credential.active && details.calendar !== undefined;
    case 'approvalRequested':
      return (
        credential.active &&
        isSameAddress(address, credential.email) &&
        details.request !== undefined &&
        Date.parse(details.request.expiresAt) > platformTime()
      );
    default:
      return true;
  }
}

/**
 * A new link each time: nothing from which one could be made is stored. An earlier one may have arrived as well. Null: the
 * address has changed meanwhile.
 */
async function linkFor(
  { store, baseUrl }: MessageParts,
  mail: TakenMail,
  { email }: Credential,
  validSeconds: number,
): Promise<string | null> {
  const { tenantId, userId, kind, address, details } = mail;
  const token = randomBytes(32).toString('base64url');
  const tokenHash = createHash('sha256').update(token).digest();
  if (kind === 'invitation' || kind === 'passwordReset') {
    const stored = await store.credentials.createMailedLink({ tenantId, userId, tokenHash, email }, validSeconds);
    return stored ? `${baseUrl()}/password/${token}` : null;
  }
  const changed =
    kind === 'addressConfirmation'
      ? { address, earlierAddress: null }
      : { address: details.newAddress ?? '', earlierAddress: address };
  await store.addresses.createLink({ tenantId, userId, tokenHash, ...changed }, validSeconds);
  return `${baseUrl()}/account/address/${token}`;
}
