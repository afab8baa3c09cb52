/** A deployment that the platform leaves alone, so that only the workers of a test take it. */
import { uuidv7 } from '../../lib/values/ids.ts';
import type { Tx } from '../../mixins/database/database.ts';
import { insertDeployment } from '../../services/metadata/deployments/store.ts';
import { type MetadataTenant, wholePackage } from './metadata-tenant.ts';

/** Queues leave what they find under a lease, whatever its state; a worker that is sent to the tenant takes it. */
export const leaveAlone = async (tx: Pick<Tx, 'query'>, deploymentId: string): Promise<void> => {
  await tx.query(
    "UPDATE metadata.deployments SET status = 'QUEUED', lease_until = now() + interval '5 min' WHERE deployment_id = $1",
    [deploymentId],
  );
};

/** Stores it as the administrator of the tenant would, and answers its id. */
export async function insertQuietly(
  { database, tenantId, users }: Pick<MetadataTenant, 'database' | 'tenantId' | 'users'>,
  files: Record<string, string>,
  { checkOnly = false }: { checkOnly?: boolean } = {},
): Promise<string> {
  const deploymentId = uuidv7();
  await database.shared('metadata', tenantId, async (tx) => {
    await insertDeployment(tx, {
      tenantId,
      deploymentId,
      kind: checkOnly ? 'validation' : 'deploy',
      checkOnly,
      allowDestructiveChanges: false,
      baseMetadataVersion: null,
      expectedPlanHash: null,
      manifestHash: `sha256:${'0'.repeat(64)}`,
      package: JSON.stringify(wholePackage(files)),
      files: JSON.stringify(files),
      revertsDeploymentId: null,
      createdBy: {
        userId: users['admin']!,
        displayName: 'admin',
        clientId: 'test',
        agentRunId: null,
        permissions: ['metadataManage'],
      },
      requestId: 'req_test',
      idempotencyKey: deploymentId,
    });
    await leaveAlone(tx, deploymentId);
  });
  return deploymentId;
}
