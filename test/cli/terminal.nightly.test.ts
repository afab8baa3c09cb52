/** `erp` on a terminal: tables that fit, colours, questions. The terminal is one of `script` (util-linux). */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import stringWidth from 'string-width';
import { api, tokenFor } from '../support/client.ts';
import { erpOf, PROGRAM, userEnvironment } from '../support/erp.ts';
import { interfere } from '../support/interference.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const COLUMNS = 60;

describe('erp on a terminal', () => {
  let platform: TestPlatform;
  let env: Record<string, string>;
  before(async () => {
    platform = await startPlatform();
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    env = userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl, TERM: 'xterm-256color' });
  });
  after(() => platform.stop());

  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

  /** The visible output; `answers` are typed when the question with that text appears. */
  const onTerminal = (
    args: string[],
    { answers = {}, more = {} }: { answers?: Record<string, string>; more?: Record<string, string> } = {},
  ): Promise<{ code: number | null; screen: string }> => {
    const command = ['stty', 'cols', COLUMNS, '&&', process.execPath, PROGRAM, ...args.map(quoted)].join(' ');
    const child = spawn('script', ['-qec', command, '/dev/null'], { env: { ...env, ...more } });
    const open = new Map(Object.entries(answers));
    let screen = '';
    child.stdout.on('data', (chunk: Buffer) => {
      screen += chunk;
      for (const [question, answer] of open)
        if (screen.includes(question)) {
          open.delete(question);
          child.stdin.write(`${answer}\n`);
        }
    });
    return new Promise((resolve) => {
      child.once('close', (code) => resolve({ code, screen: screen.replaceAll('\r\n', '\n') }));
    });
  };

  const create = async (...assignments: string[]): Promise<string> =>
    (await erpOf(env)(['data', 'create', 'Account', ...assignments])).stdout.trim();

  it('shows tables that fit its width, in East Asian scripts too', async () => {
    await create('name=株式会社東京トレーディングカンパニー', 'city=Kyoto');
    await create('name=\u001b[2JClears your screen\nand more', 'city=Kyoto');
    const list = ['data', 'list', 'Account', '--where', 'city=Kyoto', '--sort', 'name'];
    const { code, screen } = await onTerminal([...list, '--fields', 'name,city,id']);
    assert.equal(code, 0, screen);
    const lines = stripVTControlCharacters(screen).trim().split('\n');
    const everything = stripVTControlCharacters((await onTerminal(list)).screen)
      .trim()
      .split('\n');
    for (const line of everything.filter((text) => !text.startsWith('No room for: ')))
      assert.ok(stringWidth(line) <= COLUMNS, line);
    for (const line of lines) assert.ok(stringWidth(line) <= COLUMNS, line);
    assert.ok(screen.includes('\u001b[1mname'));
    assert.equal(screen.includes('\u001b[2J'), false);
    const [head = '', ...rows] = lines;
    const at = head.indexOf('city');
    for (const row of rows) {
      const before = row.slice(0, row.indexOf('Kyoto'));
      assert.equal(stringWidth(before), at, row);
    }
  });

  it('uses no colours where they are disabled', async () => {
    const plain = await onTerminal(['objects', 'list'], { more: { NO_COLOR: '1' } });
    assert.match(plain.screen, /Object +Label/);
    assert.equal(plain.screen, stripVTControlCharacters(plain.screen));
    const { screen } = await onTerminal(['objects', 'list', '--no-color']);
    assert.equal(screen, stripVTControlCharacters(screen));
  });

  it('shows the matches of a duplicate rule, and asks', async () => {
    const original = await create('name=Duplicated Ltd', 'city=Trier');
    const args = ['data', 'create', 'Account', 'name=Duplicated Ltd', 'city=Trier'];
    const piped = await erpOf(env)(args);
    assert.equal(piped.code, 5);
    assert.match(piped.stderr, new RegExp(`Account ${original}  Duplicated Ltd  100 %`));
    const token = /--confirm-duplicates (\S+)/.exec(piped.stderr)?.[1] ?? '';
    assert.equal((await erpOf(env)([...args, '--confirm-duplicates', token])).code, 0);
    const { code, screen } = await onTerminal(args, { answers: { 'Store it all the same? [y/N]': 'y' } });
    assert.equal(code, 0, screen);
    assert.match(stripVTControlCharacters(screen), /Created Account [0-9a-f-]{36} Duplicated Ltd/);
    const no = await onTerminal(args, { answers: { 'Store it all the same? [y/N]': 'n' } });
    assert.equal(no.code, 5);
    assert.match(stripVTControlCharacters(no.screen), /\n(Error: )?Nothing was stored\.\n$/);
    assert.doesNotMatch(no.screen, /--confirm-duplicates/);
  });

  it('applies a change to the current record after confirmation, when the other change touched other fields', async () => {
    const id = await create('name=Reconciled', 'city=Start');
    let done = false;
    const proxy = await interfere(platform.baseUrl, {
      first: async (method) => {
        if (method !== 'PATCH' || done) return;
        done = true;
        const other = api(platform.baseUrl, env['ERP_TOKEN']);
        const etag = (await other.get(`/data/Account/${id}`)).headers.get('etag') ?? '';
        await other.patch(`/data/Account/${id}`, { creditLimit: 7 }, { etag });
      },
    });
    const { code, screen } = await onTerminal(['data', 'update', 'Account', id, 'city=Mine'], {
      answers: { 'as it is now? [y/N]': 'y' },
      more: { ERP_BASE_URL: proxy.url },
    });
    proxy.close();
    assert.equal(code, 0, screen);
    assert.match(stripVTControlCharacters(screen), /Nothing was written\.[\s\S]*creditLimit[\s\S]*Changed Account/);
    const { stdout } = await erpOf(env)(['data', 'get', 'Account', id, '--fields', 'city,creditLimit']);
    assert.match(stdout, /^city\tMine$/m);
    assert.match(stdout, /^creditLimit\t7(\.00)?$/m);
  });

  it('asks a person before it deletes, but not a program', async () => {
    const id = await create('name=Asked About', 'city=Ulm');
    const no = await onTerminal(['data', 'delete', 'Account', id], { answers: { '[y/N]': 'n' } });
    assert.match(no.screen, /Delete Account Asked About\? \[y\/N\]/);
    assert.match(no.screen, /Nothing was deleted/);
    const yes = await onTerminal(['data', 'delete', 'Account', id], { answers: { '[y/N]': 'y' } });
    assert.equal(yes.code, 0, yes.screen);
    assert.match(yes.screen, /can be restored until/);
  });
});
