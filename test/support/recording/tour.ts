/** A day at the company of the demo, in which every operation of the API is used once. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { call } from '../../../contracts/call.ts';
import { Database } from '../../../mixins/database/database.ts';
import { signIn } from '../../../scripts/sign-in.ts';
import { type Answer, type Api, api, demoPassword, tokenFor } from '../client.ts';
import { deploymentEnded } from '../metadata-tenant.ts';
import type { TestPlatform } from '../platform.ts';
import type { Recorder } from './recorder.ts';

const AGENT = {
  clientId: 'demo-DunningAgent',
  scope: 'data:read data:write actions:read actions:execute agent:run offline_access',
};

interface Company {
  readonly recorder: Recorder;
  readonly platform: TestPlatform;
  readonly stranger: Api;
  /** The administrator, the sales manager, two representatives, the accountant. */
  readonly ada: Api;
  readonly mia: Api;
  readonly sam: Api;
  readonly sue: Api;
  readonly fay: Api;
  /** The agent that chases overdue invoices, in the name of Sam. */
  readonly agent: Api;
}

export async function tour(platform: TestPlatform, recorder: Recorder): Promise<void> {
  const { baseUrl } = platform;
  const as = async (user: string): Promise<Api> => api(baseUrl, await tokenFor(baseUrl, user));
  const people = { ada: await as('ada'), mia: await as('mia'), sam: await as('sam'), sue: await as('sue') };
  const tokens = await signIn({ baseUrl, user: 'sam@demo.example', password: demoPassword(), ...AGENT });
  const agent = api(baseUrl, tokens.access_token);
  const company = { recorder, platform, stranger: api(baseUrl), ...people, fay: await as('fay'), agent };
  await discover(company);
  await findInvoices(company);
  await winCustomer(company);
  await follow(company);
  await keepContacts(company);
  await settleInvoices(company);
  await shareOpportunity(company);
  await keepFiles(company);
  await importAccounts(company);
  await planMeetings(company);
  await buildDashboard(company);
  await configure(company);
  await chaseInvoices(company);
  await lookBack(company);
  await tellPeople(company);
}

async function discover({ recorder, stranger, sam, ada }: Company): Promise<void> {
  await recorder.example(stranger, 'schema.openapi.get', { show: ['openapi', 'info', 'servers'] });
  await recorder.example(stranger, 'schema.scopes.list');
  await recorder.example(stranger, 'schema.capabilities.get');
  await recorder.refusal(stranger, 'me.identity.get', 'TOKEN_MISSING');
  // Before anything else is paid for: units that flow back meanwhile would differ from run to run.
  await recorder.example(sam, 'me.limits.get');
  await recorder.example(sam, 'me.identity.get');
  await recorder.example(sam, 'me.profile.get');
  await recorder.example(sam, 'me.permissions.get', { query: { objectApiName: 'Account' } });
  await recorder.example(sam, 'me.preferences.update', {
    body: { dateFormat: 'dd.MM.yyyy' },
    headers: { 'If-Match': (await sam.get('/me')).headers.get('etag')! },
  });
  await recorder.example(sam, 'schema.objects.list');
  await recorder.example(sam, 'schema.objects.describe', { path: { objectApiName: 'Invoice__c' } });
  await recorder.example(sam, 'schema.objects.getSchema', { path: { objectApiName: 'Invoice__c' } });
  await recorder.example(ada, 'schema.deprecations.list');
}

async function findInvoices({ recorder, sam }: Company): Promise<void> {
  const path = { objectApiName: 'Invoice__c' };
  await recorder.example(sam, 'data.records.list', {
    path,
    query: {
      fields: 'id,name,AccountId__c,Status__c,DueDate__c,OpenAmount__c',
      where: { Status__c: 'overdue' },
      sort: [{ id: 'OpenAmount__c', desc: true }, { id: 'name' }],
      expand: 'AccountId__c(name,city)',
      take: '2',
      includeTotal: 'true',
    },
  });
  await recorder.refusal(sam, 'data.records.list', 'PARAMETER_INVALID', { path, query: { fields: 'name,Total__c' } });
  await recorder.example(sam, 'data.records.query', {
    path: { objectApiName: 'Account' },
    body: {
      fields: ['id', 'name', 'city', 'industry', 'paymentTerms'],
      filters: {
        logic: 'and',
        conditions: [
          { id: 'c1', field: 'city', operator: 'in', value: ['Berlin', 'Hamburg'] },
          { id: 'c2', field: 'active', operator: 'eq', value: true },
        ],
      },
      sort: [{ id: 'name' }],
      take: 2,
    },
  });
}

async function winCustomer({ recorder, sam, sue, ada }: Company): Promise<void> {
  const Account = { objectApiName: 'Account' };
  const { body: before } = await sam.get('/data/Account/changes');
  const body = {
    name: 'Lindenhof Büromöbel GmbH',
    city: 'Bremen',
    country: 'DE',
    phone: '+49 421 5550123',
    industry: 'retail',
    segments: ['wholesale'],
  };
  await recorder.example(sam, 'data.records.check', { path: Account, body: { operation: 'create', fields: body } });
  const created = await recorder.example(sam, 'data.records.create', { path: Account, body });
  await recorder.refusal(sam, 'data.records.create', 'VALIDATION_FAILED', {
    path: Account,
    body: { city: 'Bremen', industry: 'furniture' },
  });
  const duplicate = { name: 'Lindenhof-Büromöbel GmbH', city: 'Bremen' };
  await recorder.refusal(sue, 'data.records.create', 'DUPLICATE_RULE', { path: Account, body: duplicate });
  const path = { ...Account, id: created.body.id };
  const read = await recorder.example(sam, 'data.records.get', {
    path,
    query: { fields: 'name,city,industry,paymentTerms,ownerId,updatedAt' },
  });
  const etag = read.headers.get('etag')!;
  await recorder.example(sam, 'data.records.update', {
    path,
    headers: { 'If-Match': etag },
    body: { city: 'Oldenburg', phone: '+49 441 5550123' },
  });
  await recorder.refusal(sam, 'data.records.update', 'ETAG_MISMATCH', {
    path,
    headers: { 'If-Match': etag },
    body: { employees: 42 },
  });
  await recorder.example(ada, 'data.history.list', { path });
  await recorder.example(sam, 'composite.requests.execute', {
    body: {
      requests: [
        {
          referenceId: 'opportunity',
          method: 'POST',
          path: '/data/Opportunity__c',
          body: { name: 'Office furniture Oldenburg', AccountId__c: created.body.id },
        },
        {
          referenceId: 'contact',
          method: 'POST',
          path: '/data/Contact',
          body: { name: 'Ute Brandt', lastName: 'Brandt', accountId: '@{opportunity.AccountId__c}' },
        },
      ],
    },
  });
  await recorder.example(sam, 'composite.records.write', {
    body: {
      objectApiName: 'Contact',
      operation: 'create',
      records: [
        { fields: { name: 'Jan Meier', lastName: 'Meier', accountId: created.body.id } },
        { fields: { name: 'Lena Vogt', lastName: 'Vogt', accountId: created.body.id } },
      ],
    },
  });
  await recorder.example(sam, 'data.changes.list', { path: Account, query: { cursor: before.resumeCursor } });
}

async function keepContacts({ recorder, sam }: Company): Promise<void> {
  const contact = { firstName: 'Johanna', lastName: 'Petersen', jobTitle: 'Head of purchasing' };
  const accountId = (await sam.get('/data/Account?take=1')).body.records[0].id;
  const created = succeeded(await sam.post('/data/Contact', { name: 'Johanna Petersen', ...contact, accountId }));
  const path = { objectApiName: 'Contact', id: created.body.id };
  await recorder.refusal(sam, 'data.records.delete', 'IF_MATCH_REQUIRED', { path });
  await recorder.example(sam, 'data.records.delete', { path, headers: { 'If-Match': '"1"' } });
  await recorder.refusal(sam, 'data.records.get', 'RECORD_NOT_FOUND', { path });
  await recorder.example(sam, 'data.records.restore', { path });
}

async function settleInvoices({ recorder, sam, fay }: Company): Promise<void> {
  const where = encodeURIComponent(JSON.stringify({ Status__c: 'overdue' }));
  const { body } = await sam.get(`/data/Invoice__c?where=${where}&take=2&fields=id,AccountId__c`);
  const [first] = body.records;
  await recorder.example(fay, 'data.records.upsert', {
    path: { objectApiName: 'Invoice__c', externalIdField: 'LedgerNumber__c', value: 'L-2026-10482' },
    body: { AccountId__c: first.AccountId__c, Amount__c: 1250, CustomerReference__c: 'PO 4500017342' },
  });
  const path = { objectApiName: 'Invoice__c', id: first.id };
  const transitions = await recorder.example(fay, 'data.transitions.list', { path });
  await recorder.refusal(fay, 'data.transitions.execute', 'STATE_CONFLICT', {
    path: { ...path, transitionKey: 'pay' },
    headers: { 'If-Match': transitions.body.etag },
    body: {},
  });
  await recorder.example(fay, 'data.transitions.execute', {
    path: { ...path, transitionKey: 'dispute' },
    headers: { 'If-Match': transitions.body.etag },
    body: { comment: 'The customer says that two desks arrived damaged.' },
  });
  await recorder.example(sam, 'data.access.explain', { path, body: { operation: 'delete' } });
}

async function shareOpportunity({ recorder, sam, sue }: Company): Promise<void> {
  const { user } = (await sam.get('/identity')).body;
  const owned = encodeURIComponent(JSON.stringify({ ownerId: user.id }));
  const { body } = await sam.get(`/data/Opportunity__c?where=${owned}&take=1`);
  const path = { objectApiName: 'Opportunity__c', id: body.records[0].id };
  const colleague = (await sue.get('/identity')).body.user.id;
  const given = await recorder.example(sam, 'data.shares.create', {
    path,
    body: { principalType: 'user', principalId: colleague, access: 'edit', reason: 'Sue negotiates while Sam is away' },
  });
  await recorder.example(sam, 'data.shares.list', { path });
  await recorder.example(sam, 'data.shares.delete', { path: { ...path, shareId: given.body.shareId } });
}

async function keepFiles({ recorder, sam }: Company): Promise<void> {
  const { body: accounts } = await sam.get('/data/Account?take=1&sort=[{"id":"name"}]');
  const record = { objectApiName: 'Account', recordId: accounts.records[0].id };
  const headersOf = (text: string, type: string): Record<string, string> => ({
    'Content-Type': type,
    'Content-Digest': `sha-256=:${hash('sha256', text, 'base64')}:`,
  });
  const minutes = 'Delivery on Thursday.\n';
  const stored = await recorder.example(sam, 'files.items.create', {
    query: record,
    headers: { ...headersOf(minutes, 'text/plain'), 'X-File-Name': 'minutes.txt' },
    body: minutes,
  });
  await recorder.refusal(sam, 'files.items.create', 'UPLOAD_CHECKSUM_MISMATCH', {
    headers: { ...headersOf('Delivery on Friday.\n', 'text/plain'), 'X-File-Name': 'minutes.txt' },
    body: minutes,
  });
  const path = { fileId: stored.body.fileId };
  await recorder.example(sam, 'files.items.list', { query: { ...record, take: '10' } });
  const read = await recorder.example(sam, 'files.items.get', { path });
  await recorder.example(sam, 'files.content.get', { path });
  const prices = 'product;price\nDesk;420.00\n';
  const begun = await recorder.example(sam, 'files.uploads.create', {
    body: { name: 'prices.csv', contentType: 'text/csv', size: prices.length, attachTo: record },
  });
  const upload = { path: { uploadId: begun.body.uploadId } };
  const type = 'application/offset+octet-stream';
  await recorder.example(sam, 'files.uploads.append', {
    ...upload,
    headers: { ...headersOf(prices, type), 'Upload-Offset': '0' },
    body: prices,
  });
  await recorder.refusal(sam, 'files.uploads.append', 'UPLOAD_OFFSET_CONFLICT', {
    ...upload,
    headers: { ...headersOf(prices, type), 'Upload-Offset': '0' },
    body: prices,
  });
  await recorder.example(sam, 'files.uploads.head', upload);
  await recorder.example(sam, 'files.uploads.complete', { ...upload, body: { sha256: hash('sha256', prices) } });
  const other = await sam.post('/files/uploads', { name: 'film.mp4', contentType: 'video/mp4', size: 734_003_200 });
  await recorder.example(sam, 'files.uploads.delete', { path: { uploadId: other.body.uploadId } });
  const changed = await recorder.example(sam, 'files.items.update', {
    path,
    headers: { 'If-Match': read.headers.get('etag')! },
    body: { name: 'minutes-of-thursday.txt', detachFrom: record },
  });
  await recorder.example(sam, 'files.items.delete', {
    path,
    headers: { 'If-Match': changed.headers.get('etag')! },
  });
}

async function importAccounts({ recorder, ada }: Company): Promise<void> {
  const body = { operation: 'upsert', objectApiName: 'Account', externalIdField: 'accountNumber', format: 'csv' };
  const job = await recorder.example(ada, 'bulk.jobs.create', { body: { ...body, conflictPolicy: 'lastWriteWins' } });
  const path = { jobId: job.body.jobId };
  const rows = 'accountNumber,name,city\nAC-90042,Hafenkontor GmbH,Hamburg\nAC-90043,,Kiel\n';
  const part = {
    path: { ...path, partNumber: '1' },
    headers: { 'Content-Type': 'text/csv', 'Content-Digest': `sha-256=:${hash('sha256', rows, 'base64')}:` },
    body: rows,
  };
  await recorder.refusal(ada, 'bulk.jobs.start', 'JOB_STATE_CONFLICT', { path });
  await recorder.example(ada, 'bulk.parts.upload', part);
  await recorder.example(ada, 'bulk.jobs.start', { path });
  await until(async () => (await ada.get(`/bulk/jobs/${path.jobId}`)).body.finishedAt !== null);
  await recorder.example(ada, 'bulk.jobs.get', { path });
  await recorder.example(ada, 'bulk.results.list', { path, query: { outcome: 'failed' } });
  await recorder.example(ada, 'bulk.jobs.list', { query: { state: 'COMPLETED', take: '10' } });
  const other = await ada.post('/bulk/jobs', { ...body, format: 'ndjson' });
  await recorder.example(ada, 'bulk.jobs.cancel', { path: { jobId: other.body.jobId } });
  await recorder.example(ada, 'bulk.jobs.delete', { path: { jobId: other.body.jobId } });
}

async function follow({ recorder, sam }: Company): Promise<void> {
  const { oldestCursor } = (await sam.get('/events?take=1')).body;
  const query = { cursor: oldestCursor, types: 'data.record.updated', payload: 'full', take: '1' };
  // The next one makes a cursor; whether it has its number yet would show.
  const both = new URLSearchParams({ ...query, take: '2' });
  await until(async () => (await sam.get(`/events?${both}`)).body.records.length === 2);
  await recorder.example(sam, 'events.items.list', { query });
  await recorder.example(sam, 'events.stream.get', { query: { cursor: oldestCursor, types: 'data.record.created' } });
  const body = {
    name: 'Shop',
    url: 'https://hooks.shop.example/erp',
    eventTypes: ['data.record.created', 'data.record.updated'],
    objects: ['Account'],
    ordering: 'perRecord',
  };
  const created = await recorder.example(sam, 'events.subscriptions.create', { body });
  await recorder.refusal(sam, 'events.subscriptions.create', 'WEBHOOK_URL_INVALID', {
    body: { ...body, url: 'http://hooks.shop.example/erp' },
  });
  const path = { subscriptionId: created.body.subscriptionId };
  await recorder.example(sam, 'events.subscriptions.test', { path });
  const deliveries = `/events/subscriptions/${path.subscriptionId}/deliveries`;
  await until(async () => (await sam.get(deliveries)).body.records[0]?.attempts.length > 0);
  await recorder.example(sam, 'events.deliveries.list', { path, query: { take: '1' } });
  await recorder.example(sam, 'events.subscriptions.list', { query: { take: '10' } });
  const read = await recorder.example(sam, 'events.subscriptions.get', { path });
  const changed = await recorder.example(sam, 'events.subscriptions.update', {
    path,
    headers: { 'If-Match': read.headers.get('etag')! },
    body: { state: 'paused' },
  });
  await recorder.example(sam, 'events.subscriptions.replay', { path, body: { onlyFailed: true } });
  const rotated = await recorder.example(sam, 'events.subscriptions.rotateSecret', { path });
  assert.notEqual(rotated.headers.get('etag'), changed.headers.get('etag'));
  await recorder.example(sam, 'events.subscriptions.delete', {
    path,
    headers: { 'If-Match': rotated.headers.get('etag')! },
  });
}

async function tellPeople({ recorder, ada, sam }: Company): Promise<void> {
  const { id } = (await sam.get('/identity')).body.user;
  const [{ id: account }] = (await sam.get('/data/Account?take=1')).body.records;
  const body = {
    type: 'StocktakeDue',
    recipients: [id],
    data: { title: 'The stocktake is due', body: 'Please count until Friday.' },
    record: { objectApiName: 'Account', id: account },
    dedupeKey: 'stocktake-2026-11',
  };
  await recorder.example(ada, 'notifications.items.send', { body });
  await recorder.refusal(sam, 'notifications.items.send', 'OBJECT_PERMISSION_DENIED', { body });
  const query = { status: 'unread', type: 'StocktakeDue', take: '10' };
  const { records } = (await recorder.example(sam, 'notifications.items.list', { query })).body;
  const path = { notificationId: records[0].notificationId };
  await recorder.example(sam, 'notifications.items.get', { path });
  await recorder.example(sam, 'notifications.deliveries.list', { path });
  await recorder.example(sam, 'notifications.items.update', { path, body: { status: 'archived' } });
  await recorder.example(sam, 'notifications.preferences.get');
  await recorder.example(sam, 'notifications.preferences.update', {
    body: {
      records: [{ type: 'recordShared', channels: { email: false } }],
      quietHours: { from: '22:00', to: '07:00' },
    },
  });
  await recorder.example(sam, 'notifications.items.markAllRead', { body: { before: records[0].createdAt } });
}

async function planMeetings({ recorder, sam, sue }: Company): Promise<void> {
  const timezone = 'Europe/Berlin';
  const { user } = (await sue.get('/identity')).body;
  const created = await recorder.example(sam, 'calendar.events.create', {
    body: {
      title: 'Weekly review',
      start: { dateTime: '2026-11-23T09:30:00', timezone },
      end: { dateTime: '2026-11-23T10:00:00', timezone },
      recurrence: ['RRULE:FREQ=WEEKLY;BYDAY=MO'],
      attendees: [{ userId: user.id }],
    },
  });
  await recorder.refusal(sam, 'calendar.events.create', 'RECURRENCE_INVALID', {
    body: {
      title: 'Every second',
      start: { dateTime: '2026-11-23T09:30:00', timezone },
      end: { dateTime: '2026-11-23T10:00:00', timezone },
      recurrence: ['RRULE:FREQ=SECONDLY'],
    },
  });
  const path = { eventId: created.body.eventId };
  await recorder.example(sam, 'calendar.calendars.list');
  const own = { calendarId: created.body.calendarId };
  await recorder.example(sam, 'calendar.calendars.export', { path: own });
  const window = { from: '2026-11-23T00:00:00+01:00', to: '2026-12-08T00:00:00+01:00' };
  await recorder.example(sam, 'calendar.events.list', { query: { ...window, expand: 'true', take: '10' } });
  await recorder.example(sue, 'calendar.events.respond', { path, body: { response: 'accepted' } });
  const read = await recorder.example(sam, 'calendar.events.get', { path });
  const headers = { 'If-Match': String(read.headers.get('etag')) };
  await recorder.example(sam, 'calendar.events.update', { path, headers, body: { location: 'Room 3' } });
  await recorder.example(sam, 'calendar.freeBusy.query', { body: { userIds: [user.id], ...window, timezone } });
  const holiday = { title: 'Day off', start: { date: '2026-12-24' }, end: { date: '2026-12-25' } };
  const other = await sam.post('/calendar/events', holiday);
  await recorder.example(sam, 'calendar.events.delete', {
    path: { eventId: other.body.eventId },
    headers: { 'If-Match': String(other.headers.get('etag')) },
  });
}

async function buildDashboard({ recorder, mia }: Company): Promise<void> {
  await recorder.example(mia, 'analytics.catalog.get', { path: { objectApiName: 'Invoice__c' } });
  const created = await recorder.example(mia, 'analytics.dashboards.create', {
    body: {
      name: 'What customers owe us',
      description: 'Open amounts by state, for the meeting on Mondays.',
      widgets: [
        {
          widgetKey: 'open-by-state',
          title: 'Open by state',
          type: 'bar',
          layout: { x: 0, y: 0, w: 6, h: 4 },
          query: {
            objectApiName: 'Invoice__c',
            dimensions: [{ field: 'Status__c' }],
            measures: [
              { key: 'open', aggregation: 'sum', field: 'OpenAmount__c' },
              { key: 'invoices', aggregation: 'count' },
            ],
            filters: {
              logic: 'and',
              conditions: [{ id: 'c1', field: 'Status__c', operator: 'in', value: ['sent', 'overdue', 'disputed'] }],
            },
          },
        },
      ],
    },
  });
  const path = { dashboardId: created.body.dashboardId };
  await recorder.example(mia, 'analytics.dashboards.widgets.run', {
    path: { ...path, widgetKey: 'open-by-state' },
    body: { version: 'draft' },
  });
  await recorder.example(mia, 'analytics.dashboards.update', {
    path,
    body: { expectedRevision: 1, name: 'Receivables on Monday' },
  });
  await recorder.refusal(mia, 'analytics.dashboards.update', 'REVISION_MISMATCH', {
    path,
    body: { expectedRevision: 1, name: 'Receivables' },
  });
  await recorder.example(mia, 'analytics.dashboards.publish', { path, body: { expectedRevision: 2 } });
  await recorder.example(mia, 'analytics.dashboards.get', { path });
  await recorder.example(mia, 'analytics.dashboards.list', { query: { scope: 'mine' } });
  await recorder.example(mia, 'analytics.dashboards.delete', { path, query: { expectedRevision: '3' } });
}

async function configure({ recorder, platform, sam, ada }: Company): Promise<void> {
  await recorder.example(ada, 'metadata.types.list');
  const retrieved = await recorder.example(ada, 'metadata.components.retrieve', {
    body: { package: { version: 1, types: [{ name: 'CustomField', members: ['Invoice__c.CustomerReference__c'] }] } },
  });
  const { files, package: selected, metadataVersion } = retrieved.body;
  const changed = Object.fromEntries(
    Object.entries(files as Record<string, string>).map(([path, text]) => [
      path,
      text.replace('label: Customer reference', 'label: Purchase order'),
    ]),
  );
  const project = { files: changed, package: selected, baseMetadataVersion: metadataVersion };
  await recorder.example(ada, 'metadata.components.validate', { body: project });
  await recorder.refusal(sam, 'metadata.components.validate', 'METADATA_PERMISSION_DENIED', { body: project });
  const accepted = await recorder.example(ada, 'metadata.deployments.create', { body: project });
  await deploymentEnded(ada, accepted);
  await recorder.example(ada, 'metadata.deployments.get', { path: { deploymentId: accepted.body.deploymentId } });
  await cancelDeployment(recorder, platform, ada, { files, package: selected });
  await recorder.example(ada, 'metadata.deployments.list', { query: { status: 'SUCCEEDED', take: '2' } });
}

/** Only one that is not done can be canceled, so this one has to wait for what no other can have. */
async function cancelDeployment(
  recorder: Recorder,
  platform: TestPlatform,
  ada: Api,
  project: Record<string, unknown>,
): Promise<void> {
  const { tenant } = (await ada.get('/identity')).body;
  const database = new Database(platform.database.url, { size: 1, applicationName: 'recording of examples' });
  const holder = await database.pool.connect();
  try {
    await holder.query('BEGIN');
    await holder.query(`SELECT FROM "t_${tenant.id.replaceAll('-', '')}"._state FOR SHARE`);
    const accepted = succeeded(await ada.post('/metadata/deploy', project));
    const path = { deploymentId: accepted.body.deploymentId };
    await until(async () => (await ada.get(`/metadata/deployments/${path.deploymentId}`)).body.status === 'APPLYING');
    await recorder.example(ada, 'metadata.deployments.cancel', {
      path,
      body: { reason: 'The label stays after all.' },
    });
    await deploymentEnded(ada, accepted);
  } finally {
    await holder.query('ROLLBACK');
    holder.release();
    await database.close();
  }
}

async function chaseInvoices({ recorder, sam, mia, agent }: Company): Promise<void> {
  const where = encodeURIComponent(JSON.stringify({ Status__c: 'overdue', DunningLevel__c: 0 }));
  const { body } = await sam.get(`/data/Invoice__c?where=${where}&take=1&fields=id,name,AccountId__c`);
  const [invoice] = body.records;
  const begun = await recorder.example(agent, 'agent.runs.create', {
    body: {
      agentKey: 'dunning',
      agentVersion: '1.4.0',
      goal: 'Remind one customer of an invoice that is overdue.',
      plan: [
        { stepKey: 'note', operationId: 'data.records.update', summary: 'Note the reminder at the customer.' },
        { stepKey: 'send', operationId: 'data.transitions.execute', summary: 'Send the reminder.' },
      ],
      context: { objectApiName: 'Invoice__c', recordId: invoice.id },
      budget: { maxCost: 100, maxMutations: 5, maxRecords: 10 },
    },
  });
  const run = { runId: begun.body.runId };
  const headers = { 'X-Agent-Run-Id': run.runId };
  const account = await agent.get(`/data/Account/${invoice.AccountId__c}`, { headers });
  const note = { description: `Reminded of ${invoice.name}.` };
  const etag = account.headers.get('etag')!;
  succeeded(await agent.patch(`/data/Account/${invoice.AccountId__c}`, note, { headers, etag }));
  const late = await agent.get(`/data/Invoice__c/${invoice.id}`, { headers });
  const reminder = {
    path: { objectApiName: 'Invoice__c', id: invoice.id, transitionKey: 'SendReminder' },
    headers: { ...headers, 'If-Match': late.headers.get('etag')! },
    body: {},
  };
  const asked = await recorder.refusal(agent, 'data.transitions.execute', 'APPROVAL_REQUIRED', reminder);
  const approval = { approvalId: asked.body.details.approvalId };
  await recorder.example(agent, 'agent.runs.get', { path: run });
  await recorder.example(mia, 'agent.approvals.list', { query: { status: 'PENDING' } });
  const shown = await recorder.example(mia, 'agent.approvals.get', { path: approval });
  await recorder.example(mia, 'agent.approvals.decide', {
    path: approval,
    body: { decision: 'approve', fingerprint: shown.body.fingerprint, comment: 'They had two weeks.' },
  });
  const path = `/data/Invoice__c/${invoice.id}/transitions/SendReminder`;
  succeeded(await agent.post(path, reminder.body, { headers: reminder.headers }));
  await recorder.example(agent, 'agent.runs.complete', {
    path: run,
    body: { outcome: 'succeeded', summary: 'One reminder sent.', output: { reminded: [invoice.name] } },
  });
  await recorder.example(sam, 'agent.steps.list', { path: run });
  await recorder.example(mia, 'agent.runs.revert', { path: run });
  const second = await agent.post('/agent/runs', { agentKey: 'dunning', goal: 'Look for more overdue invoices.' });
  await recorder.example(sam, 'agent.runs.cancel', { path: { runId: succeeded(second).body.runId } });
  await recorder.example(sam, 'agent.runs.list', { query: { agentKey: 'dunning', mine: 'true' } });
}

async function lookBack({ recorder, platform, sam, ada }: Company): Promise<void> {
  // Or it would depend on the time whether the entries are sealed.
  const tenantId = (await ada.get('/identity')).body.tenant.id;
  await call(platform.broker, 'data.audit.seal', { tenantId });
  await recorder.example(ada, 'events.audit.list', { query: { objectApiName: 'Account', take: '2' } });
  const newcomer = { username: 'ines@demo.example', email: 'ines@demo.example', displayName: 'Ines Roth' };
  const { body: ines } = succeeded(
    await ada.post('/data/User', { ...newcomer, profileApiName: 'SalesRep', active: true }),
  );
  // auth learns of a new user a moment after the record is there.
  await until(async () => (await ada.post(`/users/${ines.id}/password-links`)).status === 201);
  await recorder.example(ada, 'users.invitations.create', { path: { userId: ines.id } });
  await recorder.example(ada, 'users.passwordLinks.create', { path: { userId: ines.id } });
  const connections: Answer = await recorder.example(sam, 'me.connections.list');
  const ofAgent = connections.body.records.find((one: { agent: boolean }) => one.agent);
  await recorder.example(sam, 'me.connections.revoke', { path: { connectionId: ofAgent.connectionId } });
}

/** For calls that are no examples. */
function succeeded(answer: Answer): Answer {
  assert.ok(answer.status < 300, answer.text);
  return answer;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 30_000; performance.now() < end; await pause(25)) if (await holds()) return;
  assert.fail('It never came to that.');
}
