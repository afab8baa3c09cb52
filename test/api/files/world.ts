/** Deals with a field of files, and calls that store and read files as clients do. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Answer, Api, CallOptions } from '../../support/client.ts';
import { fieldFile } from '../../support/metadata-tenant.ts';
import type { PlatformOptions } from '../../support/platform.ts';
import { type Deals, startDeals } from '../data/deals.ts';

const PERMISSIONS = `type: PermissionSet
apiName: Deals
label: Deals
objects:
  Deal__c: { create: true, read: true, update: true, delete: true }
  DealLine__c: { create: true, read: true, update: true, delete: true }
fields:
  Deal__c.Stage__c: { read: true, edit: true }
  Deal__c.Scan__c: { read: true, edit: true }
  DealLine__c.Deal__c: { read: true, edit: true }
`;

/** Deals have the field Scan__c, and Hidden__c, which only administrators see. */
export async function startFiles(options: PlatformOptions = {}): Promise<Deals> {
  const deals = await startDeals(options);
  await deals.deploy({
    ...fieldFile('Deal__c', 'Scan__c', 'fieldType: file'),
    ...fieldFile('Deal__c', 'Hidden__c', 'fieldType: file'),
    'permissionSets/Deals.yaml': PERMISSIONS,
  });
  return deals;
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export const digest = (bytes: Uint8Array): string => `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`;

interface Storing extends CallOptions {
  readonly name?: string;
  readonly type?: string;
  readonly query?: string;
}

export const post = (
  who: Api,
  bytes: Uint8Array,
  { name = 'note.txt', type = 'text/plain', query = '', ...more }: Storing = {},
): Promise<Answer> =>
  who.send('POST', `/files${query}`, bytes, {
    ...more,
    headers: {
      'content-type': type,
      'x-file-name': encodeURIComponent(name),
      'content-digest': digest(bytes),
      ...more.headers,
    },
  });

/** Stores a file; what the API says of it. */
export async function store(who: Api, bytes: Uint8Array | string, storing: Storing = {}): Promise<Answer['body']> {
  const reply = await post(who, Buffer.from(bytes), storing);
  assert.equal(reply.status, 201, reply.text);
  return reply.body;
}

export const to = (recordId: string): string => `?objectApiName=Deal__c&recordId=${recordId}`;

export const refused = (reply: Answer, status: number, code: string): void =>
  assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);
