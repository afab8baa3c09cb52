/** The walk-through in the README works as written: its blocks are run in a shell, one after the other. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { read, root } from '../support/sources.ts';

/** The shell blocks of a document, between two headings. */
function blocks(path: string, from: string, to: string): string {
  const text = read(path);
  const start = text.indexOf(`\n## ${from}`);
  const end = text.indexOf(`\n## ${to}`, start);
  assert.ok(start > 0 && end > start, `${path} has the headings`);
  return [...text.slice(start, end).matchAll(/```sh\n([\s\S]*?)```/g)].map((match) => match[1]).join('\n');
}

describe('the README', () => {
  let platform: TestPlatform;
  let folder: string;
  before(async () => {
    platform = await startPlatform();
    // The commands may leave files behind, so they run outside of the repository.
    folder = await mkdtemp(join(tmpdir(), 'erp-walk-'));
    for (const name of ['package.json', 'scripts', 'node_modules']) await symlink(join(root, name), join(folder, name));
  });
  after(async () => {
    await platform?.stop();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  const run = (script: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const child = spawn(
        'bash',
        [
          '-euo',
          'pipefail',
          '-c',
          `npm() { [ "$3" = erp ] || { command npm "$@"; return; }; node ${root}/cli/bin/erp.js "\${@:5}"; }\n{\n${script.replaceAll('http://localhost:3000', platform.baseUrl)}\n} 2>&1 | cat`,
        ],
        {
          cwd: folder,
          env: {
            ...process.env,
            TMPDIR: folder,
            BASE_URL: platform.baseUrl,
            PATH: `${join(root, 'node_modules', '.bin')}:${process.env['PATH']}`,
          },
          stdio: ['ignore', 'pipe', 'pipe'],
        },
      );
      let output = '';
      child.stdout.on('data', (chunk) => (output += chunk));
      child.stderr.on('data', (chunk) => (output += chunk));
      child.once('error', reject);
      child.once('close', (code) => (code === 0 ? resolve(output) : reject(new Error(`${code}:\n${output}`))));
    });
  /** Codes of the Error bodies in the output, in order. */
  const codes = (output: string): string[] =>
    [...output.matchAll(/\{\s*"code": ?"([A-Z_]+)",\s*"message": ?"[^"]*",\s*"status"/g)].map((match) => match[1]!);

  it('leads to the first record, and then again with the same keys', async () => {
    const walk = blocks('README.md', 'The first request', 'Where to go on');
    for (let turn = 0; turn < 2; turn++) {
      const output = await run(walk);
      assert.deepEqual(codes(output), [], output);
      assert.match(output, /"apiName": "Invoice__c"/);
      assert.match(output, /HTTP\/1\.1 201/);
      assert.match(output, /"name": "Lakeside Bakery and Café [0-9a-f]{12}"/);
      assert.match(output, /^Deployment \S+ succeeded/m);
      assert.match(output, /^ {2}"valid": true,/m);
    }
  });
});
