/** From the attributes of a user to the fields of its record. Pure. */

import { isObject } from '../../../lib/json/objects.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { IdentityProviderMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import { localeOf } from '../../../lib/values/locale.ts';
import { scimError, shown } from './errors.ts';
import type { Json } from './messages.ts';
import type { Attributes } from './patch.ts';
import type { StoredUser } from './provisioned.sql.ts';
import { type Attribute, COMMON_ATTRIBUTES, ENTERPRISE_ATTRIBUTES, USER_ATTRIBUTES } from './schema.ts';

/** Everything that a change of a user may name. */
export const USER_TABLE: readonly Attribute[] = [...COMMON_ATTRIBUTES, ...USER_ATTRIBUTES, ...ENTERPRISE_ATTRIBUTES];

/** Default profile of created users: it grants nothing. */
export const DEFAULT_PROFILE = 'Minimal';

const EXTERNAL_ID_MAX_CHARS = 255;

/** Fields of the User record. */
export interface UserFields {
  username?: string;
  displayName?: string;
  email?: string | null;
  active?: boolean;
  locale?: string | null;
  timezone?: string | null;
  managerId?: string | null;
  profileApiName?: string;
  roleApiName?: string | null;
}

/** The attributes of a stored user, as a PATCH changes them. */
export const storedAttributes = (user: StoredUser): Attributes => ({
  userName: user.username,
  displayName: user.displayName ?? user.username,
  name: nameParts(user.displayName ?? user.username),
  ...(user.email === null ? {} : { emails: [{ value: user.email, type: 'work', primary: true }] }),
  active: user.active,
  ...(user.locale === null ? {} : { locale: user.locale }),
  ...(user.timezone === null ? {} : { timezone: user.timezone }),
  entitlements: [{ value: user.profileApiName, type: 'profile', primary: true }],
  ...(user.roleApiName === null ? {} : { roles: [{ value: user.roleApiName, type: 'role', primary: true }] }),
  ...(user.managerId === null ? {} : { manager: { value: user.managerId } }),
  ...(user.externalId === null ? {} : { externalId: user.externalId }),
});

/**
 * The attributes of a user that a PUT replaces: what it does not name is cleared, but for what decides about access and
 * the name, without which no user can be.
 */
export const replacedAttributes = (user: StoredUser, given: Attributes): Attributes => {
  const { active, entitlements, roles, displayName, name, externalId } = storedAttributes(user);
  const names = given['displayName'] === undefined && given['name'] === undefined ? { displayName, name } : {};
  return {
    ...(given['displayName'] === undefined ? { displayName } : {}),
    ...names,
    active,
    entitlements,
    ...(roles === undefined ? {} : { roles }),
    ...(externalId === undefined ? {} : { externalId }),
    ...given,
  };
};

/** The fields that attributes stand for. `before`: what they were; of a new user nothing. */
export function fieldsOf(before: Attributes, after: Attributes): UserFields {
  const userName = after['userName'];
  if (typeof userName !== 'string' || userName.trim() === '')
    throw scimError('invalidValue', 'A user needs a userName.');
  const profile = oneOf(after['entitlements'], 'entitlements', 'profile');
  return {
    username: userName,
    displayName: nameOf(before, after) ?? userName,
    email: emailOf(after['emails']),
    active: after['active'] !== false,
    locale: languageOf(after['locale']),
    timezone: textOf(after['timezone']),
    managerId: managerOf(after['manager']),
    ...(profile === null ? {} : { profileApiName: profile }),
    roleApiName: oneOf(after['roles'], 'roles', 'role'),
  };
}

/** Only what differs. */
export function changedFields(before: UserFields, after: UserFields): UserFields {
  const known = new Map<string, unknown>(Object.entries(before));
  return Object.fromEntries(Object.entries(after).filter(([name, value]) => known.get(name) !== value));
}

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** Directories write en_US as well. What is no language tag is left for the rules of users to refuse. */
function languageOf(value: unknown): string | null {
  const text = textOf(value);
  return text === null ? null : (localeOf(text.replaceAll('_', '-')) ?? text);
}

/**
 * A name as clients take it apart: `Berg, Ana` has the family before the comma; else the family is the last word with
 * the words in lower case before it, as in `Ana van der Berg`.
 */
export function nameParts(name: string): { formatted: string; givenName: string; familyName: string } {
  const [family = '', given = '', ...more] = name.split(',').map((part) => part.trim());
  if (family !== '' && given !== '' && more.length === 0)
    return { formatted: name, givenName: given, familyName: family };
  const words = wordsOf(name);
  let at = Math.max(0, words.length - 1);
  while (at > 1 && IN_LOWER_CASE.test(words[at - 1] ?? '')) at--;
  const familyName = words.slice(at).join(' ');
  return { formatted: name, givenName: at === 0 ? familyName : words.slice(0, at).join(' '), familyName };
}

const IN_LOWER_CASE = /^\p{Ll}/u;
const wordsOf = (text: string): string[] => text.split(/[\s,]+/).filter((word) => word !== '');

const IN_BRACKETS = /\([^()]*\)/g;

/** True when a name consists of its parts, in any order, besides remarks such as `(External)`. */
function saysTheSame(name: string, parts: readonly string[]): boolean {
  const isRemark = !parts.some((part) => part.includes('('));
  const left = new Map<string, number>();
  for (const word of wordsOf(isRemark ? name.replace(IN_BRACKETS, ' ') : name))
    left.set(word, (left.get(word) ?? 0) + 1);
  for (const word of parts.flatMap(wordsOf)) {
    const count = left.get(word) ?? 0;
    if (count === 0) return false;
    left.set(word, count - 1);
  }
  return [...left.values()].every((count) => count === 0);
}

/** displayName and name are one text: the part of it that was changed decides, else whichever is there. */
function nameOf(before: Attributes, after: Attributes): string | null {
  const display = textOf(after['displayName']);
  const name = isObject(after['name']) ? after['name'] : {};
  const earlier = isObject(before['name']) ? before['name'] : {};
  if (display !== null && display !== before['displayName']) return display;
  const formatted = textOf(name['formatted']);
  if (formatted !== null && formatted !== earlier['formatted']) return formatted;
  const parts = ['givenName', 'familyName'].flatMap((part) => textOf(name[part]) ?? []);
  const changed = ['givenName', 'familyName'].some((part) => name[part] !== undefined && name[part] !== earlier[part]);
  const now = display ?? formatted;
  if (parts.length === 0 || !changed) return now;
  // A directory whose displayName is `Berg, Ana` goes on sending the parts: they must not undo it.
  if (now !== null && saysTheSame(now, parts)) return now;
  return now !== null && /^[^,]+,[^,]+$/.test(now) ? parts.toReversed().join(', ') : parts.join(' ');
}

/** The primary address, else the first. */
function emailOf(value: unknown): string | null {
  const emails = itemsOf(value);
  return textOf((emails.find((one) => one['primary'] === true) ?? emails[0])?.['value']);
}

const itemsOf = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);

function managerOf(value: unknown): string | null {
  return isObject(value) ? textOf(value['value']) : null;
}

/** The value of an attribute that can have one; null: none. */
function oneOf(value: unknown, name: string, type: string): string | null {
  const items = itemsOf(value).filter((one) => textOf(one['value']) !== null);
  const other = items.find((one) => one['type'] !== undefined && String(one['type']).toLowerCase() !== type);
  if (other) throw scimError('invalidValue', `${name} are of the type ${type}, not ${shown(other['type'])}.`);
  const chosen = items.length > 1 ? items.filter((one) => one['primary'] === true) : items;
  if (chosen.length > 1 || (items.length > 1 && chosen.length === 0))
    throw scimError('invalidValue', `A user has one ${type}: mark one of ${name} as primary.`);
  return textOf(chosen[0]?.['value']);
}

/** The client's external id of the user; throws invalidValue. */
export function externalIdOf(attributes: Attributes): string | null {
  const value = textOf(attributes['externalId']);
  if (value !== null && value.length > EXTERNAL_ID_MAX_CHARS)
    throw scimError('invalidValue', `externalId may have at most ${EXTERNAL_ID_MAX_CHARS} characters.`);
  return value;
}

/**
 * Profile and role of a user who is created without: what the identity provider of their domain gives to users who sign
 * in for the first time, else the profile that gives nothing.
 */
export function defaultsFor(
  snapshot: Snapshot,
  { username = '', email }: UserFields,
): { profileApiName: string; roleApiName: string | null } {
  const domains = new Set([username, email ?? ''].map(domainOf));
  const provider = Object.values(snapshot.identityProviders).find(
    (one: IdentityProviderMeta) =>
      one.active && one.createUsers !== null && one.domains.some((domain) => domains.has(domain.toLowerCase())),
  );
  if (provider?.createUsers) return provider.createUsers;
  if (ownEntry(snapshot.profiles, DEFAULT_PROFILE)) return { profileApiName: DEFAULT_PROFILE, roleApiName: null };
  throw scimError(
    'invalidValue',
    `The user needs a profile: send entitlements, because the tenant has no profile ${DEFAULT_PROFILE}.`,
  );
}

const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1).toLowerCase();
