/** Cursors that are not the caller's own, unmodified one. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { assertRefused, encoded } from './support.ts';

describe('bad input: cursors', () => {
  const QUERY = '/data/Account?take=3&orderBy=name';
  let platform: TestPlatform;
  const users: Record<string, Api> = {};
  let cursor: string;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    for (const name of ['sam', 'sue', 'ada', 'eve'])
      users[name] = api(platform.baseUrl, await tokenFor(platform.baseUrl, name));
    cursor = (await users['sam']!.get(QUERY)).body.nextCursor;
  });
  after(() => platform?.stop());

  const refused = async (text: string, user = 'sam'): Promise<void> => {
    assertRefused(await users[user]!.get(`${QUERY}&cursor=${encoded(text)}`), `${user}: ${text}`, 'CURSOR_INVALID');
    assertRefused(
      await users[user]!.post('/data/Account/query', { take: 3, orderBy: 'name', cursor: text }),
      `${user}, in a body: ${text}`,
      'CURSOR_INVALID',
    );
  };

  it('of another user or another tenant', async () => {
    for (const user of ['sue', 'ada', 'eve']) await refused(cursor, user);
    assert.equal((await users['sam']!.get(`${QUERY}&cursor=${cursor}`)).status, 200);
  });

  it('with any one character changed, added or missing', async () => {
    for (let i = 0; i < cursor.length; i += 3) {
      await refused(`${cursor.slice(0, i)}${cursor[i] === 'A' ? 'B' : 'A'}${cursor.slice(i + 1)}`);
      await refused(cursor.slice(0, i));
    }
    for (const text of [
      `${cursor}A`,
      `${cursor}=`,
      ` ${cursor}`,
      cursor + cursor,
      cursor.toLowerCase(),
      cursor.slice(1),
    ])
      await refused(text);
  });

  it('that are of another kind', async () => {
    const own = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const others = [
      '',
      ' ',
      '0',
      'null',
      'undefined',
      '%',
      '../..',
      'é',
      'c1.',
      `c1.${'A'.repeat(40)}`,
      'a'.repeat(8_000),
    ];
    for (const text of [...others, own({ id: 1 }), own([1, 'x']), `c1.${own({ take: 1e9 })}`]) await refused(text);
    assertRefused(await users['sam']!.post('/data/Account/query', { cursor: 1 }), 'a number', 'PARAMETER_INVALID');
    assertRefused(await users['sam']!.get(`/data/Account?take=${encoded(cursor)}`), 'as take', 'PARAMETER_INVALID');
  });

  it('of another list', async () => {
    assertRefused(
      await users['ada']!.get(`/metadata/deployments?cursor=${encoded(cursor)}`),
      'of records',
      'CURSOR_INVALID',
    );
    for (const text of [
      '',
      'x',
      'null',
      Buffer.from('[1,"x",null,null]').toString('base64url'),
      Buffer.from('{}').toString('base64url'),
    ])
      assertRefused(await users['ada']!.get(`/metadata/deployments?cursor=${encoded(text)}`), text, 'CURSOR_INVALID');
  });
});
