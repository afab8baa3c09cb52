/** The documents as they are built: complete, the same each time, and without a link that leads nowhere. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { posix } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import MiniSearch from 'minisearch';
import { EVENT_TYPE_NAMES } from '../../../contracts/event-types.ts';
import { EXAMPLES } from '../../../contracts/examples.ts';
import { OPERATIONS, type OperationId } from '../../../contracts/operations.ts';
import { CATALOGUE } from '../../../lib/errors/catalogue.ts';
import { COMPONENT_TYPES } from '../../../lib/schema/snapshot.ts';
import { CHECKSUMS } from '../../../mixins/documents/archives.ts';
import { searchOptions } from '../../../mixins/documents/searching.js';
import { archive } from '../../../scripts/documents/archive.ts';
import { build, VERSION } from '../../../scripts/documents/build.ts';
import type { Files } from '../../../scripts/documents/page.ts';
import { GUIDES } from '../../../scripts/documents/repository.ts';

describe('The documents', function () {
  this.timeout(30_000);
  let files: Files;
  before(() => {
    files = build();
  });

  const missing = (names: readonly string[]): string[] => names.filter((name) => !files.has(name));
  const pages = (): string[] => [...files.keys()].filter((name) => name.endsWith('.html'));

  it('contain a self-contained schema of every kind, with its dialect', () => {
    for (const type of COMPONENT_TYPES) {
      const text = files.get(`metadata/${type}.schema.json`) ?? '';
      const schema = JSON.parse(text);
      assert.deepEqual(
        [schema.$schema, schema.title],
        ['https://json-schema.org/draft/2020-12/schema', type],
        `${type}.schema.json`,
      );
      assert.doesNotMatch(text, /x-erp-/);
      assert.ok(new Ajv2020({ strict: false }).validateSchema(schema), type);
    }
  });

  it('describe each type of event in AsyncAPI, by schemas that take the example of the API', () => {
    const document = JSON.parse(files.get('asyncapi.json')!);
    assert.deepEqual(Object.keys(document.components.messages), EVENT_TYPE_NAMES);
    const ajv = addFormats.default(new Ajv2020({ strict: false })).addSchema(document, 'asyncapi.json');
    const page = OPERATIONS.find(({ operationId }) => operationId === 'events.items.list')?.response.example;
    const [event] = (page as { records: { type: string; data: object }[] }).records;
    const isValid = ajv.getSchema(`asyncapi.json#/components/messages/${event!.type}/payload`)!;
    assert.ok(isValid(event), JSON.stringify(isValid.errors));
    assert.ok(!isValid({ ...event, type: 'data.record.created' }));
    assert.ok(!isValid({ ...event, data: {} }));
  });

  it('describe each page in the page list', () => {
    const list = files.get('index.md') ?? '';
    const said = [...list.matchAll(/^- \[[^\]]+\]\((?:guides|reference)\/[^)]+\): (.+)$/gm)].map(
      ([, text = '']) => text,
    );
    assert.ok(said.length > 40);
    for (const text of said) assert.ok(text.length >= 30 && text.length <= 260, text);
  });

  it('list every guide in reading order', () => {
    const guides = readdirSync(new URL('../../../docs/guides/', import.meta.url)).filter((name) =>
      name.endsWith('.md'),
    );
    assert.deepEqual(GUIDES.map((name) => `${name}.md`).toSorted(), guides.toSorted());
    const listed = [...(files.get('index.md') ?? '').matchAll(/^- \[[^\]]+\]\(guides\/([^)]+)\.md\): /gm)];
    assert.deepEqual(
      listed.map(([, name]) => name),
      GUIDES,
    );
  });

  it('state that a reserved code is not used', () => {
    assert.match(files.get('errors/DPOP_PROOF_INVALID.md') ?? '', /\*\*Reserved:\*\* no operation answers it yet/);
    assert.doesNotMatch(files.get('errors/RECORD_NOT_FOUND.md') ?? '', /Reserved/);
  });

  it('have a page for every operation and error code, and a schema for every kind of component', () => {
    assert.deepEqual(
      missing(OPERATIONS.flatMap(({ operationId: id }) => [`operations/${id}.html`, `operations/${id}.md`])),
      [],
    );
    assert.deepEqual(
      missing(Object.keys(CATALOGUE).flatMap((code) => [`errors/${code}.html`, `errors/${code}.md`])),
      [],
    );
    assert.deepEqual(missing(COMPONENT_TYPES.map((type) => `metadata/${type}.schema.json`)), []);
  });

  it('show each error as the description of the API does', () => {
    const { examples } = JSON.parse(files.get('openapi.json')!).components;
    for (const code of Object.keys(examples)) {
      const [, shown = ''] = /^## Example\n\n```json\n([\s\S]+?)^```$/m.exec(files.get(`errors/${code}.md`)!) ?? [];
      const { type, ...body } = JSON.parse(shown);
      const { type: path, ...described } = examples[code].value;
      assert.deepEqual([type, body], [`https://erp.example${path}`, described], code);
    }
  });

  it('have each page as Markdown, too', () => {
    assert.deepEqual(missing(pages().map((name) => name.replace(/\.html$/, '.md'))), []);
  });

  it('link only to pages in the archive or of every gateway', () => {
    const broken = pages().flatMap((name) =>
      targets(files.get(name)!)
        .filter((target) => !OUTSIDE.test(target))
        .filter((target) => !leads(files, name, target))
        .map((target) => `${name} → ${target}`),
    );
    assert.deepEqual(broken, []);
  });

  it('link from Markdown to Markdown', () => {
    const broken = [...files]
      .filter(([name]) => name.endsWith('.md'))
      .flatMap(([name, text]) =>
        matches(text.replace(/^```[\s\S]*?^```$|`[^`\n]+`/gm, ''), /\]\(([^()\s]+)\)/g)
          .map(([, target = '']) => target)
          .filter((target) => !/^(?:https?:|mailto:|#)/.test(target))
          .filter((target) => !files.has(posix.join(posix.dirname(name), target.split('#')[0]!)))
          .map((target) => `${name} → ${target}`),
      );
    assert.deepEqual(broken, []);
  });

  it('name each heading once, and each page has one main heading', () => {
    const wrong = pages().filter((name) => {
      const ids = [...anchors(files.get(name)!)];
      return new Set(ids).size !== ids.length || matches(files.get(name)!, /<h1 /g).length !== 1;
    });
    assert.deepEqual(wrong, []);
  });

  it('have no script or style in a page, so that a strict policy holds', () => {
    const wrong = pages().filter((name) =>
      /<style|<script(?! type="module" src=)|\son\w+=|\sstyle=/.test(files.get(name)!),
    );
    assert.deepEqual(wrong, []);
  });

  it('list the checksum of every other file, in the order of their names', () => {
    const lines = files
      .get(CHECKSUMS)!
      .trimEnd()
      .split('\n')
      .map((line) => line.split('  ') as [string, string]);
    const names = [...files.keys()].filter((name) => name !== CHECKSUMS).sort();
    assert.deepEqual(
      lines,
      names.map((name) => [hash('sha256', files.get(name)!), name]),
    );
  });

  it('are the same bytes each time', async () => {
    const again = build();
    assert.deepEqual([...again], [...files]);
    const packed = await archive(files);
    // In any order of files.
    assert.deepEqual(await archive(new Map([...again].reverse())), packed);
    assert.ok(gunzipSync(packed).length < 64 * 1024 * 1024);
  });

  it('are found by the search', () => {
    const { options, index } = JSON.parse(files.get('search.json')!);
    const search = MiniSearch.loadJS(index, options);
    const tokenize = MiniSearch.getDefault('tokenize') as (text: string) => string[];
    const first = (text: string): unknown => search.search(text, searchOptions(text, tokenize))[0]?.['path'];
    assert.equal(first('ETAG_MISMATCH'), 'errors/ETAG_MISMATCH.html');
    assert.equal(first('how to delete a record'), 'operations/data.records.delete.html');
    assert.equal(first('listRecords'), 'operations/data.records.list.html');
    assert.equal(first('pagination'), 'reference/querying.html#pages');
    assert.match(String(first('prevent duplicates')), /^guides\/prevent-duplicates\.html/);
    assert.match(String(first('import csv')), /^reference\/bulk\.html|^guides\/use-the-command-line\.html/);
    assert.match(String(first('failed webhooks')), /^reference\/webhooks\.html/);
    const paths = search.search('the').map(({ path }) => String(path));
    assert.deepEqual(
      paths.filter((path) => !leads(files, 'index.html', path)),
      [],
    );
  });

  it('show the recorded request of each operation as a shell command', () => {
    // In the place of curl, which would send it: what it was called with.
    const curl = 'curl() { printf "%s\\0" "$@"; }; TOKEN="{access_token}"; openssl() { echo a-key; };';
    for (const { operationId, scopes } of OPERATIONS) {
      const { request } = EXAMPLES[operationId as OperationId]!;
      const [, script = ''] = /^```sh\n([\s\S]*?)\n```$/m.exec(files.get(`operations/${operationId}.md`)!) ?? [];
      const output = execFileSync('bash', ['-c', `${curl}\n${script}`], { encoding: 'utf8' });
      const given = output.split('\0').slice(0, -1);
      const valuesOf = (option: string): string[] => given.filter((_, i) => given[i - 1] === option);
      const headers = {
        ...request.headers,
        ...(request.headers?.['Idempotency-Key'] && { 'Idempotency-Key': 'a-key' }),
      };
      assert.ok(given.includes(`https://erp.example/api/v1${request.path}`), operationId);
      assert.equal(valuesOf('-X')[0] ?? 'GET', request.method, operationId);
      assert.equal(given.includes('-G'), request.query !== undefined, operationId);
      assert.deepEqual(
        valuesOf('-H').sort(),
        Object.entries(headers)
          .map((one) => one.join(': '))
          .sort(),
        operationId,
      );
      assert.deepEqual(
        valuesOf('--data-urlencode'),
        Object.entries(request.query ?? {}).map((one) => one.join('=')),
      );
      assert.deepEqual(
        valuesOf('-d').map((text) => JSON.parse(text)),
        request.body === undefined ? [] : [request.body],
      );
      assert.equal(scopes === 'public', !('Authorization' in headers), operationId);
    }
  });

  it('show a valid body of each error code from the catalogue', () => {
    const { components } = JSON.parse(files.get('openapi.json')!);
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
    const isError = ajv.compile({ $ref: '#/components/schemas/Error', components });
    for (const [code, { status, retryable }] of Object.entries(CATALOGUE)) {
      const [, example = ''] = /^```json\n([\s\S]*?)\n```$/m.exec(files.get(`errors/${code}.md`)!) ?? [];
      const body = JSON.parse(example);
      assert.deepEqual([body.code, body.status, body.retryable], [code, status, retryable ?? false]);
      assert.equal(posix.basename(new URL(body.type).pathname), code);
      assert.ok(isError(body), `${code}: ${JSON.stringify(isError.errors)}`);
    }
  });

  it('state their version', () => {
    const { info, servers } = JSON.parse(files.get('openapi.json')!);
    assert.equal(info.version, VERSION);
    assert.equal(servers[0].url, '/api/v1');
  });
});

/** Other hosts, and pages that every gateway has. */
const OUTSIDE = /^(?:https?:|mailto:|\/(?:api-reference|favicon\.svg)?$)/;

const targets = (html: string): string[] =>
  matches(html, /\s(?:href|src)="([^"]*)"/g).map(([, target = '']) => target.replaceAll('&amp;', '&'));

const anchors = (html: string): string[] => matches(html, /\sid="([^"]*)"/g).map(([, id = '']) => id);

function leads(files: Files, from: string, target: string): boolean {
  const [path = '', anchor] = target.split('#');
  const name = path === '' ? from : posix.join(posix.dirname(from), path);
  const text = files.get(name);
  return text !== undefined && (anchor === undefined || anchors(text).includes(anchor));
}

const matches = (text: string, pattern: RegExp): RegExpExecArray[] => [...text.matchAll(pattern)];
