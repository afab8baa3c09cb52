import assert from 'node:assert/strict';
import type { State } from '../../../services/metadata/kinds/component.ts';
import { longWork } from '../../../services/metadata/planner/long-work.ts';
import { makePlan } from '../../../services/metadata/planner/plan.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { destructiveManifest, fieldFile, objectFiles } from '../../support/metadata-tenant.ts';

type Files = Record<string, string>;

const planned = async (before: State, files: Files, allowDestructiveChanges = false) =>
  makePlan(before, await readProject(files, null, { template: true }), { platform: true, allowDestructiveChanges });

describe('record work of a deployment that blocks writers', () => {
  const GROUND: Files = {
    ...objectFiles('Order__c', { Code__c: 'fieldType: text' }),
    ...objectFiles('Line__c', {
      Order__c: 'fieldType: masterDetail\nreferenceTo: [Order__c]',
      Price__c: 'fieldType: decimal\nprecision: 12\nscale: 2',
      Land__c: 'fieldType: text',
    }),
  };
  let ground: State;
  before(async () => {
    ground = (await planned(new Map(), GROUND)).after;
  });
  const work = async (files: Files): Promise<Record<string, string[]>> =>
    Object.fromEntries(longWork(await planned(ground, files), ground));

  it('is none for fields, rules and indexes', async () => {
    assert.deepEqual(
      await work({
        ...objectFiles('New__c', { Number__c: 'fieldType: autoNumber\nformat: "N-{0}"' }),
        ...fieldFile('Line__c', 'Kind__c', 'fieldType: text\nrequired: true\ndefaultValue: plain'),
        ...fieldFile('Line__c', 'Land__c', 'fieldType: text\nunique: true'),
        ...fieldFile('Line__c', 'Price__c', 'fieldType: decimal\nprecision: 14\nscale: 2'),
      }),
      {},
    );
  });

  it('covers numbering, filling, rewriting, checking and computing', async () => {
    assert.deepEqual(
      await work({
        ...fieldFile('Line__c', 'Number__c', 'fieldType: autoNumber\nformat: "L-{0}"'),
        ...fieldFile('Line__c', 'Price__c', 'fieldType: decimal\nprecision: 16\nscale: 4'),
        ...fieldFile('Line__c', 'Land__c', 'fieldType: text\nrequired: true\ndefaultValue: none'),
        ...fieldFile('Order__c', 'Code__c', 'fieldType: text\nrequired: true'),
        ...fieldFile(
          'Order__c',
          'Total__c',
          'fieldType: rollup\nrollup:\n  childObject: Line__c\n  referenceField: Order__c\n  function: sum\n  field: Price__c',
        ),
      }),
      {
        Line__c: [
          'Land__c is filled where it is blank',
          'records are numbered for Number__c',
          'the values of Price__c are rewritten',
          'Order__c.Total__c is computed from all of them',
        ],
        Order__c: ['records are checked for Order__c.Code__c'],
      },
    );
  });

  it('covers rewriting values that may be lost', async () => {
    const files = {
      ...fieldFile('Line__c', 'Land__c', 'fieldType: text\nlength: 20'),
      ...destructiveManifest({}, { CustomField: ['Line__c.Land__c'] }),
    };
    const found = longWork(await planned(ground, files, true), ground);
    assert.deepEqual(found.get('Line__c'), ['the values of Land__c are rewritten']);
  });
});
