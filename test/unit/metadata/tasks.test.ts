import assert from 'node:assert/strict';
import { type PlanInput, type Planned, TASKS } from '../../../services/metadata/planning/tasks.ts';
import { fieldFile, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { aSnapshot } from '../../support/snapshots.ts';

describe('metadata: tasks of planning threads', () => {
  const { tenant } = aSnapshot([]);
  const door = {
    state: async () => ({ version: 0, components: '[]' }),
    retained: async () => '[]',
    unchangedSince: async () => [],
    rows: async () => [],
  };
  const planOf = (files: Record<string, string>): Promise<Planned> => {
    const body = Buffer.from(JSON.stringify({ files, package: wholePackage(files) }));
    const input: PlanInput = {
      where: { tenantId: tenant.id, version: 0 },
      tenant,
      schema: '"t"',
      source: { operation: 'validate', body },
      userId: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
      ceilings: { connection: 1, tenant: 1, daily: 1, concurrency: 1 },
    };
    return TASKS.plan(input, door);
  };
  const problemsOf = ({ draft }: Planned) => {
    const { plan } = TASKS.conclude({ draft, numbers: [] });
    return JSON.parse(plan).blocked as { code: string; message: string; details?: { max: number } }[];
  };

  it('limit a tenant to a size that every process can hold in memory', async () => {
    const large = (fields: number) =>
      Object.assign(
        {},
        ...Array.from({ length: fields / 2 }, (_, i) => objectFiles(`Large${i}__c`)),
        ...Array.from({ length: fields }, (_, i) =>
          fieldFile(
            `Large${i >> 1}__c`,
            `F${i}__c`,
            `fieldType: longText\nlength: 131072\ndefaultValue: ${'x'.repeat(130_000)}`,
          ),
        ),
      );
    assert.deepEqual(problemsOf(await planOf(large(100))), []);
    const [problem, ...others] = problemsOf(await planOf(large(140)));
    assert.deepEqual([problem?.code, problem?.details, others], ['LIMIT_EXCEEDED', { max: 16 * 1024 * 1024 }, []]);
  });

  it('report the first thousand problems and their total', async () => {
    const broken = Object.assign(
      objectFiles('Broken__c'),
      ...Array.from({ length: 1_200 }, (_, i) =>
        fieldFile('Broken__c', `F${i}__c`, 'fieldType: reference\nreferenceTo: [Nowhere__c]'),
      ),
    );
    const planned = await planOf(broken);
    const problems = problemsOf(planned);
    assert.equal(problems.length, 1_001);
    assert.match(problems.at(-1)?.message ?? '', /^There are 2\d{3} problems; these are the first 1000\.$/);
    assert.ok(TASKS.conclude({ draft: planned.draft, numbers: [] }).blocked > 2_000);
  });
});
