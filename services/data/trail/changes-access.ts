/** Decides which records of an object the change feed reports to a caller, and which fields of them. */
import { createHash } from 'node:crypto';
import type { Directory } from '../../../lib/access/directory.ts';
import { accessTo } from '../../../lib/access/lookup.ts';
import type { Predicate } from '../../../lib/access/predicate.ts';
import { reach } from '../../../lib/access/sharing.ts';
import type { Access } from '../../../lib/access/types.ts';
import { membersOf } from '../../../lib/json/objects.ts';
import { isNumbered } from '../../../lib/schema/field-types/registry.ts';
import { fieldOf, objectOf } from '../../../lib/schema/lookup.ts';
import type { FieldMeta, ObjectMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import { memoizeByName } from '../../../lib/values/memoize.ts';
import { columnType } from '../sql.ts';

/** An object whose records decide about the sharing of records that refer to them. */
export interface SharingParent {
  /** Field of the child. */
  readonly field: FieldMeta;
  readonly object: ObjectMeta;
  readonly parents: readonly SharingParent[];
  /** Fields of the parent that decide; null: any may. */
  readonly decidingFields: readonly string[] | null;
}

export interface FeedAccess {
  /** Records that the caller can read; null: all. */
  readonly sharing: Predicate | null;
  readonly parents: readonly SharingParent[];
  /** A sharing rule reads what every write changes by itself, such as updatedAt. */
  readonly readsStamps: boolean;
  /**
   * Changes whenever access changes by anything but a record or a share. Users with greater ids than `lastUserId` are
   * left out: a user who was created after a cursor was issued owned nothing at that moment.
   */
  readonly hashUpTo: (lastUserId: string) => string;
  /** The greatest id of a user; empty when there is none. */
  readonly lastUserId: string;
}

/** Of an object that the user can see. */
export const feedAccess = memoizeByName((access: Access, objectApiName): FeedAccess => {
  const { object, readable } = accessTo(access, objectApiName);
  const sharing = reach(access, objectApiName, 'read');
  const { directory, snapshot } = access;
  const lastUserId =
    directory.users
      .map(({ userId }) => userId)
      .sort()
      .at(-1) ?? '';
  const textUpTo = (last: string): string =>
    JSON.stringify(
      [readable.map(fieldShape), setByDeployment(object, snapshot), sharing],
      shapesOf(snapshot, directory, last),
    );
  const text = textUpTo(lastUserId);
  const hashes = new Map<string, string>();
  return {
    sharing,
    parents: sharing ? parentsOf(sharing) : [],
    readsStamps:
      /"criteria"/.test(text) &&
      /\b(?:updatedAt|updatedById|recordVersion)\b/.test(
        JSON.stringify(sharing, shapesOf(snapshot, directory, lastUserId)),
      ),
    lastUserId,
    hashUpTo(last) {
      let hash = hashes.get(last);
      if (hash === undefined) {
        if (hashes.size === HASHES_MAX) hashes.clear();
        hash = createHash('sha256')
          .update(last === lastUserId ? text : textUpTo(last))
          .digest('base64url')
          .slice(0, 22);
        hashes.set(last, hash);
      }
      return hash;
    },
  };
});

/** Hashes that are kept for one user and object; cursors of different times have different last users. */
const HASHES_MAX = 20;

function parentsOf(node: Predicate): SharingParent[] {
  switch (node.kind) {
    case 'and':
    case 'or':
      return node.nodes.flatMap(parentsOf);
    case 'related':
      return [parentOf(node.field, node.object, node.sharing)];
    default:
      return [];
  }
}

function parentOf(field: FieldMeta, object: ObjectMeta, sharing: Predicate | null): SharingParent {
  const parents = sharing ? parentsOf(sharing) : [];
  const decidingFields =
    sharing && hasCriteria(sharing)
      ? null
      : ['ownerId', ...parents.map((parent) => parent.field.apiName), ...(sharing ? comparedFields(sharing) : [])];
  return { field, object, parents, decidingFields };
}

/** Fields of the record itself that rules of kind reference compare with the user. */
const comparedFields = (node: Predicate): string[] => {
  if (node.kind === 'compare') return [node.field.apiName];
  return node.kind === 'and' || node.kind === 'or' ? node.nodes.flatMap(comparedFields) : [];
};

const hasCriteria = (node: Predicate): boolean =>
  node.kind === 'criteria' || ((node.kind === 'and' || node.kind === 'or') && node.nodes.some(hasCriteria));

/** As text, because the replacer is meant for the parts of predicates and not for those of formulas and rollups. */
const fieldShape = (field: FieldMeta): string =>
  JSON.stringify([field.apiName, field.fieldType, columnType(field), field.length, field.formula, field.rollup]);

/**
 * Fields that a deployment computes for all records at once, when it adds or changes a rollup, a formula or rollup that it is
 * computed from, or an automatic number. All records have a new version then, also for callers who cannot read the
 * field, and the audit trail has no entry for it.
 */
const setByDeployment = ({ fields }: ObjectMeta, snapshot: Snapshot): string =>
  JSON.stringify(
    Object.values(fields).flatMap((field) => {
      const { apiName, rollup } = field;
      if (isNumbered(field)) return [[apiName, null]];
      return rollup ? [[apiName, ...rollupInputs(rollup, snapshot)]] : [];
    }),
  );

/**
 * A rollup with the formulas and rollups of children that it reads, and the time zone if its criteria depend on days.
 */
function rollupInputs(rollup: NonNullable<FieldMeta['rollup']>, snapshot: Snapshot): unknown[] {
  const child = objectOf(snapshot, rollup.childObject);
  const inputs = [...rollup.reads, ...(rollup.formulas ?? [])].flatMap((name) => {
    const field = child && fieldOf(child, name);
    return field?.rollup ? rollupInputs(field.rollup, snapshot) : (field?.formula ?? []);
  });
  return [rollup, ...(rollup.criteria === null ? [] : [snapshot.tenant.timezone]), ...inputs];
}

/**
 * A JSON replacer: names instead of whole objects and fields; of an object with criteria its computed fields as well.
 * Owners are listed the same way whatever the number of users is, up to `lastUserId`.
 */
const shapesOf = (snapshot: Snapshot, directory: Directory, lastUserId: string) =>
  function shapeOf(this: unknown, key: string, value: unknown): unknown {
    if (isOwnedBy(value)) return { owners: ownersIn(value, directory).filter((userId) => userId <= lastUserId) };
    // The field of a rollup is already a name.
    if ((key === 'field' || key === 'relatedField') && typeof value === 'object' && value !== null)
      return fieldShape(value as FieldMeta);
    if (key === 'object') {
      const { apiName, fields } = value as ObjectMeta;
      if (membersOf(this)['kind'] !== 'criteria') return apiName;
      return [
        apiName,
        setByDeployment(value as ObjectMeta, snapshot),
        Object.values(fields).map((field) => [field.apiName, field.formula]),
      ];
    }
    // The order of users, roles and groups means nothing.
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return [...value].sort();
    return value;
  };

type OwnedBy = Extract<Predicate, { kind: 'ownedBy' }>;

const isOwnedBy = (value: unknown): value is OwnedBy => membersOf(value)['kind'] === 'ownedBy';

function ownersIn({ userIds, except }: OwnedBy, { users }: Directory): readonly string[] {
  if (!except) return userIds;
  const others = new Set(userIds);
  return users.flatMap(({ userId }) => (others.has(userId) ? [] : [userId]));
}
