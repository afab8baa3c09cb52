/**
 * `erp metadata validate` and `deploy`: the plan of a project, and its deployment. What is deployed is exactly the plan that
 * was shown, and changes by others since the files were retrieved are not overwritten.
 */
import type { OperationOutput } from '../../contracts/operations.ts';
import { PROJECT_PATH } from '../../lib/metadata/manifest.ts';
import type { Run } from '../command.ts';
import { ApiFailure, EXIT, Failure } from '../failure.ts';
import type { Answer, Api } from '../http/api.ts';
import { plain } from '../output/table.ts';
import { counted } from '../output/values.ts';
import { hashOf, type Project, readProject, readProjectIfAny, toSend } from './folder.ts';
import {
  type Deployment,
  type DeploymentSummary,
  follow,
  namesOf,
  outcomeOf,
  showDeployment,
  showFindings,
  withNames,
} from './follow.ts';
import { retrieveTree, writingOf } from './into-folder.ts';
import { planLines, unreadOf, unreadText, wrapped } from './plan.ts';
import { type Finding, FindingsFailure, findingsOf } from './problems.ts';
import { projectText } from './retrieve.ts';
import { isFrom, refuseOtherTenant, type Tenant } from './tenant.ts';
import { writeTree } from './write.ts';

export interface ValidateOptions {
  dir: string;
  allowDestructive?: true | undefined;
}

export interface DeployOptions extends ValidateOptions {
  checkOnly?: true | undefined;
  expectedPlan?: string | undefined;
  yes?: true | undefined;
  otherTenant?: true | undefined;
}

type Validation = OperationOutput<'metadata.components.validate'>;

/** A project, and the tenant that it is deployed to. */
interface Target {
  readonly project: Project;
  readonly tenant: Tenant;
  /** The files come from the tenant they go to, so their version counts there. */
  readonly sameTenant: boolean;
}

/** A project with what it takes to send it. */
interface Prepared extends Target {
  readonly body: {
    files: Record<string, string>;
    package: { version: 1; types: { name: string; members: string[] }[] };
    allowDestructiveChanges: boolean;
    baseMetadataVersion?: number;
  };
}

/** Shows the plan of the project. */
export async function validate(run: Run, options: ValidateOptions): Promise<void> {
  const { prepared, plan } = await planned(run, options, await prepare(run, options));
  run.output.result(plan, () => {
    showPlan(run, prepared, plan.body);
    if (plan.body.valid)
      run.output.line(`Deploy exactly this: erp metadata deploy --expected-plan ${plan.body.planHash}`);
  });
  refuseBlocked(plan.body);
}

/** Deploys the project, after its plan was shown and, on a terminal, agreed to. */
export async function deploy(run: Run, options: DeployOptions): Promise<void> {
  const first = await prepare(run, options);
  // A person reads the plan and is asked. A job does not, and may well run with the profile of another tenant.
  const isAsked = run.output.terminal.interactive && !options.yes;
  if (!(isAsked || options.otherTenant || options.checkOnly || run.options.dryRun))
    await refuseOtherTenant(run, first.project, { tenant: first.tenant, what: `deploy it to ${first.tenant.name}` });
  const { prepared, plan, applied } = await planned(run, options, first);
  if (applied && isEmpty(plan.body) && !options.checkOnly && !run.options.dryRun) return showApplied(run, applied);
  if (!run.output.json) showPlan(run, prepared, plan.body);
  refuseBlocked(plan.body);
  if (options.expectedPlan !== undefined && options.expectedPlan !== plan.body.planHash)
    throw new Failure('PLAN_CHANGED', EXIT.conflict, 'The plan is not the one that was expected.', {
      hint: `It is ${plan.body.planHash} now. Nothing was deployed; look at the plan again.`,
    });
  if (run.options.dryRun) {
    run.output.result(plan, () => run.output.line('A dry run: nothing was deployed.'));
    return;
  }
  // A deployment that changes nothing is worth no question, and on a terminal no deployment.
  if (run.output.terminal.interactive && !options.checkOnly && !options.yes && isEmpty(plan.body)) return;
  if (!options.checkOnly && !(await agreed(run, { yes: options.yes, question: 'Deploy this? [y/N] ' }))) return;
  const api = await run.api();
  const answer = await api
    .call(
      'metadata.deployments.create',
      {
        body: {
          ...prepared.body,
          ...(options.checkOnly ? { checkOnly: true } : {}),
          expectedPlanHash: plan.body.planHash,
        },
      },
      { what: 'The deployment', subject: subjectOf(prepared) },
    )
    .catch(async (error: unknown) => {
      throw await explained(run, prepared, error);
    });
  // Only under a run of an agent it is answered with a plan, and this client works under none.
  if (!('deploymentId' in answer.body))
    throw new Failure('CLIENT_PROTOCOL', EXIT.error, 'The platform gave a plan and no deployment.');
  const { deploymentId } = answer.body;
  if (run.options.wait) await finish(run, deploymentId, { prepared, shown: true });
  else
    run.output.result(answer, () => {
      const noun = options.checkOnly ? 'Validation' : 'Deployment';
      run.output.line(`${noun} ${deploymentId} is queued. Follow it: erp metadata status ${deploymentId} --wait`);
    });
}

/** State of an awaited deployment. */
export interface Waiting {
  /** It deploys this project. */
  readonly prepared?: Prepared;
  /** Its plan was shown before. */
  readonly shown?: boolean;
  /** A folder that may hold the files of the deployment. */
  readonly folder?: string;
  /** It was canceled, so that it is no failure when it ends so. */
  readonly canceled?: boolean;
}

/** Waits for a deployment, shows what became of it, and takes over into the folder what was applied. */
export async function finish(run: Run, deploymentId: string, waiting: Waiting): Promise<void> {
  const { prepared, shown, folder, canceled } = waiting;
  const answer = await follow(run, deploymentId);
  const found = await withNames(run, answer.body);
  run.output.result(answer, () => {
    if (shown && found.status === 'SUCCEEDED') run.output.line(outcomeText(found));
    else showDeployment(run, found, (path) => prepared?.project.files.get(path));
  });
  if (canceled && found.status === 'CANCELED') return;
  const failure = outcomeOf(found);
  if (failure) throw failure;
  const target = prepared ?? (folder === undefined ? null : await heldIn(run, folder, found));
  if (target) await takeOver(run, target, found);
}

/** The project of a folder, when it holds exactly the files of a deployment. */
async function heldIn(run: Run, folder: string, { manifestHash, kind }: Deployment): Promise<Target | null> {
  if (kind !== 'deploy' && kind !== 'quickDeploy') return null;
  const project = await readProjectIfAny(folder).catch((error: unknown) => {
    // A folder with other things in it is none of this command's business.
    if (error instanceof Failure) return null;
    throw error;
  });
  if (!project || hashOf(project) !== manifestHash) return null;
  const { tenant } = (await (await run.api()).call('me.identity.get', {})).body;
  return { project, tenant, sameTenant: isFrom(project, tenant.id) };
}

function outcomeText(found: Deployment): string {
  const { deploymentId, kind, checkOnly, metadataVersionBefore, metadataVersionAfter } = found;
  if (checkOnly)
    return kind === 'rollback'
      ? `Rollback ${deploymentId} would succeed; nothing was applied.`
      : `Validation ${deploymentId} succeeded; nothing was applied. Apply it: erp metadata quick-deploy ${deploymentId}`;
  return metadataVersionAfter === null || metadataVersionAfter === metadataVersionBefore
    ? `Deployment ${deploymentId} succeeded; there was nothing to change.`
    : `Deployment ${deploymentId} succeeded: version ${metadataVersionAfter}.`;
}

async function prepare(run: Run, options: ValidateOptions): Promise<Prepared> {
  const project = await readProject(options.dir);
  refuseMissing(project);
  const api = await run.api();
  const { tenant } = (await api.call('me.identity.get', {})).body;
  const { origin } = project;
  const sameTenant = isFrom(project, tenant.id);
  if (!sameTenant)
    run.output.note(
      `${origin ? 'The files were retrieved from another tenant' : 'There is no erp-project.yaml'}, so changes that others make in ${tenant.name} are not found: read the plan.`,
    );
  const { files, package: pkg } = toSend(project);
  return {
    project,
    tenant,
    sameTenant,
    body: {
      files,
      package: { version: 1, types: pkg.types.map(({ name, members }) => ({ name, members: [...members] })) },
      allowDestructiveChanges: options.allowDestructive === true,
      ...(sameTenant && origin ? { baseMetadataVersion: origin.metadataVersion } : {}),
    },
  };
}

function refuseMissing({ missing }: Project): void {
  if (missing.length === 0) return;
  const findings = missing.map(
    ({ type, fullName, path }): Finding => ({
      code: 'CLIENT_FILE_MISSING',
      path,
      message: `manifest/package.yaml names ${type} ${fullName}, and its file is gone.`,
      remedy: `To delete it on the platform: erp metadata delete ${type}:${fullName}. To have the file back: erp metadata retrieve`,
    }),
  );
  throw new FindingsFailure(
    'CLIENT_FILE_MISSING',
    `${counted(missing.length, 'file', 'files')} of the manifest missing.`,
    findings,
  );
}

interface Planned {
  readonly prepared: Prepared;
  readonly plan: Answer<Validation>;
  /** These very files were deployed before, by a command that did not see it. */
  readonly applied: DeploymentSummary | null;
}

/** The project and its plan. What the folder does not know of its own last deployment is taken over first. */
async function planned(run: Run, options: ValidateOptions, prepared: Prepared): Promise<Planned> {
  const api = await run.api();
  const planOf = ({ body }: Prepared): Promise<Answer<Validation>> =>
    api.call('metadata.components.validate', { body });
  let applied: DeploymentSummary | null = null;
  try {
    return { prepared, plan: await planOf(prepared), applied };
  } catch (error) {
    applied = isDrift(error) ? await deployedAlready(api, prepared) : null;
    if (!applied) throw await explained(run, prepared, error);
  }
  run.output.note('These files were deployed already, by a deployment that was not waited for.');
  await takeOver(run, prepared, applied);
  // The outcome of the unanswered request is known.
  await api.settle(subjectOf(prepared));
  const next = await prepare(run, options);
  return { prepared: next, plan: await planOf(next), applied };
}

/** Identity of requests that deploy the same files. */
const subjectOf = ({ project }: Prepared): string => `deployment of ${hashOf(project)}`;

/** The deployment that an earlier command has begun, in the place of one that would change nothing. */
async function showApplied(run: Run, { deploymentId, metadataVersionAfter }: DeploymentSummary): Promise<void> {
  const answer = await (await run.api()).call('metadata.deployments.get', { path: { deploymentId } });
  run.output.result(answer, () =>
    run.output.line(
      `Already deployed as version ${metadataVersionAfter}, by ${deploymentId}; the folder is up to date.`,
    ),
  );
}

const isDrift = (error: unknown): error is ApiFailure => error instanceof ApiFailure && error.code === 'METADATA_DRIFT';

/** New components that are named without --verbose. */
const ADDED_MAX = 10;

function showPlan(run: Run, { project, tenant }: Prepared, plan: Validation): void {
  const { output } = run;
  const verbose = run.options.verbose === true;
  if (project.added.length > 0) {
    const shown = verbose ? project.added : project.added.slice(0, ADDED_MAX);
    const names = shown.map(({ type, fullName }) => plain(`${type} ${fullName}`));
    if (project.added.length > shown.length) names.push(`and ${project.added.length - shown.length} more`);
    output.note(`${counted(project.added.length, 'component', 'components')} new to the manifest, sent as well:`);
    for (const line of wrapped(names, output.terminal.width - 2)) output.note(`  ${line}`);
  }
  output.line(`Plan for ${tenant.name}, from version ${plan.metadataVersion}:`);
  output.line();
  for (const line of planLines(plan, { terminal: output.terminal, verbose })) output.line(line);
  const unread = unreadOf(plan, plan.blocked);
  if (unread > 0) output.line(unreadText(unread, output.terminal));
  output.line();
  showFindings(run, plan, (path) => project.files.get(path));
}

function refuseBlocked({ blocked, planHash }: Validation): void {
  if (blocked.length === 0) return;
  const message = `The plan is blocked by ${counted(blocked.length, 'problem', 'problems')}. Nothing was deployed.`;
  throw new Failure('PLAN_BLOCKED', EXIT.validation, message, {
    body: { code: 'PLAN_BLOCKED', message, planHash, problems: blocked },
  });
}

const isEmpty = ({ creates, updates, deletes }: Validation): boolean =>
  creates.length + updates.length + deletes.length === 0;

/** Asks for confirmation, unless there is no terminal. */
export async function agreed(
  run: Run,
  { yes, question }: { yes: true | undefined; question: string },
): Promise<boolean> {
  const { terminal } = run.output;
  if (yes || !terminal.interactive) return true;
  if (/^y(es)?$/i.test(await terminal.ask(question))) return true;
  run.output.note('Nothing was deployed.');
  return false;
}

/** A refusal of the platform in terms of the project: places in files, and who has changed what. */
async function explained(run: Run, prepared: Prepared, error: unknown): Promise<unknown> {
  const findings = findingsOf(error);
  if (findings.length > 0 && error instanceof ApiFailure) {
    showFindings(run, { blocked: run.output.json ? [] : findings, warnings: [] }, (path) => prepared.body.files[path]);
    return new Failure(error.code, error.exitCode, error.message, { body: error.answer });
  }
  return isDrift(error) ? error.advised(await driftText(await run.api(), prepared, error)) : error;
}

/** The deployment that has applied these very files since they were retrieved: the command did not wait, or the answer was lost. */
async function deployedAlready(api: Api, { project, sameTenant }: Prepared): Promise<DeploymentSummary | null> {
  if (!sameTenant || !project.origin) return null;
  const query = { status: 'SUCCEEDED', checkOnly: false, take: 20 } as const;
  const { records } = (await api.call('metadata.deployments.list', { query })).body;
  const [local, base] = [hashOf(project), project.origin.metadataVersion];
  const isIt = ({ manifestHash, metadataVersionAfter }: DeploymentSummary): boolean =>
    manifestHash === local && (metadataVersionAfter ?? 0) > base;
  return records.find(isIt) ?? null;
}

async function driftText(api: Api, { project }: Prepared, error: ApiFailure): Promise<string> {
  const listed = error.answer.details?.['components'];
  const components = Array.isArray(listed) ? listed.filter(isDrifted) : [];
  const people = await namesOf(
    api,
    components.flatMap(({ changedById }) => changedById ?? []),
  );
  const lines = components.slice(0, 20).map(({ type, fullName, changedAtVersion, changedAt, changedById }) => {
    const who = changedById === null ? 'the platform' : (people.get(changedById) ?? changedById);
    return `  ${plain(`${type} ${fullName}`)}: version ${changedAtVersion}, ${changedAt}, by ${plain(who)}`;
  });
  const more = components.length > lines.length ? [`  … and ${components.length - lines.length} more`] : [];
  return [
    `Changed on the platform since version ${project.origin?.metadataVersion}, from which your files come:`,
    ...lines,
    ...more,
    'Nothing was deployed. Commit your edits, retrieve on a branch of the last retrieve, and merge:',
    // One chain: when a step fails, the later ones do not run on the wrong branch.
    '  git switch -C erp-platform $(git log -1 --format=%H -- erp-project.yaml) &&',
    '  erp metadata retrieve && git commit -am "Retrieve what others have deployed" &&',
    '  git switch - && git merge erp-platform && git branch -d erp-platform',
  ].join('\n');
}

interface Drifted {
  type: string;
  fullName: string;
  changedAtVersion: number;
  changedAt: string;
  changedById: string | null;
}

const isDrifted = (value: unknown): value is Drifted =>
  typeof value === 'object' && value !== null && 'type' in value && 'fullName' in value && 'changedAtVersion' in value;

/** The configuration after a deployment. */
type Applied = Pick<Deployment, 'checkOnly' | 'metadataVersionAfter'>;

/**
 * After a deployment was applied: the folder becomes what a retrieve would make of it, so that the next diff is empty. The
 * platform keeps canonical YAML and no comments. Files that were edited meanwhile stay as they are, and so the folder
 * stays at the version of the deployment: what others have made of these files since is in none of the edits.
 */
async function takeOver(run: Run, target: Target, found: Applied): Promise<void> {
  const { project, sameTenant, tenant } = target;
  if (found.checkOnly || !(sameTenant || project.origin === null)) return;
  const api = await run.api();
  const tree = await retrieveTree(run, api, project.package, tenant.id);
  const now = await readProject(project.root);
  const applied: Project = { ...project, destructive: { types: [], alters: [] } };
  const writing = writingOf(tree, applied);
  const edited = [...writing.keys()].filter((path) => now.files.get(path) !== project.files.get(path));
  for (const path of edited) writing.delete(path);
  if (edited.length > 0 && writing.delete(PROJECT_PATH) && found.metadataVersionAfter !== null) {
    const source = { baseUrl: api.baseUrl, tenantId: tenant.id };
    writing.set(PROJECT_PATH, projectText({ ...tree, metadataVersion: found.metadataVersionAfter }, source));
  }
  const remove = project.doomed.filter((path) => now.files.get(path) === project.files.get(path));
  await writeTree(project.root, { write: writing, remove });
  const changed = [...writing.keys(), ...remove].toSorted();
  const more = changed.length > 10 ? `, and ${changed.length - 10} more` : '';
  if (changed.length > 0)
    run.output.note(`Updated to what the platform keeps: ${changed.slice(0, 10).join(', ')}${more}.`);
  if (edited.length > 0)
    run.output.warn(`Edited since they were sent, and left as they are: ${edited.slice(0, 10).join(', ')}`);
}
