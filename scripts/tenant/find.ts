/** The tenant that a command names by its key. */
import type { MetadataActions } from '../../contracts/metadata.ts';
import type { Session } from './session.ts';

type Tenant = NonNullable<MetadataActions['metadata.tenants.get']['result']>;

export const noTenant = (key: string): Error =>
  new Error(`There is no tenant ${key}: \`tenant list\` shows those that there are.`);

/** Throws a sentence when there is none. */
export async function findTenant(session: Session, key: string): Promise<Tenant> {
  await session.require('metadata');
  const tenant = await session.call('metadata.tenants.get', { key });
  if (!tenant) throw noTenant(key);
  return tenant;
}
