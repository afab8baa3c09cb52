/** Random worlds of sharing: roles, groups, users, rules, shares and records of objects that control each other. */
import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import { decideSharing, NEEDS, permissionRefusal, type RecordOperation } from '../../../lib/access/decide.ts';
import type { Directory } from '../../../lib/access/directory.ts';
import { accessFor } from '../../../lib/access/rules.ts';
import type { Share, SharedRecord } from '../../../lib/access/sharing.ts';
import type { Access } from '../../../lib/access/types.ts';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type {
  FieldMeta,
  GroupMeta,
  ObjectMeta,
  ObjectPermission,
  PermissionBundle,
  RoleMeta,
  SharingDefault,
  SharingPrincipal,
  SharingRuleMeta,
  Snapshot,
} from '../../../lib/schema/snapshot.ts';
import { aBundle, aField, anObject, aPrincipal, aSnapshot } from '../../support/snapshots.ts';

export type Generate = fc.GeneratorValue;

export const OBJECTS = ['Account__c', 'Order__c', 'Line__c', 'Note__c'] as const;
export type ObjectName = (typeof OBJECTS)[number];

export interface Row {
  readonly id: string;
  readonly ownerId: string;
  readonly createdAt: string;
  readonly values: Readonly<Record<string, unknown>>;
}

export interface World {
  readonly snapshot: Snapshot;
  readonly users: readonly { readonly name: string; readonly access: Access }[];
  readonly rows: Readonly<Record<ObjectName, readonly Row[]>>;
  readonly shares: readonly (Share & { readonly object: ObjectName; readonly recordId: string })[];
}

export const pick = <T>(g: Generate, list: readonly T[]): T => g(() => fc.constantFrom(...list));
const some = <T>(g: Generate, list: readonly T[], maxLength: number): T[] =>
  list.length === 0 ? [] : g(() => fc.subarray([...list], { maxLength: Math.min(maxLength, list.length) }));
export const count = (g: Generate, min: number, max: number): number => g(fc.integer, { min, max });
const chance = (g: Generate, of: number): boolean => g(fc.nat, { max: of - 1 }) === 0;

export const id = (kind: number, n: number): string =>
  `01939f6e-0000-7000-8${kind}00-${n.toString(16).padStart(12, '0')}`;

const BYSTANDERS = Array.from({ length: 300 }, (_, n) => ({
  userId: id(8, n),
  username: `bystander${n}`,
  roleApiName: null,
}));

const CRITERIA = [
  'record.Amount__c > 10',
  'record.Kind__c == "a"',
  'record.Kind__c != "b" && record.Amount__c <= 10',
  '100 / record.Amount__c > 5',
  'isBlank(record.Kind__c)',
  '!record.Open__c',
  'record.Rate__c * 3.0 > 10.49',
  'record.Due__c < date("2026-03-01") || record.Rate__c == null',
  'record.Twice__c > 15 && record.Kind__c != "a"',
];

/** Names one of the users; rules of kind reference share through it. */
const AGENT = aField('Agent__c', 'reference', { referenceTo: ['User'] });

const FIELDS = [
  aField('Amount__c', 'integer'),
  aField('Kind__c', 'text', { length: 10 }),
  aField('Open__c', 'boolean'),
  aField('Rate__c', 'decimal', { precision: 10, scale: 2 }),
  aField('Due__c', 'date'),
];

/** Worked out from the record: criteria ask for it as for any other field. */
const TWICE = aField('Twice__c', 'formula', {
  formula: {
    expression: 'record.Amount__c * 2',
    resultType: 'integer',
    precision: null,
    scale: null,
    length: null,
    timezone: 'UTC',
    reads: { Amount__c: FIELDS[0]! },
  },
});
export const PARENTS: Readonly<Record<ObjectName, Readonly<Record<string, ObjectName>>>> = {
  Account__c: {},
  Order__c: { AccountId__c: 'Account__c' },
  Line__c: { OrderId__c: 'Order__c' },
  // Two masters: both must be reached.
  Note__c: { AccountId__c: 'Account__c', OrderId__c: 'Order__c' },
};

/** The tables that worlds are stored in; what is shared differs from world to world, the fields do not. */
const tableOf = (name: ObjectName): ObjectMeta => objectOf(name, 'private', []);

function objectOf(name: ObjectName, sharingDefault: SharingDefault, sharingRules: SharingRuleMeta[]): ObjectMeta {
  const masters = Object.entries(PARENTS[name]).map(([field, to]) =>
    aField(field, 'masterDetail', { referenceTo: [to], required: true }),
  );
  return anObject(name, [...FIELDS, AGENT, TWICE, ...masters], { sharingDefault, sharingRules });
}

const principal = (g: Generate, roles: readonly string[], groups: readonly string[]): SharingPrincipal => {
  const byRole = roles.length > 0 && (groups.length === 0 || g(fc.boolean));
  return byRole ? { role: pick(g, roles) } : { group: groups.length > 0 ? pick(g, groups) : 'Gone' };
};

export function randomWorld(g: Generate): World {
  const roles = Array.from({ length: count(g, 0, 5) }, (_, n): RoleMeta => {
    const parent = n > 0 && !chance(g, 4) ? `Role${count(g, 0, n - 1)}` : null;
    return { apiName: `Role${n}`, label: `Role${n}`, parent };
  });
  const roleNames = roles.map((role) => role.apiName);
  const names = Array.from({ length: count(g, 1, 6) }, (_, n) => `user${n}`);
  const groupNames = Array.from({ length: count(g, 0, 4) }, (_, n) => `Group${n}`);
  const groups = groupNames.map((apiName, n): GroupMeta => {
    const inner = some(g, groupNames.slice(n + 1), 2);
    const users = some(g, [...names, 'nobody'], 2).map((name) => (g(fc.boolean) ? name.toUpperCase() : name));
    return { apiName, label: apiName, members: { roles: some(g, roleNames, 2), groups: inner, users } };
  });
  const objects = OBJECTS.map((name) => {
    const defaults: SharingDefault[] = [...Array<SharingDefault>(8).fill('private'), 'read', 'readWrite'];
    if (Object.keys(PARENTS[name]).length > 0) defaults.push(...Array<SharingDefault>(8).fill('controlledByParent'));
    const sharingDefault = pick(g, defaults);
    const rules = Array.from({ length: count(g, 0, 3) }, (_, n): SharingRuleMeta => {
      const access = g(fc.boolean) ? 'read' : 'readWrite';
      if (chance(g, 3)) {
        const through = pick(g, [AGENT.apiName, ...Object.keys(PARENTS[name])]);
        return { apiName: `Rule${n}`, kind: 'reference', from: null, criteria: null, through, to: {}, access };
      }
      const owner = g(fc.boolean);
      return {
        apiName: `Rule${n}`,
        kind: owner ? 'owner' : 'criteria',
        from: owner ? principal(g, roleNames, groupNames) : null,
        criteria: owner ? null : pick(g, CRITERIA),
        to: principal(g, roleNames, groupNames),
        access,
      };
    });
    return objectOf(name, sharingDefault, rules);
  });
  const profiles = names.map((name) => randomProfile(g, name, objects));
  const snapshot: Snapshot = {
    ...aSnapshot(objects, profiles),
    roles: Object.fromEntries(roles.map((role) => [role.apiName, role])),
    groups: Object.fromEntries(groups.map((group) => [group.apiName, group])),
  };
  const people = names.map((username, n) => ({
    userId: id(1, n),
    username,
    roleApiName: roleNames.length > 0 && !chance(g, 5) ? pick(g, roleNames) : null,
  }));
  // Among many users few own what is looked for, and lists are put together in another way.
  const directory: Directory = { users: g(fc.boolean) ? people : [...people, ...BYSTANDERS] };
  const rows = randomRows(
    g,
    people.map((person) => person.userId),
  );
  return {
    snapshot,
    users: people.map((person) => ({
      name: person.username,
      access: accessFor(snapshot, aPrincipal({ ...person, profileApiName: person.username }), directory),
    })),
    rows,
    shares: randomShares(
      g,
      rows,
      people.map((person) => person.userId),
      roleNames,
      groupNames,
    ),
  };
}

function randomProfile(g: Generate, apiName: string, objects: readonly ObjectMeta[]): PermissionBundle {
  const permission = (): ObjectPermission => {
    const modifyAll = chance(g, 16);
    return {
      create: true,
      read: !chance(g, 12),
      update: !chance(g, 8),
      delete: !chance(g, 8),
      viewAll: modifyAll || chance(g, 16),
      modifyAll,
    };
  };
  return aBundle(apiName, {
    system: chance(g, 30) ? ['apiEnabled', pick(g, ['viewAllData', 'modifyAllData'] as const)] : ['apiEnabled'],
    objects: Object.fromEntries(objects.map((object) => [object.apiName, permission()])),
    fields: Object.fromEntries(
      objects.flatMap((object) =>
        Object.keys(object.fields).map((name) => [`${object.apiName}.${name}`, { read: true, edit: true }]),
      ),
    ),
  });
}

/** Possible values of the fields that criteria read. */
export const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  Amount__c: [null, 0, 5, 11, 30],
  Kind__c: [null, 'a', 'b', ' '],
  Open__c: [null, true, false],
  Rate__c: [null, '3.50', '0.00', '-1.25', '3.49'],
  Due__c: [null, '2026-01-31', '2026-06-30'],
};

function randomRows(g: Generate, userIds: readonly string[]): World['rows'] {
  const rows = {} as Record<ObjectName, Row[]>;
  let number = 0;
  for (const [kind, name] of OBJECTS.entries()) {
    const parents = Object.entries(PARENTS[name]);
    const orphans = parents.some(([, to]) => rows[to].length === 0);
    rows[name] = Array.from({ length: orphans ? 0 : count(g, 1, 6) }, () => {
      number++;
      const moment = new Date(Date.UTC(2026, 0, 1) + count(g, 0, 3) * 1000).toISOString();
      return {
        id: id(kind + 2, number),
        ownerId: pick(g, userIds),
        createdAt: moment,
        values: {
          ...Object.fromEntries(Object.entries(VALUES).map(([field, values]) => [field, pick(g, values)])),
          [AGENT.apiName]: pick(g, [null, ...userIds]),
          ...Object.fromEntries(parents.map(([field, to]) => [field, pick(g, rows[to]).id])),
        },
      };
    });
  }
  return rows;
}

function randomShares(
  g: Generate,
  rows: World['rows'],
  userIds: readonly string[],
  roles: readonly string[],
  groups: readonly string[],
): World['shares'] {
  const targets = OBJECTS.flatMap((object) => rows[object].map((row) => ({ object, recordId: row.id })));
  if (targets.length === 0) return [];
  const made = Array.from({ length: count(g, 0, 6) }, () => {
    const principals: Pick<Share, 'principalType' | 'principalId'>[] = [
      { principalType: 'user', principalId: pick(g, userIds) },
      ...(roles.length > 0 ? [{ principalType: 'role' as const, principalId: pick(g, roles) }] : []),
      ...(groups.length > 0 ? [{ principalType: 'group' as const, principalId: pick(g, groups) }] : []),
    ];
    return { ...pick(g, targets), ...pick(g, principals), access: pick(g, ['read', 'edit'] as const) };
  });
  // Each principal has one share of a record.
  const key = (share: (typeof made)[number]) => `${share.recordId} ${share.principalType} ${share.principalId}`;
  return [...new Map(made.map((share) => [key(share), share])).values()];
}

/** The decision as services/data/explain/check.ts takes it. */
export const isAllowed = (
  access: Access,
  object: ObjectName,
  operation: RecordOperation,
  record: SharedRecord,
): boolean =>
  permissionRefusal(access, object, NEEDS[operation].permission) === null &&
  decideSharing(access, object, operation, record).allowed;

/** A record as decideSharing() takes it. */
export function sharedRecord(world: World, object: ObjectName, row: Row): SharedRecord {
  return {
    id: row.id,
    ownerId: row.ownerId,
    values: row.values,
    owners: Object.fromEntries(
      Object.entries(PARENTS[object]).map(([field, to]) => [
        field,
        world.rows[to].find((other) => other.id === row.values[field])?.ownerId ?? null,
      ]),
    ),
    shares: world.shares.filter((share) => share.recordId === row.id && share.object === object),
    parents: Object.fromEntries(
      Object.entries(PARENTS[object]).map(([field, to]) => {
        const parent = world.rows[to].find((other) => other.id === row.values[field]);
        return [field, parent ? sharedRecord(world, to, parent) : null];
      }),
    ),
  };
}

/** A value as an SQL constant. */
export const text = (value: unknown): string => (value === null ? 'NULL' : `'${String(value).replaceAll("'", "''")}'`);

/** Fields that are stored. */
const columnsOf = (name: ObjectName): FieldMeta[] =>
  Object.values(tableOf(name).fields).filter((field) => field.formula === null);

/** Statements that make the tables of every world, with the companions that every tenant has. */
export async function createTables(schema: string): Promise<string> {
  const companions = await readFile(
    new URL('../../../services/metadata/tenant-schema/0001-companions.sql', import.meta.url),
    'utf8',
  );
  const tables = OBJECTS.map((name) => {
    const columns = columnsOf(name).map(
      (field) =>
        `"${field.apiName}" ${field.apiName === 'recordVersion' ? 'integer' : fieldType(field.fieldType).columnType(field)}`,
    );
    return `CREATE TABLE "${schema}"."${name}" (${columns.join(', ')}, PRIMARY KEY (id))`;
  });
  return [
    `CREATE SCHEMA "${schema}"`,
    `SET search_path = "${schema}"`,
    // Without the grants: the tenant has no role here.
    companions.replace(/^DO \$\$[\s\S]*?\$\$;/m, ''),
    'RESET search_path',
    ...tables,
  ].join(';');
}

/** Minimum audit entry of every change. */
export const auditRow = (schema: string): string =>
  `INSERT INTO "${schema}"._audit (audit_id, channel, operation_id, outcome, request_id)
    VALUES (('ffffffff' || substr(gen_random_uuid()::text, 9))::uuid, 'api', 'data.shares.change', 'committed', 'req')`;

/** Statements that put a world in the place of the one before. */
export function storeWorld(world: World, schema: string, truncate: boolean): string {
  const tables = [...OBJECTS, '_shares', '_revoked_shares', '_recycle_bin', '_audit', '_history'];
  const statements = truncate
    ? [`TRUNCATE ${tables.map((name) => `"${schema}"."${name}"`).join(', ')}`]
    : tables.map((name) => `DELETE FROM "${schema}"."${name}"`);
  for (const name of OBJECTS) {
    const fields = columnsOf(name).map((field) => field.apiName);
    const tuples = world.rows[name].map((row) => {
      const kept: Record<string, unknown> = {
        id: row.id,
        ownerId: row.ownerId,
        createdAt: row.createdAt,
        createdById: row.ownerId,
        updatedAt: row.createdAt,
        updatedById: row.ownerId,
        recordVersion: 1,
        name: row.id,
        ...row.values,
      };
      return `(${fields.map((field) => text(kept[field] ?? null)).join(', ')})`;
    });
    if (tuples.length > 0)
      statements.push(
        `INSERT INTO "${schema}"."${name}" (${fields.map((field) => `"${field}"`).join(', ')}) VALUES ${tuples.join(', ')}`,
      );
  }
  if (world.shares.length > 0)
    statements.push(
      `INSERT INTO "${schema}"._shares (share_id, created_by_id, object, record_id, principal_type, principal_id, access) VALUES ${world.shares
        .map(
          (share) =>
            `(gen_random_uuid(), gen_random_uuid(), ${[share.object, share.recordId, share.principalType, share.principalId, share.access].map(text).join(', ')})`,
        )
        .join(', ')}`,
    );
  statements.push(auditRow(schema));
  return statements.join(';');
}
