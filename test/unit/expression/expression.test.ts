import assert from 'node:assert/strict';
import fc from 'fast-check';
import { checkExpression, checkRecordExpression } from '../../../lib/expression/check.ts';
import { BUDGET_UNITS, COST_MAX, evaluate, type Facts } from '../../../lib/expression/evaluate.ts';
import { EvaluationError } from '../../../lib/expression/functions.ts';
import { ExpressionError, type Type, type Value } from '../../../lib/expression/types.ts';
import { valueOfField } from '../../../lib/expression/values.ts';
import type { FieldTypeName } from '../../../lib/schema/snapshot.ts';
import { assertPrompt, processorMs } from '../../support/processor.ts';

const FIELDS: Record<string, FieldTypeName> = {
  name: 'text',
  Amount__c: 'currency',
  Paid__c: 'decimal',
  Count__c: 'integer',
  Share__c: 'percent',
  Active__c: 'boolean',
  Issued__c: 'date',
  Due__c: 'date',
  SentAt__c: 'dateTime',
  At__c: 'time',
  Takes__c: 'duration',
  Status__c: 'picklist',
  Tags__c: 'multiPicklist',
  AccountId__c: 'reference',
  Address__c: 'address',
  Place__c: 'geolocation',
  Data__c: 'json',
  Total__c: 'rollup',
};

const schema = {
  object: 'Invoice__c',
  fieldType: (name: string) => (Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined),
};

type Raw = Record<string, unknown>;

interface Given {
  record?: Raw;
  old?: Raw | null;
  user?: Record<string, Value>;
  permissions?: string[];
  groups?: string[];
  now?: string;
  timezone?: string;
}

function facts({
  record = {},
  old = null,
  user = {},
  permissions = [],
  groups = [],
  now,
  timezone = 'UTC',
}: Given = {}): Facts {
  const read = (raw: Raw) => (name: string) => valueOfField(FIELDS[name]!, raw[name]);
  return {
    record: read(record),
    old: old && read(old),
    isChanged: (name) => JSON.stringify(record[name]) !== JSON.stringify(old?.[name]),
    user,
    hasPermission: (name) => permissions.includes(name),
    inGroup: (name) => groups.includes(name),
    now: Date.parse(now ?? '2026-11-21T12:00:00Z'),
    timezone,
  };
}

const ANY: Type[] = ['boolean', 'number', 'text', 'date', 'dateTime', 'time', 'null', 'list:text', 'list:number'];
const run = (source: string, given?: Given): Value =>
  evaluate(checkExpression(source, schema, ANY), facts(given), () => 0);

/** Line and column (from 1) of a place in a text. */
function lineAndColumn(source: string, { start }: { start: number }): { line: number; column: number } {
  const before = source.slice(0, start).split('\n');
  return { line: before.length, column: before.at(-1)!.length + 1 };
}

function mistakes(source: string): { place: string; message: string; remedy: string | null }[] {
  try {
    checkExpression(source, schema, ['boolean']);
  } catch (error) {
    assert(error instanceof ExpressionError, String(error));
    return error.mistakes.map((mistake) => {
      const { line, column } = lineAndColumn(source, mistake);
      return { place: `${line}:${column}`, message: mistake.message, remedy: mistake.remedy };
    });
  }
  return assert.fail(`Nothing is wrong with ${source}`);
}

function failure(source: string, given?: Given): EvaluationError {
  try {
    run(source, given);
  } catch (error) {
    assert(error instanceof EvaluationError, String(error));
    return error;
  }
  return assert.fail(`${source} was evaluated`);
}

/** Every expression of a table must be true. */
function holds(given: Given, ...sources: string[]): void {
  for (const source of sources) assert.equal(run(source, given), true, source);
}

describe('expressions: evaluation', () => {
  it('decimals of any size are exact', () => {
    holds(
      { record: { Amount__c: '0.30', Paid__c: '12345678901234567890.123456789', Count__c: 9007199254740991 } },
      '0.1 + 0.2 == 0.3',
      'record.Amount__c == 0.3 && record.Amount__c == 0.300',
      'record.Amount__c - 0.1 - 0.2 == 0',
      'record.Paid__c * 10 == 123456789012345678901.23456789',
      'record.Paid__c - 0.000000001 < record.Paid__c',
      'record.Count__c + 1 == 9007199254740992 && record.Count__c + 2 == 9007199254740993',
      '1e3 == 1000 && 1.5e-3 == 0.0015',
      '-record.Amount__c == -0.3 && - -1 == 1',
    );
  });

  it('a quotient has 20 digits after the point, rounded half away from zero', () => {
    holds(
      {},
      '1 / 4 == 0.25 && 7 / 2 == 3.5',
      '2 / 3 == 0.66666666666666666667',
      '-2 / 3 == -0.66666666666666666667',
      '7 % 3 == 1 && -7 % 3 == -1 && 7.5 % 2 == 1.5',
      'round(2.5) == 3 && round(-2.5) == -3 && round(1.005, 2) == 1.01 && round(149, -2) == 100',
      'floor(-1.5) == -2 && ceil(-1.5) == -1 && floor(2) == 2 && abs(-0.1) == 0.1',
      'min(1, 0.5) == 0.5 && max(1, 0.5) == 1',
    );
  });

  it('sums and products are exact (property)', () => {
    const cents = fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n });
    const money = (value: bigint): string => {
      const digits = String(value < 0n ? -value : value).padStart(3, '0');
      return `${value < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
    };
    fc.assert(
      fc.property(cents, cents, (a, b) => {
        const record = { Amount__c: money(a), Paid__c: money(b) };
        const less = a < b;
        assert.equal(run(`record.Amount__c + record.Paid__c == ${money(a + b)}`, { record }), true);
        assert.equal(run(`record.Amount__c * 100 - record.Paid__c * 100 == ${a - b}`, { record }), true);
        assert.equal(run('record.Amount__c < record.Paid__c', { record }), less);
        if (b !== 0n)
          assert.equal(
            run('abs(record.Amount__c - record.Amount__c / record.Paid__c * record.Paid__c) < 0.0001', { record }),
            true,
          );
      }),
      { numRuns: 200 },
    );
  });

  it('null: equal to null only, in no order, never a crash', () => {
    holds(
      {},
      'record.Amount__c == null && !(record.Amount__c != null)',
      'record.Amount__c == record.Paid__c',
      'record.Amount__c != 0 && !(record.Amount__c == 0)',
      '!(record.Amount__c < 0) && !(record.Amount__c >= 0) && !(0 < record.Amount__c)',
      'record.Amount__c + 1 == null && -record.Amount__c == null && record.Amount__c / 0 == null',
      'abs(record.Amount__c) == null && max(record.Amount__c, 1) == null',
      'record.name + "x" == null && record.name.size() == null',
      '!record.name.contains("") && !record.name.startsWith("a") && !record.name.matches("a*")',
      '!(record.name in ["a"]) && !("a" in record.Tags__c) && record.Tags__c == null',
      '!record.Tags__c.exists(t, t == "x") && record.Tags__c.all(t, t == "x")',
      '!record.Active__c && !(record.Active__c && true) && (record.Active__c || true)',
      'record.Active__c != false && (record.Active__c ? 1 : 2) == 2',
      'daysBetween(record.Issued__c, record.Due__c) == null && addDays(record.Due__c, 1) == null',
      'year(record.Due__c) == null && date(record.SentAt__c) == null',
      'record.Address__c.city == null && record.Place__c.latitude == null',
      'coalesce(record.Amount__c, 5) == 5 && coalesce(record.Amount__c, record.Paid__c) == null',
      'isBlank(record.Amount__c) && isBlank(record.Data__c) && isBlank(record.Takes__c)',
      'null == null && (true ? null : 1) == null',
    );
  });

  it('blank: nothing, white space, the empty list', () => {
    holds(
      { record: { name: ' \t\u00a0', Tags__c: [], Data__c: '{}' } },
      'isBlank(record.name) && record.name != null && isBlank("")',
      'isBlank(record.Tags__c) && record.Tags__c != null && record.Tags__c.size() == 0',
      '!isBlank(record.Data__c) && !isBlank("x") && !isBlank(0) && !isBlank(false)',
    );
  });

  it('texts: by character, case-sensitive, in the order of code points', () => {
    holds(
      { record: { name: 'Müller 🙂 GmbH', Status__c: 'sent', AccountId__c: '0193a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b' } },
      'record.name.contains("🙂") && record.name.startsWith("Mü") && record.name.endsWith("GmbH")',
      'size(record.name) == 13 && record.name.substring(7, 8) == "🙂" && record.name.substring(9) == "GmbH"',
      'record.name.substring(-5, 2) == "Mü" && record.name.substring(5, 2) == ""',
      'record.name.upper().startsWith("MÜLLER") && record.name.lower().endsWith("gmbh")',
      '" a ".trim() == "a" && "a-b-c".replace("-", "") == "abc" && "abc".replace("", "x") == "abc"',
      '"a" != "A" && "B" < "a" && "\\uFB01" < "🙂" && "a" < "ab"',
      'record.Status__c in ["draft", "sent"] && !(record.Status__c in [])',
      '"INV-001".matches("INV-[0-9]{3}") && !"INV-1".matches("INV-[0-9]{3}")',
      '"a" + "b" == "ab" && "u\\u0308" == "ü"',
      'record.AccountId__c == "0193a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"',
    );
  });

  it('dates, moments and times of day', () => {
    holds(
      {
        record: {
          Issued__c: '2024-02-29',
          Due__c: '2026-01-31',
          SentAt__c: '2026-11-21T23:30:00+00:00',
          At__c: '09:30:00',
        },
        now: '2026-11-21T23:30:00Z',
        timezone: 'Europe/Berlin',
      },
      'record.Issued__c < record.Due__c && record.Due__c == date("2026-01-31")',
      'today == date("2026-11-22") && date(now) == today && date(record.SentAt__c) == today',
      'addMonths(record.Due__c, 1) == date("2026-02-28") && addMonths(record.Issued__c, -12) == date("2023-02-28")',
      'addDays(record.Issued__c, 1) == date("2024-03-01") && addDays(record.Issued__c, -29) == date("2024-01-31")',
      'daysBetween(record.Issued__c, date("2024-03-01")) == 1 && daysBetween(today, today) == 0',
      'year(record.Due__c) == 2026 && month(record.Due__c) == 1 && day(record.Due__c) == 31',
      'weekday(date("2026-11-22")) == 7 && weekday(date("1969-12-29")) == 1 && weekday(date("0001-01-01")) == 1',
      'record.SentAt__c == dateTime("2026-11-22T00:30:00+01:00") && record.SentAt__c == now',
      'addDays(record.SentAt__c, 1) > now && now >= record.SentAt__c',
      'record.At__c == time("09:30") && record.At__c < time("09:30:00.5")',
    );
  });

  it('lists: exists, all, filter, also one within another', () => {
    holds(
      { record: { Tags__c: ['x', 'y'] }, user: { permissionSetApiNames: ['Billing'] } },
      '"x" in record.Tags__c && !("z" in record.Tags__c) && size(record.Tags__c) == 2',
      'record.Tags__c.exists(t, t == "y") && !record.Tags__c.all(t, t == "y")',
      'record.Tags__c.filter(t, t != "x").all(t, t == "y")',
      'record.Tags__c.all(t, ["x", "y"].exists(u, u == t))',
      '[1, 2.0, 3].filter(n, n > 1).size() == 2 && 2 in [1, 2.00]',
      '"Billing" in user.permissionSetApiNames',
    );
  });

  it('parts of addresses and places', () => {
    const parts = {
      Address__c: '{"street":null,"city":"Köln","state":null,"postalCode":"50667","country":"DE"}',
      Place__c: '{"latitude":52.520008,"longitude":-0.1}',
    };
    for (const record of [parts, { Address__c: JSON.parse(parts.Address__c), Place__c: JSON.parse(parts.Place__c) }])
      holds(
        { record },
        'record.Address__c.city == "Köln" && record.Address__c.street == null && record.Address__c != null',
        'record.Place__c.latitude > 52.52 && record.Place__c.longitude == -0.1',
      );
  });

  it('old: null on create; isChanged reports changes of an update', () => {
    const onCreate = { record: { Amount__c: '1' }, old: null };
    holds(onCreate, 'old == null', 'old.Amount__c == null', '!isChanged(record.Amount__c)');
    const onUpdate = { record: { Amount__c: '2', name: 'a' }, old: { Amount__c: '1', name: 'a' } };
    holds(onUpdate, 'old != null', 'record.Amount__c > old.Amount__c');
    holds(onUpdate, 'isChanged(record.Amount__c) && !isChanged(record.name)');
  });

  it('groups', () => {
    holds({ groups: ['Finance'] }, 'inGroup("Finance") && !inGroup("Sales")');
  });

  it('user and permissions', () => {
    const given = { user: { profileApiName: 'Sales', roleApiName: null }, permissions: ['manageUsers'] };
    holds(given, 'user.profileApiName == "Sales" && user.roleApiName == null && user.username == null');
    holds(given, 'hasPermission("manageUsers") && !hasPermission("modifyAllData")');
  });

  it('logical operators short-circuit', () => {
    holds({ record: { Count__c: 0 } }, 'record.Count__c == 0 || 1 / record.Count__c > 0');
    holds({ record: { Count__c: 0 } }, '!(record.Count__c != 0 && 1 / record.Count__c > 0)');
    holds({ record: { Count__c: 0 } }, '(record.Count__c == 0 ? 0 : 1 / record.Count__c) == 0');
  });
});

describe('expressions: runtime errors', () => {
  it('a failure, unless the other side decides', () => {
    holds(
      {},
      '!(false && 1 / 0 > 0) && !(1 / 0 > 0 && false)',
      '(true || 1 / 0 > 0) && (1 / 0 > 0 || true)',
      '[0, 1].exists(n, 1 / n > 0) && ![0, 1].all(n, 1 / n > 2)',
      'isBlank(record.Amount__c + 1 / 0) && !(1 / 0 < record.Amount__c) && !(1 / 0 in [record.Amount__c].filter(n, false) && false)',
      '(true ? 1 : 1 / 0) == 1 && coalesce(1, 1 / 0) == 1',
    );
    for (const source of [
      '1 / 0 > 0 && true',
      '1 / 0 > 0 || false',
      '!(1 / 0 > 0)',
      'isBlank(1 / 0)',
      '1 / 0 == null',
      'coalesce(null, 1 / 0) == 1',
      '[0, 1].all(n, 1 / n > 0)',
      '[0, 1].exists(n, 1 / n > 2)',
      'size([0, 1].filter(n, 1 / n > 0)) == 1',
      '(1 / 0 > 0 ? 1 : 2) == 2',
    ])
      assert.equal(failure(source).reason, 'DIVISION_BY_ZERO', source);
  });

  it('expressions that a record could make too expensive without a budget', () => {
    const refused = (source: string): string => {
      try {
        checkRecordExpression(source, schema, ['boolean']);
      } catch (error) {
        assert(error instanceof ExpressionError, String(error));
        return error.mistakes[0]!.message;
      }
      return '';
    };
    assert.equal(refused('record.Tags__c.exists(t, t.startsWith("a") && record.Status__c != t)'), '');
    assert.equal(refused('record.Status__c.lower() + record.Status__c.upper() == "aA"'), '');
    assert.equal(refused('record.Status__c.contains("a") && record.name.contains("Ltd")'), '');
    assert.match(refused('record.Tags__c.exists(a, record.Tags__c.all(b, a <= b))'), /can cost \d{6,} units/);
    assert.match(refused(`record.name${'.upper()'.repeat(120)} == "A"`), /can cost \d+ units/);
    assert.match(refused('record.name.upper().lower() == "a"'), /can cost \d+ units/);
    assert.match(refused('record.name.contains(record.name.trim())'), /can cost \d+ units/);
    assert.match(refused('record.name.replace(record.name, "b") == "b"'), /can cost \d+ units/);
    assert.equal(refused('record.Status__c.matches("[A-Z]{2}-\\\\d{4,6}")'), '');
    assert.match(refused('record.name.matches("(a?){400}")'), /can cost \d+ units/);
    assert.match(refused('user.id == record.name'), /user has no meaning here/);
  });

  it('division by zero', () => {
    for (const source of ['1 / record.Count__c > 0', '1 % 0 == 0', '1 / (0.1 + 0.2 - 0.3) > 1'])
      assert.equal(failure(source, { record: { Count__c: 0 } }).reason, 'DIVISION_BY_ZERO', source);
  });

  it('values beyond any field’s range', () => {
    const square = (times: number): string =>
      times === 0 ? 'record.Paid__c' : `(${square(times - 1)} * ${square(times - 1)})`;
    const record = { Paid__c: '12345678901234567890.123', name: 'x'.repeat(131_072) };
    for (const source of [
      `${square(5)} > 0`,
      'addDays(date("9999-12-31"), 1) > today',
      'addDays(today, 1000000000) > today',
      'addDays(today, 0.5) > today',
      'addMonths(date("0001-01-31"), -1) > today',
      'addDays(dateTime("9999-12-31T23:00:00Z"), 1) > now',
      'round(1.5, 1000) > 0',
      'record.name + record.name == ""',
      'record.name.replace("x", "xxxxxxxxxxxxxxxxxxxxxxxxxxx") == ""',
    ])
      assert.equal(failure(source, { record }).reason, 'VALUE_OUT_OF_RANGE', source);
  });

  it('expressions built to run forever', () => {
    const digits = '[0,1,2,3,4,5,6,7,8,9]';
    const nested = (depth: number): string => (depth === 0 ? 'true' : `${digits}.all(v${depth}, ${nested(depth - 1)})`);
    const record = { name: 'a'.repeat(100_000), Tags__c: Array.from({ length: 200 }, (_, i) => `tag ${i}`) };
    for (const source of [
      nested(9),
      'record.Tags__c.all(a, record.Tags__c.all(b, a != "" && b != ""))',
      'record.name.matches("(a{30}|b{30})*c")',
      `${Array.from({ length: 60 }, () => 'record.name.upper().lower().trim() == ""').join(' || ')} || record.Tags__c.all(t, record.name.upper() != "")`,
    ]) {
      const took = processorMs(() =>
        assert.equal(failure(source, { record }).reason, 'COST_EXCEEDED', source.slice(0, 60)),
      );
      assert(took < 1_000, source.slice(0, 60));
    }
    assert.equal(COST_MAX, 10_000);
  });

  it('the least work at the highest price', () => {
    // The most work per cost unit: numbers with many trailing zeros, days of moments, texts that grow.
    const record = {
      Paid__c: `0.${'5'.repeat(30)}`,
      name: 'ΐ'.repeat(100_000),
      Tags__c: Array.from({ length: 200 }, (_, i) => `t${i}`),
    };
    const zeros = `(0.${String(2n ** 300n).padStart(100, '0')} * 0.${String(5n ** 130n).padStart(99, '0')})`;
    for (const body of [`${zeros} > 0`, 'date(now) == today', 'record.name.upper() != ""', 'record.name.size() > 0'])
      assertPrompt(body, () => {
        const source = `record.Tags__c.all(a, record.Tags__c.all(b, ${body}))`;
        const budget = { units: BUDGET_UNITS };
        for (let i = 0; i < 11; i++)
          try {
            evaluate(checkExpression(source, schema, ['boolean']), { ...facts({ record }), budget }, () => 0);
          } catch (error) {
            assert(error instanceof EvaluationError, String(error));
            assert.equal(error.reason, 'COST_EXCEEDED', body);
          }
        assert(budget.units < BUDGET_UNITS / 2, body);
      });
  });

  it('several expressions whose total cost is too high', () => {
    const costly = checkExpression('record.Tags__c.all(a, record.Tags__c.all(b, a != "" && b != ""))', schema, [
      'boolean',
    ]);
    const record = { Tags__c: Array.from({ length: 35 }, (_, i) => `tag ${i}`) };
    const together = { ...facts({ record }), budget: { units: BUDGET_UNITS } };
    let done = 0;
    const began = process.threadCpuUsage().user;
    assert.throws(
      () => {
        for (; done < 100; done++)
          assert.equal(
            evaluate(costly, together, () => 0),
            true,
          );
      },
      (error: unknown) => error instanceof EvaluationError && error.reason === 'COST_EXCEEDED',
    );
    assert.ok(done >= 10 && done < 20, `${done} of them were evaluated`);
    assert.ok(process.threadCpuUsage().user - began < 1_000_000);
    assert.equal(evaluate(costly, facts({ record })), true, 'alone it may cost that much');
    const formula = checkExpression('record.Amount__c > 1 || true', schema, ['boolean']);
    const stopped = { ...together, record: () => evaluate(costly, together) };
    assert.throws(() => evaluate(formula, stopped), { reason: 'COST_EXCEEDED' });
  });

  it('the time limit of 50 ms', () => {
    let time = 0;
    const slow = checkExpression('record.Tags__c.all(t, t != "")', schema, ['boolean']);
    const record = { Tags__c: Array.from({ length: 200 }, (_, i) => `tag ${i}`) };
    assert.throws(
      () => evaluate(slow, facts({ record }), () => (time += 30)),
      (error: unknown) => error instanceof EvaluationError && error.reason === 'TIME_EXCEEDED',
    );
  });
});

describe('expressions: compile errors', () => {
  it('have a position and a remedy', () => {
    const table: [source: string, place: string, message: RegExp, remedy?: RegExp][] = [
      ['record.Amount__c = 0', '1:18', /not well-formed/, /==/],
      ['record.Amount__c <= ', '1:20', /not well-formed/],
      ['true &&\n  (record.Amount__c > 0', '2:24', /not well-formed/],
      ['"open', '1:1', /not well-formed/],
      ['(true', '1:6', /Expected `\)`, got the end\.$/],
      ['', '1:1', /not well-formed/],
      ['😀', '1:1', /Unexpected character: 😀\.$/],
      ['record.Amout__c > 0', '1:8', /no field Amout__c on Invoice__c/],
      ['record.Amount > 0', '1:8', /no field Amount /, /Write Amount__c/],
      ['Amount__c > 0', '1:1', /no variable Amount__c/, /Write record\.Amount__c/],
      ['record.constructor == null', '1:8', /no field constructor/],
      ['record.Total__c > 0', '1:8', /type rollup/],
      ['record.AccountId__c.name == "x"', '1:21', /text has no name/, /cannot be read/],
      ['record.Amount__c', '1:1', /gives number where boolean is needed/],
      ['record.Amount__c > "0"', '1:1', /number and text cannot be compared/],
      ['record.Due__c < "2026-01-31"', '1:1', /cannot be compared/, /date\("…"\)/],
      ['record.Due__c < now', '1:1', /cannot be compared/, /date\(…\)/],
      ['record.Due__c + 14 > today', '1:1', /cannot be added/, /addDays/],
      ['record.Amount__c < null', '1:1', /cannot be compared/, /isBlank/],
      ['record.Tags__c == ["x"]', '1:1', /cannot be compared/, /`in`/],
      ['record.Data__c == "x"', '1:1', /opaque and text/],
      ['record.name && true', '1:1', /text where true or false/],
      ['true ? 1 : "a"', '1:1', /choice is between number and text/],
      ['date("2026-02-30") > today', '1:6', /no day of the calendar/],
      ['date(record.name) > today', '1:6', /in quotes/],
      ['record.name.matches("(")', '1:21', /./],
      ['record.name.matches(record.name)', '1:21', /in quotes/],
      ['hasPermission("fly")', '1:15', /system permission/, /manageUsers/],
      ['inGroup(record.name)', '1:9', /apiName of a group in quotes/],
      ['inGroup("Sales", "Finance")', '1:9', /apiName of a group in quotes/],
      ['inGroup()', '1:1', /apiName of a group in quotes/],
      ['isChanged("Amount__c")', '1:1', /isChanged\(record\.name\)/],
      ['isChanged(old.Amount__c)', '1:1', /isChanged/],
      ['fetch("http://x") == null', '1:1', /no function fetch/],
      ['constructor("x") == null', '1:1', /no function constructor/],
      ['record.name.constructor("x") == null', '1:1', /no function \.constructor/],
      ['multiply(1, 2) == 2', '1:1', /no function multiply/],
      ['record.name.abs() == 1', '1:1', /no function \.abs/],
      ['contains(record.name, "x")', '1:1', /called on a value/],
      ['record["name"] == "x"', '1:1', /position or name/],
      ['{"a": 1} == null', '1:1', /no maps/],
      ['[1, "a"].size() == 2', '1:5', /list of number takes no text/],
      ['[null].size() == 1', '1:2', /holds no null/],
      ['record.name.exists(c, c == "x")', '1:1', /through a list/],
      ['record.Tags__c.exists("t", true)', '1:23', /not well-formed/],
      ['0x10 == 16', '1:1', /decimal digits/],
      ['5u == 5', '1:1', /decimal digits/],
      ['b"x" == null', '1:1', /decimal digits/],
      ['record == null', '1:1', /never null/],
      ['user.password == ""', '1:6', /user has no password/, /displayName/],
      ['record.name.size(1) == 1', '1:1', /takes \(text\) or \(list\), not \(text, number\)/],
    ];
    for (const [source, place, message, remedy] of table) {
      const [first] = mistakes(source);
      assert.match(first!.message, message, source);
      assert.equal(first!.place, place, `${source}: ${first!.message}`);
      if (remedy) assert.match(first!.remedy ?? '', remedy, source);
    }
  });

  it('are all reported, each once', () => {
    const found = mistakes('record.Amout__c > 0 &&\nrecord.Due__c < "x" ||\n  nobody');
    assert.deepEqual(
      found.map((mistake) => mistake.place),
      ['1:8', '2:1', '3:3'],
    );
  });

  it('are reported for arbitrary input', () => {
    for (const source of [
      '!'.repeat(3_999),
      '-'.repeat(3_999),
      '('.repeat(3_999),
      '['.repeat(3_999),
      `${'record.name'}${'.trim()'.repeat(400)} == ""`,
      Array.from({ length: 900 }, () => 'true').join('||'),
      'x'.repeat(5_000),
      `[${'1,'.repeat(1_500)}1].size() > 0`,
      `${'true?'.repeat(400)}true${':true'.repeat(400)}`,
    ]) {
      const took = processorMs(() => assert(mistakes(source).length > 0, source.slice(0, 20)));
      assert(took < 1_000, source.slice(0, 20));
    }
  });

  it('are the only exceptions thrown (property)', () => {
    const words = ['record', '.', 'name', 'Amount__c', '(', ')', '[', ']', '"a"', '1', '+', '==', '<', '&&', '!', 'in'];
    const more = [
      'old',
      'user',
      'today',
      'null',
      'true',
      '?',
      ':',
      ',',
      'size',
      'exists',
      't',
      '-',
      '/',
      'isChanged',
      ' ',
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...words, ...more), { maxLength: 25 }), (parts) => {
        let expression: ReturnType<typeof checkExpression>;
        try {
          expression = checkExpression(parts.join(''), schema, ANY);
        } catch (error) {
          assert(error instanceof ExpressionError, String(error));
          assert(error.mistakes.length > 0);
          return;
        }
        try {
          evaluate(expression, facts());
        } catch (error) {
          assert(error instanceof EvaluationError, String(error));
        }
      }),
      { numRuns: 3_000 },
    );
  });
});
