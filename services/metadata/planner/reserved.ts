/**
 * Names of deleted objects and fields that new components take. As long as records or values are kept under a name it is
 * reserved, which only the records can tell; what is kept without any makes room. Pure. Source:
 * docs/reference/metadata.md#deleted-objects-and-fields.
 */
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import { CUSTOM_FIELD } from '../kinds/bodies/custom-field.ts';
import { CUSTOM_OBJECT } from '../kinds/bodies/custom-object.ts';
import { type Component, componentKey, isOf, type State } from '../kinds/component.ts';
import { isFormula, isRollup } from '../kinds/field-attributes.ts';
import type { CheckContext } from '../kinds/kind.ts';
import type { DataCheck } from './data-checks.ts';
import { objectOf, RETENTION_DAYS } from './deletions.ts';

const DAY_MS = 86_400_000;

/** A new component, and the deleted one of its name, in whatever letters. */
export interface Replacement {
  readonly component: Component;
  readonly kept: Component;
}

/** `restores`: the plan brings back what was deleted, as it was. */
export function replacements(created: readonly Component[], retained: State, restores: boolean): Replacement[] {
  const named = new Map<string, Component>();
  for (const component of retained.values())
    if (isOf(component, CUSTOM_OBJECT) || isOf(component, CUSTOM_FIELD)) named.set(nameOf(component), component);
  if (named.size === 0) return [];
  const fields = Map.groupBy(
    created.filter((component) => isOf(component, CUSTOM_FIELD)),
    ({ body }) => body.object,
  );
  const isSame = ({ type, fullName, hash }: Component): boolean =>
    retained.get(componentKey(type, fullName))?.hash === hash;
  // Another object of the name may have come and gone since the one that a rollback brings back.
  const comesBack = (component: Component): boolean =>
    restores &&
    isSame(component) &&
    (!isOf(component, CUSTOM_OBJECT) || (fields.get(component.fullName) ?? []).every(isSame));
  const found = created.flatMap((component): Replacement[] => {
    const kept = named.get(nameOf(component));
    return kept && !comesBack(component) ? [{ component, kept }] : [];
  });
  const objects = new Set(
    found.filter(({ component }) => isOf(component, CUSTOM_OBJECT)).map(({ component }) => component.fullName),
  );
  // Fields go with their objects.
  return found.filter(({ component }) => !objects.has(objectOf(component) ?? ''));
}

const nameOf = ({ type, fullName }: Component): string => componentKey(type, fullName.toLowerCase());

/** Components no longer kept: with an object all of its fields. */
export function madeRoom(replaced: readonly Replacement[], retained: State): Component[] {
  const gone = new Set(replaced.map(({ kept }) => kept));
  const objects = new Set([...gone].filter((one) => isOf(one, CUSTOM_OBJECT)).map(({ fullName }) => fullName));
  return [...retained.values()].filter((one) => gone.has(one) || objects.has(objectOf(one) ?? ''));
}

/** Questions to the records that are kept under these names. */
export const checksOfReplaced = (replaced: readonly Replacement[], { position }: CheckContext): DataCheck[] =>
  replaced.flatMap(({ component, kept }): DataCheck[] => {
    const question = questionOf(kept);
    if (!question) return [];
    const until = new Date(Date.parse(kept.updatedAt) + RETENTION_DAYS * DAY_MS).toISOString();
    return [
      {
        component,
        object: objectOf(kept) ?? kept.fullName,
        question,
        code: 'NAME_RESERVED',
        position: position(component, '/apiName'),
        message:
          `${kept.fullName} was deleted at ${kept.updatedAt}, and its ` +
          `${isOf(kept, CUSTOM_OBJECT) ? 'records' : 'values'} are kept; the name is reserved until ${until}.`,
        remedy: 'Roll back the deployment that deleted it, or use another name.',
        details: { until },
      },
    ];
  });

/** null: nothing is stored of it. */
function questionOf(kept: Component): DataCheck['question'] | null {
  if (!isOf(kept, CUSTOM_FIELD)) return { kind: 'keptRecords' };
  const { body } = kept;
  if (isRollup(body) || isFormula(body)) return null;
  return { kind: 'keptValues', field: body.apiName, list: fieldType(body.fieldType).choices === 'many' };
}
