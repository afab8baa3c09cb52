/**
 * Statements that return the versions they saw with their rows. A view made from other versions is out of date, and
 * the request is repeated with a new one.
 */

import { assertFresh } from '../tenants.ts';
import type { Versions } from '../view.ts';

/** The first row of such a statement, which always has one, after the check that the view is up to date. */
export function checkedRow<R extends Versions>(view: Versions, rows: readonly R[]): R {
  const [row] = rows;
  if (row === undefined) throw new Error('The statement returned no versions.');
  assertFresh(view, row.metadataVersion, row.accessVersion);
  return row;
}
