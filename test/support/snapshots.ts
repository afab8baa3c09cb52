/** Hand-made snapshots for tests of pure code: only what a test cares about has to be said. */

import type { Principal } from '../../lib/access/types.ts';
import {
  type FieldMeta,
  type FieldTypeName,
  NO_CONFIGURATION,
  type ObjectMeta,
  type PermissionBundle,
  type Snapshot,
  type SystemPermission,
} from '../../lib/schema/snapshot.ts';
import { fieldMeta } from '../../services/metadata/kinds/field-meta.ts';

export function aField(apiName: string, fieldType: FieldTypeName, more: Partial<FieldMeta> = {}): FieldMeta {
  return fieldMeta({ apiName, fieldType, label: apiName, custom: apiName.endsWith('__c'), ...more });
}

const SYSTEM_FIELDS: readonly FieldMeta[] = [
  aField('id', 'id', { system: true }),
  aField('ownerId', 'reference', { system: true, referenceTo: ['User'] }),
  aField('createdAt', 'dateTime', { system: true }),
  aField('createdById', 'reference', { system: true, referenceTo: ['User'] }),
  aField('updatedAt', 'dateTime', { system: true }),
  aField('updatedById', 'reference', { system: true, referenceTo: ['User'] }),
  aField('recordVersion', 'integer', { system: true }),
  aField('recordTypeApiName', 'text', { system: true }),
];

/** An object with the system fields, `name` (unless given) and these. */
export function anObject(
  apiName: string,
  fields: readonly FieldMeta[] = [],
  more: Partial<ObjectMeta> = {},
): ObjectMeta {
  const name = fields.some((field) => field.apiName === 'name') ? [] : [aField('name', 'text', { length: 255 })];
  return {
    apiName,
    label: apiName,
    labelPlural: `${apiName}s`,
    description: null,
    custom: apiName.endsWith('__c'),
    published: true,
    sharingDefault: 'readWrite',
    features: { history: true, search: true, duplicates: false, events: false },
    nameField: 'name',
    defaultSearchFields: ['name'],
    fields: Object.fromEntries([...SYSTEM_FIELDS, ...name, ...fields].map((field) => [field.apiName, field])),
    childRelationships: [],
    validationRules: [],
    recordTypes: [],
    duplicateRules: [],
    sharingRules: [],
    stateModel: null,
    actions: [],
    ...more,
  };
}

const ALL = { create: true, read: true, update: true, delete: true, viewAll: false, modifyAll: false };

export function aBundle(apiName: string, more: Partial<PermissionBundle> = {}): PermissionBundle {
  return { apiName, label: apiName, system: ['apiEnabled'], objects: {}, fields: {}, actions: [], ...more };
}

/** A profile that reads and writes these objects with all their fields but the hidden ones (`<Object>.<field>`). */
export function aProfile(
  objects: readonly ObjectMeta[],
  hidden: ReadonlySet<string> = new Set(),
  system: readonly SystemPermission[] = ['apiEnabled'],
): PermissionBundle {
  return aBundle('Standard', {
    system,
    objects: Object.fromEntries(objects.map((object) => [object.apiName, ALL])),
    fields: Object.fromEntries(
      objects.flatMap((object) =>
        Object.keys(object.fields)
          .map((name) => `${object.apiName}.${name}`)
          .filter((name) => !hidden.has(name))
          .map((name) => [name, { read: true, edit: true }]),
      ),
    ),
  });
}

export const TENANT_ID = '01939f6e-0000-7000-8000-000000000001';
export const USER_ID = '01939f6e-0000-7000-8000-0000000000aa';

export function aSnapshot(
  objects: readonly ObjectMeta[],
  profiles: readonly PermissionBundle[] = [aProfile(objects)],
  permissionSets: readonly PermissionBundle[] = [],
): Snapshot {
  const byName = <T extends { apiName: string }>(list: readonly T[]): Record<string, T> =>
    Object.fromEntries(list.map((item) => [item.apiName, item]));
  const noOverrides = { connection: null, tenant: null, daily: null, concurrency: null };
  return {
    ...NO_CONFIGURATION,
    tenant: {
      id: TENANT_ID,
      key: 'test',
      name: 'Test',
      region: 'eu',
      edition: 'standard',
      sandbox: false,
      locale: 'en',
      timezone: 'UTC',
      currency: 'EUR',
      rateLimits: noOverrides,
    },
    version: 1,
    objects: byName(objects),
    profiles: byName(profiles),
    permissionSets: byName(permissionSets),
  };
}

export function aPrincipal(more: Partial<Principal> = {}): Principal {
  return {
    userId: USER_ID,
    username: 'sam@test.example',
    displayName: 'Sam',
    active: true,
    locale: null,
    timezone: 'Europe/Berlin',
    profileApiName: 'Standard',
    roleApiName: null,
    permissionSetApiNames: [],
    ...more,
  };
}
