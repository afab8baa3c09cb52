/** Plans of the planner, as tests of what a deployment checks make them. */
import { accessFor } from '../../lib/access/rules.ts';
import type { Principal } from '../../lib/access/types.ts';
import { SYSTEM_PERMISSIONS, type SystemPermission } from '../../lib/schema/snapshot.ts';
import { accessSnapshot } from '../../services/metadata/acting.ts';
import type { State } from '../../services/metadata/kinds/component.ts';
import type { Acting } from '../../services/metadata/kinds/kind.ts';
import { makePlan, type Plan } from '../../services/metadata/planner/plan.ts';
import { readProject } from '../../services/metadata/project/project.ts';
import { aBundle, aPrincipal, aSnapshot } from './snapshots.ts';

/** An actor who holds these system permissions and nothing else. */
export const acting = (system: readonly SystemPermission[] = SYSTEM_PERMISSIONS): Acting => ({
  actor: accessFor(aSnapshot([], [aBundle('Standard', { system })]), aPrincipal()),
  clientUsers: new Map(),
});

/** Users of a configuration: what the first of them holds, and as whom clients can act. */
export function actingIn(state: State, user: Partial<Principal>, ...others: Partial<Principal>[]): Acting {
  const snapshot = accessSnapshot(aSnapshot([]).tenant, state);
  const people = [user, ...others].map((more) => accessFor(snapshot, aPrincipal(more)));
  return {
    actor: people[0]!,
    clientUsers: new Map(people.map((access) => [access.principal.username.toLowerCase(), access])),
  };
}

/** The plan of these files over a configuration, by an actor who holds every permission. */
export const planOf = async (before: State, files: Record<string, string>, platform = false): Promise<Plan> =>
  planBy(before, files, platform ? null : acting());

/** The plan of these files over a configuration; null: by the platform. */
export const planBy = async (before: State, files: Record<string, string>, by: Acting | null): Promise<Plan> =>
  makePlan(before, await readProject(files, null), {
    allowDestructiveChanges: false,
    ...(by === null ? { platform: true } : { platform: false, ...by }),
  });
