/** `erp types`: its output compiles strictly, matches the API's requests and responses, and reports when it is outdated. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { api, tokenFor } from '../support/client.ts';
import { keptErpOf, PROGRAM, userEnvironment } from '../support/erp.ts';
import { exampleNamed } from '../support/examples.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { tool } from '../support/tools.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const bin = (name: string): string => join(ROOT, 'node_modules', '.bin', name);
const STRICT =
  '--noEmit --ignoreConfig --strict --skipLibCheck --noUncheckedIndexedAccess --exactOptionalPropertyTypes'.split(' ');
const MODULE = '--target esnext --module nodenext --allowImportingTsExtensions'.split(' ');
/** Preload for the generator. */
const WITH_TYPESCRIPT_5 = join(ROOT, 'test', 'support', 'typescript-5.ts');

/** Packages that npm would install exist already: in `HERE` and `TOOLS`, and TypeScript 5 at its only user. */
const INSTALLED = `
npm() {
  [ "$1" = install ] || { command npm "$@"; return; }
  shift
  local name from
  for name; do
    case $name in --*) continue ;; esac
    name=\${name%@[0-9]*}
    for from in "$TOOLS/$name" "$HERE/$name"; do [ ! -e "$from" ] || break; done
    [ "$name" != typescript ] || from=$TOOLS/oazapfts/node_modules/typescript
    mkdir -p "node_modules/$(dirname "$name")" && ln -s "$from" "node_modules/$name"
  done
}
erp() { "$NODE" "$ERP" "$@"; }
npx() {
  local name=$1; shift
  case $name in
    node) "$NODE" "$@" ;;
    tsc) "$NODE" node_modules/typescript/bin/tsc "$@" ;;
    openapi-typescript) "$NODE" --import "$WITH_TYPESCRIPT_5" node_modules/openapi-typescript/bin/cli.js "$@" ;;
  esac
}
`;

/** The path of a module that the test writes beside its programs. */
const written = (name: string): string => `'./${name}.ts'`;

/** Programs that use the description and the objects of a tenant. */
const CLIENTS = `
import createClient from 'openapi-fetch';
import type { components, paths } from ${written('api')};
import type { AccountRecord, TenantPaths } from ${written('objects')};

type Schemas = components['schemas'];
const client = createClient<TenantPaths<paths>>({ baseUrl: 'http://localhost' });

export async function walk(view: Schemas['ListViewDescription']): Promise<Partial<AccountRecord>[]> {
  const { filters, sort } = view;
  const first = await client.POST('/data/Account/query', { body: { filters, sort, where: null } });
  const cursor = first.data?.nextCursor ?? null;
  const next = await client.POST('/data/Account/query', { body: { filters, sort, cursor } });
  return next.data?.records ?? [];
}

export async function tried(): Promise<string> {
  const { data, error } = await client.POST('/data/Account/check', {
    body: { operation: 'create', fields: { name: 'x' } },
  });
  if (!data?.record) return error?.details?.currentETag ?? data?.duplicates[0]?.matches[0]?.displayName ?? '';
  // @ts-expect-error: a record that is tried out has no id
  const id: string = data.record.id;
  return id;
}

export async function shown(id: string): Promise<void> {
  const { data } = await client.GET('/data/Account/{id}', { params: { path: { id }, query: { fields: 'name' } } });
  if (!data) return;
  // @ts-expect-error: fields may leave it out
  const name: string = data.name;
  const shownId: string = data.id;
  console.log(name, shownId);
}

export const budget: Schemas['AgentRunInput'] = { agentKey: 'agent', goal: 'goal', budget: { maxCost: 5 } };
export const run: Schemas['WidgetRun'] = {};
export const checked: Schemas['ValidateBody'] = { files: {} };
export const condition = ({ apiName, filterOperators }: Schemas['FieldDescription']): Schemas['FilterCondition'] => ({
  id: 'c1',
  field: apiName,
  operator: filterOperators[0] ?? 'eq',
});
export const maximum = ({ limits, mcp, auth }: Schemas['PlatformCapabilities']): (string | number)[] => [
  limits.takeMax,
  mcp.endpoint,
  ...auth.grantTypes,
];
export const written = ({ recordVersion }: Schemas['WrittenRecord']): number => recordVersion;
`;

describe('erp types', () => {
  let platform: TestPlatform;
  let folder: string;
  let erp: ReturnType<typeof keptErpOf>;
  const ends = async (...args: string[]) => erp(['types', ...args], { cwd: folder });

  /** Throws the compiler's output. */
  function compile(file: string, ...more: string[]): void {
    try {
      const path = join(folder, file);
      execFileSync(bin('tsc'), [...STRICT, ...MODULE, ...more, path], { cwd: dirname(path), stdio: 'pipe' });
    } catch (error) {
      throw new Error(String((error as { stdout?: Buffer }).stdout));
    }
  }

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    folder = await mkdtemp(join(tmpdir(), 'erp-types-'));
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    erp = keptErpOf(userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl }));
  });
  after(async () => {
    await platform?.stop();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  it('writes a file of all objects, identical every time', async () => {
    const first = await ends('--out', 'objects.ts');
    assert.equal(first.code, 0, first.stderr);
    const text = await readFile(join(folder, 'objects.ts'), 'utf8');
    assert.match(text, /export interface AccountRecord {/);
    assert.match(text, /export interface Invoice__cRecord {/);
    assert.match(text, /^ {2}Status__c: '[a-z]+' \| .*;$/m);
    const { stdout } = await ends();
    assert.equal(stdout, text);
    assert.match((await ends('--out', 'objects.ts')).stderr, /is up to date/);
  });

  it('accepts names of objects, and reports the unknown ones', async () => {
    const { stdout } = await ends('--objects', 'Product, Account');
    assert.deepEqual(
      [...stdout.matchAll(/^export interface (\w+)Record /gm)].map(([, name]) => name),
      ['Account', 'Product'],
    );
    const { code, stderr } = await ends('--objects', 'Account,Nope__c');
    assert.equal(code, 2);
    assert.match(stderr, /Nope__c/);
  });

  it('checks a file for continuous integration', async () => {
    await ends('--objects', 'Account', '--out', 'checked.ts');
    assert.equal((await ends('--objects', 'Account', '--out', 'checked.ts', '--check')).code, 0);
    await writeFile(join(folder, 'checked.ts'), '// edited\n');
    const { code, stderr } = await ends('--objects', 'Account', '--out', 'checked.ts', '--check');
    assert.equal(code, 1);
    assert.match(stderr, /checked\.ts is not up to date/);
    assert.equal(await readFile(join(folder, 'checked.ts'), 'utf8'), '// edited\n', 'a check writes nothing');
    assert.equal((await ends('--out', 'absent.ts', '--check')).code, 1);
    assert.equal((await ends('--check')).code, 2);
  });

  it("generates types that match the platform's records and bodies", async function () {
    this.timeout(60_000);
    await ends('--out', 'all.ts');
    const sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada@demo.example'));
    const { body } = await sam.get('/objects');
    const lines = ["import type { Objects } from './all.ts';"];
    for (const { apiName } of body.records) {
      const { body: page } = await sam.get(`/data/${apiName}?take=5`);
      const records = JSON.stringify(page.records);
      lines.push(`export const ${apiName}: Objects['${apiName}']['read'][] = ${records};`);
    }
    lines.push("export const made: Objects['Account']['create'] = { name: 'x', creditLimit: '12.50', ownerId: 'id' };");
    lines.push('// @ts-expect-error: the name is required');
    lines.push("export const nameless: Objects['Account']['create'] = { city: 'x' };");
    lines.push('// @ts-expect-error: read-only');
    lines.push("export const kept: Objects['Account']['update'] = { id: 'x' };");
    lines.push('// @ts-expect-error: it cannot be emptied');
    lines.push("export const emptied: Objects['Account']['update'] = { name: null };");
    await writeFile(join(folder, 'records.ts'), lines.join('\n'));
    compile('records.ts');
  });

  it('makes the program of the guide compile without a cast, and work, with the commands of the guide', async function () {
    this.timeout(120_000);
    const GUIDE = 'docs/guides/use-the-command-line.md#in-typescript';
    const program = exampleNamed(`${GUIDE} 2`);
    assert.doesNotMatch(program, / as |any/);
    const [here, books] = [join(folder, 'platform'), join(folder, 'books')];
    await mkdir(here);
    await writeFile(join(folder, 'program.ts'), program);
    const written = `cp "${folder}/program.ts" .\n`;
    const script = INSTALLED + exampleNamed(GUIDE) + written + exampleNamed(`${GUIDE} 3`);
    const token = await tokenFor(platform.baseUrl, 'ada@demo.example');
    const env = {
      ...userEnvironment({ ERP_TOKEN: token, ERP_BASE_URL: platform.baseUrl }),
      NODE: process.execPath,
      ERP: PROGRAM,
      HERE: join(ROOT, 'node_modules'),
      TOOLS: tool(),
      WITH_TYPESCRIPT_5,
    };
    const args = ['--norc', '-euc', script.replaceAll('http://localhost:3000', platform.baseUrl)];
    const { stdout } = await promisify(execFile)('bash', args, { cwd: here, env });
    assert.match(stdout, /\nHove 1200\.5\n\d+\n$/);
    await writeFile(join(books, 'clients.ts'), CLIENTS);
    compile('books/clients.ts', '--types', 'node');
    const wrong = program.replace("city: 'Hove'", "cty: 'Hove'").replace("=== 'sent'", "=== 'posted'");
    await writeFile(join(books, 'wrong.ts'), wrong);
    const compiles = (): void => compile('books/wrong.ts', '--types', 'node');
    assert.throws(compiles, /posted[\s\S]* no overlap[\s\S]*'cty' does not exist/);
  });
});
