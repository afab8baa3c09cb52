/** What a caller sees of an object apart from the records themselves: which of them, by which rules, with which fields. */
import { createHash } from 'node:crypto';
import type { Predicate } from '../../../lib/access/predicate.ts';
import { reach } from '../../../lib/access/sharing.ts';
import type { Access } from '../../../lib/access/types.ts';
import { isNumbered } from '../../../lib/schema/field-types/registry.ts';
import { fieldOf, objectOf } from '../../../lib/schema/lookup.ts';
import type { FieldMeta, ObjectMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import { memoizeByName } from '../../../lib/values/memoize.ts';
import { columnType } from '../sql.ts';

/** An object whose records decide about records that refer to them. */
export interface Parent {
  /** Field of the child. */
  readonly field: FieldMeta;
  readonly object: ObjectMeta;
  readonly parents: readonly Parent[];
  /** Fields of the parent that decide; null: any may. */
  readonly deciding: readonly string[] | null;
}

export interface Sight {
  /** Which records the caller can read; null: all. */
  readonly node: Predicate | null;
  readonly parents: readonly Parent[];
  /** A rule reads what every write changes by itself, such as updatedAt. */
  readonly readsStamps: boolean;
  /** Changes whenever something but a record or a share decides otherwise than before. */
  readonly hash: string;
}

/** Of an object that the user can see. */
export const sightOf = memoizeByName((access: Access, objectApiName): Sight => {
  const { object, readable } = access.objects[objectApiName]!;
  const node = reach(access, objectApiName, 'read');
  const shapeOf = shapesOf(access.snapshot);
  const text = JSON.stringify([readable.map(fieldShape), filledIn(object, access.snapshot), node], shapeOf);
  return {
    node,
    parents: node ? parentsOf(node) : [],
    readsStamps:
      /"criteria"/.test(text) && /\b(?:updatedAt|updatedById|recordVersion)\b/.test(JSON.stringify(node, shapeOf)),
    hash: createHash('sha256').update(text).digest('base64url').slice(0, 22),
  };
});

function parentsOf(node: Predicate): Parent[] {
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

function parentOf(field: FieldMeta, object: ObjectMeta, sharing: Predicate | null): Parent {
  const parents = sharing ? parentsOf(sharing) : [];
  const deciding =
    sharing && asksCriteria(sharing) ? null : ['ownerId', ...parents.map((above) => above.field.apiName)];
  return { field, object, parents, deciding };
}

const asksCriteria = (node: Predicate): boolean =>
  node.kind === 'criteria' || ((node.kind === 'and' || node.kind === 'or') && node.nodes.some(asksCriteria));

/** As text: what shapeOf does to the parts of a predicate is not for those of a formula or rollup. */
const fieldShape = (field: FieldMeta): string =>
  JSON.stringify([field.apiName, field.fieldType, columnType(field), field.formula, field.rollup]);

/**
 * What a deployment works out for all records at once, when it brings or changes a rollup, a formula or rollup below it,
 * or an automatic number. They are of a new version then, also for those who cannot read the field, and the trail has
 * nothing of it.
 */
const filledIn = ({ fields }: ObjectMeta, snapshot: Snapshot): string =>
  JSON.stringify(
    Object.values(fields).flatMap((field) => {
      const { apiName, rollup } = field;
      if (isNumbered(field)) return [[apiName, null]];
      return rollup ? [[apiName, ...figureOf(rollup, snapshot)]] : [];
    }),
  );

/** What a rollup says, with the formulas and rollups of children below it, and the zone where criteria ask for days. */
function figureOf(rollup: NonNullable<FieldMeta['rollup']>, snapshot: Snapshot): unknown[] {
  const child = objectOf(snapshot, rollup.childObject);
  const below = [...rollup.reads, ...(rollup.formulas ?? [])].flatMap((name) => {
    const field = child && fieldOf(child, name);
    return field?.rollup ? figureOf(field.rollup, snapshot) : (field?.formula ?? []);
  });
  return [rollup, ...(rollup.criteria === null ? [] : [snapshot.tenant.timezone]), ...below];
}

/** Names instead of whole objects and fields; of an object with a criterion also what is calculated in it. */
const shapesOf = (snapshot: Snapshot) =>
  function shapeOf(this: unknown, key: string, value: unknown): unknown {
    // The field of a rollup is a name already.
    if ((key === 'field' || key === 'relatedField') && typeof value === 'object' && value !== null)
      return fieldShape(value as FieldMeta);
    if (key === 'object') {
      const { apiName, fields } = value as ObjectMeta;
      const calculated = (this as Predicate).kind === 'criteria';
      if (!calculated) return apiName;
      return [
        apiName,
        filledIn(value as ObjectMeta, snapshot),
        Object.values(fields).map((field) => [field.apiName, field.formula]),
      ];
    }
    // Sets of users, roles and groups come in any order.
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return [...value].sort();
    return value;
  };
