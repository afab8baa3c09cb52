/**
 * Tasks of the planning threads: all work that grows with a caller's input or a tenant's size. Inputs and
 * results are plain values, texts and bytes, so that the thread that answers requests only hands them on.
 */
import { LRUCache } from 'lru-cache';
import { completeFingerprint } from '../../../lib/json/fingerprint.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { DESTRUCTIVE_PATH } from '../../../lib/metadata/manifest.ts';
import type { TenantInfo } from '../../../lib/schema/snapshot.ts';
import { emitYaml } from '../../../lib/yaml/emit.ts';
import type { Position } from '../../../lib/yaml/parse.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { loadActing, type Reader } from '../acting.ts';
import { retrieve } from '../actions/retrieve.ts';
import { keepAdministrators } from '../administrators.ts';
import { withoutCounts } from '../counts.ts';
import { type Counted, type Counting, countingOf, withCounts } from '../data-checks.ts';
import type { ComponentName } from '../deployments/unchanged.sql.ts';
import { type Component, componentKey, type State } from '../kinds/component.ts';
import { IDENTITY_PROVIDER } from '../kinds/identity-provider.ts';
import type { Problem } from '../kinds/kind.ts';
import {
  drift,
  handsOutRights,
  makePlan,
  type Plan,
  type PlanLists,
  type PlanOptions,
  planHash,
} from '../planner/plan.ts';
import { ABOUT_ALL, tooLarge } from '../planner/sizes.ts';
import { type Prepared, prepare } from '../prepare.ts';
import {
  type DeployForm,
  deployBody,
  type ProjectBody,
  parseBody,
  retrieveBody,
  validateBody,
} from '../project/body.ts';
import { type Project, readPackage, readProject } from '../project/project.ts';
import { parseComponents, type StoredState } from '../stored-state.ts';

const namesDomains = ({ drafts }: Project): boolean =>
  [...drafts.values()].some(({ type }) => type === IDENTITY_PROVIDER.type);

/** Requests of a running task to the thread that has the connection. */
export interface Door {
  /** The tenant's configuration, when the thread does not have it. */
  state(): Promise<StoredState>;
  /** The tenant's kept deleted components: JSON in the form of `StoredState.components`. */
  retained(): Promise<string>;
  /** Rows of a statement on the tenant's records. */
  rows(statement: Statement): Promise<unknown[]>;
  /** Those of the components that say again what they said in an earlier version. */
  unchangedSince(version: number, components: readonly ComponentName[]): Promise<readonly ComponentName[]>;
  /** The mail domains that are verified for the tenant; null, or absent: not known at this moment. */
  domains?(): Promise<readonly string[] | null>;
}

/** Hears how far a task is, in files or components; it may be called very often. */
export type Progress = (done: number, total: number) => void;

/** A tenant and the version of its configuration that the caller has seen. */
export interface Where {
  readonly tenantId: string;
  readonly version: number;
}

/** Files and their package, JSON each, as a deployment keeps them. */
interface KeptProject {
  readonly manifestHash: string;
  readonly package: string;
  readonly files: string;
}

/** A project that a deploy brings with it. */
export interface AcceptedProject extends KeptProject, Omit<ProjectBody, 'files' | 'package'> {
  readonly form: 'project';
  readonly destructive: boolean;
}

/** The body of a deploy, read. */
export type Accepted = { readonly fingerprint: string } & (AcceptedProject | Exclude<DeployForm, { form: 'project' }>);

/** Inputs for planning a kept project. */
interface KeptSource extends Pick<KeptProject, 'package' | 'files'> {
  readonly allowDestructiveChanges: boolean;
  readonly baseMetadataVersion: number | null;
  /** It undoes another deployment; see `PlanOptions.restores`. */
  readonly restores: boolean;
}

/** Files and package: as a request sends them, or as a deployment keeps them. */
export type Source = { readonly operation: 'validate' | 'deploy'; readonly body: Uint8Array } | KeptSource;

export interface PlanInput {
  readonly where: Where;
  readonly tenant: TenantInfo;
  /** Quoted schema of the tenant. */
  readonly schema: string;
  readonly source: Source;
  /** The user whose permissions limit the plan. */
  readonly userId: string;
  readonly ceilings: NonNullable<PlanOptions['ceilings']>;
  /** The answer also says whether the plan hands out rights. */
  readonly tellsRights?: boolean;
  /** Of a deployment: it is computed so that it can be applied. */
  readonly apply?: { readonly deploymentId: string };
}

interface Drifted {
  readonly type: string;
  readonly fullName: string;
  readonly changedAtVersion: number;
  readonly changedAt: string;
  readonly changedById: string | null;
}

/** A plan that is known up to what the records say to it. */
export interface Planned {
  /** Version of the configuration that it starts from. */
  readonly version: number;
  readonly manifestHash: string;
  readonly planHash: string;
  readonly changed: number;
  /** Codes of what stands against it, as far as it is known. */
  readonly problems: readonly string[];
  /** Place of the request. */
  readonly handsOutRights?: boolean;
  /** Components of the project that changed after its baseMetadataVersion: how many, and the first of them. */
  readonly drifted: { readonly since: number | null; readonly count: number; readonly first: readonly Drifted[] };
  /** Counts needed before `conclude`. */
  readonly counting: Counting | null;
  /** The part of it that decides whether the plan holds. */
  readonly deciding: Counting | null;
  /** For `conclude`. */
  readonly draft: Uint8Array;
  /** For a deployment without a problem; null besides: it changes nothing. */
  readonly prepared: Prepared | null;
  /** JSON of what undoes a deployment, and of the components that nothing restores: `[{type, fullName}]`. */
  readonly inverse: string | null;
  readonly irreversible: string;
}

/** A plan as the API shows it in a deployment. */
interface ShownPlan extends Pick<PlanLists, 'blocked' | 'warnings'> {
  readonly changes: Pick<PlanLists, 'creates' | 'updates' | 'deletes' | 'noops'>;
}

interface Draft {
  readonly lists: PlanLists;
  /** Problems beyond those in the lists. */
  readonly more: { readonly blocked: number; readonly warnings: number };
  readonly counted: Counted | null;
  /** Places at which the destructive manifest names deleted or altered components. */
  readonly places: readonly (readonly [key: string, at: Position])[];
}

/** The answer of a validation, but for the plan. */
interface ValidationFacts {
  readonly manifestHash: string;
  readonly planHash: string;
  readonly metadataVersion: number;
  readonly validatedAt: string;
  readonly handsOutRights?: boolean;
  readonly revertsDeploymentId?: string;
  readonly validationId?: string;
}

export interface Concluded {
  /** Problems that stand against the plan. */
  readonly blocked: number;
  /** JSON of the plan as it is stored, or bytes of the answer of a validation. */
  readonly plan: string;
  readonly answer: Uint8Array | null;
}

export const TASKS = {
  /** Reads the body of a deploy. */
  async accept({ body, head }: { body: Uint8Array; head: string }): Promise<Accepted> {
    const value = parseBody(body);
    const fingerprint = completeFingerprint(head, value);
    const read = deployBody(value);
    if (read.form !== 'project') return { ...read, fingerprint };
    const { files, package: pkg, ...options } = read.project;
    const project = await readProject(files, pkg);
    return {
      ...options,
      ...kept(files, project),
      form: 'project',
      fingerprint,
      destructive: project.destructive !== null,
    };
  },

  /** The project that undoes a deployment, from what was kept for that. */
  async revert({ inverse }: { inverse: string }): Promise<KeptProject & { readonly destructive: boolean }> {
    const { files, deletes }: Plan['inverse'] = JSON.parse(inverse);
    const types = deletes.map(({ name, members }) => ({ name, members: [...members] }));
    const all = { ...files, [DESTRUCTIVE_PATH]: emitYaml({ version: 1, types }) };
    return { ...kept(all, await readProject(all, null)), destructive: types.length > 0 };
  },

  /** Reads a project and plans it. */
  async plan(input: PlanInput, door: Door, progress: Progress = () => {}): Promise<Planned> {
    const { project, options } = await read(input.source, progress);
    const { version, state } = await stateOf(input.where, door);
    const retained = parseComponents(await door.retained());
    const since = options.baseMetadataVersion;
    const drifted = since === null ? [] : await driftSince(since, drift(state, retained, project, since), door);
    const { apply, schema, userId, ceilings, tenant } = input;
    const records = readerOf(door, schema);
    const planned = { tenant, before: state, project };
    const acting = await loadActing(records, userId, planned);
    const domains = namesDomains(project) ? ((await door.domains?.()) ?? null) : null;
    const made = makePlan(state, project, {
      platform: false,
      allowDestructiveChanges: options.allowDestructiveChanges,
      ceilings,
      verifiedDomains: domains && new Set(domains),
      retained,
      restores: options.restores,
      ...acting,
    });
    const plan = await keepAdministrators(records, made, planned);
    if (apply && !acting.actor.system.has('metadataManage')) plan.blocked.push(NO_LONGER_MANAGING);
    const deploymentId = apply?.deploymentId ?? null;
    const worked = plan.blocked.length === 0 ? prepare(tenant, version + 1, state, plan, { deploymentId }) : null;
    if (worked) plan.blocked.push(...tooLarge(worked, plan.after));
    const asked = countingOf(schema, plan, state);
    const { creates, updates, deletes, noops, blocked, warnings } = plan;
    const draft: Draft = {
      lists: {
        creates,
        updates,
        deletes,
        noops,
        blocked: blocked.slice(0, PROBLEMS_MAX),
        warnings: warnings.slice(0, PROBLEMS_MAX),
      },
      more: { blocked: beyond(blocked), warnings: beyond(warnings) },
      counted: asked?.counted ?? null,
      places: [...(project.destructive?.places ?? [])],
    };
    const isSound = apply !== undefined && blocked.length === 0;
    return {
      version,
      manifestHash: project.manifestHash,
      planHash: planHash(plan, state),
      changed: plan.changed.length + plan.deleted.length,
      problems: [...new Set(blocked.map(({ code }) => code))],
      ...(input.tellsRights
        ? { handsOutRights: handsOutRights(plan, state, project, { ...acting, restores: options.restores }) }
        : {}),
      drifted: { since, count: drifted.length, first: drifted.slice(0, DRIFTED_SHOWN_MAX).map(driftedOf) },
      counting: asked?.statement ?? null,
      deciding: asked?.deciding ?? null,
      draft: Buffer.from(JSON.stringify(draft)),
      prepared: isSound ? worked : null,
      inverse: isSound ? JSON.stringify(plan.inverse) : null,
      irreversible: JSON.stringify(
        [...creates, ...updates, ...deletes]
          .filter(({ reversible }) => !reversible)
          .map(({ type, fullName }) => ({ type, fullName })),
      ),
    };
  },

  /** Adds what the records say. With `facts` it gives the answer of a validation. */
  conclude({ draft, numbers, facts, counted: showsCounts = true }: ConcludeInput): Concluded {
    const { lists, more, counted, places }: Draft = JSON.parse(Buffer.from(draft).toString('utf8'));
    const whole = placed(counted ? withCounts(lists, counted, numbers) : lists, new Map(places));
    const plan = showsCounts ? whole : withoutCounts(whole);
    const blocked = plan.blocked.length + more.blocked;
    const shown = {
      ...plan,
      blocked: bounded(plan.blocked, blocked),
      warnings: bounded(plan.warnings, plan.warnings.length + more.warnings),
    };
    if (!facts) return { blocked, plan: JSON.stringify(shown), answer: null };
    const { blocked: problems, warnings, creates, updates, deletes, noops } = shown;
    const answer = { valid: blocked === 0, blocked: problems, warnings, creates, updates, deletes, noops, ...facts };
    return { blocked, plan: '', answer: Buffer.from(JSON.stringify(answer)) };
  },

  /** The plan of a deployment, as JSON of the API, for those who are not shown numbers of records. */
  uncount({ plan }: { plan: string }): string {
    const { changes, blocked, warnings }: ShownPlan = JSON.parse(plan);
    const shown = withoutCounts({ ...changes, blocked, warnings });
    const { creates, updates, deletes, noops } = shown;
    return JSON.stringify({
      changes: { creates, updates, deletes, noops },
      blocked: shown.blocked,
      warnings: shown.warnings,
    } satisfies ShownPlan);
  },

  /** The answer of a retrieve. */
  async retrieve(
    { body, where, ...context }: { body: Uint8Array; where: Where; baseUrl: string; now: number },
    door: Door,
  ): Promise<Uint8Array> {
    const pkg = readPackage(retrieveBody(parseBody(body)).package, '/package', LIMITS.metadata_retrieve_members_max);
    const { version, state } = await stateOf(where, door);
    return Buffer.from(JSON.stringify(retrieve(state, pkg, { ...context, metadataVersion: version })));
  },
};

/** A change that was undone, such as by a rollback, is no work that a deployment could overwrite. */
async function driftSince(since: number, changed: readonly Component[], door: Door): Promise<readonly Component[]> {
  if (changed.length === 0) return changed;
  const names = changed.map(({ type, fullName }) => ({ type, fullName }));
  const unchanged = await door.unchangedSince(since, names);
  const same = new Set(unchanged.map(({ type, fullName }) => componentKey(type, fullName)));
  return changed.filter(({ type, fullName }) => !same.has(componentKey(type, fullName)));
}

const NO_LONGER_MANAGING: Problem = {
  ...ABOUT_ALL,
  code: 'COMPONENT_PERMISSION_DENIED',
  message: 'The user who asked for the deployment may not manage configuration any more.',
  remedy: 'Have a user with metadataManage deploy it.',
};

/** The records of the tenant through the door. */
const readerOf = (door: Door, schema: string): Reader => ({
  schema,
  all: async <R>(statement: Statement) => (await door.rows(statement)) as R[],
  one: async <R>(statement: Statement) => {
    const [row] = await door.rows(statement);
    if (row === undefined) throw new Error('The statement gave no row.');
    return row as R;
  },
});

interface ConcludeInput {
  readonly draft: Uint8Array;
  readonly numbers: readonly number[];
  readonly facts?: ValidationFacts;
  /** The numbers of records are shown; true when it is absent. */
  readonly counted?: boolean;
}

export type TaskName = keyof typeof TASKS;

const DRIFTED_SHOWN_MAX = 200;

const driftedOf = (component: Component): Drifted => ({
  type: component.type,
  fullName: component.fullName,
  changedAtVersion: component.changedAtVersion,
  changedAt: component.updatedAt,
  changedById: component.updatedById,
});

type ReadOptions = Omit<KeptSource, 'package' | 'files'>;

async function read(source: Source, progress: Progress): Promise<{ project: Project; options: ReadOptions }> {
  if ('files' in source) {
    const files: Record<string, string> = JSON.parse(source.files);
    return { project: await readProject(files, JSON.parse(source.package), { progress }), options: source };
  }
  const { files, package: pkg, ...body } = sentProject(source);
  const { allowDestructiveChanges = false, baseMetadataVersion = null } = body;
  return {
    project: await readProject(files, pkg),
    options: { allowDestructiveChanges, baseMetadataVersion, restores: false },
  };
}

function sentProject({ operation, body }: Extract<Source, { body: Uint8Array }>): ProjectBody {
  const value = parseBody(body);
  if (operation === 'validate') return validateBody(value);
  const read = deployBody(value);
  if (read.form !== 'project') throw new Error(`A ${read.form} is planned from what is kept.`);
  return read.project;
}

const kept = (files: Readonly<Record<string, string>>, project: Project): KeptProject => ({
  manifestHash: project.manifestHash,
  package: JSON.stringify(project.package),
  files: JSON.stringify(files),
});

/** Of a component without a file in the project, the place is where the destructive manifest names it. */
function placed(lists: PlanLists, places: ReadonlyMap<string, Position>): PlanLists {
  const inManifest = (problem: Problem): Problem => {
    const at = problem.line === null ? places.get(componentKey(problem.type, problem.fullName)) : undefined;
    return at ? { ...problem, path: DESTRUCTIVE_PATH, ...at } : problem;
  };
  return { ...lists, blocked: lists.blocked.map(inManifest), warnings: lists.warnings.map(inManifest) };
}

/** Problems in one list of a plan; a plan with as many is wrong in few ways. */
const PROBLEMS_MAX = 1_000;

const beyond = (problems: readonly Problem[]): number => Math.max(0, problems.length - PROBLEMS_MAX);

/** The first of so many problems, and that there are more. */
function bounded(problems: readonly Problem[], count: number): Problem[] {
  if (count <= PROBLEMS_MAX) return [...problems];
  const more: Problem = {
    ...ABOUT_ALL,
    code: 'LIMIT_EXCEEDED',
    message: `There are ${count} problems; these are the first ${PROBLEMS_MAX}.`,
    remedy: 'Correct these and validate again.',
    details: { max: PROBLEMS_MAX },
  };
  return [...problems.slice(0, PROBLEMS_MAX), more];
}

const STATES_MAX_CHARS = 64 * 1024 * 1024;

interface Kept {
  readonly version: number;
  readonly chars: number;
  readonly state: State;
}

/** The last used configurations, parsed; what is in them never changes. */
const states = new LRUCache<string, Kept>({
  maxSize: STATES_MAX_CHARS,
  sizeCalculation: ({ chars }) => chars + 1,
});

/** The configuration of this version; when the thread does not have it, the current one. */
async function stateOf({ tenantId, version }: Where, door: Door): Promise<Kept> {
  const known = states.get(`${tenantId}:${version}`);
  if (known) return known;
  const stored = await door.state();
  const kept = { version: stored.version, chars: stored.components.length, state: parseComponents(stored.components) };
  states.set(`${tenantId}:${stored.version}`, kept);
  return kept;
}
