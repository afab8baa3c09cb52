import assert from 'node:assert/strict';
import type { Snapshot } from '../../../lib/schema/snapshot.ts';
import { giveManageAccess } from '../../../services/metadata/access-managers.ts';
import { createMetadataTenant, type MetadataTenant } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const bundle = (
  type: 'Profile' | 'PermissionSet',
  name: string,
  system: readonly string[],
): Record<string, string> => ({
  [`${type === 'Profile' ? 'profiles' : 'permissionSets'}/${name}.yaml`]: `type: ${type}\napiName: ${name}\nlabel: ${name}\nsystem: [${system.join(', ')}]\n`,
});

describe('metadata: tenants from before there was manageAccess', () => {
  let platform: TestPlatform;
  let older: MetadataTenant;
  let newer: MetadataTenant;
  before(async function () {
    this.timeout(60_000);
    platform = await startPlatform({ seed: false });
    [older, newer] = [await createMetadataTenant(platform), await createMetadataTenant(platform)];
    await platform.broker.call('metadata.templates.deploy', {
      tenantId: older.tenantId,
      files: {
        ...bundle('Profile', 'Administrator', ['apiEnabled', 'manageUsers', 'metadataManage', 'viewAudit']),
        ...bundle('PermissionSet', 'Deputy', ['manageUsers', 'metadataManage']),
        ...bundle('PermissionSet', 'Helpdesk', ['manageUsers']),
        ...bundle('PermissionSet', 'Developer', ['metadataManage']),
      },
    });
    await older.database.query('UPDATE metadata.tenants SET access_managed = false');
  });
  after(async () => {
    await older?.database.close();
    await newer?.database.close();
    await platform?.stop();
  });

  const snapshot = async ({ tenantId }: MetadataTenant): Promise<Snapshot> => {
    const { snapshot: bytes } = (await platform.broker.call('metadata.snapshots.get', { tenantId })) as {
      snapshot: Buffer;
    };
    return JSON.parse(bytes.toString());
  };

  it('give it to those who manage users and configuration, once, as a version like any other', async () => {
    const versions: [string, number][] = [];
    const give = () =>
      giveManageAccess(older.database, {
        changed: (tenantId, version) => versions.push([tenantId, version]),
        failed: (_tenantId, error) => assert.fail(String(error)),
      });
    const { version } = await snapshot(older);
    const unchanged = (await snapshot(newer)).version;
    assert.equal(await give(), 1);
    assert.deepEqual(versions, [[older.tenantId, version + 1]]);
    const after = await snapshot(older);
    const holders = [...Object.values(after.profiles), ...Object.values(after.permissionSets)]
      .filter(({ system }) => system.includes('manageAccess'))
      .map(({ apiName }) => apiName);
    assert.deepEqual(holders, ['Administrator', 'Deputy']);
    assert.equal((await snapshot(newer)).version, unchanged);
    assert.equal(await give(), 0);
    const { rows } = await older.database.query<{ channel: string }>(
      `SELECT user_id, channel FROM ${older.schema}._audit WHERE changes->>'metadataVersion' = $1`,
      [String(version + 1)],
    );
    assert.deepEqual(rows, [{ user_id: null, channel: 'job' }]);
  });
});
