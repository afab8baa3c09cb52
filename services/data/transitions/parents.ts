/**
 * Parents that effects put records under. A caller who may not edit such a parent is refused, and the list of
 * transitions says so beforehand; what depends on the input shows when it is sent. Source:
 * docs/reference/access.md#what-an-operation-needs.
 */

import { parentFields } from '../../../lib/access/sharing.ts';
import type { PlatformError } from '../../../lib/errors/platform-error.ts';
import { newRequestBudget } from '../../../lib/expression/evaluate.ts';
import { storedFieldsOf } from '../../../lib/expression/formulas.ts';
import type { Expression } from '../../../lib/expression/types.ts';
import { nodesOf } from '../../../lib/expression/walk.ts';
import { objectOf, ownEntry, requireField } from '../../../lib/schema/lookup.ts';
import type { FieldMeta, ObjectMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { View } from '../view.ts';
import { readValue } from '../write/body.ts';
import { lookupSql } from '../write/references.ts';
import { deniedParentsSql, parentDenied } from '../write/sharing.ts';
import { compiledEffects, valuesOf } from './effects.ts';
import { decidingFields, storedFacts, type TransitionOrAction } from './transitions-and-actions.ts';

/** A field of the record itself, or of one that an effect creates, which names a parent that controls sharing. */
interface Placing {
  readonly object: ObjectMeta;
  readonly field: FieldMeta;
  readonly expression: Expression;
  /** The record is moved, not made. */
  readonly moves: boolean;
}

function placingsOf(transition: TransitionOrAction, snapshot: Snapshot): Placing[] {
  const { updates, creates } = compiledEffects(transition);
  const sets = [
    { object: transition.object, fields: updates, moves: true },
    ...creates.map(({ objectApiName, fields }) => ({
      object: objectOf(snapshot, objectApiName),
      fields,
      moves: false,
    })),
  ];
  return sets.flatMap(({ object, fields, moves }) => {
    const parents = object ? parentFields(object) : [];
    return fields.flatMap(([name, expression]): Placing[] => {
      const field = parents.find(({ apiName }) => apiName === name);
      if (!object || !field || [...nodesOf(expression.root)].some(({ op }) => op === 'input')) return [];
      return [{ object, field, expression, moves }];
    });
  });
}

/** Stored fields that decide what can be done with a record, the parents that transitions and actions name included. */
export function foreseenFields(
  object: ObjectMeta,
  transitions: readonly TransitionOrAction[],
  snapshot: Snapshot,
): readonly FieldMeta[] {
  const names = transitions.flatMap((transition) =>
    placingsOf(transition, snapshot).flatMap(({ field, expression, moves }) => [
      ...storedFieldsOf(object, expression),
      ...(moves ? [field.apiName] : []),
    ]),
  );
  return [...new Set([...decidingFields(object), ...names.map((name) => requireField(object, name))])];
}

/** Acts that put a record under a parent which the user of the view may read and not edit, with their refusals. */
export async function misplacedBy(
  tx: Tx,
  view: View,
  transitions: readonly TransitionOrAction[],
  id: string,
  stored: Readonly<Record<string, unknown>>,
): Promise<ReadonlyMap<TransitionOrAction, PlatformError>> {
  const sql = new Sql();
  const budget = newRequestBudget();
  const asked = transitions.flatMap((transition) =>
    placingsOf(transition, view.snapshot).flatMap(({ object, field, expression, moves }) => {
      const facts = storedFacts(view, transition.object, stored, budget);
      const value = valuesOf([[field.apiName, expression]], facts, [])[field.apiName] ?? null;
      // A caller who executes it may edit the record itself; one that keeps its parent needs nothing of the parent.
      if (value === null || value === id || (moves && value === ownEntry(stored, field.apiName))) return [];
      const given = readValue(view, field, value, '', budget);
      if ('code' in given) return [];
      const parent = new Map([[given, lookupSql(view, tx.schema, sql.for(given), given)]]);
      const denied = deniedParentsSql({ view, object }, sql, parent, null);
      return denied === null ? [] : [{ transition, denied }];
    }),
  );
  if (asked.length === 0) return new Map();
  const { denied } = await tx.one<{ denied: boolean[] }>(
    sql.statement(`SELECT ARRAY[${asked.map((item) => item.denied).join(', ')}] AS denied`),
  );
  return new Map(
    asked.filter((_, index) => denied[index] === true).map(({ transition }) => [transition, parentDenied()]),
  );
}
