/**
 * Clients generated from /openapi.json by common generators compile under `strict` and work: each program lists with
 * `where` and `sort`, checks and creates a record, updates it after a 412, and reads which approval its deletion needs,
 * without a cast.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { tool } from '../../support/tools.ts';
import type { Outcome, Task } from './programs/program.ts';

const programs = join(import.meta.dirname, 'programs');
const generated = join(import.meta.dirname, 'generated');
const description = join(generated, 'openapi.json');

/** Runs a script of a package on this Node. */
async function run(script: string, ...args: readonly string[]): Promise<void> {
  const hook = ['--import', join(import.meta.dirname, '../../support/typescript-5.ts')];
  await promisify(execFile)(process.execPath, [...hook, tool(script), ...args], { cwd: generated }).catch(
    (error: { stdout: string; stderr: string }) => assert.fail(`${script}: ${error.stdout}${error.stderr}`),
  );
}

async function configured(name: string, config: object): Promise<string> {
  const path = join(generated, `${name}.config.mjs`);
  await writeFile(path, `export default ${JSON.stringify(config)};\n`);
  return path;
}

/** Generates the client of each program. */
const GENERATORS: Readonly<Record<string, (baseUrl: string) => Promise<void>>> = {
  'openapi-fetch': () => run('openapi-typescript/bin/cli.js', description, '-o', 'openapi-typescript.ts'),
  'hey-api': async () => {
    const output = { path: join(generated, 'hey-api'), module: { extension: '.ts' } };
    const plugins = ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'];
    const config = await configured('hey-api', { input: description, output, plugins });
    await run('@hey-api/openapi-ts/dist/run.mjs', '-f', config, '--no-log-file');
  },
  orval: async (baseUrl) => {
    const output = { target: join(generated, 'orval.ts'), client: 'fetch', mode: 'single', headers: true, baseUrl };
    const config = await configured('orval', { erp: { input: description, output } });
    await run('orval/dist/bin/orval.mjs', '--config', config);
  },
  oazapfts: () => run('oazapfts/dist/cli.js', description, 'oazapfts.ts'),
};

describe('a client generated from /openapi.json', function () {
  this.timeout(180_000);
  let platform: TestPlatform;
  let baseUrl: string;
  let sam: Api;
  let mia: Api;
  before(async () => {
    platform = await startPlatform();
    baseUrl = `${platform.baseUrl}/api/v1`;
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
    await rm(generated, { recursive: true, force: true });
    await mkdir(generated, { recursive: true });
    await writeFile(description, await (await fetch(`${baseUrl}/openapi.json`)).text());
    for (const generate of Object.values(GENERATORS)) await generate(baseUrl);
  });
  after(() => platform?.stop());

  it('compiles with its program', async () => {
    await run('typescript/bin/tsc', '--project', programs);
  });

  it('is used without a cast', async () => {
    for (const name of await readdir(programs)) {
      if (!name.endsWith('.ts')) continue;
      const text = await readFile(join(programs, name), 'utf8');
      assert.doesNotMatch(text, /\bas [A-Za-z{[]|\bany\b|@ts-|\w!|\)!/, name);
    }
  });

  for (const name of Object.keys(GENERATORS))
    it(`${name}: lists with where and sort, checks, creates, updates after a 412, and waits for an approval`, async () => {
      const first = await sam.get(
        '/data/Account?take=1&filters={"logic":"and","conditions":[{"id":"c1","field":"city","operator":"is_not_blank"}]}',
      );
      const { city } = first.body.records[0];
      const query = { where: { city }, sort: [{ id: 'name', desc: true }] };
      const { records } = (await sam.post('/data/Account/query', query, { idempotencyKey: null })).body;
      const program: { run: (task: Task) => Promise<Outcome> } = await import(
        pathToFileURL(join(programs, `${name}.ts`)).href
      );
      const run = await sam.post('/agent/runs', { agentKey: 'generated', goal: 'Delete a contact.' });
      const { runId } = run.body;
      const outcome = await program.run({ baseUrl, token: await tokenFor(platform.baseUrl, 'sam'), city, runId });
      const { records: waiting } = (await mia.get('/agent/approvals?status=PENDING')).body;
      const { approvalId, fingerprint } = waiting.find((one: { runId: string }) => one.runId === runId);
      assert.deepEqual(outcome, {
        names: records.map((account: { name: string }) => account.name),
        violations: ['FIELD_REQUIRED'],
        refusal: 'ETAG_MISMATCH',
        jobTitle: 'Buyer',
        approval: { approvalId, fingerprint },
      });
    });

  it('accepts the examples of its parameters', async () => {
    const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    const { paths } = JSON.parse(await readFile(description, 'utf8'));
    const parameters: { name: string; example: string; schema?: { contentMediaType?: string } }[] =
      paths['/data/{objectApiName}'].get.parameters;
    const inJson = parameters.filter(({ schema }) => schema?.contentMediaType === 'application/json');
    assert.ok(inJson.length > 0);
    for (const { name, example } of inJson) {
      const answer = await ada.get(`/data/Account?${name}=${encodeURIComponent(example)}`);
      assert.equal(answer.status, 200, answer.text);
    }
  });

  it('documents how to write a JSON parameter', async () => {
    const { status, body } = await sam.get('/data/Account?where=city:Berlin');
    assert.deepEqual([status, body.code, body.errors[0].pointer], [400, 'PARAMETER_INVALID', 'query:where']);
    assert.match(body.message, /^where must be JSON, such as where=\{"city":"Berlin"\} \(percent-encoded\): /);
  });
});
