/** `erp calendar` and `erp notifications`: what a person plans, and is told. */
import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../support/client.ts';
import { keptErpOf, userEnvironment } from '../support/erp.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { until } from '../support/until.ts';

describe('erp calendar', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let as: (name: string) => ReturnType<typeof keptErpOf>;
  before(async () => {
    platform = await startPlatform();
    const names = ['ada', 'sam', 'sue'];
    const tokens = await Promise.all(names.map((name) => tokenFor(platform.baseUrl, `${name}@demo.example`)));
    ada = api(platform.baseUrl, tokens[0]!);
    as = (name) => {
      const more = { ERP_TOKEN: tokens[names.indexOf(name)]!, ERP_BASE_URL: platform.baseUrl, TZ: 'Europe/Berlin' };
      return keptErpOf(userEnvironment(more));
    };
  });
  after(() => platform?.stop());

  const done = async (name: string, ...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await as(name)(args);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  const DAY = ['--from', '2027-01-11', '--to', '2027-01-12'];

  it('creates an event with a user and a guest, who answer, and shows when they are busy', async () => {
    const account = (await ada.post('/data/Account', { name: 'Meeting' })).body.id;
    const people = ['--attendee', 'Sue Bennett', '--attendee', 'guest@outside.example'];
    const time = ['--start', '2027-01-11T09:30', '--end', '2027-01-11T10:00', '--timezone', 'Europe/Berlin'];
    const args = ['calendar', 'create', '--title', 'Review', ...time, ...people, '--record', `Account/${account}`];
    const made = await as('sam')(args);
    assert.match(
      made.stderr,
      /has guest@outside\.example: an invitation is mailed to this address\. Name a colleague by /,
    );
    const id = made.stdout.trim();
    const row = `${id}\t2027-01-11 09:30 Europe/Berlin\t2027-01-11 10:00 Europe/Berlin\tReview\t`;
    assert.equal(await done('sue', 'calendar', 'events', ...DAY), row.trim());
    assert.equal(await done('sue', 'calendar', 'respond', id, 'accepted'), id);
    const { records } = JSON.parse(await done('sam', 'calendar', 'events', ...DAY, '--json'));
    assert.deepEqual(records[0].record, { objectApiName: 'Account', id: account });
    assert.deepEqual(
      records[0].attendees.map(({ email, response }: { email: string | null; response: string }) => [email, response]),
      [
        [null, 'accepted'],
        ['guest@outside.example', 'needsAction'],
      ],
    );
    const busy = await done(
      'ada',
      'calendar',
      'free-busy',
      '--user',
      'sue@demo.example',
      '--user',
      'ada@demo.example',
      ...DAY,
    );
    assert.equal(busy, 'sue@demo.example\t2027-01-11T09:30:00+01:00\t2027-01-11T10:00:00+01:00');
    assert.equal((await as('sue')(['calendar', 'delete', id])).code, 4);
    assert.equal(await done('sam', 'calendar', 'delete', id), id);
    assert.equal(await done('sue', 'calendar', 'events', ...DAY), '');
  });

  it('takes whole days, lists the coming week, and refuses what is no time', async () => {
    const today = new Intl.DateTimeFormat('en-CA', { timeZone: 'Europe/Berlin' });
    const [start, end] = [0, 1].map((days) => today.format(Date.now() + days * 86_400_000)) as [string, string];
    const id = await done('sam', 'calendar', 'create', '--title', 'Fair', '--start', start, '--end', end);
    assert.equal(await done('sam', 'calendar', 'events'), `${id}\t${start}\t${end}\tFair`);
    const refused = await as('sam')(['calendar', 'events', '--from', 'tomorrow']);
    assert.deepEqual([refused.code, refused.stderr.split('\n')[0]], [2, 'Error: tomorrow is no time.']);
  });

  it('lists notifications, and marks as read those that there were', async () => {
    const sam = (await ada.get('/data/User?fields=id&search=Sam')).body.records[0].id;
    const notify = async (title: string): Promise<void> => {
      const sent = await ada.post('/notifications', { type: 'Stocktake', recipients: [sam], data: { title } });
      assert.equal(sent.status, 201, sent.text);
    };
    const list = (...more: string[]) => done('sam', 'notifications', 'list', '--type', 'Stocktake', ...more);
    for (const title of ['One', 'Two', 'Three']) await notify(title);
    await until(async () => (await list()).split('\n').length === 3);
    const ids = (await list()).split('\n').map((line) => line.split('\t')[0] ?? '');
    assert.equal(await done('sam', 'notifications', 'read', ids[0]!), ids[0]);
    assert.equal(await done('sam', 'notifications', 'archive', ids[1]!, ids[2]!), `${ids[1]}\n${ids[2]}`);
    assert.match(await list(), new RegExp(`^${ids[0]}\tread\t\\S+\tThree\t?$`));
    assert.equal((await list('--status', 'archived')).split('\n').length, 2);
    await notify('Four');
    await until(async () => (await list('--status', 'unread')).includes('Four'));
    assert.match(await done('sam', 'notifications', 'read', '--all'), /^Marked as read: \d+$/);
    assert.equal(await list('--status', 'unread'), '');
    assert.equal((await as('sam')(['notifications', 'read'])).code, 2);
  });
});
