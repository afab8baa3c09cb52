/** `erp metadata status`, `list`, `cancel`, `quick-deploy` and `rollback`: what becomes of deployments that exist. */
import { DEPLOYMENT_STATUSES } from '../../contracts/metadata.ts';
import type { Run } from '../command.ts';
import { ApiFailure, EXIT, Failure, usage } from '../failure.ts';
import type { Answer } from '../http/api.ts';
import { plain } from '../output/table.ts';
import type { Terminal } from '../output/terminal.ts';
import { agreed, finish } from './deploy.ts';
import {
  type Deployment,
  type DeploymentSummary,
  follow,
  hasEnded,
  kindOf,
  outcomeOf,
  showDeployment,
  showFindings,
  withNames,
} from './follow.ts';
import { explicitPackage } from './package.ts';
import { type Changes, planLines } from './plan.ts';
import { withoutPaths } from './problems.ts';
import { type Blocker, blockerLines, isBlocker } from './rollback-blockers.ts';

async function find(run: Run, deploymentId: string): Promise<Answer<Deployment>> {
  return (await run.api()).call('metadata.deployments.get', { path: { deploymentId } });
}

/** Shows a deployment; with --wait, when it has ended. A folder that holds its files takes over what was applied. */
export async function status(run: Run, deploymentId: string, { dir }: { dir: string }): Promise<void> {
  if (run.options.wait) return finish(run, deploymentId, { folder: dir });
  const answer = await find(run, deploymentId);
  const found = await withNames(run, answer.body);
  run.output.result(answer, () => showDeployment(run, found));
}

export interface ListOptions {
  status?: string | undefined;
  take: number;
  cursor?: string | undefined;
}

/** Lists deployments. */
export async function list(run: Run, options: ListOptions): Promise<void> {
  const wanted = DEPLOYMENT_STATUSES.find((one) => one === options.status?.toUpperCase());
  if (options.status !== undefined && !wanted) throw usage(`--status is one of ${DEPLOYMENT_STATUSES.join(', ')}.`);
  const api = await run.api();
  const answer = await api.call('metadata.deployments.list', {
    query: {
      take: options.take,
      ...(wanted ? { status: wanted } : {}),
      ...(options.cursor ? { cursor: options.cursor } : {}),
    },
  });
  const { records, nextCursor } = answer.body;
  run.output.result(answer, () => {
    run.output.table(
      [
        { title: 'DEPLOYMENT', whole: true },
        { title: 'STATUS', whole: true },
        { title: 'CREATED', whole: true },
        { title: 'VERSION', right: true },
        { title: 'CHANGES', right: true },
        { title: 'KIND' },
        { title: 'BY' },
        { title: 'ERROR' },
      ],
      records.map((record) => rowOf(record, run.output.terminal)),
    );
    if (nextCursor !== null) run.output.note(`There are more: --cursor ${nextCursor}`);
  });
}

/** Below this width the time goes without year and seconds. */
const WIDE = 100;

/** The most important columns first: a narrow terminal has no room for the last ones. */
const rowOf = (found: DeploymentSummary, { pretty, width }: Terminal): string[] => [
  found.deploymentId,
  found.status,
  found.createdAt.slice(...(pretty && width < WIDE ? [5, 16] : [0, 19])).replace('T', ' '),
  found.metadataVersionAfter === null ? '' : String(found.metadataVersionAfter),
  String(found.progress.total),
  kindOf(found),
  found.createdBy.displayName,
  found.error?.code ?? '',
];

/** Cancels a deployment; with --wait, says whether it was in time. */
export async function cancel(
  run: Run,
  deploymentId: string,
  { reason }: { reason?: string | undefined },
): Promise<void> {
  const api = await run.api();
  const body = reason === undefined ? {} : { reason };
  const answer = await api.call(
    'metadata.deployments.cancel',
    { path: { deploymentId }, body },
    { what: 'The cancellation' },
  );
  if (hasEnded(answer.body) || !run.options.wait) {
    run.output.result(answer, () => {
      const { status: now } = answer.body;
      run.output.line(
        now === 'CANCELED'
          ? `Deployment ${deploymentId} is canceled; nothing was applied.`
          : `Deployment ${deploymentId} is ${now}. See how it ends: erp metadata status ${deploymentId} --wait`,
      );
    });
    return;
  }
  await finish(run, deploymentId, { canceled: true });
}

interface StartOptions {
  yes?: true | undefined;
}

/** Applies what a recorded validation has validated. */
export async function quickDeploy(
  run: Run,
  validationId: string,
  options: StartOptions & { dir: string },
): Promise<void> {
  if (run.options.dryRun)
    throw usage(
      'A quick deploy has no dry run: the validation was one.',
      `Whether it can still be used: erp metadata status ${plain(validationId)}`,
    );
  const { body: found } = await find(run, validationId);
  if (found.kind !== 'validation')
    throw usage(`${validationId} is not a recorded validation.`, 'erp metadata deploy --check-only makes one.');
  showIntent(
    run,
    `Quick deploy of the validation of ${found.createdAt} by ${found.createdBy.displayName}:`,
    found.changes,
  );
  if (!(await agreed(run, { yes: options.yes, question: 'Deploy this? [y/N] ' }))) return;
  await start(
    run,
    { quickDeploy: { validationId, expectedManifestHash: found.manifestHash } },
    { what: 'The quick deploy', folder: options.dir },
  );
}

/** Takes a deployment back by a new deployment. */
export async function rollback(
  run: Run,
  deploymentId: string,
  options: StartOptions & { checkOnly?: true | undefined },
): Promise<void> {
  if (run.options.dryRun)
    throw usage(
      'The dry run of a rollback is recorded.',
      `Make it: erp metadata rollback ${plain(deploymentId)} --check-only --wait`,
    );
  const { body: found } = await find(run, deploymentId);
  if (found.checkOnly) throw notEligible(deploymentId, [blockedBy(deploymentId, 'NOT_APPLIED')]);
  if (found.rollback && !found.rollback.eligible) throw notEligible(deploymentId, found.rollback.blockers);
  const when = `${found.createdAt} by ${found.createdBy.displayName}`;
  const changes = inverse(found.changes);
  showIntent(run, `Rollback of the deployment of ${when}:`, changes);
  const isAsked = run.output.terminal.interactive && !options.yes && !options.checkOnly;
  if (isAsked) await tryRollback(run, deploymentId);
  if (!options.checkOnly && !(await agreed(run, { yes: options.yes, question: 'Take this back? [y/N] ' }))) return;
  await start(
    run,
    { rollback: { deploymentId, ...(options.checkOnly ? { checkOnly: true } : {}) } },
    { what: 'The rollback', folder: null },
  );
  if (options.checkOnly) return;
  run.output.note(
    `The files in git still say what ${run.options.wait ? 'was' : 'is'} taken back. To bring them up to date:`,
  );
  run.output.note(`  ${retrieveAfter(changes)}`);
}

/** Checks whether a rollback would succeed before asking for confirmation. Throws when it would not. */
async function tryRollback(run: Run, deploymentId: string): Promise<void> {
  const body = { rollback: { deploymentId, checkOnly: true } };
  const api = await run.api();
  const answer = await api
    .call('metadata.deployments.create', { body }, { what: 'The check of the rollback' })
    .catch((error: unknown) => {
      throw explained(error);
    });
  if (!('deploymentId' in answer.body)) return;
  const { body: tried } = await follow(run, answer.body.deploymentId);
  const failure = outcomeOf(tried);
  if (!failure) return;
  showFindings(run, { blocked: withoutPaths(tried.blocked), warnings: [] }, () => undefined);
  throw failure;
}

/** Members that are named one by one in a command. */
const MEMBERS_MAX = 30;

/** The command that makes files what they are after a rollback with these changes. */
export function retrieveAfter({ creates, deletes }: Pick<Changes, 'creates' | 'deletes'>): string {
  const { types } = explicitPackage(creates);
  const back = types.map(({ name, members }) => (creates.length > MEMBERS_MAX ? name : `${name}:${members.join(',')}`));
  return [
    'erp metadata retrieve',
    ...back.map((text) => `--type '${plain(text)}'`),
    ...(deletes.length > 0 ? ['--prune'] : []),
  ].join(' ');
}

type Started =
  | { quickDeploy: { validationId: string; expectedManifestHash: string } }
  | {
      rollback: { deploymentId: string; checkOnly?: boolean };
    };

async function start(
  run: Run,
  body: Started,
  { what, folder }: { what: string; folder: string | null },
): Promise<void> {
  const api = await run.api();
  const answer = await api.call('metadata.deployments.create', { body }, { what }).catch((error: unknown) => {
    throw explained(error);
  });
  if (!('deploymentId' in answer.body))
    throw new Failure('CLIENT_PROTOCOL', EXIT.error, 'The platform gave a plan and no deployment.');
  const { deploymentId } = answer.body;
  if (run.options.wait) return finish(run, deploymentId, { shown: true, ...(folder === null ? {} : { folder }) });
  const noun = 'rollback' in body && body.rollback.checkOnly ? 'Check' : 'Deployment';
  run.output.result(answer, () =>
    run.output.line(`${noun} ${deploymentId} is queued. Follow it: erp metadata status ${deploymentId} --wait`),
  );
}

function showIntent(run: Run, title: string, changes: Changes): void {
  const { output } = run;
  if (output.json) return;
  output.line(title);
  output.line();
  for (const line of planLines(changes, { terminal: output.terminal, verbose: run.options.verbose === true }))
    output.line(line);
  output.line();
}

/** Inverse of changes, as far as the changes themselves determine it. */
function inverse({ creates, updates, deletes }: Changes): Changes {
  const back = (change: Changes['creates'][number]): Changes['creates'][number] => ({
    ...change,
    destructive: false,
    properties: change.properties.map(({ name, from, to }) => ({ name, from: to, to: from })),
  });
  return { creates: deletes.map(back), updates: updates.map(back), deletes: creates.map(back), noops: [] };
}

const blockedBy = (deploymentId: string, reason: string): Blocker => ({
  type: 'Deployment',
  fullName: deploymentId,
  reason,
});

function notEligible(deploymentId: string, blockers: readonly Blocker[]): Failure {
  const message = `Deployment ${deploymentId} cannot be rolled back.`;
  return new Failure('ROLLBACK_NOT_ELIGIBLE', EXIT.conflict, message, {
    hint: blockerLines(blockers)
      .map((line) => `  ${line}`)
      .join('\n'),
    body: { code: 'ROLLBACK_NOT_ELIGIBLE', message, details: { blockers } },
  });
}

function explained(error: unknown): unknown {
  if (!(error instanceof ApiFailure)) return error;
  if (error.code === 'QUICK_DEPLOY_NOT_ELIGIBLE')
    return error.advised('Validate again: erp metadata deploy --check-only');
  const blockers = error.answer.details?.['blockers'];
  if (error.code !== 'ROLLBACK_NOT_ELIGIBLE' || !Array.isArray(blockers)) return error;
  const lines = blockerLines(blockers.filter(isBlocker));
  return error.advised(lines.map((line) => `  ${line}`).join('\n'));
}
