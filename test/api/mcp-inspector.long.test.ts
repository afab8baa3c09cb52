/** The endpoint for assistants, by the command line of the MCP inspector, which authors of clients use. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'mocha';
import { DOCUMENT_TOOLS } from '../../contracts/mcp.ts';
import { OPERATION_RESOURCES, OPERATION_TOOLS } from '../../contracts/mcp-offers.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { assistantTokens, thingsToRead, toolArguments } from '../support/mcp.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { tool } from '../support/tools.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what answers hold, they need no types for it
type Anything = any;

const INSPECTOR = tool('.bin', 'mcp-inspector');
const DOCUMENTS = 'erp://docs/latest';
const TOOLS = [...OPERATION_TOOLS.map(({ name }) => name), ...Object.keys(DOCUMENT_TOOLS)];

describe('the MCP inspector', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let token: string;
  let home: string;

  /** One run of the program: its exit code and output. */
  const run = async (
    args: readonly string[],
    bearer = token,
  ): Promise<{ exit: number | null; out: string; err: string }> => {
    const given = ['--cli', `${platform.baseUrl}/mcp`, '--transport', 'http', '--stored-auth-only', '--format', 'json'];
    const program = spawn(
      process.execPath,
      [INSPECTOR, ...given, '--header', `Authorization: Bearer ${bearer}`, ...args],
      { env: { PATH: process.env['PATH'], HOME: home }, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    const written = { out: '', err: '' };
    program.stdout.on('data', (data: Buffer) => (written.out += data));
    program.stderr.on('data', (data: Buffer) => (written.err += data));
    const exit = await new Promise<number | null>((resolve, reject) => {
      program.on('error', reject);
      program.on('close', resolve);
    });
    return { exit, ...written };
  };

  const inspect = async (...args: string[]): Promise<Anything> => {
    const { exit, out, err } = await run(args);
    assert.equal(exit, 0, err);
    return JSON.parse(out).result;
  };

  before(async function () {
    this.timeout(600_000);
    platform = await startPlatform();
    home = await mkdtemp(join(tmpdir(), 'mcp-inspector-'));
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    token = (await assistantTokens(platform.baseUrl, 'ada')).access_token;
  });

  after(async () => {
    await platform.stop();
    await rm(home, { recursive: true, force: true });
  });

  for (const era of ['modern', 'legacy'])
    it(`lists and calls every tool (${era} protocol), and reports no fault in their schemas`, async () => {
      const { tools } = await inspect('--method', 'tools/list', '--protocol-era', era, '--strict');
      assert.deepEqual(
        tools.map(({ name }: Anything) => name),
        TOOLS,
      );
      const given = await toolArguments(ada, await thingsToRead(ada));
      for (const name of TOOLS) {
        const args = ['--tool-name', name, '--tool-args-json', JSON.stringify(given[name])];
        const { isError, structuredContent } = await inspect('--method', 'tools/call', '--protocol-era', era, ...args);
        assert.notEqual(isError, true, name);
        assert.equal(typeof structuredContent, 'object', name);
      }
    });

  it('lists and reads the resources', async () => {
    const { resources } = await inspect('--method', 'resources/list');
    assert.deepEqual(
      resources.map(({ uri }: Anything) => uri),
      OPERATION_RESOURCES.map(({ uri }) => uri),
    );
    for (const uri of [...OPERATION_RESOURCES.map((one) => one.uri), `${DOCUMENTS}/index.md`]) {
      const { contents } = await inspect('--method', 'resources/read', '--uri', uri);
      assert.ok(contents[0].text.length > 100, uri);
    }
  });

  it('reports why a tool may not be called, and that the token is invalid', async () => {
    const { access_token: looking } = await assistantTokens(platform.baseUrl, 'ada', 'setup:read');
    const call = ['--method', 'tools/call', '--tool-name', 'metadata_validate', '--tool-args-json'];
    const forbidden = await run([...call, JSON.stringify({ files: {}, package: { version: 1, types: [] } })], looking);
    assert.notEqual(forbidden.exit, 0);
    assert.match(forbidden.err, /insufficient_scope|SCOPE_INSUFFICIENT|scope/i);
    const unknown = await run(['--method', 'tools/list'], 'nonsense');
    assert.notEqual(unknown.exit, 0);
    assert.match(unknown.err, /401|auth_required|unauthorized/i);
  });
});
