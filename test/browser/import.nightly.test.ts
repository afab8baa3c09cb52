/** The page of imports in headless Chromium: a file with mistakes is looked at, imported, mended and imported again. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { findings, signIn, startChromium, type Visitor, visit } from '../support/chromium.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { temporaryFolder } from '../support/temporary.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';
const DESK = { viewport: { width: 1280, height: 900 } } as const;
const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true } as const;
/** Folder for screenshots of the page; absent: none are taken. */
const PICTURES = process.env['PICTURES'];

describe('the page of imports in Chromium', function () {
  this.timeout(180_000);
  let platform: TestPlatform;
  let browser: Browser;
  let mia: Api;
  const visitors: Visitor[] = [];
  const folder = temporaryFolder('import-page');
  before(async () => {
    [platform, browser] = await Promise.all([startPlatform(), startChromium()]);
    mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
  });
  after(async () => {
    for (const { context } of visitors) await context.close();
    await browser?.close();
    await platform?.stop();
  });

  const written = async (name: string, content: string | Uint8Array): Promise<string> => {
    await writeFile(join(folder, name), content);
    return join(folder, name);
  };
  const open = async (path: string, options: BrowserContextOptions = {}, user = 'mia'): Promise<Visitor> => {
    const visitor = await visit(browser, platform.baseUrl, { reducedMotion: 'reduce', ...options });
    visitors.push(visitor);
    // A reload may be asked about while a file is uploaded.
    visitor.page.on('dialog', (dialog) => dialog.accept());
    await visitor.page.goto(platform.baseUrl + path);
    if (options.javaScriptEnabled === false) return visitor;
    await signIn(visitor.page, `${user}@demo.example`);
    await visitor.page.waitForSelector('body[data-shown]');
    return visitor;
  };
  const picture = async ({ page }: Visitor, name: string): Promise<void> => {
    if (!PICTURES) return;
    mkdirSync(PICTURES, { recursive: true });
    await page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });
  };
  const choose = async (page: Page, path: string): Promise<void> => {
    await page.setInputFiles('#file', path);
    await page.waitForSelector('.mapping');
  };
  const ended = (page: Page): Promise<unknown> => page.waitForSelector('body[data-ended]', { timeout: 120_000 });
  const check = async (page: Page): Promise<void> => {
    await page.click('#check');
    await page.waitForSelector('.said > :is(.done, .found, .problem)', { timeout: 120_000 });
  };
  const start = async (page: Page): Promise<void> => {
    await page.click('#start');
    await page.waitForURL(/\/import\/[0-9a-f-]{36}$/);
  };
  const mapped = (page: Page): Promise<Record<string, string>> =>
    page.locator('select[data-column]').evaluateAll((all) =>
      Object.fromEntries(
        all.map((one) => {
          const { dataset, value } = one as unknown as { dataset: { column: string }; value: string };
          return [dataset.column, value];
        }),
      ),
    );
  const downloaded = async (page: Page, label: string): Promise<string> => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click(`button:has-text("${label}")`)]);
    return readFile(await download.path(), 'utf8');
  };
  const accounts = async (city: string): Promise<{ name: string; annualRevenue: number | string }[]> => {
    const query = new URLSearchParams({
      where: JSON.stringify({ city }),
      fields: 'name,annualRevenue',
      orderBy: 'name',
      orderDirection: 'asc',
    });
    const { body, text, status } = await mia.get(`/data/Account?${query}`);
    assert.equal(status, 200, text);
    return body.records;
  };
  /** 4 rows in the encoding and with the numbers of a German spreadsheet; 2 of them are wrong. */
  const GERMAN = [
    'Account number;Account name;City;Annual revenue;Bemerkung',
    'PAGE-00001;Müller & Söhne;Wesel;12.500,50;',
    `PAGE-00002;;Wesel;8.000;${HOSTILE}`,
    'PAGE-00003;Nagel;Wesel;viel;',
    'PAGE-00004;Öhler;Wesel;500;"zwei\nZeilen"',
  ].join('\r\n');
  const latin1 = (text: string): Uint8Array => Uint8Array.from(text, (char) => char.charCodeAt(0));

  it('leads from a file with mistakes over a first look to all of its rows', async () => {
    const visitor = await open('/import');
    const { page, complaints, strangers } = visitor;
    await picture(visitor, 'import-1-empty');
    await page.selectOption('#object', 'Account');
    await choose(page, await written('kunden.csv', latin1(GERMAN)));
    assert.deepEqual(await mapped(page), {
      'Account number': 'accountNumber',
      'Account name': 'name',
      City: 'city',
      'Annual revenue': 'annualRevenue',
      Bemerkung: '',
    });
    assert.equal(await page.inputValue('#encoding'), 'windows-1252');
    assert.equal(await page.inputValue('#delimiter'), ';');
    assert.equal(await page.inputValue('#locale'), 'de-DE');
    assert.ok(await page.isChecked('#operation-upsert'));
    assert.match(await page.innerText('.mapping'), /Müller & Söhne[\s\S]*<img src=x onerror=alert\(1\)>/);
    assert.equal(await page.locator('main img').count(), 0);
    await page.waitForSelector('button:has-text("Import all 4 rows")');

    await check(page);
    await picture(visitor, 'import-2-looked');
    assert.match(await page.innerText('.found h3'), /2 of 4 rows would fail/);
    const problems = await page.locator('.problems tbody tr').allInnerTexts();
    assert.deepEqual(
      problems.map((row) => row.split('\t').slice(0, 3)),
      [
        ['3', 'Account name', 'Empty'],
        ['4', 'Annual revenue', 'viel'],
      ],
    );
    assert.deepEqual(await accounts('Wesel'), []);

    await start(page);
    await ended(page);
    await page.waitForSelector('#mend');
    await picture(visitor, 'import-3-ended');
    assert.match(await page.innerText('.counts'), /Rows\s+4\s+Imported\s+2\s+Failed\s+2/);
    const failed = await downloaded(page, 'Download the failed rows');
    assert.match(failed, /^\ufeffAccount number;[^\n]*;_error\nPAGE-00002;;Wesel;8\.000;<img[^\n]*;"Account name: /);
    assert.match(await downloaded(page, 'Download the outcome'), /^\ufeffrowNumber,outcome,id,[\s\S]*\n4,succeeded,/);

    await page.click('a:has-text("Import another file")');
    await page.waitForSelector('#file', { state: 'attached' });
    const mended = failed.replace('PAGE-00002;;', 'PAGE-00002;Bäcker;').replace(';viel;', ';900;');
    await choose(page, await written('mended.csv', mended));
    assert.equal(await page.inputValue('#encoding'), 'utf-8');
    await check(page);
    assert.match(await page.innerText('.said'), /All 2 rows are fine/);
    await start(page);
    await ended(page);
    assert.match(await page.innerText('#state'), /All rows are imported/);
    assert.deepEqual(
      (await accounts('Wesel')).map(({ name, annualRevenue }) => [name, Number(annualRevenue)]),
      [
        ['Bäcker', 8_000],
        ['Müller & Söhne', 12_500.5],
        ['Nagel', 900],
        ['Öhler', 500],
      ],
    );
    await page.click('a:has-text("Import another file")');
    await page.waitForSelector('.jobs');
    assert.equal(await page.locator('.jobs li').count(), 2, 'looks are not listed');
    await picture(visitor, 'import-4-earlier');
    assert.deepEqual([complaints, strangers], [[], []]);
  });

  it('goes on with an upload that a reload has interrupted, and shows the end to a later visitor', async () => {
    const { page, complaints } = await open('/import?object=Account');
    const path = await written('herne.csv', 'name,city\nAdler,Herne\nBiber,Herne\n,Herne\n');
    await page.route('**/parts/*', () => {});
    await choose(page, path);
    await start(page);
    await page.waitForSelector('#state:text("Uploading herne.csv")');
    await page.reload();
    await page.waitForSelector('#state:text("The upload was interrupted")');
    await page.unroute('**/parts/*');
    await page.setInputFiles('#file-again', await written('other.csv', 'name\nx\n'));
    await page.waitForSelector('.problem:has-text("That is not herne.csv")');
    await page.setInputFiles('#file-again', path);
    await ended(page);
    assert.match(await page.innerText('.counts'), /Imported\s+2\s+Failed\s+1/);

    await page.reload();
    await ended(page);
    await page.setInputFiles('#file-again', path);
    assert.match(
      await downloaded(page, 'Download the failed rows'),
      /^\ufeffname,city,_error\n,Herne,"name: [^\n]*\n$/,
    );
    assert.deepEqual(complaints, []);
  });

  it('cancels an import', async () => {
    const { page } = await open('/import?object=Account');
    await page.route('**/parts/*', () => {});
    await choose(page, await written('hamm.csv', 'name,city\nAdler,Hamm\n'));
    await start(page);
    await page.click('button:has-text("Cancel the import")');
    await ended(page);
    assert.match(await page.innerText('#state'), /was canceled/);
    assert.deepEqual(await accounts('Hamm'), []);
  });

  it('repeats a part that could not be sent', async () => {
    const { page } = await open('/import?object=Account');
    await page.route('**/parts/*', (route) => route.abort());
    await choose(page, await written('unna.csv', 'name,city\nAdler,Unna\n'));
    await start(page);
    await page.waitForSelector('.problem:has-text("cannot be reached")');
    await page.unroute('**/parts/*');
    await page.click('button:has-text("Try again")');
    await ended(page);
    assert.equal((await accounts('Unna')).length, 1);
  });

  it('says what is wrong with a file, with columns, and what the API refuses', async () => {
    const { page } = await open('/import?object=Account');
    await page.setInputFiles('#file', await written('book.xlsx', 'PK'));
    await page.waitForSelector('.problem:has-text("Save the sheet as CSV")');
    await choose(page, await written('twice.csv', `Account number,name,name,${HOSTILE}\nPAGE-1,a,b,c\n`));
    assert.equal(await page.locator('select[data-column=name]').isDisabled(), true);
    assert.equal(await page.locator('main img').count(), 0);
    await page.selectOption('select[data-column="Account number"]', '');
    await page.selectOption(`select[data-column="${HOSTILE}"]`, 'name');
    await page.click('#check');
    await page.waitForSelector('.problem:has-text("No column stands for Account number")');
    await page.check('#operation-update');
    await page.selectOption('select[data-column="Account number"]', 'id');
    await page.check('#overwrite');
    await check(page);
    await page.waitForSelector('.problem:has-text("OBJECT_PERMISSION_DENIED")');
    await page.goto(`${platform.baseUrl}/import/0193d3b1-2c40-7e0a-9b7e-5f1d7a2c8e44`);
    await page.waitForSelector('.problem:has-text("There is no such import")');
  });

  it('finds records that references point to by their key', async () => {
    const { page } = await open('/import?object=Contact');
    await choose(page, await written('people.csv', 'First name,Last name,Account number\nIda,Roth,PAGE-00001\n'));
    assert.equal((await mapped(page))['Account number'], 'accountId.accountNumber');
  });

  it('updates records by the id and version that an export has', async () => {
    const created = await mia.post('/data/Account', { name: 'Zander', city: 'Lingen' });
    assert.equal(created.status, 201, created.text);
    const { page } = await open('/import?object=Account');
    const row = `${created.body.id},Zander & Co,"${created.headers.get('etag')?.replaceAll('"', '""')}"`;
    await choose(page, await written('export.csv', `id,name,_etag\n${row}\n`));
    assert.ok(await page.isChecked('#operation-update'));
    await start(page);
    await ended(page);
    assert.deepEqual(
      (await accounts('Lingen')).map(({ name }) => name),
      ['Zander & Co'],
    );
  });

  it('takes a file of NDJSON that is dropped', async () => {
    const { page } = await open('/import?object=Account');
    const dropped = await page.evaluateHandle(`(() => {
      const dropped = new DataTransfer();
      dropped.items.add(new File(['{"name":"Iltis","city":"Vlotho"}\\n{"city":"Vlotho"}\\n'], 'rows.ndjson'));
      return dropped;
    })()`);
    await page.dispatchEvent('.drop', 'drop', { dataTransfer: dropped });
    await page.waitForSelector('button:has-text("Import all 2 rows")');
    assert.equal(await page.locator('#delimiter, #locale').count(), 0);
    await start(page);
    await ended(page);
    await page.waitForSelector('#mend');
    assert.match(await page.innerText('.problems tbody'), /^2\s+name\s+name is required/);
    assert.equal(await downloaded(page, 'Download the failed rows'), '{"city":"Vlotho"}\n');
    assert.deepEqual(
      (await accounts('Vlotho')).map(({ name }) => name),
      ['Iltis'],
    );
  });

  it('remembers the columns of a file that is chosen again', async () => {
    const { page } = await open('/import?object=Account');
    const path = await written('again.csv', 'name,city\nAdler,Marl\n');
    await choose(page, path);
    await page.selectOption('select[data-column=city]', 'description');
    await page.setInputFiles('#file', await written('again.csv', 'name,city\nAdler,Marl\nBiber,Marl\n'));
    await page.waitForSelector('button:has-text("Import all 2 rows")');
    assert.deepEqual(await mapped(page), { name: 'name', city: 'description' });
    await page.setInputFiles('#file', await written('more.csv', 'name,city,phone\nAdler,Marl,1\n'));
    await page.waitForSelector('select[data-column=phone]');
    assert.deepEqual(await mapped(page), { name: 'name', city: 'city', phone: 'phone' });
  });

  it('keeps the chosen file when its token ends', async () => {
    const { page } = await open('/import');
    await page.setInputFiles('#file', await written('kept.csv', 'name\nAdler\n'));
    await page.waitForSelector('#delimiter');
    await page.clock.setFixedTime(Date.now() + 3_590_000);
    const renewed = page.waitForResponse('**/oauth2/token');
    await page.selectOption('#object', 'Account');
    assert.equal((await renewed).status(), 200);
    await page.waitForSelector('.mapping');
  });

  for (const size of [PHONE, DESK])
    it(`has no findings of axe at ${size.viewport.width} px, light and dark`, async () => {
      const visitor = await open('/import?object=Account', { ...size, bypassCSP: true });
      const { page } = visitor;
      const seen = async (step: string): Promise<void> => {
        assert.deepEqual(await findings(page), [], step);
        await picture(visitor, `import-${size.viewport.width}-light-${step}`);
        await page.emulateMedia({ colorScheme: 'dark' });
        assert.deepEqual(await findings(page, 'colours'), [], `${step}, dark`);
        await picture(visitor, `import-${size.viewport.width}-dark-${step}`);
        await page.emulateMedia({ colorScheme: 'light' });
        const wider = Number(await page.evaluate('document.documentElement.scrollWidth')) - size.viewport.width;
        assert.ok(wider <= 0, `${step}: ${wider} px wider than the screen`);
      };
      await choose(
        page,
        await written('soest.csv', `Account name;City;Annual revenue;${'Spalte'.repeat(12)}\n;Soest;viel;x\n`),
      );
      await check(page);
      await seen('look');
      await start(page);
      await ended(page);
      await page.waitForSelector('#mend');
      await seen('end');
    });

  it('can be used with the keyboard, and reports the result to a screen reader', async () => {
    const { page } = await open('/import?object=Account');
    await choose(page, await written('keys.csv', 'name,city\nAdler,Lünen\n'));
    await page.focus('#check');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.said > .done');
    assert.match(String(await page.evaluate('document.activeElement.textContent')), /The row is fine/);
    await page.focus('#start');
    await page.keyboard.press('Enter');
    await ended(page);
    await page.waitForSelector('#announcements:text("The row is imported")', { state: 'attached' });
    assert.equal(await page.evaluate('document.activeElement.tagName'), 'H1');
  });

  it('says when there is nothing to import into, and that it needs scripts', async () => {
    const { page } = await open('/import');
    await page.route('**/api/v1/objects', (route) => route.fulfill({ json: { records: [] } }));
    await page.reload();
    await page.waitForSelector('.empty:has-text("You may create no records")');
    const { page: plain } = await open('/import', { javaScriptEnabled: false });
    assert.match(await plain.innerText('noscript'), /Switch on JavaScript/);
  });
});
