import assert from 'node:assert/strict';
import { INDEX_GENERATION, wantedIndexes } from '../../../services/metadata/physical/indexes.ts';
import { physicalModel } from '../../../services/metadata/physical/model.ts';
import { makePlan } from '../../../services/metadata/planner/plan.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { acting } from '../../support/plans.ts';

const FILES: Record<string, string> = {
  ...objectFiles('Deal__c', {
    Tax__c: 'fieldType: text\nunique: true',
    Code__c: 'fieldType: text\nexternalId: true\ncaseSensitive: true',
    Long__c: 'fieldType: text\nlength: 4000\nunique: true',
    Amount__c: 'fieldType: currency',
  }),
  'objects/Deal__c/object.yaml':
    'type: CustomObject\napiName: Deal__c\nlabel: Deal\nlabelPlural: Deals\nnameField:\n  label: Name\n  fieldType: text\nsharingDefault: private\nfeatures:\n  search: true\n  duplicates: true\n',
  ...fieldFile('Deal__c', 'Above__c', 'fieldType: reference\nreferenceTo:\n  - Deal__c\nonDelete: setNull'),
  'objects/Deal__c/duplicateRules/Alike.yaml':
    'type: DuplicateRule\napiName: Alike\nobject: Deal__c\nactive: true\naction: confirm\nscope: all\nmatch:\n  - field: name\n    method: fuzzy\n  - field: Code__c\n    method: normalized\n',
  'objects/Deal__c/sharingRules/Big.yaml':
    'type: SharingRule\napiName: Big\nobject: Deal__c\nkind: criteria\ncriteria: record.Amount__c > 1000 && !isBlank(record.Code__c)\nto:\n  group: All\naccess: read\n',
  ...fieldFile(
    'Deal__c',
    'Led__c',
    'fieldType: rollup\nrollup:\n  childObject: Deal__c\n  referenceField: Above__c\n  function: count',
  ),
  'objects/Deal__c/sharingRules/Led.yaml':
    'type: SharingRule\napiName: Led\nobject: Deal__c\nkind: criteria\ncriteria: record.Led__c > 2\nto:\n  group: All\naccess: read\n',
  'groups/All.yaml': 'type: Group\napiName: All\nlabel: All\n',
};

describe('metadata: required indexes of a configuration', () => {
  it('are unchanged unless the generation is raised', async () => {
    const plan = makePlan(new Map(), await readProject(FILES, null), {
      platform: false,
      allowDestructiveChanges: false,
      ...acting(),
    });
    assert.deepEqual(plan.blocked, []);
    const lines = wantedIndexes(physicalModel(plan.after))
      .map(({ name, unique, on }) => `${name}${unique ? ' unique' : ''} ${on}`)
      .sort();
    assert.deepEqual(
      { generation: INDEX_GENERATION, lines },
      {
        generation: 4,
        lines: [
          '_confirmations_expiry (expires_at)',
          '_df_1d20383f_name USING gin (erp.fuzzy_text("name") public.gin_trgm_ops, erp.fuzzy_class("name")) WITH (fastupdate = off)',
          '_dn_1d20383f_Code__c ((erp.match_text("Code__c")), id)',
          '_i_1d20383f_Above__c ("Above__c")',
          '_i_1d20383f_Code__c ("Code__c")',
          '_i_1d20383f_createdAt ("createdAt" DESC, id DESC)',
          '_i_1d20383f_ownerId ("ownerId", "createdAt" DESC, id DESC)',
          '_idempotency_expiry (expires_at)',
          `_r_1d20383f_Big ("createdAt" DESC, id DESC) WHERE (("Amount__c" > '1000'::numeric) AND (NOT coalesce(erp.expr_is_white("Code__c"), true)))`,
          `_r_1d20383f_Led ("createdAt" DESC, id DESC) WHERE ("Led__c"::numeric > '2'::numeric)`,
          '_revoked_shares_expiry (kept_until)',
          '_s_1d20383f_name USING gin (erp.search_text("name") public.gin_trgm_ops)',
          '_u_1d20383f_Long__c unique (md5(lower("Long__c")))',
          '_u_1d20383f_Tax__c unique (lower("Tax__c"))',
        ],
      },
      'Tenants that are there get other indexes only when INDEX_GENERATION is raised.',
    );
  });
});
