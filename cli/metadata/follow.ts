/** Waits for a deployment, and shows what became of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ENDED_STATUSES } from '../../contracts/metadata.ts';
import type { OperationOutput } from '../../contracts/operations.ts';
import type { Run } from '../command.ts';
import { ApiFailure, EXIT, Failure } from '../failure.ts';
import type { Answer, Api } from '../http/api.ts';
import { NetworkFailure } from '../http/transport.ts';
import { onInterrupt } from '../output/interrupt.ts';
import { openProgress, type Progress } from '../output/progress.ts';
import { counted } from '../output/values.ts';
import { planLines, unreadOf, unreadText } from './plan.ts';
import { type Finding, findingLines, withoutPaths } from './problems.ts';
import { blockerLines } from './rollback-blockers.ts';

export type Deployment = OperationOutput<'metadata.deployments.get'>;
export type DeploymentSummary = OperationOutput<'metadata.deployments.list'>['records'][number];

const ENDED: ReadonlySet<string> = new Set(ENDED_STATUSES);
/** Asking once per second costs nothing. */
const ASK_EVERY_MS = 1_000;

export const hasEnded = ({ status }: { status: string }): boolean => ENDED.has(status);

/** Asks for a deployment until it has ended. Ctrl-C stops the waiting and not the deployment. */
export async function follow(run: Run, deploymentId: string): Promise<Answer<Deployment>> {
  const api = await run.api();
  const progress = openProgress(run.output);
  const restore = onInterrupt(() => {
    progress.end();
    run.output.note(
      `\nStopped waiting. Deployment ${deploymentId} goes on:\n` +
        `  erp metadata status ${deploymentId} --wait\n  erp metadata cancel ${deploymentId}`,
    );
  });
  try {
    for (;;) {
      const answer = await api.call('metadata.deployments.get', { path: { deploymentId } });
      if (hasEnded(answer.body)) return answer;
      show(answer.body, progress);
      await sleep(ASK_EVERY_MS);
    }
  } catch (error) {
    throw withoutAnswer(error, deploymentId);
  } finally {
    progress.end();
    restore();
  }
}

/** A lost connection does not end the deployment. */
function withoutAnswer(error: unknown, deploymentId: string): unknown {
  const hint = `Deployment ${deploymentId} goes on. See how it ends: erp metadata status ${deploymentId} --wait`;
  if (error instanceof ApiFailure) return error.status >= 500 ? error.advised(hint) : error;
  return error instanceof NetworkFailure
    ? new Failure(error.code, error.exitCode, error.message, { cause: error, hint })
    : error;
}

const STAGES = { queue: 'Waiting', validate: 'Validating', apply: 'Applying', done: 'Done' } as const;

function show({ status, progress: { stage, position, done, total } }: Deployment, progress: Progress): void {
  if (status === 'CANCELING') progress.update('Canceling', done, total);
  else if (stage !== 'queue') progress.update(STAGES[stage], done, total);
  else
    progress.update(position ? `Waiting for ${counted(position, 'deployment', 'deployments')} before it` : 'Waiting');
}

/** Problems of a failed deployment, or warnings. `text` gives the files, if they are here. */
export function showFindings(
  run: Run,
  { blocked, warnings }: { blocked: readonly Finding[]; warnings: readonly Finding[] },
  text: (path: string) => string | undefined,
): void {
  const { terminal } = run.output;
  const verbose = run.options.verbose === true;
  for (const line of findingLines(blocked, { terminal, severity: 'error', verbose, text })) run.output.line(line);
  for (const line of findingLines(warnings, { terminal, severity: 'warning', verbose, text })) run.output.line(line);
}

/** A deployment for people: what it is, its plan, what stands against it, what can be done with it. */
export function showDeployment(
  run: Run,
  found: Deployment,
  text: (path: string) => string | undefined = () => undefined,
): void {
  const { output } = run;
  output.pairs(factsOf(found));
  const { creates, updates, deletes, noops } = found.changes;
  if (creates.length + updates.length + deletes.length + noops.length > 0) {
    output.line();
    for (const line of planLines(found.changes, { terminal: output.terminal, verbose: run.options.verbose === true }))
      output.line(line);
  }
  if (found.blocked.length + found.warnings.length > 0) output.line();
  const unread = unreadOf(found.changes, found.blocked);
  if (unread > 0) output.line(unreadText(unread, output.terminal));
  // The files of a rollback exist only on the platform.
  const findings = found.kind === 'rollback' ? { blocked: withoutPaths(found.blocked), warnings: [] } : found;
  showFindings(run, findings, text);
}

/** A deployment in which people stand by their names, as far as the caller can see them. */
export async function withNames(run: Run, found: Deployment): Promise<Deployment> {
  const { canceledBy } = found;
  if (canceledBy === null || run.output.json) return found;
  const names = await namesOf(await run.api(), [canceledBy]);
  return { ...found, canceledBy: names.get(canceledBy) ?? canceledBy };
}

/** Names of users, as far as the caller can see them. */
export async function namesOf(api: Api, ids: readonly string[]): Promise<Map<string, string>> {
  const people = new Map<string, string>();
  for (const id of [...new Set(ids)].slice(0, 10))
    try {
      const { body } = await api.call('data.records.get', { path: { objectApiName: 'User', id } });
      if ('displayName' in body && typeof body.displayName === 'string') people.set(id, body.displayName);
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
    }
  return people;
}

function factsOf(found: Deployment): [name: string, value: string][] {
  const { createdBy, progress, metadataVersionBefore, metadataVersionAfter } = found;
  const facts: [string, string | null][] = [
    ['deployment', found.deploymentId],
    ['status', hasEnded(found) ? found.status : `${found.status} ${progress.done}/${progress.total}`],
    ['kind', kindOf(found)],
    ['by', `${createdBy.displayName} with ${createdBy.clientId}`],
    ['created', found.createdAt],
    ['finished', found.finishedAt],
    ['version', metadataVersionAfter === null ? null : `${metadataVersionBefore} → ${metadataVersionAfter}`],
    ['manifest hash', found.manifestHash],
    ['plan hash', found.planHash],
    ['error', found.error && `${found.error.code}: ${found.error.message}`],
    ['canceled by', found.canceledBy],
    ['reason', found.cancelReason],
    ['quick deploy', quickDeployText(found)],
    ['rollback', rollbackText(found)],
  ];
  return facts.flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
}

function quickDeployText({ deploymentId, quickDeploy }: Deployment): string | null {
  if (!quickDeploy) return null;
  const { eligible, validUntil, usedByDeploymentId } = quickDeploy;
  if (eligible) return `until ${validUntil}: erp metadata quick-deploy ${deploymentId}`;
  return usedByDeploymentId ? `used by ${usedByDeploymentId}` : 'not possible any more';
}

function rollbackText({ deploymentId, rollback, checkOnly }: Deployment): string | null {
  if (!rollback) return null;
  const { eligible, blockers, revertedByDeploymentId, revertsDeploymentId } = rollback;
  if (revertedByDeploymentId) return `taken back by ${revertedByDeploymentId}`;
  const what = revertsDeploymentId ? `takes back ${revertsDeploymentId}` : '';
  if (checkOnly) return what || null;
  return (
    (what && `${what}; `) +
    (eligible ? `possible: erp metadata rollback ${deploymentId}` : blockerLines(blockers).join('; '))
  );
}

/** Kind of deployment, in words. */
export const kindOf = ({ kind, checkOnly }: { kind: string; checkOnly: boolean }): string =>
  kind === 'quickDeploy' ? 'quick deploy' : kind === 'rollback' && checkOnly ? 'rollback check' : kind;

/** The failure of a command whose deployment did not succeed; null: it has. */
export function outcomeOf({ deploymentId, status, error, blocked }: Deployment): Failure | null {
  if (status === 'SUCCEEDED') return null;
  const why = error ? `: ${error.message} (${error.code})` : '.';
  const message = `Deployment ${deploymentId} ${status === 'CANCELED' ? 'was canceled' : 'failed'}${why}`;
  const hints: Readonly<Record<string, string>> = {
    PLAN_CHANGED:
      'The configuration has changed since the plan was made. Look at the plan again: erp metadata validate',
    METADATA_DRIFT:
      'Others have changed components of the project. Retrieve them into git and merge: erp metadata retrieve',
    WORKER_LOST: 'Nothing was applied. Deploy again.',
    APPLY_FAILED: 'Nothing was applied.',
  };
  const body = { code: error?.code ?? status, message, deploymentId, problems: blocked };
  return new Failure(error?.code ?? status, EXIT.job, message, { hint: error ? hints[error.code] : undefined, body });
}
