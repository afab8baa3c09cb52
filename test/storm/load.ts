/** People at work during a storm: each worker tells one kind of story over and over, and says what must come of it. */
import { setTimeout as pause } from 'node:timers/promises';
import { fieldFile, wholePackage } from '../support/metadata-tenant.ts';
import { type Answer, Client, Over, type Traffic } from './client.ts';
import { Contents } from './contents.ts';
import { Follower } from './follower.ts';
import { type Kept, type Ledger, Unexpected } from './ledger.ts';
import { Listeners } from './listeners.ts';
import { type Random, randomOf } from './random.ts';

const ORDERS = 4;
const COUNTERS = 3;
/** Deals of at least this amount are open to the deal desk (a sharing rule of the template). */
const DEAL_DESK_FROM = 150_000;
const DEPLOYMENT_EVERY_MS = 15_000;
/** It may be what fills the disk, so it is not tried again and again. */
const NO_SPACE = /^The database has no space left; nothing was applied/;
const DEPLOYMENT_ENDED = ['SUCCEEDED', 'FAILED', 'CANCELED'];
/** A deployment may take so long, with the faults around it. */
const DEPLOYMENT_MS = 150_000;
const PEOPLE = ['ada', 'mia', 'sam', 'sue', 'fay'] as const;
type Person = (typeof PEOPLE)[number];

export class Load {
  readonly people: Readonly<Record<Person, Client>>;
  readonly eve: Client;
  readonly followers: Follower[] = [];
  readonly listeners: Listeners;
  /** Names of what this storm makes begin with it, in the demo tenant and in the other one. */
  readonly marker: string;
  readonly foreignMarker: string;
  tenantId = '';
  readonly #traffic: Traffic;
  readonly #ledger: Ledger;
  readonly #seed: number;
  readonly #contents: Contents;
  #working = true;
  #number = 0;
  #times = 0;
  #loops: Promise<void>[] = [];
  #account = '';
  #product = '';
  #widget = '';
  #runId = '';
  #fayId = '';

  constructor(traffic: Traffic, ledger: Ledger, seed: number) {
    this.#traffic = traffic;
    this.#ledger = ledger;
    this.#seed = seed;
    const client = (name: Person): Client => new Client(traffic, `${name}@demo.example`);
    this.people = {
      ada: client('ada'),
      mia: client('mia'),
      sam: client('sam'),
      sue: client('sue'),
      fay: client('fay'),
    };
    this.eve = new Client(traffic, 'eve@acme.example');
    this.listeners = new Listeners(traffic, this.people.ada, randomOf(seed, 'receiver'));
    this.marker = `storm-of-demo-${seed}`;
    this.foreignMarker = `storm-of-acme-${seed}`;
    this.#contents = new Contents(traffic, ledger, this.people.mia, this.marker);
    traffic.foreign.set('demo', this.foreignMarker);
    traffic.foreign.set('acme', this.marker);
  }

  /** Makes what the stories share. */
  async prepare(): Promise<void> {
    const { ada, mia, sam, sue } = this.people;
    this.tenantId = (await sam.get('/identity')).body.tenant.id;
    this.#product = (await sam.get('/data/Product?take=1')).body.records[0].id;
    this.#account = (await this.#create(mia, 'Account', { name: `${this.marker} customer` })).id;
    for (let i = 0; i < COUNTERS; i++) {
      const made = await this.#make(mia, 'Account', { name: `${this.marker} counter ${i}`, employees: 0 });
      this.#ledger.counters.set(made.body.id, 0);
    }
    for (let i = 0; i < ORDERS; i++) {
      const made = await this.#make(sam, 'SalesOrder__c', { AccountId__c: this.#account });
      this.#ledger.lines.set(made.body.id, new Map());
    }
    const users = await ada.get('/data/User?take=200');
    this.#fayId = users.body.records.find((user: { username: string }) => user.username === 'fay@demo.example').id;
    const query = { objectApiName: 'Opportunity__c', measures: [{ key: 'count', aggregation: 'count' }] };
    const layout = { x: 0, y: 0, w: 12, h: 4 };
    const widgets = [{ widgetKey: 'deals', title: 'Deals', type: 'metric', layout, query }];
    const dashboard = await this.#ledger.carryOut(sam, 'make a dashboard', {
      method: 'POST',
      path: '/analytics/dashboards',
      body: { name: this.marker, widgets },
      expected: [201],
    });
    this.#widget = `/analytics/dashboards/${dashboard.body.dashboardId}/widgets/deals/run`;
    for (const [client, object] of [
      [mia, 'Account'],
      [sue, 'Opportunity__c'],
      [sam, 'SalesOrder__c'],
    ] as const)
      this.followers.push(await Follower.begin(client, object));
    await this.listeners.begin();
  }

  /** Begins to work, for the first time or after `stop`. */
  start(): void {
    this.#working = true;
    this.#times++;
    this.#runId = '';
    const stories: readonly (readonly [string, number, (random: Random) => Promise<void>])[] = [
      ['accounts', 20, (random) => this.#workOnRecords(this.people.mia, this.marker, random)],
      ['more accounts', 20, (random) => this.#workOnRecords(this.people.mia, this.marker, random)],
      ['accounts of another tenant', 60, (random) => this.#workOnRecords(this.eve, this.foreignMarker, random)],
      ['other tenants', 500, (random) => this.#lookAcross(random)],
      ['numbers', 60, () => this.#upsert()],
      ['counters of Mia', 40, (random) => this.#raise(this.people.mia, random)],
      ['counters of Ada', 40, (random) => this.#raise(this.people.ada, random)],
      ['lines', 30, (random) => this.#workOnLines(random)],
      ['more lines', 30, (random) => this.#workOnLines(random)],
      ['orders', 200, () => this.#fulfil()],
      ['deals', 60, (random) => this.#workOnDeals(random)],
      ['rights', 500, () => this.#giveAndTakeRights()],
      ['deployments', DEPLOYMENT_EVERY_MS, (random) => this.#deploy(random)],
      ['approvals', 1_500, () => this.#deleteUnderRun()],
      ['dashboards', 400, () => this.#runDashboard()],
      ['files', 300, (random) => this.#contents.storeFile([...this.#ledger.counters.keys()], random)],
      ['jobs', 5_000, (random) => this.#contents.importRows(random)],
      ['sign-ins', 3_000, (random) => this.people[random.pick(PEOPLE)].refresh()],
    ];
    this.#loops = stories.map(([name, every, story]) => this.#repeat(name, every, story));
    for (const follower of this.followers)
      this.#loops.push(this.#repeat(`follower of ${follower.object}`, 300, () => follower.follow()));
    this.#loops.push(
      this.#repeat('events that are asked for', 300, () => this.listeners.puller.follow()),
      this.#repeat('a stream of events', 300, () => this.listeners.streamer.follow(() => this.#working)),
    );
  }

  /** Resolves when every story that had begun has ended. */
  async stop(): Promise<void> {
    this.#working = false;
    await Promise.all(this.#loops);
  }

  async #repeat(name: string, every: number, story: (random: Random) => Promise<void>): Promise<void> {
    const random = randomOf(this.#seed, `${name} ${this.#times}`);
    while (this.#working) {
      try {
        await story(random);
      } catch (error) {
        // An outcome that was not expected is a violation already, as is an intention without one.
        if (error instanceof Over) return;
        if (!(error instanceof Unexpected))
          this.#traffic.violations.add({ oracle: 'stories go on', what: `${name}: ${(error as Error).stack}` });
        await pause(1_000);
      }
      for (let left = every; left > 0 && this.#working; left -= 100) await pause(Math.min(left, 100));
    }
  }

  /** Creates a record without a place among those that one worker alone decides about. */
  #make(client: Client, object: string, body: Record<string, unknown>): Promise<Answer> {
    return this.#ledger.carryOut(client, `create ${object}`, {
      method: 'POST',
      path: `/data/${object}`,
      body,
      expected: [201],
    });
  }

  async #create(client: Client, object: string, fields: Record<string, unknown>): Promise<Kept> {
    const { body } = await this.#ledger.carryOut(
      client,
      `create ${object}`,
      { method: 'POST', path: `/data/${object}`, body: fields, expected: [201] },
      (answer) => this.#keep(client, object, fields, answer),
    );
    return this.#ledger.records.get(body.id)!;
  }

  #keep(client: Client, object: string, fields: Record<string, unknown>, answer: Answer): void {
    const { id } = answer.body;
    const etag = answer.headers.get('etag')!;
    this.#ledger.records.set(id, {
      id,
      object,
      tenant: client.tenant,
      version: 1,
      etag,
      live: true,
      fields: { ...fields },
    });
  }

  /** One more version, and its tag. */
  #advance(kept: Kept, answer: Answer): void {
    kept.version++;
    kept.etag = answer.headers.get('etag') ?? kept.etag;
    const { recordVersion } = answer.body;
    if (recordVersion !== undefined && recordVersion !== kept.version)
      this.#traffic.violations.add({
        oracle: 'versions',
        what: `${kept.object} ${kept.id} (request ${answer.headers.get('x-request-id')})`,
        ledger: kept.version,
        server: recordVersion,
      });
  }

  async #change(client: Client, kept: Kept, fields: Record<string, unknown>): Promise<Answer> {
    return this.#ledger.carryOut(
      client,
      `change ${kept.object}`,
      {
        method: 'PATCH',
        path: `/data/${kept.object}/${kept.id}`,
        body: fields,
        options: { etag: kept.etag },
        expected: [200],
      },
      (answer) => {
        Object.assign(kept.fields, fields);
        this.#advance(kept, answer);
      },
    );
  }

  async #delete(client: Client, kept: Kept): Promise<Answer> {
    return this.#ledger.carryOut(
      client,
      `delete ${kept.object}`,
      { method: 'DELETE', path: `/data/${kept.object}/${kept.id}`, options: { etag: kept.etag }, expected: [200] },
      () => {
        kept.live = false;
      },
    );
  }

  /** A record from its creation through some changes, deleted and restored now and then. */
  async #workOnRecords(client: Client, marker: string, random: Random): Promise<void> {
    const fields = { name: `${marker} ${++this.#number}`, description: 'new' };
    const made = await this.#ledger.tryOut(
      client,
      'create Account',
      { method: 'POST', path: '/data/Account', body: fields, expected: [201] },
      (answer) => this.#keep(client, 'Account', fields, answer),
    );
    if (!made) return;
    const kept = this.#ledger.records.get(made.body.id)!;
    for (let i = random.integer(0, 3); i > 0; i--)
      await this.#change(client, kept, { description: `changed ${i}`, phone: `+49 30 ${this.#number}${i}` });
    if (!random.chance(0.3)) return;
    await this.#delete(client, kept);
    if (!random.chance(0.6)) return;
    await this.#ledger.carryOut(
      client,
      'restore Account',
      { method: 'POST', path: `/data/Account/${kept.id}/restore`, expected: [201] },
      (answer) => {
        kept.live = true;
        this.#advance(kept, answer);
      },
    );
  }

  /** A record of another tenant is one that does not exist. */
  async #lookAcross(random: Random): Promise<void> {
    const records = [...this.#ledger.records.values()].filter(({ object }) => object === 'Account');
    if (!records.length) return;
    const { id, tenant } = random.pick(records);
    const stranger = tenant === 'demo' ? this.eve : this.people.ada;
    const { status, text } = await stranger.get(`/data/Account/${id}`);
    if (status === 404) return;
    this.#traffic.violations.add({
      oracle: 'nothing of another tenant',
      what: `${stranger.username} asked for the account ${id} of ${tenant}`,
      server: `${status} ${text.slice(0, 300)}`,
    });
  }

  /** Creates by an external id what the second request then changes. */
  async #upsert(): Promise<void> {
    const number = `ST-${10_000 + ++this.#number}`;
    const fields = { name: `${this.marker} number ${number}`, email: 'first@example.com' };
    const put = (body: Record<string, unknown>, expected: number, settle: (answer: Answer) => void): Promise<Answer> =>
      this.#ledger.carryOut(
        this.people.mia,
        'upsert Account',
        { method: 'PUT', path: `/data/Account/by/accountNumber/${number}`, body, expected: [expected] },
        settle,
      );
    const { body } = await put(fields, 201, (answer) =>
      this.#keep(this.people.mia, 'Account', { ...fields, accountNumber: number }, answer),
    );
    const kept = this.#ledger.records.get(body.id)!;
    await put({ email: 'second@example.com' }, 200, (answer) => {
      kept.fields['email'] = 'second@example.com';
      this.#advance(kept, answer);
    });
  }

  /** Two people raise the same counters: who comes late reads again, so that no increment is lost. */
  async #raise(client: Client, random: Random): Promise<void> {
    const id = random.pick([...this.#ledger.counters.keys()]);
    const path = `/data/Account/${id}`;
    const read = await client.get(path);
    await this.#ledger.carryOut(
      client,
      'raise a counter',
      {
        method: 'PATCH',
        path,
        body: { employees: read.body.employees + 1 },
        options: { etag: read.headers.get('etag')! },
        expected: [200, 412],
      },
      ({ status }) => {
        if (status === 200) this.#ledger.counters.set(id, this.#ledger.counters.get(id)! + 1);
      },
    );
  }

  /** Lines that are added, changed, moved from order to order and removed; several workers below the same orders. */
  async #workOnLines(random: Random): Promise<void> {
    const { sam } = this.people;
    const orders = [...this.#ledger.lines.keys()];
    let order = random.pick(orders);
    let amount = random.integer(1, 400) / 4;
    const note = (id: string): void => void this.#ledger.lines.get(order)!.set(id, amount);
    const body = {
      SalesOrderId__c: order,
      ProductId__c: this.#product,
      Position__c: 1,
      Quantity__c: 1,
      UnitPrice__c: amount,
    };
    const made = await this.#ledger.tryOut(
      sam,
      'add a line',
      { method: 'POST', path: '/data/SalesOrderLine__c', body, expected: [201] },
      (answer) => note(answer.body.id),
    );
    if (!made) return;
    const { id } = made.body;
    const path = `/data/SalesOrderLine__c/${id}`;
    let etag = made.headers.get('etag')!;
    const patch = async (what: string, fields: object, settle: () => void): Promise<void> => {
      const request = { method: 'PATCH', path, body: fields, options: { etag }, expected: [200] };
      const answer = await this.#ledger.carryOut(sam, what, request, settle);
      etag = answer.headers.get('etag')!;
    };
    if (random.chance(0.5)) {
      const price = amount + random.integer(1, 40) / 4; // another one: what changes nothing leaves nothing
      await patch('change a line', { UnitPrice__c: price }, () => {
        amount = price;
        note(id);
      });
    }
    if (random.chance(0.5)) {
      const other = random.pick(orders.filter((one) => one !== order));
      await patch('move a line', { SalesOrderId__c: other }, () => {
        this.#ledger.lines.get(order)!.delete(id);
        order = other;
        note(id);
      });
    }
    // So that an order does not grow without bound.
    if (random.chance(this.#ledger.lines.get(order)!.size > 40 ? 1 : 0.5))
      await this.#ledger.carryOut(
        sam,
        'remove a line',
        { method: 'DELETE', path, options: { etag }, expected: [200] },
        () => void this.#ledger.lines.get(order)!.delete(id),
      );
  }

  /** An order from draft to fulfilled, which two approve at the same time: an invoice and an event come of it, once. */
  async #fulfil(): Promise<void> {
    const { sam, mia } = this.people;
    const reference = `${this.marker} ${++this.#number}`;
    const order = await this.#create(sam, 'SalesOrder__c', {
      AccountId__c: this.#account,
      CustomerReference__c: reference,
    });
    await this.#make(sam, 'SalesOrderLine__c', {
      SalesOrderId__c: order.id,
      ProductId__c: this.#product,
      Position__c: 1,
      Quantity__c: 2,
      UnitPrice__c: 10.25,
    });
    order.version++; // its totals followed the line
    const take = async (client: Client, key: string, expected: readonly number[], etag: string): Promise<Answer> =>
      this.#ledger.carryOut(
        client,
        `${key} an order`,
        {
          method: 'POST',
          path: `/data/SalesOrder__c/${order.id}/transitions/${key}`,
          body: {},
          options: { etag },
          expected,
        },
        ({ status }) => {
          if (status === 201) order.version++;
        },
      );
    const read = async (): Promise<string> => (await sam.get(`/data/SalesOrder__c/${order.id}`)).headers.get('etag')!;
    await take(sam, 'submit', [201], await read());
    const etag = await read();
    const approvals = await Promise.all([1, 2].map(() => take(mia, 'approve', [201, 409, 412], etag)));
    const approved = approvals.filter(({ status }) => status === 201).length;
    if (approved !== 1)
      this.#traffic.violations.add({
        oracle: 'exactly once',
        what: `order ${order.id} was approved ${approved} times`,
      });
    await take(sam, 'fulfill', [201], await read());
    order.fields['Status__c'] = 'fulfilled';
  }

  /** Deals that come into sight of the deal desk and leave it, so that its copy has to follow. */
  async #workOnDeals(random: Random): Promise<void> {
    const { sam } = this.people;
    const amount = (): number => random.pick([DEAL_DESK_FROM - 1, DEAL_DESK_FROM + 1]);
    const deal = await this.#create(sam, 'Opportunity__c', {
      name: `${this.marker} deal ${++this.#number}`,
      AccountId__c: this.#account,
      Amount__c: amount(),
    });
    for (let i = random.integer(0, 2); i > 0; i--)
      await this.#change(sam, deal, { Amount__c: amount(), NextStep__c: `Call ${i}` });
    if (random.chance(0.5)) await this.#delete(sam, deal);
  }

  /** A right that was taken is gone with the next request, and one that was given is there. */
  async #giveAndTakeRights(): Promise<void> {
    const { ada, fay } = this.people;
    const give = async (permissionSetApiNames: string[]): Promise<void> => {
      for (;;) {
        const path = `/data/User/${this.#fayId}`;
        const user = await ada.get(path);
        const { status } = await this.#ledger.carryOut(ada, 'change rights', {
          method: 'PATCH',
          path,
          body: { permissionSetApiNames },
          options: { etag: user.headers.get('etag')! },
          // Auth keeps the time of a sign-in with the same record.
          expected: [200, 412],
        });
        if (status === 200) return;
      }
    };
    const tryIt = async (expected: number): Promise<void> => {
      const code = `S${++this.#number}`;
      const fields = { name: `${this.marker} ${code}`, Code__c: code };
      await this.#ledger.carryOut(
        fay,
        expected === 201 ? 'use a right' : 'miss a right',
        { method: 'POST', path: '/data/PriceList__c', body: fields, expected: [expected] },
        (answer) => {
          if (answer.status === 201) this.#keep(fay, 'PriceList__c', fields, answer);
        },
      );
    };
    await give(['PriceManagement']);
    await tryIt(201);
    await give([]);
    await tryIt(403);
  }

  /** A field, or a rule about it, next to everything else. */
  async #deploy(random: Random): Promise<void> {
    const { ada } = this.people;
    const name = `Storm${++this.#number}__c`;
    const files = fieldFile('Product', name, 'fieldType: text\nlength: 40');
    if (random.chance(0.5))
      files[`objects/Product/validationRules/Rule${this.#number}.yaml`] = [
        'type: ValidationRule',
        `apiName: Rule${this.#number}`,
        'object: Product',
        `condition: record.${name} == "refused"`,
        `message: ${name} was refused.`,
        '',
      ].join('\n');
    const accepted = await this.#ledger.carryOut(ada, 'deploy a field', {
      method: 'POST',
      path: '/metadata/deploy',
      body: { files, package: wholePackage(files) },
      expected: [202],
    });
    const { deploymentId } = accepted.body;
    for (const end = performance.now() + DEPLOYMENT_MS; ; await pause(300)) {
      const { body } = await ada.get(`/metadata/deployments/${deploymentId}`);
      if (DEPLOYMENT_ENDED.includes(body.status)) {
        this.#ledger.deployed.set(name, body.status === 'SUCCEEDED');
        if (body.status === 'SUCCEEDED') return;
        if (NO_SPACE.test(body.error?.message)) {
          this.#traffic.failed('a deployment without space', performance.now(), deploymentId);
          return;
        }
        this.#traffic.violations.add({
          oracle: 'deployments succeed',
          what: `${deploymentId} ended as ${body.status}`,
          server: { error: body.error, blocked: body.blocked },
        });
        return;
      }
      if (performance.now() < end) continue;
      this.#traffic.violations.add({
        oracle: 'deployments end',
        what: `${deploymentId} has not ended after ${DEPLOYMENT_MS / 1_000} s`,
        server: body,
      });
      return;
    }
  }

  /** A deletion by an agent that waits for a person, is approved and carried out once. */
  async #deleteUnderRun(): Promise<void> {
    const { ada, mia } = this.people;
    if (!this.#runId) {
      const body = { agentKey: 'storm', goal: 'Delete accounts.', budget: { maxMutations: 100 } };
      const run = { method: 'POST', path: '/agent/runs', body, expected: [201] };
      this.#runId = (await this.#ledger.carryOut(mia, 'begin a run', run)).body.runId;
    }
    const kept = await this.#create(mia, 'Account', { name: `${this.marker} approved ${++this.#number}` });
    const path = `/data/Account/${kept.id}`;
    const headers = { 'x-agent-run-id': this.#runId };
    const deletion = { method: 'DELETE', path, options: { etag: kept.etag, headers } };
    const key = `approved-${this.#seed}-${this.#number}`;
    const asked = await mia.send('DELETE', path, undefined, { ...deletion.options, key });
    if (asked.body?.code === 'AGENT_BUDGET_EXCEEDED' || asked.body?.code === 'RUN_NOT_ACTIVE') {
      this.#runId = ''; // the next story begins another one
      return;
    }
    const { approvalId, fingerprint } = asked.body.details ?? {};
    if (!['APPROVAL_REQUIRED', 'APPROVAL_PENDING'].includes(asked.body.code)) throw new Unexpected(asked.text);
    await this.#ledger.carryOut(ada, 'approve a deletion', {
      method: 'POST',
      path: `/agent/approvals/${approvalId}/decision`,
      body: { decision: 'approve', fingerprint },
      expected: [201],
    });
    const deleted = await mia.send('DELETE', path, undefined, { ...deletion.options, key });
    if (deleted.status !== 200) throw new Error(`An approved deletion: ${deleted.status} ${deleted.text}`);
    kept.live = false;
  }

  async #runDashboard(): Promise<void> {
    const { status, text } = await this.people.sam.send('POST', this.#widget, {});
    if (status !== 200)
      this.#traffic.violations.add({ oracle: 'every request has its outcome', what: 'run a widget', server: text });
  }

  /** Number of deals that Sam sees, by a widget. */
  async deals(): Promise<number> {
    return (await this.people.sam.send('POST', this.#widget, {})).body.totals?.count;
  }
}
