import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { manifestHash } from '../../../lib/metadata/manifest.ts';
import { deployBody, retrieveBody, validateBody } from '../../../services/metadata/project/body.ts';
import { checkFiles, readPackage, readProject } from '../../../services/metadata/project/project.ts';
import { objectFiles, wholePackage } from '../../support/metadata-tenant.ts';

const fails =
  (code: string, pointer?: string) =>
  (error: PlatformError): true => {
    assert.equal(error.code, code, error.message);
    if (pointer !== undefined)
      assert.deepEqual(
        error.errors?.map((e) => e.pointer),
        [pointer],
      );
    return true;
  };

const problems = async (files: Record<string, string>, pkg: unknown = wholePackage(files)) =>
  (await readProject(files, pkg)).problems.map((p) => [p.code, p.fullName]);

describe('metadata: bodies and projects', () => {
  it('refuses platform-owned properties at every depth, except in paths and texts of files', () => {
    for (const name of ['operationOverride', 'rollbackOf', 'actor', 'actorId', 'userId']) {
      assert.throws(() => deployBody({ files: {}, [name]: 1 }), fails('BODY_PROPERTY_FORBIDDEN', `/${name}`));
      assert.throws(
        () => deployBody({ files: {}, package: { version: 1, types: [{ name: 'A', members: [], [name]: 1 }] } }),
        fails('BODY_PROPERTY_FORBIDDEN', `/package/types/0/${name}`),
      );
      assert.throws(() => retrieveBody({ package: { [name]: 1 } }), fails('BODY_PROPERTY_FORBIDDEN'));
      validateBody({ files: { [name]: `${name}: 1` } });
    }
  });

  it('accepts exactly one of the three forms of a deployment', () => {
    const id = '0193d3c1-7a20-7c11-8a55-2f0e4b6c9d01';
    const conflicts = (body: object): string[] => {
      try {
        deployBody(body);
      } catch (error) {
        return (error as PlatformError).errors!.map(({ pointer, code }) => `${pointer} ${code}`);
      }
      return [];
    };
    assert.equal(deployBody({ quickDeploy: { validationId: id } }).form, 'quickDeploy');
    assert.equal(deployBody({ rollback: { deploymentId: id, checkOnly: true } }).form, 'rollback');
    assert.deepEqual(conflicts({ files: {}, quickDeploy: { validationId: 'x' } }), [
      '/files PARAMETER_CONFLICT',
      '/quickDeploy PARAMETER_CONFLICT',
    ]);
    assert.deepEqual(conflicts({ rollback: 1, quickDeploy: 1 }), [
      '/rollback PARAMETER_CONFLICT',
      '/quickDeploy PARAMETER_CONFLICT',
    ]);
    assert.deepEqual(conflicts({ rollback: { deploymentId: id }, checkOnly: true, actor: 1, colour: 1 }), [
      '/actor BODY_PROPERTY_FORBIDDEN',
      '/colour BODY_PROPERTY_UNKNOWN',
      '/rollback PARAMETER_CONFLICT',
      '/checkOnly PARAMETER_CONFLICT',
    ]);
    assert.deepEqual(
      conflicts({ quickDeploy: { validationId: id, actorId: id, expectedManifestHash: 'x' }, more: 1 }),
      [
        '/quickDeploy/actorId BODY_PROPERTY_FORBIDDEN',
        '/more BODY_PROPERTY_UNKNOWN',
        '/quickDeploy/expectedManifestHash PARAMETER_INVALID',
      ],
    );
    assert.deepEqual(conflicts({ rollback: {} }), ['/rollback/deploymentId PARAMETER_REQUIRED']);
    assert.deepEqual(conflicts({ rollback: null }), ['/rollback PARAMETER_INVALID']);
    assert.deepEqual(conflicts({ rollback: { deploymentId: 'x', force: true } }), [
      '/rollback/force PARAMETER_INVALID',
      '/rollback/deploymentId PARAMETER_INVALID',
    ]);
  });

  it('names every unknown, missing and mistyped property', () => {
    assert.throws(() => validateBody({ files: {}, checkOnly: true }), fails('BODY_PROPERTY_UNKNOWN', '/checkOnly'));
    assert.throws(() => deployBody({}), fails('PARAMETER_REQUIRED', '/files'));
    assert.throws(() => deployBody([]), fails('BODY_REQUIRED'));
    assert.throws(
      () => deployBody({ files: [], checkOnly: 'yes', baseMetadataVersion: 1.5, expectedPlanHash: 'x' }),
      (error: PlatformError) => {
        assert.deepEqual(
          error.errors?.map((e) => e.pointer),
          ['/files', '/checkOnly', '/baseMetadataVersion', '/expectedPlanHash'],
        );
        return true;
      },
    );
    assert.throws(() => checkFiles({ 'a.yaml': 1 }), fails('PARAMETER_INVALID', '/files/a.yaml'));
    const told = (attempt: () => unknown): string[] => {
      try {
        attempt();
      } catch (error) {
        return (error as PlatformError).errors!.map(({ pointer, code }) => `${pointer} ${code}`);
      }
      return [];
    };
    assert.deepEqual(
      told(() => deployBody({ actor: 1, colour: 1, package: 1, checkOnly: 1 })),
      [
        '/actor BODY_PROPERTY_FORBIDDEN',
        '/colour BODY_PROPERTY_UNKNOWN',
        '/files PARAMETER_REQUIRED',
        '/package PARAMETER_INVALID',
        '/checkOnly PARAMETER_INVALID',
      ],
    );
    assert.deepEqual(
      told(() => checkFiles({ '../a': '', 'b.yaml': 1 })),
      ['/files/..~1a FILE_PATH_INVALID', '/files/b.yaml PARAMETER_INVALID'],
    );
    assert.deepEqual(
      told(() => readPackage({ version: 2, x: 1, types: [1, { name: 'A B', members: [1, 'B', ''] }] }, '')),
      ['/x', '/version', '/types/0', '/types/1/name', '/types/1/members/0', '/types/1/members/2'].map(
        (pointer) => `${pointer} PACKAGE_INVALID`,
      ),
    );
    assert.equal(told(() => readPackage({ version: 1, types: Array(100_000).fill(1) }, '')).length, 100);
    const withOwnText = { version: 1, types: [{ name: { toString: 1 }, members: ['*'] }] };
    assert.deepEqual(
      told(() => readPackage(withOwnText, '')),
      ['/types/0/name PACKAGE_INVALID'],
    );
  });

  it('accepts only relative paths of plain segments', () => {
    for (const path of [
      '../a.yaml',
      'a/../b.yaml',
      '/etc/passwd',
      'a\\b',
      'a//b',
      'a/',
      './a',
      'a b',
      'ä',
      '',
      'a\0b',
      'x'.repeat(256),
    ])
      assert.throws(() => checkFiles({ [path]: '' }), fails('FILE_PATH_INVALID'), JSON.stringify(path));
    checkFiles({ 'objects/A__c/fields/B-1.x.yaml': '' });
  });

  it('limits the number of files and members and the size of a file', () => {
    const many = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`f${i}.yaml`, '']));
    assert.throws(() => checkFiles(many), fails('TOO_MANY_ITEMS'));
    assert.throws(() => checkFiles({ 'a.yaml': 'ä'.repeat(600_000) }), fails('REQUEST_TOO_LARGE'));
    const members = Array.from({ length: 10_001 }, (_, i) => `A__c.F${i}__c`);
    assert.throws(
      () => readPackage({ version: 1, types: [{ name: 'CustomField', members }] }, ''),
      fails('TOO_MANY_ITEMS'),
    );
  });

  it('takes packages of version 1 with names and members', () => {
    for (const [value, pointer] of [
      [{ version: 2, types: [] }, '/package/version'],
      [{ types: [] }, '/package/version'],
      [{ version: 1 }, '/package/types'],
      [{ version: 1, types: [], x: 1 }, '/package/x'],
      [{ version: 1, types: [1] }, '/package/types/0'],
      [{ version: 1, types: [{ name: 'A B', members: [] }] }, '/package/types/0/name'],
      [{ version: 1, types: [{ name: 'A', members: [1] }] }, '/package/types/0/members/0'],
    ] as const)
      assert.throws(() => readPackage(value, '/package'), fails('PACKAGE_INVALID', pointer));
  });

  it('reports the position of invalid YAML for every file', async () => {
    await assert.rejects(
      readProject({ 'a.yaml': 'a: "', 'roles/B.yaml': 'x: 1\nx: 2' }, { version: 1, types: [] }),
      (error: PlatformError) => {
        assert.equal(error.code, 'YAML_INVALID');
        assert.deepEqual(error.details, { path: 'a.yaml', line: 1, column: 5 });
        assert.deepEqual(
          error.errors?.map((e) => e.params['line']),
          [1, 2],
        );
        return true;
      },
    );
  });

  it('stops at a hundred invalid files and reports that there are more', async () => {
    const broken = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`roles/R${i}.yaml`, 'x: "']));
    const refusedFor = (count: number) => readProject(broken(count), null).catch((error: PlatformError) => error);
    const [some, many] = [await refusedFor(100), await refusedFor(5_000)];
    assert.ok(some instanceof PlatformError && many instanceof PlatformError);
    assert.deepEqual([some.message, some.errors?.length], ['A file is not well-formed metadata YAML.', 100]);
    assert.match(many.message, /^More than 100 files/);
    assert.equal(many.errors?.length, 100);
  });

  it('checks package, manifest file and files against each other', async () => {
    const files = objectFiles('A__c', { B__c: 'fieldType: text' });
    const manifest = 'version: 1\ntypes:\n  - name: CustomObject\n    members:\n      - A__c\n';
    await assert.rejects(
      readProject({ ...files, 'manifest/package.yaml': manifest }, wholePackage(files)),
      fails('PACKAGE_INVALID'),
    );
    await assert.rejects(readProject(files, undefined), fails('PARAMETER_REQUIRED'));
    const fromFile = await readProject({ ...files, 'manifest/package.yaml': manifest }, undefined);
    assert.deepEqual(
      fromFile.problems.map((p) => [p.code, p.fullName]),
      [['PACKAGE_FILE_MISMATCH', 'A__c.B__c']],
    );
    const missing = { version: 1, types: [{ name: 'Role', members: ['Boss'] }] };
    assert.deepEqual(await problems({}, missing), [['PACKAGE_FILE_MISMATCH', 'Boss']]);
    const wild = {
      version: 1,
      types: [
        { name: 'CustomObject', members: ['*'] },
        { name: 'CustomField', members: ['A__c.*'] },
      ],
    };
    const project = await readProject(files, wild);
    assert.deepEqual(project.problems, []);
    assert.deepEqual(project.package, {
      version: 1,
      types: [
        { name: 'CustomField', members: ['A__c.B__c'] },
        { name: 'CustomObject', members: ['A__c'] },
      ],
    });
  });

  it('reports problems of a component with their positions', async () => {
    const path = 'objects/A__c/fields/B__c.yaml';
    const at = async (yaml: string, where = path): Promise<unknown[]> =>
      (await readProject({ [where]: yaml }, wholePackage({ [where]: yaml }))).problems.map((p) => [
        p.code,
        p.line,
        p.column,
      ]);
    const good = 'type: CustomField\napiName: B__c\nobject: A__c\nlabel: B\nfieldType: text\n';
    assert.deepEqual(await at(good), []);
    assert.deepEqual(await at(`${good}colour: red\n`), [['YAML_SCHEMA_INVALID', 6, 1]]);
    assert.deepEqual(await at(`${good}length: long\n`), [['YAML_SCHEMA_INVALID', 6, 1]]);
    assert.deepEqual(await at(good.replace('fieldType: text', 'fieldType: id')), [['YAML_SCHEMA_INVALID', 5, 1]]);
    assert.deepEqual(await at(good.replace('apiName: B__c', 'apiName: C__c')), [['YAML_SCHEMA_INVALID', 2, 1]]);
    assert.deepEqual(await at('- a\n'), [['YAML_SCHEMA_INVALID', 1, 1]]);
    assert.deepEqual(await problems({ 'foo/bar.yaml': 'type: Teapot\n' }, { version: 1, types: [] }), [
      ['TYPE_UNKNOWN', 'foo/bar.yaml'],
    ]);
    assert.deepEqual(await problems({}, { version: 1, types: [{ name: 'Teapot', members: ['*'] }] }), [
      ['TYPE_UNKNOWN', '*'],
    ]);
    for (const name of ['a"b', "x'; DROP TABLE y; --", '_x', '1a', 'x'.repeat(41), 'constructor', '__proto__']) {
      const yaml = `type: Role\napiName: ${JSON.stringify(name)}\nlabel: R\n`;
      const found = await problems({ 'roles/R.yaml': yaml }, { version: 1, types: [{ name: 'Role', members: ['R'] }] });
      assert.ok(found.length > 0 && found.every(([code]) => code === 'YAML_SCHEMA_INVALID'), name);
    }
    assert.deepEqual(
      (await problems({ 'roles/constructor.yaml': 'type: Role\napiName: constructor\nlabel: R\n' }))[0],
      ['NAME_INVALID', 'constructor'],
    );
  });

  it('has one canonical form for equivalent content', async () => {
    const one = await readProject(
      {
        'profiles/P.yaml':
          'label: "P"\napiName: P\ntype: Profile\nsystem: [viewAudit, apiEnabled]\ndescription: null\nactions: []\nobjects:\n  B: {read: true}\n  A: {read: true}\n',
      },
      null,
    );
    assert.equal(
      one.drafts.get('Profile:P')?.yaml,
      `type: Profile\napiName: P\nlabel: P\nsystem:\n  - apiEnabled\n  - viewAudit\nobjects:\n${['A', 'B']
        .map(
          (name) =>
            `  ${name}:\n    create: false\n    read: true\n    update: false\n    delete: false\n    viewAll: false\n    modifyAll: false\n`,
        )
        .join('')}`,
    );
  });

  it('keeps null within JSON values and ignores it elsewhere', async () => {
    const yamlOf = async (files: Record<string, string>) => {
      const { drafts, problems: found } = await readProject(files, null);
      return [...drafts.values()].map(({ yaml }) => yaml).join('') || found.map(({ message }) => message).join('\n');
    };
    const json = 'type: CustomField\napiName: J__c\nobject: A__c\nlabel: J\nfieldType: json\ndefaultValue:\n';
    const value = '  a: ""\n  b: null\n  c:\n    - null\n    - z: null\n';
    assert.equal(
      await yamlOf({ 'objects/A__c/fields/J__c.yaml': `${json}${value}example: null\n` }),
      `${json}${value}`,
    );
    const action = 'type: CustomAction\napiName: Act\nobject: A__c\nlabel: Act\nrisk: low\nrequiresComment: false\n';
    const input = 'input:\n  __proto__: null\n  properties:\n    x:\n      const: null\n';
    assert.equal(await yamlOf({ 'objects/A__c/actions/Act.yaml': action + input }), action + input);
    assert.equal(
      await yamlOf({ 'roles/R.yaml': 'type: Role\napiName: R\nlabel: R\nparent:\ncolour:\n' }),
      'There is no property "colour" here.',
    );
  });

  it('hashes path, text and package in a fixed order', () => {
    const hex = (text: string): string => createHash('sha256').update(text).digest('hex');
    const pkg = { version: 1, types: [{ name: 'Role', members: ['A', 'B'] }] } as const;
    const files = { 'roles/B.yaml': 'b: 1\r\n\n', 'roles/A.yaml': 'a: 1', 'erp-project.yaml': 'anything' };
    const expected = hex(
      `roles/A.yaml\0${hex('a: 1\n')}\nroles/B.yaml\0${hex('b: 1\n')}\npackage\0${hex('{"types":[{"members":["A","B"],"name":"Role"}],"version":1}')}\n`,
    );
    assert.equal(manifestHash(files, pkg), `sha256:${expected}`);
    const reversed = Object.fromEntries(Object.entries(files).reverse());
    assert.equal(manifestHash(reversed, pkg), `sha256:${expected}`);
  });
});

describe('metadata: messages about files', () => {
  it('report unresolved merge conflicts with their position', async () => {
    const text = 'type: Role\napiName: Rep\n<<<<<<< HEAD\nlabel: Rep\n=======\nlabel: Seller\n>>>>>>> theirs\n';
    await assert.rejects(readProject({ 'roles/Rep.yaml': text }, null), (error) => {
      assert.ok(error instanceof PlatformError);
      const [found] = error.errors ?? [];
      assert.equal(found?.message, 'The file has an unresolved merge conflict.');
      assert.deepEqual(found?.params, { path: 'roles/Rep.yaml', line: 3, column: 1 });
      return true;
    });
  });

  it('describe valid names in words, once', async () => {
    const text = 'type: Translation\napiName: german_1\nlabels:\n  Account: Konto\n';
    const { problems } = await readProject({ 'translations/german_1.yaml': text }, null);
    assert.deepEqual(
      problems.map(({ code }) => code),
      ['NAME_INVALID'],
    );
  });
});
