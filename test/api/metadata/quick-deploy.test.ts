import assert from 'node:assert/strict';
import { Database } from '../../../mixins/database/database.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deploymentEnded, fieldFile, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('API: deploying a validation', () => {
  let platform: TestPlatform;
  let database: Database;
  let schema: string;
  let ada: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    database = new Database(platform.database.url, { size: 2, applicationName: 'quick deploy test' });
    const { tenant } = (await ada.get('/identity')).body;
    schema = `"t_${tenant.id.replaceAll('-', '')}"`;
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  const deploy = (body: object): Promise<Answer> => ada.post('/metadata/deploy', body);
  const validated = async (files: Record<string, string>): Promise<Answer['body']> =>
    deploymentEnded(ada, await deploy({ files, package: wholePackage(files), checkOnly: true }));
  const quickly = (validationId: string, more: object = {}): Promise<Answer> =>
    deploy({ quickDeploy: { validationId, ...more } });

  const reasonOf = ({ status, body, text }: Answer): string => {
    assert.deepEqual([status, body.code], [409, 'QUICK_DEPLOY_NOT_ELIGIBLE'], text);
    return body.details.reason;
  };

  it('applies it once, with its files and its plan', async () => {
    const files = objectFiles('Quick__c', { A__c: 'fieldType: text' });
    const validation = await validated(files);
    assert.equal(validation.quickDeploy.eligible, true, JSON.stringify(validation));
    assert.equal(Date.parse(validation.quickDeploy.validUntil) - Date.parse(validation.finishedAt), 10 * 86_400_000);
    const accepted = await quickly(validation.deploymentId, { expectedManifestHash: validation.manifestHash });
    assert.deepEqual(
      [accepted.status, accepted.body.checkOnly, accepted.body.manifestHash, accepted.headers.get('location')],
      [202, false, validation.manifestHash, accepted.body.links.self],
    );
    const done = await deploymentEnded(ada, accepted);
    assert.deepEqual([done.status, done.kind, done.planHash], ['SUCCEEDED', 'quickDeploy', validation.planHash]);
    assert.equal((await ada.get('/objects/Quick__c/describe')).status, 200);
    const after = (await ada.get(`/metadata/deployments/${validation.deploymentId}`)).body.quickDeploy;
    assert.deepEqual([after.eligible, after.usedByDeploymentId], [false, done.deploymentId]);
    assert.deepEqual(reasonOf(await quickly(validation.deploymentId)), 'ALREADY_USED');
  });

  it('applies one of two simultaneous requests, and answers a repeated request identically', async () => {
    const { deploymentId } = await validated(objectFiles('Twice__c'));
    const body = { quickDeploy: { validationId: deploymentId } };
    const keys = ['quick-race-1', 'quick-race-2'];
    const answers = await Promise.all(
      keys.map((idempotencyKey) => ada.post('/metadata/deploy', body, { idempotencyKey })),
    );
    assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 409]);
    const won = answers.findIndex(({ status }) => status === 202);
    assert.equal(reasonOf(answers[1 - won]!), 'ALREADY_USED');
    await deploymentEnded(ada, answers[won]!);
    const again = await ada.post('/metadata/deploy', body, { idempotencyKey: keys[won]! });
    assert.deepEqual([again.status, again.body], [202, answers[won]!.body]);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
  });

  it('can be repeated when the deployment that used the validation was canceled', async () => {
    const { deploymentId } = await validated(objectFiles('Again__c'));
    const holder = await database.pool.connect();
    try {
      await holder.query('BEGIN');
      await holder.query(`SELECT FROM ${schema}._state FOR SHARE`);
      const first = await quickly(deploymentId);
      assert.equal(reasonOf(await quickly(deploymentId)), 'ALREADY_USED');
      assert.equal((await ada.post(`/metadata/deployments/${first.body.deploymentId}/cancel`)).status, 202);
      assert.equal((await deploymentEnded(ada, first)).status, 'CANCELED');
    } finally {
      await holder.query('ROLLBACK');
      holder.release();
    }
    assert.equal((await ada.get(`/metadata/deployments/${deploymentId}`)).body.quickDeploy.usedByDeploymentId, null);
    assert.equal((await deploymentEnded(ada, await quickly(deploymentId))).status, 'SUCCEEDED');
  });

  it('is refused with the reason', async () => {
    const nobody = '0193d3c1-7a20-7c11-8a55-2f0e4b6c9d01';
    assert.equal(reasonOf(await quickly(nobody)), 'NOT_FOUND');
    assert.equal((await quickly(`urn:uuid:${nobody}`)).body.code, 'PARAMETER_INVALID');
    const files = objectFiles('Reasons__c', { A__c: 'fieldType: text' });
    const validation = await validated(files);
    const eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
    const body = { quickDeploy: { validationId: validation.deploymentId } };
    assert.equal(reasonOf(await eve.post('/metadata/deploy', body)), 'NOT_FOUND');
    const wrong = `sha256:${'0'.repeat(64)}`;
    assert.equal(reasonOf(await quickly(validation.deploymentId, { expectedManifestHash: wrong })), 'DRIFT');
    const applied = await deploymentEnded(ada, await deploy({ files, package: wholePackage(files) }));
    assert.equal(reasonOf(await quickly(applied.deploymentId)), 'NOT_FOUND', 'it is no validation');
    assert.equal(reasonOf(await quickly(validation.deploymentId)), 'DRIFT');
    assert.equal((await ada.get(`/metadata/deployments/${validation.deploymentId}`)).body.quickDeploy.eligible, false);
    const failed = await validated(fieldFile('Reasons__c', 'B__c', 'fieldType: reference\nreferenceTo: [Missing__c]'));
    assert.equal(reasonOf(await quickly(failed.deploymentId)), 'NOT_SUCCEEDED');
    const old = await validated(objectFiles('Old__c'));
    await database.query(
      "UPDATE metadata.deployments SET finished_at = now() - interval '10 days' WHERE deployment_id = $1",
      [old.deploymentId],
    );
    assert.equal(reasonOf(await quickly(old.deploymentId)), 'EXPIRED');
    assert.equal((await ada.get(`/metadata/deployments/${old.deploymentId}`)).body.quickDeploy.eligible, false);
  });

  it("is checked against the caller's permissions, not against those of the validating user", async () => {
    const name = 'Mighty';
    const { deploymentId } = await validated({
      [`permissionSets/${name}.yaml`]: `type: PermissionSet\napiName: ${name}\nlabel: ${name}\nsystem: [modifyAllData]\n`,
    });
    const mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
    const sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    const body = { quickDeploy: { validationId: deploymentId } };
    assert.equal((await sam.post('/metadata/deploy', body)).body.code, 'METADATA_PERMISSION_DENIED');
    const refused = await mia.post('/metadata/deploy', body);
    if (refused.body.code !== 'METADATA_PERMISSION_DENIED') assert.equal(reasonOf(refused), 'PERMISSION');
    assert.equal((await deploymentEnded(ada, await quickly(deploymentId))).status, 'SUCCEEDED');
  });

  it('excludes the other forms of a deployment', async () => {
    const answer = await deploy({ files: {}, quickDeploy: { validationId: 'x' } });
    assert.deepEqual([answer.status, answer.body.code], [400, 'PARAMETER_CONFLICT']);
  });
});
