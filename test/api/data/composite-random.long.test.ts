/**
 * Random composite requests do what their parts do one by one, or leave nothing; and after kill -9 the same request has
 * happened once. Longer: COMPOSITE_RUNS=200, with COMPOSITE_SEED from a failure.
 */
import assert from 'node:assert/strict';
import { randomInt, randomUUID } from 'node:crypto';
import type { Answer, Api } from '../../support/client.ts';
import { fieldFile } from '../../support/metadata-tenant.ts';
import { randomNumbers } from '../../support/random.ts';
import { type Deals, startDeals } from './deals.ts';

const RUNS = Number(process.env['COMPOSITE_RUNS'] ?? 40);
const SEED = Number(process.env['COMPOSITE_SEED'] ?? randomInt(1_000_000));

interface Part {
  readonly referenceId: string;
  readonly method: string;
  readonly path: string;
  readonly headers?: { readonly ifMatch: string };
  readonly body?: Record<string, unknown>;
}

describe(`random composite requests (COMPOSITE_SEED=${SEED})`, () => {
  let deals: Deals;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    deals = await startDeals();
    ({ sam } = deals.as);
    const rights = '    create: true\n    read: true\n    update: true\n    delete: true\n';
    const fields = ['Deal__c.Stage__c', 'Deal__c.Code__c', 'DealLine__c.Deal__c'];
    await deals.deploy({
      ...fieldFile('Deal__c', 'Code__c', 'fieldType: text\nunique: true\nexternalId: true\nlength: 60'),
      'permissionSets/Deals.yaml': `type: PermissionSet\napiName: Deals\nlabel: Deals\nobjects:\n${['Deal__c', 'DealLine__c'].map((name) => `  ${name}:\n${rights}`).join('')}fields:\n${fields.map((name) => `  ${name}:\n    read: true\n    edit: true\n`).join('')}`,
    });
  });
  after(() => deals?.platform.stop());

  /** A request whose parts may be wrong in one of a few ways; `world` keeps unique values of worlds apart. */
  function request(below: (n: number) => number, world: string): Part[] {
    const parts: Part[] = [];
    const made: string[] = [];
    const count = 1 + below(8);
    for (let index = 0; index < count; index++) {
      const referenceId = `p${index}`;
      const target = made[below(made.length || 1)];
      const code = `${world}-${below(6)}`;
      const kind = target === undefined ? 0 : below(6);
      if (kind <= 1) {
        const body = {
          name: `n${below(9)}`,
          Stage__c: world,
          ...(below(2) ? { Code__c: code } : {}),
          ...(below(9) ? {} : { Nope__c: 1 }),
        };
        parts.push({ referenceId, method: 'POST', path: '/data/Deal__c', body });
        made.push(referenceId);
      } else if (kind === 2)
        parts.push({
          referenceId,
          method: 'PATCH',
          path: `/data/Deal__c/@{${target}.id}`,
          headers: { ifMatch: below(4) ? '"1"' : '"2"' },
          body: { name: `@{${target}.name}x` },
        });
      else if (kind === 3)
        parts.push({
          referenceId,
          method: 'POST',
          path: '/data/DealLine__c',
          body: { name: world, Deal__c: `@{${target}.id}` },
        });
      else if (kind === 4)
        parts.push({
          referenceId,
          method: 'PUT',
          path: `/data/Deal__c/by/Code__c/${code}`,
          body: { name: `@{${target}.name}`, Stage__c: world },
        });
      else
        parts.push({
          referenceId,
          method: 'DELETE',
          path: `/data/Deal__c/@{${target}.id}`,
          headers: { ifMatch: '"1"' },
        });
    }
    return parts;
  }

  /** The parts as requests of their own, up to the first that fails. */
  async function oneByOne(parts: readonly Part[]): Promise<boolean> {
    const results = new Map<string, Record<string, unknown>>();
    const put = (text: string): string =>
      text.replace(/@\{(\w+)\.(\w+)\}/g, (_, name: string, field: string) => String(results.get(name)?.[field]));
    for (const { referenceId, method, path, headers, body } of parts) {
      const made = body && JSON.parse(put(JSON.stringify(body)));
      const reply = await sam.send(method, put(path), made, headers ? { etag: headers.ifMatch } : {});
      if (reply.status >= 400) return false;
      results.set(referenceId, reply.body);
    }
    return true;
  }

  /** What is there of a world, without what differs between any two. */
  async function stateOf(world: string): Promise<string[]> {
    const read = async (object: string, where: object): Promise<Record<string, unknown>[]> =>
      (await sam.post(`/data/${object}/query`, { where, take: 200 })).body.records;
    const own = await read('Deal__c', { Stage__c: world });
    const lines = await read('DealLine__c', { name: world });
    const names = new Map(own.map((one) => [one['id'], one['name']]));
    return [
      ...own.map((one) => `${one['name']} ${String(one['Code__c']).replace(world, '')} v${one['recordVersion']}`),
      ...lines.map((one) => `line of ${names.get(one['Deal__c'])}`),
    ].sort();
  }

  it('do in one transaction what their parts do one by one, or leave nothing', async function () {
    this.timeout(RUNS * 5_000);
    const below = randomNumbers(SEED);
    let committed = 0;
    for (let n = 0; n < RUNS; n++) {
      const seed = below(2 ** 31);
      const [together, apart] = [randomUUID(), randomUUID()];
      const parts = request(randomNumbers(seed), together);
      const key = randomUUID();
      const send = (): Promise<Answer> => sam.post('/composite', { requests: parts }, { idempotencyKey: key });
      const reply = await send();
      const all = await oneByOne(request(randomNumbers(seed), apart));
      assert.equal(reply.status, all ? 200 : 422, `${JSON.stringify(parts)} ${reply.text}`);
      assert.deepEqual(await stateOf(together), all ? await stateOf(apart) : [], JSON.stringify(parts));
      assert.equal((await send()).status, reply.status);
      assert.deepEqual(await stateOf(together), all ? await stateOf(apart) : []);
      if (all) committed++;
    }
    assert.ok(RUNS < 20 || (committed > 0 && committed < RUNS), `${committed} of ${RUNS} were committed`);
  });

  it('store many rows as single writes would', async function () {
    this.timeout(RUNS * 5_000);
    const below = randomNumbers(SEED + 1);
    for (let n = 0; n < RUNS / 4; n++) {
      const [together, apart] = [randomUUID(), randomUUID()];
      const rows = (world: string, seed: number): object[] => {
        const own = randomNumbers(seed);
        return Array.from({ length: 1 + own(40) }, () => ({
          name: `n${own(9)}`,
          Stage__c: world,
          ...(own(2) ? { Code__c: `${world}-${own(30)}` } : {}),
          ...(own(12) ? {} : { Nope__c: 1 }),
        }));
      };
      const seed = below(2 ** 31);
      const reply = await sam.post('/composite/records', {
        objectApiName: 'Deal__c',
        operation: 'create',
        allOrNone: false,
        records: rows(together, seed).map((fields) => ({ fields })),
      });
      assert.equal(reply.status, 200, reply.text);
      const codes: (string | null)[] = [];
      for (const fields of rows(apart, seed)) {
        const single = await sam.post('/data/Deal__c', fields);
        codes.push(single.status >= 400 ? (single.body.errors?.[0].code ?? single.body.code) : null);
      }
      const outcomes = reply.body.results.map((one: { errors: { code: string }[] }) => one.errors[0]?.code ?? null);
      assert.deepEqual(outcomes, codes, JSON.stringify(rows(together, seed)));
      assert.deepEqual(await stateOf(together), await stateOf(apart));
    }
  });
});
