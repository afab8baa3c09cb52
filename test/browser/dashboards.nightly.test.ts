/** The page of dashboards in headless Chromium, signed in through the forms, over results that show every kind. */
import assert from 'node:assert/strict';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { findings, signIn, startChromium, type Visitor, visit } from '../support/chromium.ts';
import { api, tokenFor } from '../support/client.ts';
import { columns, FAKE_ID, type FakeDashboard, type FakeWidget, fakeDashboards } from '../support/fake-dashboards.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const { dimension, measure } = columns;
const MONTHS = ['2026-08-01', '2026-09-01', '2026-10-01', '2026-11-01'];
const REGIONS = ['North', 'South', 'West'];
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true } as const;

const at = (index: number): FakeWidget['layout'] => ({ x: (index % 2) * 6, y: Math.floor(index / 2) * 4, w: 6, h: 4 });
const revenue = measure('revenue', 'Net amount', 'currency', 'EUR');
const byMonth = {
  columns: [dimension('IssueDate__c_month', 'Issued', 'date'), dimension('Region__c', 'Region', 'picklist'), revenue],
  rows: MONTHS.flatMap((month, i) => REGIONS.map((region, k) => [month, region, 1_000 * (i + 1) * (k + 1)])),
};
const byStatus = {
  columns: [dimension('Status__c', 'Status', 'picklist'), measure('invoices', 'Invoices')],
  rows: [
    ['paid', 3_800],
    ['sent', 420],
    ['overdue', 210],
  ],
  labels: { Status__c: { paid: 'Paid', sent: 'Sent', overdue: 'Overdue' } },
};

/** One widget of each kind. */
const EVERY_KIND: FakeDashboard = {
  name: 'Every kind',
  description: 'One widget of each kind.',
  catalog: [{ field: 'IssueDate__c', fieldType: 'date' }],
  filters: [
    {
      filterKey: 'region',
      label: 'Region',
      objectApiName: 'Invoice__c',
      field: 'Region__c',
      operator: 'eq',
      value: 'North',
      locked: false,
    },
    {
      filterKey: 'status',
      label: 'Status',
      objectApiName: 'Invoice__c',
      field: 'Status__c',
      operator: 'neq',
      value: 'draft',
      locked: true,
    },
  ],
  widgets: (
    [
      { title: 'Revenue', type: 'metric', result: { columns: [revenue], rows: [[1_284_550.25]] } },
      { title: 'By month', type: 'line', granularity: 'month', result: byMonth },
      { title: 'By month, filled', type: 'area', granularity: 'month', result: byMonth },
      { title: 'By month, in bars', type: 'bar', granularity: 'month', options: { stacked: true }, result: byMonth },
      { title: 'By status', type: 'pie', result: byStatus },
      { title: 'From sent to paid', type: 'funnel', result: byStatus },
      { title: 'As a table', type: 'table', result: { ...byStatus, totals: { invoices: 4_430 } } },
      { title: 'As a pivot', type: 'pivot', granularity: 'month', result: byMonth },
      { title: 'In words', type: 'text', options: { text: 'Amounts are net.\n\nAsk finance.' } },
    ] satisfies Omit<FakeWidget, 'layout'>[]
  ).map((widget, index) => ({ ...widget, layout: at(index) })),
};

/** DOM members, whose types are not available here. */
interface Scrolled {
  scrollTop: number;
  scrollTo(x: number, y: number): void;
}

const only = (widget: Omit<FakeWidget, 'layout' | 'title'> & { title?: string }): FakeDashboard => ({
  name: 'One widget',
  widgets: [{ title: 'The widget', ...widget, layout: { x: 0, y: 0, w: 12, h: 6 } }],
});

describe('the page of dashboards in Chromium', () => {
  let platform: TestPlatform;
  let browser: Browser;
  before(async () => {
    [platform, browser] = await Promise.all([startPlatform(), startChromium()]);
  });
  after(async () => {
    await browser?.close();
    await platform?.stop();
  });

  const address = (more = ''): string => `${platform.baseUrl}/dashboards/${FAKE_ID}${more}`;
  const shown = (page: Page): Promise<unknown> => page.waitForSelector('body[data-shown]');
  /** The page's policy lets no text be evaluated, so playwright cannot wait for one. */
  const until = async (page: Page, condition: string): Promise<void> => {
    while (!(await page.evaluate(condition))) await page.waitForTimeout(20);
  };
  let visitors: Visitor[] = [];
  afterEach(async () => {
    for (const { context } of visitors) await context.close();
    visitors = [];
  });

  /** The cookies of a browser in which mia has signed in. */
  let signedIn: NonNullable<BrowserContextOptions['storageState']> | undefined;

  const begin = async (options: BrowserContextOptions = {}): Promise<Visitor> => {
    const visitor = await visit(browser, platform.baseUrl, { reducedMotion: 'reduce', ...options });
    visitors.push(visitor);
    return visitor;
  };
  /** Opens the dashboard as mia, who signs in the first time. */
  const open = async (dashboard: FakeDashboard, options: BrowserContextOptions = {}, more = '') => {
    const visitor = await begin({ ...options, ...(signedIn ? { storageState: signedIn } : {}) });
    const runs = await fakeDashboards(visitor.page, dashboard);
    await visitor.page.goto(address(more));
    if (!signedIn) await signIn(visitor.page, 'mia@demo.example');
    await shown(visitor.page);
    signedIn ??= await visitor.context.storageState();
    return { ...visitor, runs };
  };

  it('signs in through OAuth, returns to the address, and stores its token nowhere', async () => {
    const { page, complaints, strangers, context } = await open(EVERY_KIND, {}, '?filter.region=South');
    assert.equal(page.url(), address('?filter.region=South'));
    assert.equal(await page.title(), 'Every kind · ERP platform');
    assert.match(await page.innerText('#who'), /Mia Hartmann/);
    const kept = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])');
    assert.doesNotMatch(String(kept), /eyJ|verifier/);
    assert.ok((await context.cookies()).every(({ httpOnly }) => httpOnly));
    assert.deepEqual(complaints, []);
    assert.deepEqual(strangers, [], 'nothing is loaded from elsewhere');
    const second = await context.newPage();
    await fakeDashboards(second, EVERY_KIND);
    await second.goto(address());
    await shown(second);
    assert.equal(second.url(), address(), 'another tab is signed in without a question');
  });

  it('requests all widgets at once, with the version that it shows', async () => {
    const { runs } = await open(EVERY_KIND);
    assert.equal(runs.length, 8, 'the widget of words asks nothing');
    for (const { body } of runs) assert.deepEqual(body, { version: 'published' });
  });

  it('shows the draft on request, marked as one', async () => {
    const { page, runs } = await open({ ...EVERY_KIND, version: 'draft', state: 'draft' }, {}, '?version=draft');
    assert.equal(await page.innerText('h1 .badge'), 'Draft');
    assert.deepEqual(runs[0]?.body, { version: 'draft' });
    await page.fill('input[name="filter.region"]', 'South');
    await page.click('.filters button[type=submit]');
    await shown(page);
    assert.equal(page.url(), address('?version=draft&filter.region=South'));
  });

  it('draws every kind of chart, and formats figures, tables, pivots and texts', async () => {
    const { page, complaints } = await open(EVERY_KIND);
    await page.locator('canvas[aria-label$="of a value."]').nth(4).waitFor();
    const charts = await page.locator('canvas').all();
    for (const chart of charts) {
      const colours = await chart.evaluate((canvas) => {
        const { width, height } = canvas as unknown as { width: number; height: number };
        const { data } = (
          canvas as unknown as { getContext(kind: '2d'): { getImageData(...at: number[]): { data: Uint8Array } } }
        )
          .getContext('2d')
          .getImageData(0, 0, width, height);
        const seen = new Set<string>();
        for (let i = 0; i < data.length; i += 4)
          if (data[i + 3] === 255) seen.add(`${data[i]} ${data[i + 1]} ${data[i + 2]}`);
        return seen.size;
      });
      assert.ok(colours > 1, `${await chart.getAttribute('aria-label')}: ${colours} colours`);
      assert.match(
        String(await chart.getAttribute('aria-label')),
        /chart, \d+ categor.*The table holds every value\. Enter opens the records of a value\.$/,
      );
    }
    assert.match(await page.innerText('.kind-metric'), /€1\.3M\s+€1,284,550\.25/);
    assert.match(await page.innerText('.kind-table'), /Paid\s+3,800[\s\S]*Total\s+4,430/);
    assert.match(await page.innerText('.kind-pivot'), /Issued\s+North\s+South\s+West\s+Aug 2026\s+€1,000\.00/);
    assert.equal(await page.locator('.kind-text p.words').count(), 2);
    assert.match(await page.innerText('.filters'), /Status is not draft/);
    assert.deepEqual(complaints, []);
  });

  it('shows the numbers of a chart as a table, by keyboard', async () => {
    const { page } = await open(only({ type: 'line', granularity: 'month', result: byMonth }));
    await page.locator('.toggle').focus();
    await page.keyboard.press('Enter');
    assert.match(await page.innerText('.table'), /Aug 2026\s+North\s+€1,000\.00/);
    assert.equal(await page.locator('.table tbody tr').count(), 12);
    assert.equal(await page.locator('canvas').count(), 0);
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Chart');
    await page.keyboard.press('Enter');
    assert.equal(await page.locator('canvas').count(), 1);
  });

  it('reports omitted and hidden data, and the age of the result', async () => {
    const { page } = await open(
      only({
        type: 'table',
        result: {
          ...byStatus,
          truncated: true,
          rowCount: 600,
          fromCache: true,
          accessNotes: [
            { code: 'ROWS_RESTRICTED', field: null, message: 'You see only some of the invoices.' },
            { code: 'FIELD_HIDDEN', field: 'total', message: 'The total is hidden.' },
          ],
        },
      }),
    );
    assert.deepEqual(await page.locator('main > .note').allInnerTexts(), ['You see only some of the invoices.']);
    const notes = await page.innerText('.notes');
    assert.match(notes, /first 3 of 600 rows/);
    assert.match(notes, /The total is hidden\./);
    assert.doesNotMatch(notes, /only some/);
    assert.match(await page.innerText('.title .age'), /^As of Nov 22, 2026, 10:30\sAM$/);
  });

  describe('rows on further pages', () => {
    const customers = (from: number, more: object = {}) => ({
      columns: [dimension('Name', 'Customer'), measure('invoices', 'Invoices')],
      rows: Array.from({ length: 40 }, (_, index) => [`Customer ${from + index}`, index]),
      rowCount: 100,
      truncated: true,
      ...more,
    });
    const last = { rows: customers(80).rows.slice(0, 20), truncated: false, nextCursor: null };
    const list = (more: Partial<FakeWidget> = {}): FakeDashboard =>
      only({
        type: 'table',
        result: customers(0, { nextCursor: 'c1' }),
        pages: {
          c1: { result: customers(40, { nextCursor: 'c2' }) },
          c2: { result: { ...customers(0), ...last } },
        },
        ...more,
      });
    const rows = (page: Page, count: number): Promise<void> =>
      until(page, `document.querySelectorAll('.table tbody tr').length === ${count}`);
    const announced = (page: Page, text: string): Promise<void> =>
      until(page, `document.querySelector('#announcements').textContent === ${JSON.stringify(text)}`);
    const focused = (page: Page): Promise<unknown> =>
      page.evaluate('document.activeElement.ariaLabel ?? document.activeElement.textContent');

    it('are added by keyboard, without moving the current ones, until there are no more', async () => {
      const { page, runs, complaints } = await open(list(), {}, '');
      await page.locator('.table').evaluate((table) => (table as unknown as Scrolled).scrollTo(0, 120));
      await page.focus('.more');
      await page.keyboard.press('Enter');
      await rows(page, 80);
      await announced(page, 'The widget: 80 of 100 rows. Further rows can be added.');
      assert.equal(await page.locator('.table').evaluate((table) => (table as unknown as Scrolled).scrollTop), 120);
      assert.equal(await focused(page), 'Show more');
      assert.match(await page.innerText('.notes'), /Shows the first 80 of 100 rows; there are more\./);
      assert.deepEqual(await findings(page), []);
      await page.keyboard.press('Enter');
      await rows(page, 100);
      await announced(page, 'The widget: 100 rows.');
      assert.equal(await page.isVisible('.more'), false);
      assert.equal(await focused(page), 'Table: The widget', 'what has lost its button has the focus itself');
      assert.equal(await page.locator('.notes .note').count(), 0);
      assert.deepEqual(
        runs.map(({ body }) => body),
        [{ version: 'published' }, { version: 'published', cursor: 'c1' }, { version: 'published', cursor: 'c2' }],
      );
      assert.deepEqual(complaints, []);
    });

    it('are requested with the filters of the first page, and start over with other filters', async () => {
      const { page, runs } = await open({ ...list(), filters: EVERY_KIND.filters ?? [] }, {}, '?filter.region=South');
      await page.click('.more');
      await rows(page, 80);
      const filterValues = { region: { value: 'South' } };
      assert.deepEqual(runs.at(-1)?.body, { version: 'published', filterValues, cursor: 'c1' });
      await page.fill('input[name="filter.region"]', 'West');
      await page.click('.filters button[type=submit]');
      await shown(page);
      await rows(page, 40);
      assert.deepEqual(runs.at(-1)?.body, { version: 'published', filterValues: { region: { value: 'West' } } });
    });

    it('start over with a notice when the list cannot be continued or has other columns by now', async () => {
      const expired = { status: 400, code: 'CURSOR_EXPIRED', message: 'The cursor has expired.' };
      const [region, invoices] = customers(0).columns;
      for (const c1 of [
        { failure: expired },
        { result: { ...customers(40), columns: [region!, { ...invoices, fieldType: 'decimal' }] } },
      ]) {
        const { page, runs } = await open(list({ pages: { c1 } }));
        await page.focus('.more');
        await page.keyboard.press('Enter');
        await page.waitForSelector('.notes :text("it begins anew")');
        await rows(page, 40);
        assert.deepEqual(runs.at(-1)?.body, { version: 'published', maxAgeSeconds: 0 });
        assert.equal(await focused(page), 'Show more');
        await until(page, `document.querySelector('#announcements').textContent.endsWith('so it begins anew.')`);
      }
    });

    it('keep the present rows when they cannot be loaded', async () => {
      const failure = { status: 503, code: 'SERVICE_UNAVAILABLE', message: 'Away.', retryAfter: '30' };
      const pages: FakeWidget['pages'] = { c1: { failure } };
      const { page } = await open(list({ pages }));
      await page.click('.more');
      await page.waitForSelector('.notes :text("There was a problem with the next rows: Away.")');
      await rows(page, 40);
      pages['c1'] = { result: customers(40) };
      await page.click('.more');
      await rows(page, 80);
      assert.doesNotMatch(await page.innerText('.notes'), /problem/);
    });

    it('are added up to a limit', async () => {
      const many = { ...customers(0), rows: Array.from({ length: 2_000 }, (_, at) => [`Customer ${at}`, at]) };
      const pages = Object.fromEntries(
        [1, 2, 3].map((at) => [`c${at}`, { result: { ...many, rowCount: 9_000, nextCursor: `c${at + 1}` } }]),
      );
      const { page } = await open(list({ result: { ...many, rowCount: 9_000, nextCursor: 'c1' }, pages }));
      await page.click('.more');
      await rows(page, 4_000);
      await page.click('.more');
      await rows(page, 6_000);
      assert.equal(await page.isVisible('.more'), false);
      assert.match(await page.innerText('.notes'), /first 6000 of 9000 rows; there are more\./);
    });

    it('come from the API as well, each group once', async () => {
      const mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
      const query = {
        objectApiName: 'Invoice__c',
        dimensions: [{ field: 'IssueDate__c', granularity: 'month' }],
        measures: [{ key: 'invoices', aggregation: 'count' }],
        limit: 4,
      };
      const widget = { widgetKey: 'w', title: 'By month', type: 'table', layout: at(0), query };
      const made = await mia.post('/analytics/dashboards', { name: 'Pages', widgets: [widget] });
      assert.equal(made.status, 201, made.text);
      const { page } = await begin(signedIn ? { storageState: signedIn } : {});
      await page.goto(`${platform.baseUrl}/dashboards/${made.body.dashboardId}`);
      if (!signedIn) await signIn(page, 'mia@demo.example');
      await shown(page);
      const [, total] = /of (\d+) rows/.exec(await page.innerText('.notes')) ?? [];
      for (let expected = 8; expected < Number(total); expected += 4) {
        await page.click('.more');
        await rows(page, expected);
      }
      await page.click('.more');
      await rows(page, Number(total));
      const months = await page.locator('.table tbody th').allInnerTexts();
      assert.equal(new Set(months).size, Number(total));
      assert.equal(await page.isVisible('.more'), false);
    });

    it('are drawn by a chart as well', async () => {
      const { page } = await open(list({ type: 'bar' }));
      const categories = (): Promise<unknown> =>
        page.evaluate('Chart.getChart(document.querySelector("canvas")).data.labels.length');
      assert.equal(await categories(), 40);
      await page.click('.more');
      await announced(page, 'The widget: 80 of 100 rows. Further rows can be added.');
      assert.equal(await categories(), 80);
    });
  });

  describe('the points of a chart by keyboard', () => {
    const announcement = (page: Page): Promise<string> => page.locator('#announcements').innerText();
    const press = async (page: Page, key: string): Promise<string> => {
      await page.evaluate('document.querySelector("#announcements").textContent = ""');
      await page.keyboard.press(key);
      await until(page, 'document.querySelector("#announcements").textContent !== ""');
      return announcement(page);
    };
    const active = (page: Page): Promise<unknown> =>
      page.evaluate(`(() => {
        const { tooltip } = Chart.getChart(document.querySelector('canvas'));
        return { shown: tooltip.opacity > 0, points: tooltip.getActiveElements().map(({ index }) => index) };
      })()`);

    it('show and announce the same as pointing at them', async () => {
      const { page, complaints } = await open(only({ type: 'line', granularity: 'month', result: byMonth }));
      await page.focus('.toggle');
      await page.keyboard.press('Tab');
      assert.match(String(await page.evaluate('document.activeElement.ariaLabel')), /^The widget\. Line chart, 4 /);
      assert.equal(await press(page, 'ArrowRight'), 'Aug 2026. North: €1,000.00; South: €2,000.00; West: €3,000.00.');
      assert.deepEqual(await active(page), { shown: true, points: [0, 0, 0] });
      assert.match(await press(page, 'ArrowRight'), /^Sep 2026\. North: €2,000\.00;/);
      assert.match(await press(page, 'End'), /^Nov 2026\./);
      assert.match(await press(page, 'ArrowDown'), /^Nov 2026\./, 'the last one');
      assert.match(await press(page, 'ArrowUp'), /^Oct 2026\./);
      assert.deepEqual(await active(page), { shown: true, points: [2, 2, 2] });
      assert.match(await press(page, 'Home'), /^Aug 2026\./);
      assert.deepEqual(await findings(page), []);
      await page.keyboard.press('Escape');
      assert.deepEqual(await active(page), { shown: false, points: [] });
      assert.match(await press(page, 'ArrowRight'), /^Aug 2026\./, 'begins anew');
      await page.keyboard.press('Shift+Tab');
      assert.deepEqual(await active(page), { shown: false, points: [] });
      assert.equal(await page.evaluate('document.activeElement.textContent'), 'Table');
      assert.deepEqual(complaints, []);
    });

    it('exist in every kind of chart, except for missing values', async () => {
      const gap = { ...byMonth, rows: byMonth.rows.map((row, at) => (at < 3 ? [...row.slice(0, 2), null] : row)) };
      for (const [type, result, first] of [
        ['bar', gap, /^Sep 2026\. North: €2,000\.00; South: €4,000\.00; West: €6,000\.00\.$/],
        ['area', byMonth, /^Aug 2026\. North: /],
        ['pie', byStatus, /^Paid: 3,800 \(86 %\)\.$/],
        ['funnel', byStatus, /^Paid\. 3,800 \(100 % of the first\)\.$/],
      ] as const) {
        const { page } = await open(only({ type, granularity: 'month', result }));
        await page.focus('canvas');
        assert.match(await press(page, 'ArrowRight'), first, type);
      }
    });
  });

  it('keeps currencies apart, each formatted in its own', async () => {
    const { page } = await open(
      only({
        type: 'metric',
        result: {
          columns: [
            dimension('Currency__c', 'Currency', 'picklist'),
            { ...measure('open', 'Open', 'currency'), currencyKey: 'Currency__c' },
          ],
          rows: [
            ['EUR', 33_000.5],
            ['JPY', 1_200],
          ],
        },
      }),
    );
    assert.match(await page.innerText('.figures'), /EUR · Open\s+€33,000\.50\s+JPY · Open\s+¥1,200/);
  });

  it('shows the error of one widget beside the others, and retries on request', async () => {
    const broken: FakeWidget = {
      title: 'Broken',
      type: 'bar',
      layout: at(1),
      failure: { status: 503, code: 'SERVICE_UNAVAILABLE', message: 'Away.', retryAfter: '30' },
    };
    const whole: FakeWidget = { title: 'Whole', type: 'table', layout: at(0), result: byStatus };
    const { page, runs } = await open({ name: 'Half', widgets: [whole, broken] });
    assert.match(await page.innerText('.problem'), /Away\.\s+SERVICE_UNAVAILABLE/);
    assert.equal(await page.locator('.kind-table tbody tr').count(), 3);
    delete broken.failure;
    broken.result = byStatus;
    await page.click('.problem button');
    await page.waitForSelector('canvas');
    assert.deepEqual(runs.at(-1), { key: 'w1', body: { version: 'published', maxAgeSeconds: 0 } });
  });

  it('offers a retry only for temporary failures, and otherwise names who can help', async () => {
    const failed = (status: number, code: string, message: string): FakeWidget => ({
      title: code,
      type: 'bar',
      layout: at(0),
      failure: { status, code, message },
    });
    const { page } = await open({
      name: 'Broken',
      widgets: [
        failed(422, 'WIDGET_QUERY_INVALID', 'The field Gone__c is not known.'),
        failed(403, 'OBJECT_PERMISSION_DENIED', 'You may not read Account.'),
      ],
    });
    const [faulty = '', denied = ''] = await page.locator('.problem').allInnerTexts();
    assert.match(faulty, /Gone__c is not known\.\s+WIDGET_QUERY_INVALID\s+The owner of the dashboard/);
    assert.match(denied, /may not read Account\.\s+OBJECT_PERMISSION_DENIED\s+An administrator of your company/);
    assert.equal(await page.locator('.problem button').count(), 0);
  });

  it('waits and retries after too many simultaneous calls', async () => {
    const busy: FakeWidget = {
      title: 'Busy',
      type: 'table',
      layout: at(0),
      failure: { status: 429, code: 'CONCURRENCY_EXCEEDED', message: 'Too many requests at once.', retryAfter: '1' },
    };
    const visitor = await begin();
    const runs = await fakeDashboards(visitor.page, { name: 'Busy', widgets: [busy] });
    await visitor.page.goto(address());
    await signIn(visitor.page, 'mia@demo.example');
    await visitor.page.waitForSelector('.widget[aria-busy]');
    while (runs.length === 0) await visitor.page.waitForTimeout(20);
    delete busy.failure;
    busy.result = byStatus;
    await visitor.page.waitForSelector('.table');
    assert.equal(runs.length, 2);
  });

  it("shows other users' texts as plain text", async () => {
    const hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
    const { page, complaints } = await open({
      name: hostile,
      description: `${hostile}\u202e reversed`,
      filters: [{ ...EVERY_KIND.filters?.[0], label: hostile, value: `"><b>${hostile}` }],
      widgets: [
        { title: hostile, type: 'text', layout: at(0), options: { text: hostile } },
        {
          title: hostile,
          type: 'table',
          layout: at(1),
          result: {
            columns: [dimension('Name', hostile), measure('n', hostile)],
            rows: [
              [hostile, 1],
              ['javascript:alert(1)', '<b>2</b>'],
              [{ html: hostile }, null],
              [`__proto__`, 1],
            ],
            labels: { Name: { 'javascript:alert(1)': hostile } },
            accessNotes: [{ code: 'FIELD_HIDDEN', field: hostile, message: hostile }],
          },
        },
        {
          title: hostile,
          type: 'bar',
          layout: at(2),
          result: { columns: [dimension('Name', hostile), measure('n', hostile)], rows: [[hostile, 3]] },
        },
        { title: hostile, type: 'pie', layout: at(3), failure: { status: 422, code: hostile, message: hostile } },
      ],
    });
    assert.equal(await page.title(), `${hostile} · ERP platform`);
    assert.equal(await page.locator('main img, main script, main b:not(.filters b)').count(), 0);
    assert.equal(await page.locator('h1').innerText(), hostile);
    assert.equal(await page.locator('.widget h2').first().innerText(), hostile);
    assert.equal((await page.locator('canvas').getAttribute('aria-label'))?.startsWith(hostile), true);
    assert.deepEqual(
      complaints.filter((text) => !text.includes('422')),
      [],
    );
    await page.click('.brand');
    await page.waitForSelector('.dashboards');
    assert.equal(await page.locator('.dashboards a').innerText(), hostile);
    assert.equal(await page.locator('main img').count(), 0);
  });

  it('filters all widgets, and puts the filter into the address for sharing', async () => {
    const { page, runs } = await open(EVERY_KIND);
    runs.length = 0;
    await page.fill('input[name="filter.region"]', 'South');
    await page.click('.filters button[type=submit]');
    await shown(page);
    assert.equal(page.url(), address('?filter.region=South'));
    assert.equal(runs.length, 8);
    for (const { body } of runs)
      assert.deepEqual(body, { version: 'published', filterValues: { region: { value: 'South' } } });
    runs.length = 0;
    await page.reload();
    await shown(page);
    assert.equal(await page.inputValue('input[name="filter.region"]'), 'South');
    assert.equal(runs.length, 8);
    await page.goBack();
    await shown(page);
    assert.equal(page.url(), address());
  });

  it("offers the choices of a picklist by name, and days for times, in the dashboard's time zone", async () => {
    const invoices = { objectApiName: 'Invoice__c', locked: false };
    const { page, runs } = await open(
      {
        ...only({ type: 'table', result: byStatus }),
        timezone: 'America/Los_Angeles',
        catalog: [
          { field: 'Status__c', fieldType: 'picklist', choices: [{ value: 'paid', label: 'Paid in full' }] },
          { field: 'SentAt__c', fieldType: 'dateTime' },
        ],
        filters: [
          { ...invoices, filterKey: 'status', label: 'Status', field: 'Status__c', operator: 'eq' },
          { ...invoices, filterKey: 'all', label: 'Any of', field: 'Status__c', operator: 'in' },
          { ...invoices, filterKey: 'sent', label: 'Sent', field: 'SentAt__c', operator: 'between' },
          { ...invoices, filterKey: 'deal', label: 'Stage', objectApiName: 'Deal__c', field: 'X__c', operator: 'eq' },
        ],
      },
      {},
      '?filter.gone=1',
    );
    const notes = page.locator('main > .note');
    assert.deepEqual(await notes.allInnerTexts(), [
      'Days and times are those of America/Los_Angeles.',
      'This dashboard has no filter filter.gone, which the address names.',
    ]);
    runs.length = 0;
    await page.selectOption('select[name="filter.status"]', { label: 'Paid in full' });
    await page.fill('input[name="filter.all"]', 'paid in full, sent');
    await page.fill('input[name="filter.sent"]', '2026-03-08');
    await page.fill('input[name="filter.sent.to"]', '2026-03-08');
    await page.fill('input[name="filter.deal"]', 'won');
    await page.click('.filters button[type=submit]');
    await shown(page);
    assert.deepEqual(
      runs.map(({ body }) => body),
      [
        {
          version: 'published',
          filterValues: {
            status: { value: 'paid' },
            all: { value: ['paid', 'sent'] },
            // The day on which clocks go forward has 23 hours.
            sent: { value: '2026-03-08T08:00:00.000Z', valueTo: '2026-03-09T06:59:59.999Z' },
            deal: { value: 'won' },
          },
        },
      ],
    );
    assert.match(await page.locator('.widget .notes').innerText(), /Not filtered by Stage\./);
    assert.equal(await notes.count(), 1, 'the address names what is there');
  });

  it('has one column on a phone, without horizontal scrolling', async () => {
    const { page } = await open(EVERY_KIND, PHONE);
    const left = await page
      .locator('.widget')
      .evaluateAll((all) => [
        ...new Set(all.map((one) => Math.round((one as unknown as { offsetLeft: number }).offsetLeft))),
      ]);
    assert.equal(left.length, 1);
    assert.equal(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true);
  });

  it('uses a grid of twelve columns on a desktop', async () => {
    const { page } = await open(EVERY_KIND);
    const boxes = await page.locator('.widget').evaluateAll((all) =>
      all.map((one) => {
        const { offsetLeft, offsetTop } = one as unknown as { offsetLeft: number; offsetTop: number };
        return [offsetLeft, offsetTop];
      }),
    );
    assert.equal(new Set(boxes.map(([x]) => x)).size, 2);
    assert.equal(boxes[0]![1], boxes[1]![1]);
  });

  it('follows the colours of the system while it is open', async () => {
    const { page, complaints } = await open(EVERY_KIND, { colorScheme: 'light' });
    const colour = (): Promise<unknown> =>
      page.evaluate('Chart.getChart(document.querySelector("canvas")).data.datasets[0].borderColor');
    const light = await colour();
    await page.locator('canvas').first().focus();
    await page.emulateMedia({ colorScheme: 'dark' });
    while ((await colour()) === light) await page.waitForTimeout(20);
    assert.equal(await page.evaluate('document.activeElement === document.querySelector("canvas")'), true);
    assert.deepEqual(complaints, []);
  });

  it('animates nothing when reduced motion is preferred', async () => {
    const { page } = await open(EVERY_KIND);
    assert.equal(await page.evaluate('Chart.getChart(document.querySelector("canvas")).options.animation'), false);
  });

  it('has no serious findings of axe, on phone and desktop, in light and dark', async () => {
    for (const size of [{}, PHONE])
      for (const colorScheme of ['light', 'dark'] as const) {
        const { page } = await open(
          {
            ...EVERY_KIND,
            widgets: [
              ...EVERY_KIND.widgets,
              { title: 'Broken', type: 'bar', layout: at(9), failure: { status: 422, code: 'X', message: 'Gone.' } },
            ],
          },
          { ...size, colorScheme, bypassCSP: true },
        );
        await page.locator('.toggle:visible').first().click();
        assert.deepEqual(await findings(page), []);
        await page.click('.brand');
        await page.waitForSelector('.dashboards');
        assert.deepEqual(await findings(page), []);
      }
  });

  it('leads the keyboard to the content, and to the heading of a followed link', async () => {
    const { page } = await open(EVERY_KIND);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the content');
    await page.focus('.brand');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.dashboards');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Dashboards');
  });

  it('reports a missing dashboard, and a canceled sign-in', async () => {
    const { page } = await begin();
    await page.goto(address());
    await signIn(page, 'mia@demo.example');
    await page.waitForSelector('[role=alert]');
    assert.match(await page.innerText('main'), /There is no such dashboard/);
    const other = await begin();
    await other.page.goto(address());
    await other.page.click('button[value=cancel]');
    await other.page.waitForSelector('[role=alert]');
    assert.match(await other.page.innerText('main'), /You have canceled the sign-in/);
    assert.equal(other.page.url(), address());
  });

  it("retries loading the user's name when it failed before", async () => {
    const { page } = await begin();
    await fakeDashboards(page, only({ type: 'table', result: byStatus }));
    let fails = true;
    const failure = { status: 500, contentType: 'application/json', body: '{"code":"INTERNAL_ERROR","message":"No."}' };
    await page.route('**/api/v1/identity', (route) => (fails ? route.fulfill(failure) : route.continue()));
    await page.goto(address());
    await signIn(page, 'mia@demo.example');
    await shown(page);
    assert.equal(await page.innerText('#who'), '');
    fails = false;
    await page.click('.brand');
    await page.waitForSelector('.dashboards');
    assert.match(await page.innerText('#who'), /Mia Hartmann/);
  });

  it('ignores the response of a sign-in that it did not begin', async () => {
    const { page } = await begin();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await page.goto(`${platform.baseUrl}/dashboards?code=stolen&state=made-up`);
    await page.waitForSelector('#username');
    assert.ok(!asked.includes('/oauth2/token'));
  });

  it('revokes its token when the user signs out', async () => {
    const { page } = await begin();
    await fakeDashboards(page, EVERY_KIND);
    let token = '';
    page.on('request', (request) => {
      token ||= request.headers()['authorization'] ?? '';
    });
    await page.goto(address());
    await signIn(page, 'mia@demo.example');
    await shown(page);
    const identity = (): Promise<Response> =>
      fetch(`${platform.baseUrl}/api/v1/identity`, { headers: { authorization: token } });
    assert.equal((await identity()).status, 200);
    await page.click('#leave');
    await page.waitForSelector('button[name=logout]');
    assert.equal((await identity()).status, 401);
  });
});
