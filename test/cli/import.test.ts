/** `erp data import` and `data export`: files of many records, as users and scripts bring and take them. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Api, api, tokenFor } from '../support/client.ts';
import { erpOf, keptErpOf, userEnvironment } from '../support/erp.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { temporaryFolder } from '../support/temporary.ts';

describe('erp data import', () => {
  let platform: TestPlatform;
  let ada: Api;
  let env: Record<string, string>;
  let erp: ReturnType<typeof keptErpOf>;
  const folder = temporaryFolder('import');
  const path = (name: string): string => join(folder, name);

  before(async () => {
    platform = await startPlatform();
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    ada = api(platform.baseUrl, token);
    env = userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl });
    erp = keptErpOf(env);
  });
  after(() => platform.stop());

  const counted = async (city: string): Promise<number> => {
    const where = encodeURIComponent(JSON.stringify({ city }));
    return (await ada.get(`/data/Account?where=${where}&includeTotal=true&take=1`)).body.total;
  };

  it('tries out, writes, and keeps the rows that failed in a file that can be mended', async () => {
    await writeFile(path('map.yaml'), 'Nr: accountNumber\nFirma: name\nOrt: city\nNotiz:\n');
    const rows = ['Nr;Firma;Ort;Notiz', 'IMP-00001;"Nagel; Söhne";Emden;a', '', 'IMP-00002;;Emden;"b\n""c"""'];
    await writeFile(path('kunden.csv'), `\ufeff${rows.join('\r\n')}`);
    const args = ['data', 'import', path('kunden.csv'), '--object', 'Account', '--external-id', 'accountNumber'];
    const form = ['--map', path('map.yaml'), '--delimiter', ';'];
    const tried = await erp([...args, ...form, '--dry-run']);
    assert.equal(tried.code, 8, tried.stderr);
    assert.match(tried.stderr, /^2 +Firma +name is required\. \(FIELD_REQUIRED\)$/m);
    assert.equal(await counted('Emden'), 0);

    const imported = await erp([...args, ...form, '--failed', path('failed.csv')]);
    assert.deepEqual([imported.code, await counted('Emden')], [8, 1], imported.stderr);
    const failed = await readFile(path('failed.csv'), 'utf8');
    assert.equal(failed, 'Nr;Firma;Ort;Notiz;_error\nIMP-00002;;Emden;"b\n""c""";"Firma: name is required."\n');
    await writeFile(path('mended.csv'), failed.replace('IMP-00002;;', 'IMP-00002;Riverside;'));
    const mended = await erp([...args.toSpliced(2, 1, path('mended.csv')), ...form]);
    assert.deepEqual([mended.code, await counted('Emden')], [0, 2], mended.stderr);
  });

  it('comes back to its job after Ctrl-C, and writes nothing twice', async () => {
    const rows = Array.from({ length: 400 }, (_, i) => JSON.stringify({ name: `Row ${i} of Aurich`, city: 'Aurich' }));
    await writeFile(path('rows.ndjson'), `${rows.join('\n')}\n`);
    const args = ['data', 'import', path('rows.ndjson'), '--object', 'Account', '--report-duplicates', '--verbose'];
    const user = new AbortController();
    const stopped = await erpOf(env)(args, {
      interrupt: user.signal,
      onStderr: (text) => /^POST \S+\/start 202/m.test(text) && user.abort(),
    });
    assert.equal(stopped.code, 130, stopped.stderr);
    const again = await erp(args);
    assert.equal(again.code, 0, again.stderr);
    assert.doesNotMatch(again.stderr, /^POST \S+\/bulk\/jobs 201/m);
    assert.equal(await counted('Aurich'), 400);
  });

  it('exports what can be imported', async () => {
    const args = ['data', 'export', 'Account', '--output', path('out.csv'), '--fields', 'name,city'];
    const exported = await erp([...args, '--where', 'city=Emden']);
    assert.equal(exported.code, 0, exported.stderr);
    const lines = (await readFile(path('out.csv'), 'utf8')).trim().split('\n');
    assert.equal(lines[0], 'id,name,city,_etag');
    assert.equal(lines.length, 3);
    assert.equal((await ada.get('/bulk/jobs?state=COMPLETED')).body.records.at(0)?.operation, 'create');
  });

  it('says what is wrong with a file before it is sent', async () => {
    for (const [file, said] of [
      ['none.csv', /no such file/],
      ['map.yaml', /neither CSV nor NDJSON/],
    ] as const) {
      const { code, stderr } = await erp(['data', 'import', path(file), '--object', 'Account']);
      assert.equal(code, 2);
      assert.match(stderr, said);
    }
  });

  it('leaves no job behind that has refused the file', async () => {
    await writeFile(path('refused.csv'), 'name;city\nRefused;Emden\n');
    for (const more of [[], ['--dry-run']]) {
      const { code, stderr } = await erp(['data', 'import', path('refused.csv'), '--object', 'Account', ...more]);
      assert.deepEqual([code, /If ";" is the delimiter/.test(stderr)], [6, true], stderr);
    }
    assert.deepEqual((await ada.get('/bulk/jobs?state=OPEN')).body.records, []);
  });
});
