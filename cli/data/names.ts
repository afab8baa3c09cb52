/** Names in the place of ids: users by their usernames on the way in, records by their names on the way out. */
import { LIMITS } from '../../lib/limits.ts';
import { isUuid } from '../../lib/values/ids.ts';
import { ApiFailure, EXIT, Failure } from '../failure.ts';
import type { Api } from '../http/api.ts';
import { valueText } from '../output/values.ts';
import { type DataRecord, recordOf } from './records.ts';

/** The id of a user: an id as it is, or that of the only user with exactly this username, or this address. */
export async function userIdOf(api: Api, user: string): Promise<string> {
  const id = await findUser(api, user);
  if (id === null) throw unknownUser(user);
  return id;
}

/** The same for the people of a calendar, whom callers that cannot read usernames and addresses name as they are shown. */
export async function colleagueIdOf(api: Api, user: string): Promise<string> {
  const id = await findColleague(api, user);
  if (id === null) throw unknownUser(user);
  return id;
}

/** null: there is no such user that the caller can see. */
export async function findColleague(api: Api, user: string): Promise<string | null> {
  return findUser(api, user).catch(async (error: unknown) => {
    if (!(error instanceof ApiFailure && error.status === 400)) throw error;
    return onlyOne(user, await usersBy(api, ['displayName'], [user]));
  });
}

async function findUser(api: Api, user: string): Promise<string | null> {
  const isId: boolean = isUuid(user);
  if (isId) return user;
  // Usernames are the same in any case, and the platform writes them in lower case.
  const found = await usersBy(api, ['username', 'email'], [...new Set([user, user.toLowerCase()])]);
  const byUsername = found.filter(({ username }) => valueText(username).toLowerCase() === user.toLowerCase());
  return onlyOne(user, byUsername.length > 0 ? byUsername : found);
}

async function usersBy(api: Api, fields: readonly string[], value: readonly string[]): Promise<DataRecord[]> {
  const conditions = fields.map((field) => ({ id: field, field, operator: 'in', value }));
  const query = { fields: ['id', ...fields].join(), filters: { logic: 'or', conditions }, take: 10 };
  const { body } = await api.call('data.records.list', { path: { objectApiName: 'User' }, query });
  return body.records.map(recordOf);
}

function onlyOne(user: string, [one, ...others]: readonly DataRecord[]): string | null {
  if (!one) return null;
  if (others.length === 0) return valueText(one['id']);
  const [what, key] = one['username'] === undefined ? (['name', 'id'] as const) : (['address', 'username'] as const);
  const names = [one, ...others].map((user) => valueText(user[key]));
  throw new Failure('CLIENT_USER', EXIT.usage, `${user} is the ${what} of several users.`, {
    hint: `Name one by ${key}: ${names.join(', ')}`,
  });
}

const unknownUser = (user: string): Failure =>
  new Failure('CLIENT_USER', EXIT.usage, `There is no user ${user} that you can see.`, {
    hint: 'Name a user by username, address or id: erp users list',
  });

/** Ids that are looked up for one table at most; others are shown as they are. */
const NAMED_MAX = 5 * LIMITS.in_values_max;

/** Names of records of an object by their ids, as far as the person can read them. */
export async function namesOf(api: Api, objectApiName: string, ids: Iterable<string>): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  const wanted = [...new Set(ids)].filter(isUuid).slice(0, NAMED_MAX);
  for (let at = 0; at < wanted.length; at += LIMITS.in_values_max) {
    const value = wanted.slice(at, at + LIMITS.in_values_max);
    const filters = { logic: 'and', conditions: [{ id: 'named', field: 'id', operator: 'in', value }] };
    try {
      const query = { fields: 'id,name', filters, take: LIMITS.in_values_max };
      const { body } = await api.call('data.records.list', { path: { objectApiName }, query });
      for (const record of body.records.map(recordOf)) names.set(valueText(record['id']), valueText(record['name']));
    } catch (error) {
      // The table itself matters more than the names in it.
      if (!(error instanceof ApiFailure)) throw error;
      return names;
    }
  }
  return names;
}
