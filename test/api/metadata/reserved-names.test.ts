import assert from 'node:assert/strict';
import { Database } from '../../../mixins/database/database.ts';
import type { Answer, Api } from '../../support/client.ts';
import {
  createTenantOverHttp,
  deploymentEnded,
  destructiveManifest,
  fieldFile,
  objectFiles,
  wholePackage,
} from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

type Body = Answer['body'];
type Files = Record<string, string>;

describe('API: the names of deleted objects and fields', () => {
  let platform: TestPlatform;
  let ada: Api;
  let database: Database;
  before(async function () {
    this.timeout(60_000);
    platform = await startPlatform({ seed: false });
    ada = await createTenantOverHttp(platform);
    database = new Database(platform.database.url, { size: 1, applicationName: 'reserved names test' });
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  const ended = async (body: object): Promise<Body> => deploymentEnded(ada, await ada.post('/metadata/deploy', body));
  const deploy = (files: Files): Promise<Body> =>
    ended({
      files,
      package: wholePackage(files),
      ...('manifest/destructiveChanges.yaml' in files ? { allowDestructiveChanges: true } : {}),
    });
  const succeeds = async (done: Promise<Body>): Promise<Body> => {
    const { status, error, blocked, ...rest } = await done;
    assert.equal(status, 'SUCCEEDED', JSON.stringify([error, blocked]));
    return rest;
  };
  const rollback = ({ deploymentId }: Body): Promise<Body> => ended({ rollback: { deploymentId } });
  const reserved = async (done: Promise<Body>): Promise<Body[]> => {
    const { status, blocked } = await done;
    assert.equal(status, 'FAILED');
    return blocked.map(({ code, fullName, details }: Body) => [code, fullName, details?.records]);
  };
  const create = async (object: string, body: object): Promise<Body> => {
    const { status, body: created, text } = await ada.post(`/data/${object}`, body);
    assert.equal(status, 201, text);
    return created;
  };
  /** Multiplies the records of an object until indexes are created ahead. */
  const grow = (object: string): Promise<unknown> =>
    database.query(
      `DO $$ DECLARE s text; BEGIN
        SELECT schemaname INTO s FROM pg_tables WHERE tablename = '${object}';
        EXECUTE format('INSERT INTO %I.%I (id, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById", name)
          SELECT gen_random_uuid(), "ownerId", now(), "createdById", now(), "updatedById", name
          FROM %I.%I, generate_series(1, 12000)', s, '${object}', s, '${object}');
      END $$`,
    );

  it('a deployment that was rolled back can be deployed again, corrected', async () => {
    const first = objectFiles('Crate__c', {
      Code__c: 'fieldType: text\nunique: true',
      Number__c: 'fieldType: autoNumber\nformat: C-{0}',
      Weight__c: 'fieldType: text',
    });
    const made = await succeeds(deploy(first));
    const undone = await succeeds(rollback(made));
    const corrected = objectFiles('Crate__c', {
      Code__c: 'fieldType: text\nunique: true',
      Number__c: 'fieldType: autoNumber\nformat: K-{0}',
      Weight__c: 'fieldType: decimal\nprecision: 8\nscale: 2',
    });
    const again = await succeeds(deploy(corrected));
    const { id } = await create('Crate__c', { name: 'One', Code__c: 'a', Weight__c: 1.5 });
    const { body: read } = await ada.get(`/data/Crate__c/${id}`);
    assert.deepEqual([read.Code__c, read.Number__c, read.Weight__c], ['a', 'K-1', 1.5]);
    const taken = await ada.post('/data/Crate__c', { name: 'Two', Code__c: 'a' });
    assert.equal(taken.status, 409, taken.text);
    assert.equal((await ada.get('/data/Crate__c/changes')).status, 200);

    // The first one cannot be restored meanwhile, and not in place of the other's records.
    const refused = await ada.post('/metadata/deploy', { rollback: { deploymentId: undone.deploymentId } });
    assert.deepEqual([refused.status, refused.body.code], [409, 'ROLLBACK_NOT_ELIGIBLE'], refused.text);
    const gone = await succeeds(rollback(again));
    assert.deepEqual(await reserved(rollback(undone)), [['NAME_RESERVED', 'Crate__c', 1]]);
    assert.deepEqual(await reserved(deploy(first)), [['NAME_RESERVED', 'Crate__c', 1]]);
    await succeeds(rollback(gone));
    assert.equal((await ada.get(`/data/Crate__c/${id}`)).body.Weight__c, 1.5);

    // A deleted record could be restored, too.
    const path = `/data/Crate__c/${id}`;
    const removed = await ada.delete(path, { etag: (await ada.get(path)).headers.get('etag')! });
    assert.equal(removed.status, 200, removed.text);
    await succeeds(deploy(destructiveManifest({ CustomObject: ['Crate__c'] })));
    assert.deepEqual(await reserved(deploy(first)), [['NAME_RESERVED', 'Crate__c', 1]]);
  });

  it('as can components deleted without records, in another case or unchanged', async () => {
    const first = await succeeds(deploy(objectFiles('Chest__c', { Old__c: 'fieldType: text' })));
    const undone = await succeeds(rollback(first));
    const other = await succeeds(deploy(objectFiles('CHEST__c', { New__c: 'fieldType: date' })));
    await succeeds(rollback(other));
    await succeeds(rollback(undone));
    await create('Chest__c', { name: 'One', Old__c: 'was never there' });
    assert.deepEqual(await reserved(deploy(objectFiles('CHEST__c'))), [['NAME_CONFLICT', 'CHEST__c', undefined]]);
  });

  it('a field without values makes room for one of another type, with many records', async () => {
    await succeeds(deploy(objectFiles('Case__c', { Kept__c: 'fieldType: text' })));
    const { id } = await create('Case__c', { name: 'One' });
    await grow('Case__c');
    const field = (body: string): Files => fieldFile('Case__c', 'Value__c', body);
    const text = await succeeds(deploy(field('fieldType: text')));
    await succeeds(rollback(text));
    const number = await succeeds(deploy(field('fieldType: integer\nunique: true')));
    const path = `/data/Case__c/${id}`;
    const etag = (await ada.get(path)).headers.get('etag')!;
    const noted = await ada.patch(path, { Value__c: 7 }, { etag });
    assert.equal(noted.status, 200, noted.text);
    assert.equal((await ada.get(path)).body.Value__c, 7);
    await succeeds(rollback(number));
    assert.deepEqual(await reserved(deploy(field('fieldType: text'))), [['NAME_RESERVED', 'Case__c.Value__c', 1]]);
    const [problem] = (await deploy(field('fieldType: text'))).blocked;
    assert.ok(Date.parse(problem.details.until) > Date.now());
  });
});
