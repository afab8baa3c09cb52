import assert from 'node:assert/strict';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deploymentEnded, fieldFile, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('API: rolling a deployment back', () => {
  let platform: TestPlatform;
  let ada: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    await applied(objectFiles('Undo__c', { A__c: 'fieldType: text\nhelpText: first', B__c: 'fieldType: text' }));
  });
  after(() => platform?.stop());

  const applied = async (files: Record<string, string>): Promise<Answer['body']> => {
    const done = await deploymentEnded(
      ada,
      await ada.post('/metadata/deploy', { files, package: wholePackage(files) }),
    );
    assert.equal(done.status, 'SUCCEEDED', JSON.stringify([done.error, done.blocked]));
    return done;
  };
  const help = (field: string, text: string): Record<string, string> =>
    fieldFile('Undo__c', field, `fieldType: text\nhelpText: ${text}`);
  const helpOf = async (field: string): Promise<string> =>
    (await ada.get('/objects/Undo__c/describe')).body.fields.find(
      ({ apiName }: { apiName: string }) => apiName === field,
    ).helpText;
  const rollback = (deploymentId: string, more: object = {}): Promise<Answer> =>
    ada.post('/metadata/deploy', { rollback: { deploymentId, ...more } });
  const rolledBack = async (deploymentId: string): Promise<Answer['body']> => {
    const done = await deploymentEnded(ada, await rollback(deploymentId));
    assert.equal(done.status, 'SUCCEEDED', JSON.stringify([done.error, done.blocked]));
    return done;
  };
  const read = async (deploymentId: string): Promise<Answer['body']> =>
    (await ada.get(`/metadata/deployments/${deploymentId}`)).body;
  const blockersOf = ({ status, body, text }: Answer): { type: string; fullName: string; reason: string }[] => {
    assert.deepEqual([status, body.code], [409, 'ROLLBACK_NOT_ELIGIBLE'], text);
    return body.details.blockers;
  };
  const whole = (deploymentId: string, reason: string) => [{ type: 'Deployment', fullName: deploymentId, reason }];

  it('restores the earlier state, and can be rolled back itself', async () => {
    const before = (
      await ada.post('/metadata/retrieve', {
        package: { version: 1, types: [{ name: 'CustomField', members: ['Undo__c.*'] }] },
      })
    ).body;
    const { deploymentId, rollback: state } = await applied({ ...help('A__c', 'second'), ...help('B__c', 'new') });
    assert.deepEqual(state, {
      eligible: true,
      blockers: [],
      revertedByDeploymentId: null,
      revertsDeploymentId: null,
    });
    const undone = await rolledBack(deploymentId);
    assert.deepEqual([undone.kind, undone.rollback.revertsDeploymentId], ['rollback', deploymentId]);
    const after = (
      await ada.post('/metadata/retrieve', {
        package: { version: 1, types: [{ name: 'CustomField', members: ['Undo__c.*'] }] },
      })
    ).body;
    assert.equal(after.manifestHash, before.manifestHash);
    const reverted = (await read(deploymentId)).rollback;
    assert.deepEqual([reverted.eligible, reverted.revertedByDeploymentId], [false, undone.deploymentId]);
    assert.deepEqual(blockersOf(await rollback(deploymentId)), whole(deploymentId, 'ALREADY_ROLLED_BACK'));

    const redone = await rolledBack(undone.deploymentId);
    assert.equal(await helpOf('A__c'), 'second');
    const inEffect = (await read(deploymentId)).rollback;
    assert.deepEqual([inEffect.eligible, inEffect.revertedByDeploymentId], [true, null]);
    assert.equal((await read(undone.deploymentId)).rollback.revertedByDeploymentId, redone.deploymentId);
    await rolledBack(deploymentId);
    assert.equal(await helpOf('A__c'), 'first');
    assert.equal((await read(redone.deploymentId)).rollback.eligible, false);
  });

  it('deletes created components', async () => {
    const made = await applied({
      'objects/Undo__c/validationRules/Never.yaml':
        'type: ValidationRule\napiName: Never\nobject: Undo__c\nactive: true\ncondition: record.A__c == "never"\nmessage: Never.\n',
    });
    const write = () => ada.post('/data/Undo__c', { name: 'One', A__c: 'never' });
    assert.equal((await write()).status, 422);
    const undone = await rolledBack(made.deploymentId);
    assert.deepEqual([undone.changes.deletes.length, undone.allowDestructiveChanges], [1, true]);
    assert.equal((await write()).status, 201);
    await rolledBack(undone.deploymentId);
    assert.equal((await write()).status, 422);
    await rolledBack(made.deploymentId);
  });

  it('deletes created components, and restores deleted ones with their values', async () => {
    const made = await applied(objectFiles('Made__c', { A__c: 'fieldType: text' }));
    const record = await ada.post('/data/Undo__c', { name: 'One', A__c: 'kept' });
    assert.equal(record.status, 201, record.text);
    await rolledBack(made.deploymentId);
    assert.equal((await ada.get('/objects/Made__c/describe')).status, 404);
    const manifest = {
      'manifest/destructiveChanges.yaml':
        'version: 1\ntypes:\n  - name: CustomField\n    members:\n      - Undo__c.A__c\n',
    };
    const gone = await deploymentEnded(
      ada,
      await ada.post('/metadata/deploy', {
        files: manifest,
        package: { version: 1, types: [] },
        allowDestructiveChanges: true,
      }),
    );
    assert.equal(gone.status, 'SUCCEEDED', JSON.stringify([gone.error, gone.blocked]));
    assert.equal((await ada.get(`/data/Undo__c/${record.body.id}`)).body.A__c, undefined);
    const back = await rolledBack(gone.deploymentId);
    assert.equal((await ada.get(`/data/Undo__c/${record.body.id}`)).body.A__c, 'kept');
    await rolledBack(back.deploymentId);
    assert.equal((await ada.get(`/data/Undo__c/${record.body.id}`)).body.A__c, undefined);
    await rolledBack(gone.deploymentId);
    assert.equal((await ada.get(`/data/Undo__c/${record.body.id}`)).body.A__c, 'kept');
  });

  it('begins with the newest', async () => {
    const older = await applied({ ...help('A__c', 'older'), ...help('B__c', 'older') });
    const newer = await applied(help('A__c', 'newer'));
    const blockers = [{ type: 'CustomField', fullName: 'Undo__c.A__c', reason: 'CHANGED_LATER' }];
    assert.deepEqual(blockersOf(await rollback(older.deploymentId)), blockers);
    assert.deepEqual((await read(older.deploymentId)).rollback.blockers, blockers);
    const undone = await rolledBack(newer.deploymentId);
    assert.equal((await read(older.deploymentId)).rollback.eligible, true);
    await rolledBack(undone.deploymentId);
    assert.equal((await read(older.deploymentId)).rollback.eligible, false, 'the newer one is in effect again');
    await rolledBack(newer.deploymentId);
    await rolledBack(older.deploymentId);
    assert.equal(await helpOf('A__c'), 'first');
  });

  it('can be previewed', async () => {
    const { deploymentId } = await applied(help('B__c', 'tried'));
    const tried = await deploymentEnded(ada, await rollback(deploymentId, { checkOnly: true }));
    assert.deepEqual([tried.status, tried.kind, tried.checkOnly], ['SUCCEEDED', 'rollback', true]);
    assert.equal(tried.changes.updates[0].fullName, 'Undo__c.B__c');
    assert.equal(await helpOf('B__c'), 'tried');
    assert.deepEqual(blockersOf(await rollback(tried.deploymentId)), whole(tried.deploymentId, 'NOT_APPLIED'));
  });

  it('is refused with the reason', async () => {
    const files = help('A__c', 'x');
    const validation = await deploymentEnded(
      ada,
      await ada.post('/metadata/deploy', { files, package: wholePackage(files), checkOnly: true }),
    );
    assert.deepEqual(
      blockersOf(await rollback(validation.deploymentId)),
      whole(validation.deploymentId, 'NOT_APPLIED'),
    );
    const bad = fieldFile('Undo__c', 'C__c', 'fieldType: reference\nreferenceTo: [Missing__c]');
    const failed = await deploymentEnded(
      ada,
      await ada.post('/metadata/deploy', { files: bad, package: wholePackage(bad) }),
    );
    assert.deepEqual(blockersOf(await rollback(failed.deploymentId)), whole(failed.deploymentId, 'NOT_SUCCEEDED'));
    const same = await applied(objectFiles('Undo__c'));
    assert.deepEqual(blockersOf(await rollback(same.deploymentId)), whole(same.deploymentId, 'NOTHING_CHANGED'));
    const nobody = '0193d3c1-7a20-7c11-8a55-2f0e4b6c9d01';
    assert.deepEqual(blockersOf(await rollback(nobody)), whole(nobody, 'NOT_FOUND'));
    for (const malformed of [`urn:uuid:${nobody}`, 'x'])
      assert.equal((await rollback(malformed)).body.code, 'PARAMETER_INVALID');
  });
});
