/** The table "Who sees what" in the README of the ERP template, compared with the running platform. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Api, api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

interface Row {
  readonly object: string;
  /** Numbers of records, by column heading; null: no permission for the object. */
  readonly seen: Readonly<Record<string, number | null>>;
}

/** Rows of the table whose first column is headed `Records`. */
function readTable(): { people: string[]; rows: Row[] } {
  const readme = readFileSync(join(import.meta.dirname, '../../templates/erp/README.md'), 'utf8');
  const lines = readme.split('\n');
  const head = lines.findIndex((line) => /^\| Records /.test(line));
  assert.ok(head > 0, 'the README has the table');
  const cells = (line: string): string[] =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
  const people = cells(lines[head]!).slice(1);
  const rows: Row[] = [];
  for (let at = head + 2; lines[at]?.startsWith('|'); at++) {
    const [name, ...numbers] = cells(lines[at]!);
    rows.push({
      object: name!.replaceAll('`', ''),
      seen: Object.fromEntries(
        people.map((person, i) => [person, numbers[i] === '–' ? null : Number(numbers[i]!.replaceAll(',', ''))]),
      ),
    });
  }
  return { people, rows };
}

describe('record visibility in the demo tenant', () => {
  let platform: TestPlatform;
  const sessions = new Map<string, Api>();
  const { people, rows } = readTable();

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    for (const person of people)
      sessions.set(person, api(platform.baseUrl, await tokenFor(platform.baseUrl, person.toLowerCase())));
  });

  after(() => platform.stop());

  const total = async (person: string, object: string): Promise<number | null> => {
    const { status, body, text } = await sessions.get(person)!.get(`/data/${object}?take=1&includeTotal=true`);
    if (status === 404 && body.code === 'OBJECT_NOT_FOUND') return null;
    assert.equal(status, 200, text);
    return body.total;
  };

  it('equals the numbers of the README', async () => {
    const actual: Row[] = [];
    for (const { object } of rows) {
      const seen: Record<string, number | null> = {};
      for (const person of people) seen[person] = await total(person, object);
      actual.push({ object, seen });
    }
    assert.deepEqual(actual, rows);
  });

  it('includes the records of a list, and no others', async () => {
    const [sam, mia] = [sessions.get('Sam')!, sessions.get('Mia')!];
    const mine = new Set(
      (await sam.get('/data/Invoice__c?take=200')).body.records.map((record: { id: string }) => record.id),
    );
    const { records } = (await mia.get('/data/Invoice__c?take=200')).body;
    const hidden = records.filter((record: { id: string; ownerId: string }) => !mine.has(record.id)).slice(0, 5);
    assert.ok(hidden.length > 0);
    const { userId } = (await sam.get('/identity')).body.user;
    for (const record of hidden)
      if (record.ownerId !== userId) assert.equal((await sam.get(`/data/Invoice__c/${record.id}`)).status, 404);
    for (const id of [...mine].slice(0, 5)) assert.equal((await sam.get(`/data/Invoice__c/${id}`)).status, 200);
  });

  it('includes the changes of every object', async () => {
    for (const person of people)
      for (const { apiName } of (await sessions.get(person)!.get('/objects')).body.records) {
        const { status, text } = await sessions.get(person)!.get(`/data/${apiName}/changes`);
        assert.equal(status, 200, `${person} ${apiName}: ${text}`);
      }
  });
});
