import assert from 'node:assert/strict';
import fc from 'fast-check';
import { abilities, beginning, NAMES, step, Tenant } from '../../support/climbing.ts';

/** More, on demand: CLIMBING_RUNS=5000 npx mocha test/unit/metadata/climbing.test.ts */
const numRuns = Number(process.env['CLIMBING_RUNS'] ?? 60);
const seed = process.env['CLIMBING_SEED'] ? Number(process.env['CLIMBING_SEED']) : undefined;

describe('privilege escalation', () => {
  it('no sequence of deployments and user changes grants more than its actors hold', async function () {
    this.timeout(Math.max(60_000, numRuns * 500));
    let taken = 0;
    const steps = fc.array(fc.tuple(step, fc.nat(7)), { minLength: 4, maxLength: 16 });
    await fc.assert(
      fc.asyncProperty(beginning, steps, async (of, sequence) => {
        const tenant = await Tenant.begin(of);
        const had = new Map(NAMES.map((name) => [name as string, abilities(tenant, name)]));
        // The attacker may hold their own permissions and those of users whom they may change.
        const own = new Set(had.get('attacker'));
        for (const [one, by] of sequence) {
          const controlled = [...tenant.controlled].filter((name) => tenant.people.get(name)!.active);
          const actor = controlled[by % Math.max(1, controlled.length)];
          if (actor === undefined || !(await tenant.take(one, actor))) continue;
          taken++;
          for (const name of tenant.controlled)
            for (const what of had.get(name) ?? []) if (what.startsWith('record ')) own.add(what);
          for (const name of tenant.people.keys()) {
            const has = abilities(tenant, name);
            const before = had.get(name);
            const said = `${JSON.stringify(one)} by ${actor}: ${name}`;
            for (const what of has)
              assert.ok(
                own.has(what) || before?.has(what) || tenant.isNew(what) || tenant.isSeen(what, [has, own, before]),
                `${said} got ${what}`,
              );
            for (const what of tenant.controlled.has(name) ? [] : (before ?? []))
              assert.ok(has.has(what) || own.has(what) || /^(?:told|sees) /.test(what), `${said} lost ${what}`);
          }
        }
      }),
      { numRuns, ...(seed === undefined ? {} : { seed }), endOnFailure: false },
    );
    assert.ok(taken > numRuns, `only ${taken} steps were taken`);
  });
});
