/**
 * Unchanged components whose meaning changes because a field that they read is computed differently: a
 * caller who changes a formula changes the rules, guards, rollups and formulas over it. Pure.
 */
import { isDeepStrictEqual } from 'node:util';
import { memoize } from '../../../lib/values/memoize.ts';
import type { FieldBody, FieldComponent } from '../kinds/bodies/custom-field.ts';
import type { Component, State } from '../kinds/component.ts';
import type { Reference } from '../kinds/kind.ts';
import { findKind } from '../kinds/registry.ts';

/** A place in a component that reads a field. */
interface Reader {
  readonly component: Component;
  readonly pointer: string;
}

/** A reader that a change reaches, and the changed field by way of which. */
export interface Dependent<T> extends Reader {
  readonly cause: T;
}

/** Properties that decide what a computed field says. */
const COMPUTATION = ['formula', 'rollup', 'precision', 'scale', 'fieldType'] as const;

/** The property by which a field is computed otherwise than before; null: it is not. */
export function computedOtherwise(old: FieldBody, now: FieldBody): (typeof COMPUTATION)[number] | null {
  const computed = [old, now].some(({ formula, rollup }) => formula !== undefined || rollup !== undefined);
  return (computed && COMPUTATION.find((name) => !isDeepStrictEqual(old[name], now[name]))) || null;
}

/**
 * Everything that reads one of these fields, or something that is computed from them; each place once. Takes a time in
 * proportion to the configuration, however many fields change.
 */
export function dependentsOf<T extends Pick<FieldComponent, 'fullName'>>(
  causes: readonly T[],
  state: State,
): Dependent<T>[] {
  const readers = readersOf(state);
  const found = new Map<Reader, Dependent<T>>();
  const left = causes.map((cause) => ({ cause, fullName: cause.fullName }));
  const seen = new Set(left.map(({ fullName }) => fullName));
  for (const { cause, fullName } of left)
    for (const reader of readers.get(fullName) ?? []) {
      if (!found.has(reader)) found.set(reader, { ...reader, cause });
      const { type, fullName: next } = reader.component;
      if (type !== 'CustomField' || seen.has(next)) continue;
      seen.add(next);
      left.push({ cause, fullName: next });
    }
  return [...found.values()];
}

/** The readers of each field, by its full name. */
const readersOf = memoize((state: State): ReadonlyMap<string, readonly Reader[]> => {
  const found = new Map<string, Reader[]>();
  for (const component of state.values())
    for (const { fullName, pointer } of readingOf(component)) {
      const readers = found.get(fullName);
      if (readers) readers.push({ component, pointer });
      else found.set(fullName, [{ component, pointer }]);
    }
  return found;
});

/** Fields whose values decide what a component does; where an error points to is no such thing. */
const readingOf = ({ type, body }: Component): Reference[] =>
  (findKind(type)?.references?.(body) ?? []).filter(
    ({ access, pointer }) => access === 'read' && pointer !== '/errorField',
  );
