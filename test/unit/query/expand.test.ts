import assert from 'node:assert/strict';
import { accessFor } from '../../../lib/access/rules.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { relatedObjectsIn } from '../../../lib/query/conditions.ts';
import { constrain } from '../../../lib/query/constrain.ts';
import { continuePlan, sealCursor } from '../../../lib/query/cursor.ts';
import { EXPAND_LIMITS, referencesIn } from '../../../lib/query/expand.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { planGet, planList } from '../../../lib/query/plan.ts';
import { type CompiledList, compileGet, compileList } from '../../../lib/query/sql.ts';
import type { ConstrainedPlan, ListRequest, Plan, RawListQuery } from '../../../lib/query/types.ts';
import type { Seal } from '../../../lib/values/sealed.ts';
import { assertPrompt } from '../../support/processor.ts';
import { aField, anObject, aPrincipal, aProfile, aSnapshot, TENANT_ID, USER_ID } from '../../support/snapshots.ts';

const HOSTILE = `x" FROM pg_authid; --`;
const order = anObject('Order__c', [
  aField('AccountId__c', 'reference', { referenceTo: ['Account'] }),
  aField('ParentId__c', 'reference', { referenceTo: ['Order__c'] }),
  aField('Amount__c', 'decimal', { precision: 10, scale: 2 }),
]);
const account = anObject('Account', [aField('City__c', 'text'), aField(HOSTILE, 'text')], {
  sharingDefault: 'private',
});
const snapshot = aSnapshot([order, account], [aProfile([order, account])]);
const access = accessFor(snapshot, aPrincipal());
const view = { access, snapshot, now: 0, timezone: 'UTC' };
const planned = (raw: RawListQuery): readonly [Plan, ListRequest] => {
  const request = parseListQuery(raw, 'body');
  return [planList(request, order, view), request];
};
const compiled = (raw: RawListQuery): CompiledList => compileList(constrain(planned(raw)[0], access), 't_x');

describe('related objects of a filter', () => {
  it('are those of in_related, each once, even in an invalid filter', () => {
    const related = (objectApiName: unknown) => ({ operator: 'in_related', value: { objectApiName } });
    const conditions = [related('A'), { operator: 'eq', value: { objectApiName: 'B' } }, 7, related(8), related('C')];
    for (const filter of [conditions, { logic: 'or', conditions: [...conditions, related('A')] }])
      assert.deepEqual(relatedObjectsIn(filter), ['A', 'C']);
    for (const filter of [undefined, null, 'x', {}, { conditions: 'in_related' }])
      assert.deepEqual(relatedObjectsIn(filter), []);
  });
});

describe('expand', () => {
  it('has the published limits', () => {
    assert.deepEqual(EXPAND_LIMITS, { expand_max: LIMITS.expand_max, expand_fields_max: LIMITS.expand_fields_max });
  });

  it('means the same as text and as an object', () => {
    const shape = ({ expand }: ListRequest) =>
      expand.map(({ reference, fields }) => [reference, fields.map(({ name }) => name)]);
    const text = 'AccountId__c(name,City__c),ParentId__c(Amount__c)';
    const object = { AccountId__c: ['name', 'City__c'], ParentId__c: ['Amount__c'] };
    assert.deepEqual(shape(parseListQuery({ expand: object }, 'body')), Object.entries(object));
    assert.deepEqual(shape(parseListQuery({ expand: text }, 'body')), Object.entries(object));
    assert.deepEqual(shape(parseListQuery({ expand: text }, 'query')), Object.entries(object));
    for (const nothing of [{}, { expand: null }, { expand: {} }])
      assert.deepEqual(parseListQuery(nothing, 'body').expand, []);
  });

  it('accepts five references of twenty fields', () => {
    const fields = Array.from({ length: 20 }, (_, n) => `f${n}`);
    const names = ['a', 'b', 'c', 'd', 'e'];
    const text = names.map((name) => `${name}(${fields.join()})`).join();
    assert.deepEqual(
      parseListQuery({ expand: text }, 'query').expand.map((one) => one.fields.length),
      [20, 20, 20, 20, 20],
    );
  });

  it('names every problem', () => {
    assert.throws(
      () => planned({ expand: { Nowhere__c: ['name'], AccountId__c: ['Nothing__c', 'name', 'None__c'] } }),
      ({ errors }: { errors: { pointer: string; field: string; message: string }[] }) => {
        assert.deepEqual(
          errors.map(({ pointer, field, message }) => [pointer, field, message]),
          [
            ['/expand/Nowhere__c', 'Nowhere__c', 'There is no field "Nowhere__c".'],
            [
              '/expand/AccountId__c/0',
              'Nothing__c',
              'The records that AccountId__c refers to have no field "Nothing__c".',
            ],
            ['/expand/AccountId__c/2', 'None__c', 'The records that AccountId__c refers to have no field "None__c".'],
          ],
        );
        return true;
      },
    );
  });

  it('is counted before it is checked, up to its limit', () => {
    assert.deepEqual(referencesIn({ expand: 'a(b),c(d,e)' }), ['a', 'c']);
    assert.deepEqual(referencesIn({ expand: { a: ['b'], c: 5 } }), ['a', 'c']);
    assert.equal(referencesIn({ expand: 'a(b),b(b),c(b),d(b),e(b),f(b),g(b)' }).length, 5);
    for (const wrong of [undefined, null, 5, '', 'a', 'a(', ['a'], true])
      assert.deepEqual(referencesIn({ expand: wrong }), []);
  });

  it('counts each reference along which filters and order lead once', () => {
    const conditions = [{ field: 'a.x' }, { field: 'x' }, { field: 5 }, null];
    assert.deepEqual(
      referencesIn({
        expand: 'a(b)',
        where: { 'b.x': 1, x: 2 },
        whereIn: { 'c.x': [1], 'b.y': [1] },
        filters: { conditions },
        sort: [{ id: 'd.x' }, {}],
      }),
      ['a', 'b', 'c', 'd'],
    );
    assert.deepEqual(referencesIn({ orderBy: 'a.b' }), ['a']);
    assert.equal(
      referencesIn({ whereIn: Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`f${n}.x`, [1]])) }).length,
      5,
    );
    for (const wrong of [null, 5, 'a.b', ['a.b'], { conditions: 'a.b' }])
      assert.deepEqual(referencesIn({ where: 'a.b', whereIn: [1], filters: wrong, sort: wrong, orderBy: 5 }), []);
  });

  it('is parsed in bounded time for any text', () => {
    for (const text of ['('.repeat(1_000_000), 'a('.repeat(500_000), 'a(b),'.repeat(200_000), ','.repeat(1_000_000)])
      assertPrompt(text.slice(0, 5), () =>
        assert.throws(() => parseListQuery({ expand: text }, 'body'), { code: 'PARAMETER_INVALID' }),
      );
  });

  it('returns id and the requested fields, in the order of the object', () => {
    const [{ expand }] = planned({ expand: { AccountId__c: ['City__c', 'name', 'City__c'] } });
    assert.deepEqual(
      expand.map(({ fields }) => fields.map(({ apiName }) => apiName)),
      [['id', 'name', 'City__c']],
    );
  });

  it('does not change the statement of a list without it', () => {
    assert.ok(!compiled({}).text.includes('_expanded'));
    assert.equal(compiled({ expand: {} }).text, compiled({}).text);
    const { shown, marker } = compiled({ fields: ['id'], expand: 'AccountId__c(name)' });
    assert.deepEqual([shown, marker], [2, 3]);
  });

  it('reads the reference also when it is not shown', () => {
    const { text } = compiled({ fields: ['name'], expand: 'AccountId__c(name)' });
    assert.match(text, /FROM \(SELECT r\."id", r\."name", .*r\."AccountId__c" FROM "t_x"\."Order__c" r/);
    assert.match(text, /q1\."id" = r\."AccountId__c"/);
  });

  it('applies the sharing of the related object', () => {
    const { text, values } = compiled({ expand: { AccountId__c: ['name'], ParentId__c: ['name'] } });
    assert.match(text, /"Account" q1 WHERE q1\."id" = r\."AccountId__c" AND \(.*q1\."ownerId".*\) IS TRUE\) y\)/);
    assert.match(text, /"Order__c" q2 WHERE q2\."id" = r\."ParentId__c"\) y\) AS "ParentId__c"/);
    assert.ok(values.includes(USER_ID));
    const get = planGet('i', ['id'], order, view, {
      expand: parseListQuery({ expand: 'AccountId__c(id)' }, 'query').expand,
    });
    assert.match(compileGet(constrain(get, access), 't_x').text, /q1\."ownerId".*IS TRUE\) y\)/);
  });

  it('requires a user’s record access to compile', () => {
    const [plan] = planned({ expand: { AccountId__c: ['name'] } });
    const kept = constrain(plan, access);
    // @ts-expect-error what is expanded without record access does not compile
    const open: ConstrainedPlan = { ...kept, expand: plan.expand };
    assert.ok(open);
  });

  it('quotes every identifier', () => {
    const { text } = compiled({ expand: { AccountId__c: [HOSTILE] } });
    assert.ok(text.includes(`q1."x"" FROM pg_authid; --"`));
    assert.ok(!text.includes(HOSTILE));
  });

  it('may differ from page to page', () => {
    const seal: Seal = { keys: [Buffer.alloc(32, 7)], now: 0, tenantId: TENANT_ID, userId: USER_ID, clientId: 'test' };
    const [plan, request] = planned({ expand: 'AccountId__c(name)' });
    const cursor = sealCursor(['2026-11-21 00:00:00+00', 'i'], plan, request, seal);
    const [next, asked] = planned({ cursor });
    assert.deepEqual(continuePlan(next, asked, seal).after, ['2026-11-21 00:00:00+00', 'i']);
  });
});
