import assert from 'node:assert/strict';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deploymentEnded, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('API: deploying what was validated', () => {
  let platform: TestPlatform;
  let ada: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
  });
  after(() => platform?.stop());

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
});
