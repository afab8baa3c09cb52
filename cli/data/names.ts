/** Names in the place of ids: users by their usernames on the way in, records by their names on the way out. */
import { LIMITS } from '../../lib/limits.ts';
import { isUuid } from '../../lib/values/ids.ts';
import { ApiFailure, EXIT, Failure } from '../failure.ts';
import type { Api } from '../http/api.ts';
import { valueText } from '../output/values.ts';
import { recordOf } from './records.ts';

/** The id of a user: an id as it is, or that of the only user with exactly this username, or this address. */
export async function userIdOf(api: Api, user: string): Promise<string> {
  const isId: boolean = isUuid(user);
  if (isId) return user;
  // Usernames are the same in any case, and the platform writes them in lower case.
  const value = [...new Set([user, user.toLowerCase()])];
  const conditions = ['username', 'email'].map((field) => ({ id: field, field, operator: 'in', value }));
  const query = { fields: 'id,username,email', filters: { logic: 'or', conditions }, take: 10 };
  const { body } = await api.call('data.records.list', { path: { objectApiName: 'User' }, query });
  const found = body.records.map(recordOf);
  const byUsername = found.filter(({ username }) => valueText(username).toLowerCase() === user.toLowerCase());
  const meant = byUsername.length > 0 ? byUsername : found;
  const [one, other] = meant;
  if (!one)
    throw new Failure('CLIENT_USER', EXIT.usage, `There is no user ${user} that you can see.`, {
      hint: 'Name a user by username, address or id: erp users list',
    });
  if (other)
    throw new Failure('CLIENT_USER', EXIT.usage, `${user} is the address of several users.`, {
      hint: `Name one by username: ${meant.map(({ username }) => valueText(username)).join(', ')}`,
    });
  return valueText(one['id']);
}

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
