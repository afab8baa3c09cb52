/** The endpoint for assistants, by a client on the 1.x line of the SDK, the base of most assistants. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { DOCUMENT_TOOLS } from '../../contracts/mcp.ts';
import { OPERATION_TOOLS } from '../../contracts/mcp-offers.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { assistantTokens, thingsToRead, toolArguments } from '../support/mcp.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { tool } from '../support/tools.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what answers hold, they need no types for it
type Anything = any;

const module = (name: string): Promise<Anything> =>
  import(tool('@modelcontextprotocol', 'sdk', 'dist', 'esm', 'client', name));

describe('a client on the 1.x line of the SDK', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let ada: Api;
  let client: Anything;

  before(async function () {
    this.timeout(600_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    const { access_token } = await assistantTokens(platform.baseUrl, 'ada');
    const { Client } = await module('index.js');
    const { StreamableHTTPClientTransport } = await module('streamableHttp.js');
    client = new Client({ name: 'tests', version: '1.0.0' });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${platform.baseUrl}/mcp`), {
        requestInit: { headers: { authorization: `Bearer ${access_token}` } },
      }),
    );
    // From now on it validates structured content against the schemas that it has listed.
    const { tools } = await client.listTools();
    assert.equal(tools.length, OPERATION_TOOLS.length + Object.keys(DOCUMENT_TOOLS).length);
  });
  after(async () => {
    await client?.close();
    await platform?.stop();
  });

  it('parses the answer of every tool', async () => {
    for (const [name, given] of Object.entries(await toolArguments(ada, await thingsToRead(ada)))) {
      const { isError, structuredContent } = await client.callTool({ name, arguments: given });
      assert.notEqual(isError, true, `${name}: ${JSON.stringify(structuredContent)}`);
    }
  });

  it('parses the refusal of every tool', async () => {
    for (const name of [...OPERATION_TOOLS.map((one) => one.name), ...Object.keys(DOCUMENT_TOOLS)]) {
      const { isError, structuredContent } = await client.callTool({ name, arguments: { nonsense: true } });
      assert.equal(isError, true, name);
      assert.equal(typeof structuredContent.code, 'string', name);
      assert.ok(structuredContent.errors.length > 0, name);
    }
  });
});
