/** The configuration of a tenant as it comes from the database in one text, for the threads that plan. */
import { formatTimestamp } from '../../lib/values/time.ts';
import { type Component, componentKey, type State } from './kinds/component.ts';

/** A configuration as the threads of planning take it: JSON of its components, read with its version in one look. */
export interface StoredState {
  readonly version: number;
  readonly components: string;
}

type StoredComponent = readonly [
  type: string,
  fullName: string,
  path: string,
  yaml: string,
  body: Component['body'],
  hash: string,
  system: boolean,
  changedAtVersion: number,
  updatedAt: string,
  updatedById: string | null,
];

/** Components from their JSON. */
export function parseComponents(components: string): State {
  const rows: StoredComponent[] = JSON.parse(components);
  return new Map(
    rows.map(([type, fullName, path, yaml, body, hash, system, changedAtVersion, updatedAt, updatedById]) => [
      componentKey(type, fullName),
      {
        type,
        fullName,
        path,
        yaml,
        body,
        hash,
        system,
        changedAtVersion,
        updatedAt: formatTimestamp(new Date(updatedAt)),
        updatedById,
      },
    ]),
  );
}
