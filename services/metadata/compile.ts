/** Components → the snapshot that the other services decide by. Pure. Source: docs/reference/metadata.md#snapshots. */
import { NO_CONFIGURATION, type Snapshot, type TenantInfo } from '../../lib/schema/snapshot.ts';
import { byCodePoint } from '../../lib/values/code-points.ts';
import type { State } from './kinds/component.ts';
import type { Draft } from './kinds/kind.ts';
import { findKind, KINDS, kindOrder } from './kinds/registry.ts';

/**
 * Of this compiler: raised when a snapshot says more of the same components than before, so that what processes of the
 * previous version have compiled during an upgrade, or after a way back, is compiled again (`npm run migrate`).
 */
export const COMPILER_VERSION = 1;

/**
 * Every component adds its part, in the order of the kinds; then each kind links what depends on several components.
 */
export function compileSnapshot(tenant: TenantInfo, version: number, state: State): Snapshot {
  const draft: Draft = { tenant, version, ...structuredClone(NO_CONFIGURATION) };
  const components = [...state.values()].sort(
    (a, b) => kindOrder(a.type) - kindOrder(b.type) || byCodePoint(a.fullName, b.fullName),
  );
  for (const component of components) findKind(component.type)?.compile?.(component, draft, state);
  for (const kind of KINDS) kind.link?.(draft);
  return draft;
}
