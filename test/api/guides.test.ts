/** The guides are run as they are printed: every shell block, in one shell, against a platform of their own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

const root = join(import.meta.dirname, '..', '..');
/** Blocks that start a platform; here one runs already. */
const STARTS = /npm (ci|start)/;

describe('the guide', () => {
  let platform: TestPlatform;
  let folder: string;

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    folder = await mkdtemp(join(tmpdir(), 'guide-'));
  });
  after(async () => {
    await platform?.stop();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  /** What the blocks of a guide print, progress on stderr included. */
  async function walk(name: string): Promise<string> {
    const text = await readFile(join(root, 'docs', 'guides', name), 'utf8');
    const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map((match) => match[1]!);
    const script = blocks
      .filter((block) => !STARTS.test(block))
      .join('\n')
      .replaceAll('http://localhost:3000', platform.baseUrl);
    // The token script finds its server by BASE_URL; npm finds its scripts although the shell stands elsewhere.
    const npm = `npm() { node ${root}/scripts/token.ts "\${@:5}"; }\n`;
    const { stdout, stderr } = await promisify(execFile)('bash', ['-u', '-c', npm + script], {
      cwd: folder,
      env: { ...process.env, BASE_URL: platform.baseUrl },
    });
    return stdout + stderr;
  }
  const codes = (output: string): string[] => [
    ...new Set([...output.matchAll(/"code":"([A-Z_]+)","message":"[^"]*","status"/g)].map((match) => match[1]!)),
  ];

  it('first-request.md leads from sign-in to a record, and fails only where it says so', async function () {
    this.timeout(60_000);
    const output = await walk('first-request.md');
    assert.deepEqual(codes(output).sort(), ['ETAG_MISMATCH', 'FIELD_PERMISSION_DENIED', 'VALIDATION_FAILED']);
    assert.match(output, /"name":"INV-\d{5}"/);
    assert.match(output, /"Status__c":"sent"/);
    assert.match(output, /"TaxAmount__c":250.10,"TotalAmount__c":1500.60/);
    assert.match(output, /"ruleApiName":"Invoice__c.SentStays"/);
    assert.match(output, /"restorableUntil":/);
    assert.match(output, /"restorableUntil":[\s\S]*"name":"Ann Baker"/);
  });

  it('model-your-business.md deploys an object that Sam can use at once', async function () {
    this.timeout(60_000);
    const output = await walk('model-your-business.md');
    assert.deepEqual(codes(output), []);
    assert.match(output, /"valid":true/);
    assert.match(output, /"status":"SUCCEEDED"/);
    assert.match(output, /"name":"M-0001"/);
    assert.match(output, /"metadataVersion":/);
  });

  it('who-sees-what.md opens a private record to Sue by a rule and by hand, and explains the rest', async function () {
    this.timeout(60_000);
    const output = await walk('who-sees-what.md');
    assert.deepEqual(codes(output), ['RECORD_NOT_FOUND']);
    assert.match(output, /"status":"SUCCEEDED"/);
    assert.match(output, /mia 200\nsam 200\nsue 200/);
    const totals = [...output.matchAll(/(\w+) sees\n.*?"total":(\d+)/g)].map((match) => `${match[1]} ${match[2]}`);
    assert.deepEqual(totals, ['SAM 2', 'MIA 2', 'SUE 1']);
    assert.match(output, /"allowed":false.*"layer":"sharing","result":"deny"/);
    assert.match(output, /204\n$/);
  });
});
