/**
 * Private records in the demo tenant, for tests of visibility: deals, which belong to their owners, and lines, which
 * follow their deal. Sam and Sue are representatives below Mia; Sue is the only auditor.
 */
import assert from 'node:assert/strict';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { type PlatformOptions, startPlatform, type TestPlatform } from '../../support/platform.ts';

const NAMES = ['ada', 'mia', 'sam', 'sue', 'eve'] as const;
type Name = (typeof NAMES)[number];

export interface Deals {
  readonly platform: TestPlatform;
  readonly as: Readonly<Record<Name, Api>>;
  /** Ids of users by name; eve is of another tenant. */
  readonly ids: Readonly<Record<Name, string>>;
  sign(user: Name, scope: string): Promise<Api>;
  deploy(files: Record<string, string>): Promise<void>;
  /** A new deal of a user; the answer to its creation. */
  deal(owner?: Api, more?: Record<string, unknown>): Promise<Answer>;
  setUser(user: Name, fields: Record<string, unknown>): Promise<void>;
}

const permissions = (name: string, rights: string, fields: readonly string[]): string =>
  [
    'type: PermissionSet',
    `apiName: ${name}`,
    `label: ${name}`,
    'objects:',
    ...['Deal__c', 'DealLine__c'].flatMap((object) => [
      `  ${object}:`,
      ...['create', 'read', 'update', 'delete'].map((right) => `    ${right}: ${rights.includes(right)}`),
    ]),
    'fields:',
    ...fields.flatMap((field) => [`  ${field}:`, '    read: true', `    edit: ${rights.includes('update')}`]),
    '',
  ].join('\n');

const sharing = (files: Record<string, string>, name: string, shared: string): Record<string, string> => {
  const path = `objects/${name}/object.yaml`;
  return { ...files, [path]: files[path]!.replace('api:', `sharingDefault: ${shared}\napi:`) };
};

const FILES: Record<string, string> = {
  ...sharing(
    objectFiles('Deal__c', { Stage__c: 'fieldType: text', Secret__c: 'fieldType: text' }),
    'Deal__c',
    'private',
  ),
  ...sharing(objectFiles('DealLine__c'), 'DealLine__c', 'controlledByParent'),
  ...fieldFile('DealLine__c', 'Deal__c', 'fieldType: masterDetail\nreferenceTo: [Deal__c]'),
  'permissionSets/Deals.yaml': permissions('Deals', 'create read update delete', [
    'Deal__c.Stage__c',
    'DealLine__c.Deal__c',
  ]),
  'permissionSets/DealsRead.yaml': permissions('DealsRead', 'read', ['Deal__c.Stage__c', 'DealLine__c.Deal__c']),
  'groups/Auditors.yaml':
    'type: Group\napiName: Auditors\nlabel: Auditors\nmembers:\n  users:\n    - sue@demo.example\n',
};

export async function startDeals(options: PlatformOptions = {}): Promise<Deals> {
  const platform = await startPlatform(options);
  try {
    const as = {} as Record<Name, Api>;
    const ids = {} as Record<Name, string>;
    for (const name of NAMES) {
      as[name] = api(platform.baseUrl, await tokenFor(platform.baseUrl, name));
      ids[name] = (await as[name].get('/identity')).body.user.id;
    }
    const deals: Deals = {
      platform,
      as,
      ids,
      sign: async (user, scope) => api(platform.baseUrl, await tokenFor(platform.baseUrl, user, scope)),
      deploy: (files) => deployOverHttp(as.ada, files),
      deal: async (owner = as.sam, more = {}) => {
        const reply = await owner.post('/data/Deal__c', { name: 'Deal', ...more });
        assert.equal(reply.status, 201, reply.text);
        return reply;
      },
      setUser: async (user, fields) => {
        const path = `/data/User/${ids[user]}`;
        const etag = (await as.ada.get(path)).headers.get('etag')!;
        const reply = await as.ada.patch(path, fields, { etag });
        assert.equal(reply.status, 200, reply.text);
      },
    };
    await deals.deploy(FILES);
    for (const name of ['mia', 'sam', 'sue'] as const) await deals.setUser(name, { permissionSetApiNames: ['Deals'] });
    return deals;
  } catch (error) {
    await platform.stop();
    throw error;
  }
}
