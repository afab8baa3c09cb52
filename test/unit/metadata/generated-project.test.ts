import assert from 'node:assert/strict';
import { makePlan } from '../../../services/metadata/planner/plan.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { readTemplate } from '../../../services/metadata/tenants.ts';
import { BUSINESS, changedComponents, filesOf, generateProject, LARGE } from '../../support/generated-project.ts';

const OPTIONS = { platform: true, allowDestructiveChanges: false } as const;

describe('generated projects', () => {
  it('are the same for the same seed', () => {
    const [one, again, other] = ['a', 'a', 'b'].map((seed) => filesOf(generateProject(BUSINESS, seed)));
    assert.deepEqual(one, again);
    assert.notDeepEqual(one, other);
  });

  it('are consistent, in canonical form, and can be changed', async function () {
    this.timeout(20_000);
    const core = await readProject(readTemplate(new URL('../../../templates/core', import.meta.url).pathname), null);
    const tenant = makePlan(new Map(), core, OPTIONS).after;
    const project = generateProject(BUSINESS, 'a');
    const files = filesOf(project);
    const read = await readProject(files, null);
    for (const { path, yaml } of read.drafts.values()) assert.equal(yaml, files[path], path);
    const plan = makePlan(tenant, read, OPTIONS);
    assert.deepEqual([plan.blocked, plan.warnings, plan.creates.length], [[], [], project.size]);

    const changes = await readProject(filesOf(changedComponents(project, 300, 'a')), null);
    const changed = makePlan(plan.after, changes, OPTIONS);
    assert.deepEqual([changed.blocked, changed.updates.length, changed.noops.length], [[], 300, 0]);
  });

  it('have the requested size', () => {
    const types = Map.groupBy(generateProject(BUSINESS, 'a').values(), (body) => String(body['type']));
    const counts = ['CustomObject', 'CustomField', 'ValidationRule', 'StateModel', 'SharingRule'].map(
      (type) => types.get(type)?.length,
    );
    assert.deepEqual(counts, [60, 1_200, 200, 40, 30]);
    assert.equal(generateProject(LARGE, 'a').size, 5_000);
  });
});
