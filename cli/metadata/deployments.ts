/** `erp metadata status` and `list`. */
import type { Run } from '../command.ts';
import { usage } from '../failure.ts';
import { finish } from './deploy.ts';
import { type DeploymentSummary, kindOf, showDeployment } from './follow.ts';

const STATUSES = ['QUEUED', 'VALIDATING', 'APPLYING', 'CANCELING', 'SUCCEEDED', 'FAILED', 'CANCELED'] as const;

/** Shows a deployment; with --wait, when it has ended. */
export async function status(run: Run, deploymentId: string): Promise<void> {
  if (run.options.wait) {
    await finish(run, deploymentId, { prepared: null });
    return;
  }
  const answer = await (await run.api()).call('metadata.deployments.get', { path: { deploymentId } });
  run.output.result(answer, () => showDeployment(run, answer.body));
}

export interface ListOptions {
  status?: string | undefined;
  take: number;
  cursor?: string | undefined;
}

/** Lists deployments. */
export async function list(run: Run, options: ListOptions): Promise<void> {
  const wanted = STATUSES.find((one) => one === options.status?.toUpperCase());
  if (options.status !== undefined && !wanted) throw usage(`--status is one of ${STATUSES.join(', ')}.`);
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
        { title: 'KIND' },
        { title: 'STATUS' },
        { title: 'BY' },
        { title: 'CREATED' },
        { title: 'CHANGES', right: true },
        { title: 'VERSION', right: true },
      ],
      records.map(rowOf),
    );
    if (nextCursor !== null) run.output.note(`There are more: --cursor ${nextCursor}`);
  });
}

const rowOf = (found: DeploymentSummary): string[] => [
  found.deploymentId,
  kindOf(found),
  found.error ? `${found.status} ${found.error.code}` : found.status,
  found.createdBy.displayName,
  found.createdAt.slice(0, 19).replace('T', ' '),
  String(found.progress.total),
  found.metadataVersionAfter === null ? '' : String(found.metadataVersionAfter),
];
