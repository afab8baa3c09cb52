/** The page of approvals in headless Chromium: an agent requests, a user reads and decides, and the agent repeats. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { findings, signIn, startChromium, type Visitor, visit } from '../support/chromium.ts';
import { type Answer, type Api, api, tokenFor } from '../support/client.ts';
import { deploymentEnded, deployOverHttp, fieldFile, wholePackage } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';
const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true } as const;
/** Folder for screenshots of the page; absent: none are taken. */
const PICTURES = process.env['PICTURES'];

describe('the page of approvals in Chromium', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let browser: Browser;
  let ada: Api;
  let mia: Api;
  let run: Record<string, string>;
  const visitors: Visitor[] = [];
  before(async function () {
    this.timeout(180_000);
    [platform, browser] = await Promise.all([startPlatform(), startChromium()]);
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
    // The decider must be able to execute the operation.
    const user = `/data/User/${(await mia.get('/identity')).body.user.id}`;
    const etag = (await ada.get(user)).headers.get('etag') ?? '';
    const administrator = await ada.patch(user, { profileApiName: 'Administrator' }, { etag });
    assert.equal(administrator.status, 200, administrator.text);
    const reply = await ada.post('/agent/runs', { agentKey: 'tidy', goal: `Tidy up ${HOSTILE}` });
    assert.equal(reply.status, 201, reply.text);
    run = { 'x-agent-run-id': reply.body.runId };
  });
  after(async () => {
    for (const { context } of visitors) await context.close();
    await browser?.close();
    await platform?.stop();
  });

  interface Asked {
    readonly approvalId: string;
    readonly repeat: () => Promise<Answer>;
  }
  /** A deletion, which waits for approval by default. */
  const ask = async (name: string): Promise<Asked> => {
    const id = await account({ name });
    return waits((headers) => ada.delete(`/data/Account/${id}`, { headers: { ...headers, 'if-match': '"1"' } }));
  };
  const account = async (fields: object): Promise<string> => {
    const created = await ada.post('/data/Account', fields);
    assert.equal(created.status, 201, created.text);
    return created.body.id;
  };
  /** Sends a request under the run, which requires an approval. */
  const waits = async (send: (headers: Record<string, string>) => Promise<Answer>): Promise<Asked> => {
    const headers = { ...run, 'idempotency-key': randomUUID() };
    const refused = await send(headers);
    assert.equal(refused.body?.code, 'APPROVAL_REQUIRED', refused.text);
    return { approvalId: refused.body.details.approvalId, repeat: () => send(headers) };
  };
  const deployment = (name: string): Promise<Asked> => {
    const files = fieldFile('Account', name, 'fieldType: text\nlength: 40');
    const body = { files, package: wholePackage(files) };
    return waits((headers) => ada.post('/metadata/deploy', body, { headers }));
  };
  const open = async (path: string, options: BrowserContextOptions = {}): Promise<Visitor> => {
    const visitor = await visit(browser, platform.baseUrl, { reducedMotion: 'reduce', ...options });
    visitors.push(visitor);
    await visitor.page.goto(platform.baseUrl + path);
    if (options.javaScriptEnabled === false) return visitor;
    await signIn(visitor.page, 'mia@demo.example');
    await visitor.page.waitForSelector('body[data-shown]');
    return visitor;
  };
  /** `innerWidth` grows with content that is too wide for a phone, so the width is that of the device. */
  const fitsPhone = async (page: Page): Promise<void> => {
    const width = await page.evaluate('document.documentElement.scrollWidth');
    assert.equal(width, PHONE.viewport.width, 'nothing is wider than the phone');
  };
  const picture = async ({ page }: Visitor, name: string): Promise<void> => {
    if (!PICTURES) return;
    mkdirSync(PICTURES, { recursive: true });
    await page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });
  };

  it('shows the request as text, and the agent executes the approved request', async () => {
    const { approvalId, repeat } = await ask(`Old ${HOSTILE}`);
    const visitor = await open(`/approvals/${approvalId}`);
    const { page, complaints, strangers } = visitor;
    await picture(visitor, 'approval-desktop-light');
    const text = await page.innerText('main');
    for (const part of ['tidy', 'Ada', `Tidy up ${HOSTILE}`, `Delete Account: Old ${HOSTILE}`, 'Deletes Account'])
      assert.ok(text.includes(part), `${part} in ${text}`);
    assert.match(text, /Risk\s+High/);
    assert.equal(await page.locator('main img').count(), 0);
    assert.deepEqual(await findings(page), []);
    await page.click('button:has-text("Approve")');
    await page.waitForSelector('text=Approved: the agent can carry it out');
    assert.equal((await repeat()).status, 200);
    assert.deepEqual([complaints, strangers], [[], []]);
  });

  it('lists waiting requests, and accepts a rejection only with a comment', async () => {
    const { approvalId, repeat } = await ask('To be kept');
    const visitor = await open('/approvals', { ...PHONE, colorScheme: 'dark' });
    const { page } = visitor;
    await picture(visitor, 'list-phone-dark');
    assert.deepEqual(await findings(page), []);
    assert.match(await page.innerText('.approvals'), /Delete Account: To be kept\s+Risk: high/);
    await page.click(`a[href="/approvals/${approvalId}"]`);
    await page.waitForSelector('#decision');
    await picture(visitor, 'approval-phone-dark');
    assert.deepEqual(await findings(page), []);
    await fitsPhone(page);
    await page.click('button:has-text("Reject")');
    await page.waitForSelector('text=A comment is needed');
    await page.fill('#comment', 'We still need it.');
    await page.click('button:has-text("Reject")');
    await page.waitForSelector('.done:has-text("We still need it.")');
    const again = await repeat();
    assert.equal(again.body?.code, 'APPROVAL_REJECTED', again.text);
  });

  it('shows each field before and after, with labels and the names of references', async () => {
    const id = await account({ name: 'Nordwind' });
    const { user } = (await mia.get('/identity')).body;
    const { approvalId } = await waits((headers) =>
      ada.patch(`/data/Account/${id}`, { ownerId: user.id, name: 'Südwind' }, { etag: '"1"', headers }),
    );
    const visitor = await open(`/approvals/${approvalId}`, { colorScheme: 'dark' });
    await picture(visitor, 'fields-desktop-dark');
    const rows = await visitor.page.locator('.changes tbody tr').allInnerTexts();
    assert.deepEqual(
      rows.map((row) => row.split('\t').map((cell) => cell.trim())).sort(),
      [
        ['Account name', 'Nordwind', 'Südwind'],
        ['Owner', 'Ada Lindqvist', user.displayName],
      ].sort(),
    );
    assert.deepEqual(await findings(visitor.page), []);
  });

  it('shows each part of a composite request', async () => {
    const [id, gone] = [await account({ name: 'Ostwind' }), await account({ name: 'Westwind' })];
    const part = (referenceId: string, method: string, target: string, body?: object) => ({
      ...{ referenceId, method, path: `/data/Account/${target}` },
      ...{ headers: { ifMatch: '"1"' }, ...(body ? { body } : {}) },
    });
    const requests = [part('change', 'PATCH', id, { name: 'Nordost' }), part('gone', 'DELETE', gone)];
    const { approvalId, repeat } = await waits((headers) => ada.post('/composite', { requests }, { headers }));
    const visitor = await open(`/approvals/${approvalId}`, PHONE);
    await picture(visitor, 'composite-phone-light');
    const text = await visitor.page.innerText('main');
    for (const shown of ['2 changes in one request', 'Change Account: Ostwind', 'Nordost', 'Delete Account: Westwind'])
      assert.ok(text.includes(shown), `${shown} in ${text}`);
    assert.deepEqual(await findings(visitor.page), []);
    await fitsPhone(visitor.page);
    await visitor.page.click('button:has-text("Approve")');
    await visitor.page.waitForSelector('text=Approved: the agent can carry it out');
    assert.equal((await repeat()).status, 200);
  });

  it('can be decided with the keyboard alone', async () => {
    const { approvalId, repeat } = await ask('Typed');
    const { page } = await open('/approvals');
    await page.focus(`a[href="/approvals/${approvalId}"]`);
    await page.keyboard.press('Enter');
    await page.waitForSelector('#decision');
    await page.waitForFunction("document.activeElement?.tagName === 'H1'");
    await page.focus('#comment');
    await page.keyboard.type('Not this one.');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.done:has-text("Not this one.")');
    await page.waitForFunction("document.activeElement?.tagName === 'H1'");
    assert.equal((await repeat()).body.code, 'APPROVAL_REJECTED');
  });

  it('explains a decision that comes too late', async () => {
    const { approvalId } = await ask('Decided elsewhere');
    const { page } = await open(`/approvals/${approvalId}`);
    const { body } = await mia.get(`/agent/approvals/${approvalId}`);
    const decision = { decision: 'approve', fingerprint: body.fingerprint };
    const decided = await mia.post(`/agent/approvals/${approvalId}/decision`, decision);
    assert.equal(decided.status, 201, decided.text);
    await page.click('button:has-text("Approve")');
    await page.waitForSelector('text=It is decided already');
  });

  it('offers no decision about a request that was canceled with its run', async () => {
    const ended = await ada.post('/agent/runs', { agentKey: 'tidy', goal: 'Stop soon' });
    const id = await account({ name: 'Untouched' });
    const headers = { 'x-agent-run-id': ended.body.runId, 'if-match': '"1"' };
    const { approvalId } = (await ada.delete(`/data/Account/${id}`, { headers })).body.details;
    assert.equal((await ada.post(`/agent/runs/${ended.body.runId}/cancel`, {})).status, 201);
    const { page } = await open(`/approvals/${approvalId}`);
    assert.match(await page.innerText('.facts'), /Canceled/);
    assert.equal(await page.locator('#decision').count(), 0);
  });

  it('names the deployment that a rollback takes back', async () => {
    const files = fieldFile('Account', 'Undone__c', 'fieldType: text\nlength: 40');
    const body = { files, package: wholePackage(files) };
    const { deploymentId, createdAt } = await deploymentEnded(ada, await ada.post('/metadata/deploy', body));
    const { approvalId } = await waits((headers) =>
      ada.post('/metadata/deploy', { rollback: { deploymentId } }, { headers }),
    );
    const visitor = await open(`/approvals/${approvalId}`);
    await picture(visitor, 'rollback-desktop-light');
    const text = await visitor.page.innerText('.deployment');
    assert.match(text, new RegExp(`^Takes back the deployment of .* by Ada Lindqvist \\(${deploymentId}\\)\\.$`));
    assert.ok(text.includes(String(new Date(createdAt).getUTCFullYear())), text);
    assert.match(await visitor.page.innerText('main'), /Is deleted \(1\)[\s\S]*Account\.Undone__c/);
    assert.deepEqual(await findings(visitor.page), []);
  });

  it('shows the plan of a deployment, and requires the same sign-in as deploying', async () => {
    const { approvalId, repeat } = await deployment('Segment__c');
    const visitor = await open(`/approvals/${approvalId}`);
    const { page } = visitor;
    await page.click('summary:has-text("Account.Segment__c")');
    await picture(visitor, 'plan-desktop-light');
    assert.match(await page.innerText('main'), /Is created \(1\)[\s\S]*fieldType\s+–\s+text/);
    assert.deepEqual(await findings(page), []);
    await page.click('button:has-text("Approve")');
    await page.waitForSelector('text=Approved: the agent can carry it out');
    assert.equal((await repeat()).status, 202);

    const second = await deployment('Region__c');
    const read = page.waitForRequest(`${platform.baseUrl}/api/v1/agent/approvals/${second.approvalId}`);
    await page.goto(`${platform.baseUrl}/approvals/${second.approvalId}`);
    const { authorization = '' } = await (await read).allHeaders();
    await page.waitForSelector('#decision');
    await demandSecondFactors(api(platform.baseUrl, authorization.replace('Bearer ', '')));
    await page.click('button:has-text("Approve")');
    await page.waitForSelector('text=A stronger or newer sign-in is needed');
    const asked = page.waitForRequest(/\/oauth2\/authorize\?/);
    await page.click('.problem button:has-text("Sign in")');
    const wanted = new URL((await asked).url()).searchParams;
    assert.ok(wanted.get('acr_values'));
    assert.ok(Number(wanted.get('max_age')) > 0);
    assert.equal((await mia.get(`/agent/approvals/${second.approvalId}`)).body.status, 'PENDING');
  });

  /** Makes approving deployments require a sign-in with two factors; resolves when this connection is challenged. */
  const demandSecondFactors = async (person: Api): Promise<void> => {
    const path = 'settings/General.yaml';
    const general = await ada.post('/metadata/retrieve', {
      package: { version: 1, types: [{ name: 'TenantSettings', members: ['General'] }] },
    });
    const text = String(general.body.files[path]).replace(/^secondFactor:.*\n/m, '');
    await deployOverHttp(ada, { [path]: `${text}secondFactor: everyone\n` });
    const probe = await deployment('Probe__c');
    for (let i = 0; i < 400; i++) {
      const body = { decision: 'approve', fingerprint: `sha256:${'0'.repeat(64)}` };
      const { status } = await person.post(`/agent/approvals/${probe.approvalId}/decision`, body);
      if (status === 401) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.fail('The gateway demands no second factor.');
  };

  it('reports without scripts that it needs them', async () => {
    const { page } = await open('/approvals', { javaScriptEnabled: false });
    assert.match(await page.innerText('noscript'), /Switch on JavaScript/);
  });
});
