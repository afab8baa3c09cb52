/** Invalid projects: each is refused by name and location, changes nothing, and blocks no other user. */
import assert from 'node:assert/strict';
import pg from 'pg';
import { LIMITS } from '../../../lib/limits.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, fieldFile, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

type Files = Record<string, string>;
type Found = { pointer: string; code: string; path: string | null; params: Found; line: number; column: number };

/** State that a project could have changed: the version, the components, and the columns of the tables. */
type Standing = { version: number; hash: string; columns: unknown[] };

const KINDS = ['CustomObject', 'CustomField', 'ValidationRule', 'Role', 'Group', 'Profile', 'PermissionSet'];
const EVERYTHING = { version: 1, types: KINDS.map((name) => ({ name, members: ['*'] })) };

const role = (name: string, more = ''): Files => ({
  [`roles/${name}.yaml`]: `type: Role\napiName: ${name}\nlabel: ${name}\n${more}`,
});
const group = (name: string, groups: string): Files => ({
  [`groups/${name}.yaml`]: `type: Group\napiName: ${name}\nlabel: ${name}\nmembers:\n  groups: [${groups}]\n`,
});
const formula = (expression: string): string =>
  `fieldType: formula\nformula:\n  resultType: decimal\n  expression: ${expression}`;
const manifest = (text: string): Files => ({ 'manifest/package.yaml': text });
const deletions = (text: string): Files => ({ 'manifest/destructiveChanges.yaml': text });

describe('API: invalid projects', () => {
  let platform: TestPlatform;
  let ada: Api;
  let database: pg.Client;
  let schema: string;
  let stood: Standing;

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    database = new pg.Client(platform.database.url);
    await database.connect();
    schema = `t_${(await ada.get('/identity')).body.tenant.id.replaceAll('-', '')}`;
  });
  after(async () => {
    await database?.end();
    await platform?.stop();
  });

  const standing = async (): Promise<Standing> => {
    const { body, text } = await ada.post('/metadata/retrieve', { package: EVERYTHING });
    assert.ok(body.components?.length > 100, text.slice(0, 1_000));
    const { rows } = await database.query(
      'SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = $1 ORDER BY 1, 2',
      [schema],
    );
    return { version: body.metadataVersion, hash: body.manifestHash, columns: rows };
  };
  beforeEach(async () => {
    stood = await standing();
  });
  afterEach('nothing was applied, and the next deployment works', async function () {
    if (this.currentTest?.title.includes('accepts ')) return;
    assert.deepEqual(await standing(), stood);
    await deployOverHttp(ada, role(`Next${stood.version}`));
    assert.equal((await standing()).version, stood.version + 1);
  });

  const finished = async (deploymentId: string): Promise<Answer['body']> => {
    for (let i = 0; i < 400; i++) {
      const { body } = await ada.get(`/metadata/deployments/${deploymentId}`);
      if (['SUCCEEDED', 'FAILED'].includes(body.status)) return body;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    return assert.fail('The deployment did not end.');
  };

  /** A body that validate and deploy refuse at once. */
  const refused = async (body: unknown): Promise<Answer> => {
    const [checked, deployed] = [await ada.post('/metadata/validate', body), await ada.post('/metadata/deploy', body)];
    assert.ok([400, 413].includes(checked.status), checked.text);
    const told = ({ status, body: { code, message, errors, details } }: Answer) =>
      JSON.stringify({ status, code, message, errors, details });
    assert.equal(told(checked), told(deployed), 'both say the same');
    return checked;
  };
  /** Files that are refused at once: code and location, in the files or in the body. */
  const malformed = async (files: Files, pkg: unknown = { version: 1, types: [] }): Promise<string[]> => {
    const { body } = await refused({ files, ...(pkg === undefined ? {} : { package: pkg }) });
    return body.errors.map(({ code, pointer, params: { path, line, column } }: Found) =>
      path ? `${code} ${path}:${line}:${column}` : `${code} ${pointer}`,
    );
  };

  /** Files of a blocked plan: its problems, the same for validate and for the deployment. */
  const blocked = async (files: Files, more: object = {}): Promise<string[]> => {
    const body = { files, package: wholePackage(files), ...more };
    const { status, body: plan, text } = await ada.post('/metadata/validate', body);
    assert.equal(status, 200, text);
    assert.equal(plan.valid, false, text);
    const accepted = await ada.post('/metadata/deploy', body);
    assert.equal(accepted.status, 202, accepted.text);
    const deployment = await finished(accepted.body.deploymentId);
    assert.deepEqual([deployment.status, deployment.error.code], ['FAILED', 'PLAN_BLOCKED']);
    assert.deepEqual(deployment.blocked, plan.blocked);
    assert.deepEqual([deployment.manifestHash, deployment.planHash], [plan.manifestHash, plan.planHash]);
    return plan.blocked.map(({ code, path, line, column }: Found) => `${code} ${path}:${line}:${column}`);
  };

  it('refuses paths that leave their folder, and malformed paths', async () => {
    const paths = [
      '../roles/A.yaml',
      'roles/../../A.yaml',
      'roles/./A.yaml',
      '/etc/passwd',
      '//host/share',
      'C:/roles/A.yaml',
      'roles\\A.yaml',
      '..\\A.yaml',
      'roles/%2e%2e/A.yaml',
      'roles//A.yaml',
      'roles/',
      'roles/A.yaml ',
      'roles/Ä.yaml',
      'roles/A\n.yaml',
      'roles/A\u202e.yaml',
      '~/A.yaml',
      '.',
      '..',
      '',
      `${'a/'.repeat(127)}aa.yaml`,
    ];
    const files = Object.fromEntries(paths.map((path) => [path, '']));
    const { status, body } = await refused({ files, package: EVERYTHING });
    assert.equal(status, 400);
    assert.deepEqual(
      body.errors.map(({ pointer, code }: Found) => `${code} ${pointer}`),
      paths.map((path) => `FILE_PATH_INVALID /files/${path.replaceAll('~', '~0').replaceAll('/', '~1')}`),
    );
    for (const path of ['roles/A\0.yaml', 'roles/A\ud800.yaml'])
      assert.equal((await refused({ files: { [path]: '' }, package: EVERYTHING })).body.code, 'REQUEST_MALFORMED');
  });

  it('refuses paths of no type, including those that differ from a valid one in one letter', async () => {
    const files = {
      'README.md': '# Our company',
      'Roles/A.yaml': 'type: Role\napiName: A\nlabel: A\n',
      'roles/A.yml': 'type: Role\napiName: A\nlabel: A\n',
      'roles/more/A.yaml': 'type: Role\n',
      'teapots/A.yaml': 'type: Teapot\n',
      'manifest/Package.yaml': 'version: 1\n',
      __proto__x: '',
    };
    assert.deepEqual(await blocked(files), [
      'YAML_SCHEMA_INVALID Roles/A.yaml:null:null',
      'YAML_SCHEMA_INVALID roles/A.yml:null:null',
      'YAML_SCHEMA_INVALID roles/more/A.yaml:null:null',
      'TYPE_UNKNOWN README.md:null:null',
      'TYPE_UNKNOWN __proto__x:null:null',
      'TYPE_UNKNOWN manifest/Package.yaml:null:null',
      'TYPE_UNKNOWN teapots/A.yaml:null:null',
    ]);
  });

  it('refuses YAML beyond plain data, and invalid YAML: all files at once, with line and column', async () => {
    const texts: [text: string, line: number, column: number][] = [
      ['', 1, 1],
      ['# a comment\n', 1, 1],
      ['label: &a x\n', 1, 8],
      ['x: 1\nlabel: *a\n', 2, 8],
      ['label: !!str 1\n', 1, 8],
      ['a:\n  - !x b\n', 2, 5],
      ['x: {a: 1}\ny:\n  <<: {b: 2}\n', 3, 3],
      ['label: a\nparent: b\nlabel: c\n', 3, 1],
      ['"label": a\nlabel: c\n', 2, 1],
      ['label: a\n---\nlabel: b\n', 2, 1],
      ['%YAML 1.1\n---\nlabel: yes\n', 1, 1],
      ['label: a\n\tparent: b\n', 2, 1],
      ['? [a, b]\n: c\n', 1, 3],
      ['~: a\n', 1, 1],
      ['0x10: a\n', 1, 1],
      ['label: a\u0007b\n', 1, 9],
      ['label: |\n  a\u0000\n', 2, 4],
      ['label: a\rparent: b\n', 1, 9],
      ['label: a\n# \u0080\n', 2, 3],
      ['\ufeff\ufefflabel: a\n', 1, 1],
      ['label: .inf\n', 1, 8],
      ['label: -.INF\n', 1, 8],
      ['label: .nan\n', 1, 8],
      ['label: 1e400\n', 1, 8],
      ['label: 9007199254740993\n', 1, 8],
      ['label: 0.10000000000000000001\n', 1, 8],
      ['label: 0xffffffffffffffff\n', 1, 8],
      ['label: "\\ud800"\n', 1, 8],
      ['label: "\\0"\n', 1, 8],
      ['label: [a, b\n', 2, 1],
      ['label: a: b\n', 1, 8],
      [`label: ${'['.repeat(40)}${']'.repeat(40)}\n`, 1, 39],
    ];
    const files: Files = {};
    for (const [i, [text]] of texts.entries()) files[`roles/R${String(i).padStart(2, '0')}.yaml`] = text;
    // A body with NUL is refused as a whole.
    delete files['roles/R16.yaml'];
    assert.deepEqual(
      await malformed(files),
      texts.flatMap(([, line, column], i) =>
        i === 16 ? [] : [`YAML_INVALID roles/R${String(i).padStart(2, '0')}.yaml:${line}:${column}`],
      ),
    );
  });

  it('refuses YAML that expands excessively', async () => {
    const laughs = ['a0: &a0 [lol]', ...Array.from({ length: 20 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`)];
    assert.deepEqual(await malformed({ 'roles/A.yaml': laughs.join('\n') }), ['YAML_INVALID roles/A.yaml:1:5']);
    assert.deepEqual(await malformed({ 'roles/A.yaml': `a: ${'{b: '.repeat(600)}` }), [
      'YAML_INVALID roles/A.yaml:1:1',
    ]);
    assert.deepEqual(await malformed({ 'roles/A.yaml': `a: [${'1,'.repeat(50_000)}1]` }), [
      'YAML_INVALID roles/A.yaml:1:1',
    ]);
    const many = Object.fromEntries(
      Array.from({ length: 24 }, (_, i) => [`roles/R${i}.yaml`, Array(22_000).fill('- 1').join('\n')]),
    );
    assert.deepEqual((await refused({ files: many, package: EVERYTHING })).body.code, 'TOO_MANY_ITEMS');
  });

  it('refuses values that only resemble strings, and files that are empty, unknown or of another type', async () => {
    const label = (name: string, value: string): Files => ({
      [`roles/${name}.yaml`]: `type: Role\napiName: ${name}\nlabel: ${value}\n`,
    });
    const files = {
      ...label('Aa', '12'),
      ...label('Ab', '0o17'),
      ...label('Ac', 'true'),
      ...label('Ad', 'null'),
      ...label('Ae', '[a]'),
      ...label('Af', '{a: b}'),
      ...label('Ag', '"  "'),
      ...label('Ah', 'a'.repeat(256)),
      ...label('Ai', `"${'\u0958'.repeat(200)}"`),
      ...label('Aj', `a${'\\u0301'.repeat(40)}`.replace(/.*/, '"$&"')),
      'roles/Ba.yaml': 'null\n',
      'roles/Bb.yaml': '- type: Role\n',
      'roles/Bc.yaml': 'Role\n',
      'roles/Bd.yaml': 'type: Group\napiName: Bd\nlabel: Bd\n',
      'roles/Be.yaml': 'apiName: Be\nlabel: Be\n',
      'roles/Bf.yaml': 'type: Role\napiName: Other\nlabel: Bf\n',
      'roles/Bg.yaml': 'type: Role\napiName: Bg\nlabel: Bg\ncolour: red\nshade:\n',
      'roles/1h.yaml': 'type: Role\napiName: 1h\nlabel: Bh\n',
    };
    const invalid = (...places: string[]) => places.map((place) => `YAML_SCHEMA_INVALID roles/${place}`);
    assert.deepEqual(await blocked(files), [
      'NAME_INVALID roles/1h.yaml:2:1',
      ...invalid('Aa.yaml:3:1', 'Ab.yaml:3:1', 'Ac.yaml:3:1', 'Ad.yaml:1:1', 'Ae.yaml:3:1', 'Af.yaml:3:1'),
      ...invalid('Ag.yaml:3:1', 'Ah.yaml:3:1', 'Ai.yaml:3:1', 'Aj.yaml:3:1'),
      ...invalid('Ba.yaml:1:1', 'Bb.yaml:1:1', 'Bc.yaml:1:1', 'Bd.yaml:1:1', 'Be.yaml:1:1', 'Bf.yaml:2:1'),
      ...invalid('Bg.yaml:4:1', 'Bg.yaml:5:1'),
    ]);
  });

  it('refuses sets with duplicate items, in any spelling', async () => {
    const users = '["\u00e9@x.example", "e\\u0301@x.example"]';
    const files = { 'groups/G.yaml': `type: Group\napiName: G\nlabel: G\nmembers:\n  users: ${users}\n` };
    assert.deepEqual(await blocked(files), ['YAML_SCHEMA_INVALID groups/G.yaml:5:26']);
  });

  it('refuses names that differ only in case', async () => {
    const files = {
      ...role('Boss'),
      ...role('boss'),
      ...role('salesrep'),
      ...objectFiles('Thing__c', { Size__c: 'fieldType: text', size__c: 'fieldType: text' }),
      ...objectFiles('THING__c'),
      ...fieldFile('thing__c', 'A__c', 'fieldType: text'),
      ...fieldFile('Account', 'NAME', 'fieldType: text'),
    };
    assert.deepEqual(await blocked(files), [
      'NAME_CONFLICT objects/Thing__c/object.yaml:2:1',
      'NAME_CONFLICT objects/Account/fields/NAME.yaml:2:1',
      'NAME_CONFLICT objects/Thing__c/fields/size__c.yaml:2:1',
      'DEPENDENCY_MISSING objects/thing__c/fields/A__c.yaml:3:1',
      'NAME_CONFLICT roles/boss.yaml:2:1',
      'NAME_CONFLICT roles/salesrep.yaml:2:1',
    ]);
  });

  it('refuses cycles: roles, groups, masters, formulas, rollups, controlling fields', async () => {
    const values = 'values: [{value: a}]';
    const controlled = (by: string) => `fieldType: picklist\npicklist:\n  controllingField: ${by}\n  ${values}`;
    const files = {
      ...role('Ra', 'parent: Rb\n'),
      ...role('Rb', 'parent: Ra\n'),
      ...role('Rc', 'parent: Rc\n'),
      ...group('Ga', 'Gb'),
      ...group('Gb', 'Ga'),
      ...objectFiles('Aa__c', {
        Master__c: 'fieldType: masterDetail\nreferenceTo: [Bb__c]',
        One__c: formula('record.Two__c + 1'),
        Two__c: formula('record.One__c + 1'),
        Self__c: formula('record.Self__c'),
        Left__c: controlled('Right__c'),
        Right__c: controlled('Left__c'),
        Mirror__c: controlled('Mirror__c'),
      }),
      ...objectFiles('Bb__c', { Master__c: 'fieldType: masterDetail\nreferenceTo: [Aa__c]' }),
    };
    const at = (field: string) => `objects/Aa__c/fields/${field}__c.yaml`;
    assert.deepEqual(await blocked(files), [
      `REFERENCE_INVALID ${at('Left')}:7:3`,
      `REFERENCE_INVALID ${at('Master')}:6:1`,
      `YAML_SCHEMA_INVALID ${at('Mirror')}:7:3`,
      `REFERENCE_INVALID ${at('Right')}:7:3`,
      `EXPRESSION_INVALID ${at('Self')}:8:15`,
      `EXPRESSION_INVALID ${at('Two')}:8:15`,
      'REFERENCE_INVALID objects/Bb__c/fields/Master__c.yaml:6:1',
      'REFERENCE_INVALID roles/Ra.yaml:4:1',
      'REFERENCE_INVALID roles/Rb.yaml:4:1',
      'REFERENCE_INVALID roles/Rc.yaml:4:1',
      'REFERENCE_INVALID groups/Ga.yaml:5:12',
      'REFERENCE_INVALID groups/Gb.yaml:5:12',
    ]);
  });

  it('refuses dangling references, but not those to a file with its own fault', async () => {
    const rule = 'type: ValidationRule\napiName: V\nobject: Dd__c\ncondition: record.Gone__c > 1\nmessage: no\n';
    const files = {
      ...objectFiles('Dd__c', {
        A__c: 'fieldType: reference\nreferenceTo: [Nowhere__c]',
        B__c: 'fieldType: picklist\npicklist:\n  valueSet: None',
      }),
      'objects/Dd__c/validationRules/V.yaml': rule,
      ...objectFiles('Wrong__c', { A__c: 'fieldType: text' }, 'colour: red\n'),
      ...fieldFile('Dd__c', 'C__c', 'fieldType: reference\nreferenceTo: [Wrong__c]'),
      ...role('Rb', 'parent: Ra\n'),
      'roles/Ra.yaml': 'type: Role\napiName: Ra\n',
    };
    assert.deepEqual(await blocked(files), [
      'YAML_SCHEMA_INVALID objects/Wrong__c/object.yaml:10:1',
      'DEPENDENCY_MISSING objects/Dd__c/fields/A__c.yaml:6:15',
      'DEPENDENCY_MISSING objects/Dd__c/fields/B__c.yaml:7:3',
      'EXPRESSION_INVALID objects/Dd__c/validationRules/V.yaml:4:19',
      'YAML_SCHEMA_INVALID roles/Ra.yaml:1:1',
    ]);
  });

  it('refuses a profile with an unknown name, and accepts one with a field of the same package', async () => {
    const profile = (object: string): Files => ({
      'profiles/Guest.yaml': `type: Profile\napiName: Guest\nlabel: Guest\nobjects:\n  ${object}: {read: true}\nfields:\n  ${object}.Amount__c: {read: true}\n`,
    });
    assert.deepEqual(await blocked(profile('Nowhere__c')), [
      'REFERENCE_INVALID profiles/Guest.yaml:5:3',
      'REFERENCE_INVALID profiles/Guest.yaml:7:3',
    ]);
    await deployOverHttp(ada, {
      ...profile('Ledger__c'),
      ...objectFiles('Ledger__c', { Amount__c: 'fieldType: decimal' }),
    });
  });

  it('refuses malformed packages, in the body and in the manifest, with line and column', async () => {
    assert.deepEqual(
      await malformed(
        {},
        { version: 2, x: 1, types: [{ name: 'A B', members: ['Inv*', 1, '', '*x', 'A.*.*'] }, 5, { name: 'Role' }] },
      ),
      [
        '/x',
        '/version',
        '/types/0/name',
        ...[0, 1, 2, 3, 4].map((i) => `/types/0/members/${i}`),
        '/types/1',
        '/types/2/members',
      ].map((pointer) => `PACKAGE_INVALID /package${pointer}`),
    );
    const text = 'version: 1\nx: 1\ntypes:\n  - name: Role\n    members:\n      - A\n      - 5\n      - In*\n';
    assert.deepEqual(
      await malformed(manifest(text), undefined),
      ['2:1', '7:9', '8:9'].map((place) => `PACKAGE_INVALID manifest/package.yaml:${place}`),
    );
    for (const none of ['null\n', '[]\n', 'text\n'])
      assert.deepEqual(await malformed(manifest(none), undefined), ['PACKAGE_INVALID manifest/package.yaml:1:1']);
    assert.deepEqual(await malformed(manifest('version: 1\ntypes: []\n'), EVERYTHING), ['PACKAGE_INVALID /package']);
    assert.deepEqual((await refused({ files: {} })).body.code, 'PARAMETER_REQUIRED');
    for (const [pkg, places] of [
      [{ version: 1, types: [{ name: 'Role', members: ['In*', 'A.*', '*'] }] }, ['/package/types/0/members/0']],
      [{ version: 1 }, ['/package/types']],
    ] as const) {
      const { status, body } = await ada.post('/metadata/retrieve', { package: pkg });
      assert.deepEqual([status, body.code], [400, 'PACKAGE_INVALID']);
      assert.deepEqual(
        body.errors.map(({ pointer }: Found) => pointer),
        places,
      );
    }
  });

  it('refuses packages without their files, and files without their package', async () => {
    const types = [
      { name: 'Role', members: ['Absent', 'A.B', '../x', ' Ra', 'ra'] },
      { name: 'role', members: ['Ra'] },
      { name: 'CustomField', members: ['Ra'] },
    ];
    assert.deepEqual(await blocked({ ...role('Ra'), ...role('Rb') }, { package: { version: 1, types } }), [
      'NAME_INVALID null:null:null',
      'NAME_INVALID null:null:null',
      'NAME_INVALID null:null:null',
      'NAME_INVALID null:null:null',
      'PACKAGE_FILE_MISMATCH roles/Absent.yaml:null:null',
      'PACKAGE_FILE_MISMATCH roles/Ra.yaml:null:null',
      'PACKAGE_FILE_MISMATCH roles/Rb.yaml:null:null',
      'PACKAGE_FILE_MISMATCH roles/ra.yaml:null:null',
      'TYPE_UNKNOWN null:null:null',
    ]);
  });

  it('refuses malformed destructive manifests', async () => {
    const path = 'manifest/destructiveChanges.yaml';
    assert.deepEqual(
      await malformed(
        deletions('version: 1\nmore: x\ntypes:\n  - name: Role\n    members:\n      - "*"\n      - 7\nalters: x\n'),
      ),
      ['2:1', '7:9', '3:1', '8:1'].map((place) => `PACKAGE_INVALID ${path}:${place}`),
    );
    for (const none of ['null\n', '[]\n'])
      assert.deepEqual(await malformed(deletions(none)), [`PACKAGE_INVALID ${path}:1:1`]);
    assert.deepEqual(await malformed(deletions('types: []\n')), [`PACKAGE_INVALID ${path}:1:1`]);
    assert.deepEqual(await malformed({ 'erp-project.yaml': '<<<<<<< ours\na: 1\n' }), [
      'YAML_INVALID erp-project.yaml:1:1',
    ]);
  });

  it('refuses properties that only the platform sets, at every depth', async () => {
    const names = ['operationOverride', 'rollbackOf', 'actor', 'actorId', 'userId'];
    const each = (value: unknown = 1) => Object.fromEntries(names.map((name) => [name, value]));
    const nested = { version: 1, types: [{ name: 'Role', members: ['A', { deep: [[each()]] }] }], ...each() };
    const { body } = await refused({ files: { actor: 'actor: x\n' }, package: nested, ...each({ userId: 1 }) });
    assert.equal(body.code, 'BODY_PROPERTY_FORBIDDEN');
    assert.deepEqual(
      body.errors
        .filter(({ code }: Found) => code === 'BODY_PROPERTY_FORBIDDEN')
        .map(({ pointer }: Found) => pointer)
        .sort(),
      [
        ...names.map((name) => `/package/types/0/members/1/deep/0/0/${name}`),
        ...names.map((name) => `/package/${name}`),
        ...names.flatMap((name) => [`/${name}`, `/${name}/userId`]),
      ].sort(),
    );
  });

  it('refuses excess: files, bytes of a file, bytes of the body', async function () {
    this.timeout(120_000);
    const many = Object.fromEntries(
      Array.from({ length: LIMITS.metadata_files_max + 1 }, (_, i) => [`f${i}.yaml`, '']),
    );
    const { status, body } = await refused({ files: many, package: EVERYTHING });
    assert.deepEqual([status, body.code, body.details], [413, 'TOO_MANY_ITEMS', { max: LIMITS.metadata_files_max }]);
    const members = Array.from({ length: LIMITS.metadata_members_max + 1 }, (_, i) => `R${i}`);
    const named = await refused({ files: {}, package: { version: 1, types: [{ name: 'Role', members }] } });
    assert.deepEqual([named.status, named.body.code], [413, 'TOO_MANY_ITEMS']);
    const large = await refused({
      files: { 'roles/A.yaml': '#'.repeat(LIMITS.metadata_file_max_bytes + 1) },
      package: EVERYTHING,
    });
    assert.deepEqual([large.status, large.body.code], [413, 'REQUEST_TOO_LARGE']);
    assert.deepEqual(large.body.details, { maxBytes: LIMITS.metadata_file_max_bytes });
    const mebibyte = 1024 * 1024;
    const roles = Array.from({ length: 33 }, (_, i) =>
      role(`Full${i}`, `# ${'x'.repeat(i === 0 ? 0 : mebibyte - 200)}\n`),
    );
    const almost = JSON.stringify({ files: Object.assign({}, ...roles), package: EVERYTHING });
    const exact = almost.replace('# ', `# ${'x'.repeat(LIMITS.metadata_body_max_bytes - almost.length)}`);
    const fits = await ada.post('/metadata/validate', exact);
    assert.deepEqual([exact.length, fits.status, fits.body.valid], [LIMITS.metadata_body_max_bytes, 200, true]);
    const over = await refused(exact.replace('# ', '# x'));
    assert.deepEqual([over.status, over.body.code], [413, 'REQUEST_TOO_LARGE']);
  });

  it('refuses changes that are incompatible with the records', async () => {
    const files = {
      ...objectFiles(`Box${stood.version}__c`, {
        Code__c: 'fieldType: text\nlength: 20',
        Size__c: 'fieldType: picklist\npicklist:\n  values: [{value: small}, {value: large}]',
        Note__c: 'fieldType: text',
      }),
    };
    const object = `Box${stood.version}__c`;
    await deployOverHttp(ada, files);
    for (const Size__c of ['small', 'large'])
      assert.equal((await ada.post(`/data/${object}`, { name: 'A', Code__c: 'twice-as-long', Size__c })).status, 201);
    stood = await standing();
    const at = (field: string) => `objects/${object}/fields/${field}__c.yaml`;
    assert.deepEqual(
      await blocked({
        ...fieldFile(object, 'Code__c', 'fieldType: text\nlength: 5\nunique: true'),
        ...fieldFile(object, 'Size__c', 'fieldType: picklist\npicklist:\n  values: [{value: small}]'),
        ...fieldFile(object, 'Note__c', 'fieldType: text\nrequired: true'),
      }),
      [
        `DATA_INCOMPATIBLE ${at('Code')}:7:1`,
        `DESTRUCTIVE_MANIFEST_REQUIRED ${at('Code')}:6:1`,
        `DATA_INCOMPATIBLE ${at('Note')}:6:1`,
        `DESTRUCTIVE_MANIFEST_REQUIRED ${at('Size')}:6:1`,
      ],
    );
  });

  it('refuses components shipped by the platform, and names that are reserved for it', async () => {
    assert.deepEqual(
      await blocked({
        'objects/User/object.yaml':
          'type: CustomObject\napiName: User\nlabel: U\nlabelPlural: Us\nnameField: {label: N, fieldType: text}\n',
        ...objectFiles('Thing', { A: 'fieldType: text', createdAt: 'fieldType: text' }),
        'roles/constructor.yaml': 'type: Role\napiName: constructor\nlabel: R\n',
        'roles/__proto__.yaml': 'type: Role\napiName: __proto__\nlabel: R\n',
      }),
      [
        'NAME_INVALID objects/Thing/object.yaml:2:1',
        'SYSTEM_COMPONENT_READ_ONLY objects/User/object.yaml:1:1',
        'NAME_INVALID objects/Thing/fields/A.yaml:2:1',
        'NAME_CONFLICT objects/Thing/fields/createdAt.yaml:2:1',
        'NAME_INVALID roles/__proto__.yaml:2:1',
        'NAME_INVALID roles/constructor.yaml:2:1',
      ],
    );
  });

  it('accepts byte order marks, Windows line ends, comments and JSON', async () => {
    const files = {
      'roles/Wa.yaml': '\ufefftype: Role\r\napiName: Wa\r\nlabel: "A"  # a comment\r\n',
      'roles/Wb.yaml': '{"type": "Role", "apiName": "Wb", "label": "yes"}',
      'roles/Wc.yaml': '---\nlabel: 2026-01-01\napiName: Wc\ntype: Role\n...\n',
    };
    await deployOverHttp(ada, files);
    const { body } = await ada.post('/metadata/retrieve', { package: wholePackage(files) });
    const text = (name: string, label: string) => `type: Role\napiName: ${name}\nlabel: ${label}\n`;
    assert.deepEqual(
      [body.files['roles/Wa.yaml'], body.files['roles/Wb.yaml'], body.files['roles/Wc.yaml']],
      [text('Wa', 'A'), text('Wb', '"yes"'), text('Wc', '"2026-01-01"')],
    );
  });
});
