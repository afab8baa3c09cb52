/**
 * Reverting random runs: whatever a run has created, changed, deleted and restored, in whatever order, its revert
 * brings every record back to where it was, and a second one finds nothing to do. The last seed is another one each
 * time; REVERT_SEED runs one alone.
 */
import assert from 'node:assert/strict';
import { randomInt, randomUUID } from 'node:crypto';
import { Random } from '../expression/world.ts';
import { createWorld, type Person, refusal, type World } from './world.ts';

/**
 * In 47 records were moved below what stays gone; in 255 one comes back late, with what the run had made below it; in
 * 1001 deleted records refer to each other; in 1007 the former master of what the run restored goes back before it.
 */
const SEEDS = [41, 47, 255, 1001, 1007];
const seeds = process.env['REVERT_SEED'] ? [Number(process.env['REVERT_SEED'])] : [...SEEDS, randomInt(1_000_000)];
const ROUNDS = 6;
const STEPS = 25;

/** Objects whose records refer to companies, and by which field. */
const BELOW: Readonly<Record<string, string>> = { Item__c: 'CompanyId__c', Ticket__c: 'CompanyId__c' };
const OBJECTS = ['Company__c', ...Object.keys(BELOW)];

describe('reverting random runs', () => {
  let world: World;
  let clerk: Person;
  beforeEach(async function () {
    this.timeout(60_000);
    world = await createWorld();
    ({ clerk } = world);
  });
  afterEach(() => world?.stop());

  /** Content of all records by id, without what every write changes. */
  const content = async (): Promise<Record<string, unknown>> => {
    const found: Record<string, unknown> = {};
    for (const object of OBJECTS)
      for (const { row } of await world.rows(`SELECT to_jsonb(t) AS row FROM $schema."${object}" t`)) {
        const { recordVersion: _version, updatedAt: _at, updatedById: _by, ...rest } = row;
        found[`${object} ${rest.id}`] = rest;
      }
    return found;
  };
  const deleted = async (): Promise<{ object: string; id: string }[]> =>
    (await world.rows('SELECT object, record_id AS id FROM $schema._recycle_bin')) as { object: string; id: string }[];

  /** One call of the run; refusals are part of the game. */
  async function step(random: Random, agentRunId: string | undefined): Promise<void> {
    const options = agentRunId === undefined ? {} : { agentRunId };
    const live = Object.keys(await content()).map((name) => name.split(' ') as [string, string]);
    const companies = live.filter(([object]) => object === 'Company__c').map(([, id]) => id);
    const aCompany = (): string | null => (companies.length > 0 && random.chance(0.8) ? random.of(companies) : null);
    const values = (object: string): Record<string, unknown> =>
      object === 'Company__c'
        ? { Amount__c: random.below(5), Note__c: random.of(['a', 'b', null]), ParentId__c: aCompany() }
        : { [BELOW[object]!]: aCompany() };
    const act = random.below(10);
    const call = async (): Promise<unknown> => {
      if (act < 3 || live.length === 0) {
        const object = random.of(OBJECTS);
        const name = object === 'Ticket__c' ? {} : { name: 'x' };
        return clerk.create(object, { ...name, ...values(object) }, options);
      }
      if (act === 9) {
        const gone = await deleted();
        if (gone.length === 0) return null;
        const { object, id } = random.of(gone);
        return clerk.send('data.records.restore', { objectApiName: object, id }, {}, undefined, options);
      }
      const [object, id] = random.of(live);
      const { recordVersion } = (await clerk.get(object, id)).body;
      const etag = `"${recordVersion.toString(36)}"`;
      if (act < 7) return clerk.update(object, id, values(object), { ...options, etag });
      return clerk.delete(object, id, { ...options, etag });
    };
    await call().catch((error: unknown) => refusal(Promise.reject(error)));
  }

  const ids = ({ reverted }: { reverted: { id: string }[] }): string[] => reverted.map(({ id }) => id).sort();

  for (const seed of seeds)
    it(`brings all records back (REVERT_SEED=${seed})`, async function () {
      this.timeout(300_000);
      const random = new Random(seed);
      for (let round = 0; round < ROUNDS; round++) {
        for (let n = 0; n < 8; n++) await step(random, undefined);
        const before = await content();
        const agentRunId = randomUUID();
        for (let n = 0; n < STEPS; n++) await step(random, agentRunId);
        await world.endRun(agentRunId);
        const revert = () => world.admin.send('agent.runs.revert', { runId: agentRunId });
        const { body } = await revert();
        assert.deepEqual(body.skipped, [], `round ${round}: ${JSON.stringify(body)}`);
        assert.deepEqual(await content(), before, `round ${round}`);
        const again = (await revert()).body;
        assert.deepEqual([again.skipped, ids(again)], [[], ids(body)], `round ${round}, again`);
        assert.deepEqual(await content(), before, `round ${round}, again`);
      }
    });
});
