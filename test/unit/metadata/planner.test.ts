import assert from 'node:assert/strict';
import fc from 'fast-check';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { SYSTEM_PERMISSIONS, type SystemPermission } from '../../../lib/schema/snapshot.ts';
import { compileSnapshot } from '../../../services/metadata/compile.ts';
import { type Component, componentKey, type State } from '../../../services/metadata/kinds/component.ts';
import { ddl } from '../../../services/metadata/physical/ddl.ts';
import { physicalModel } from '../../../services/metadata/physical/model.ts';
import { makePlan, type Plan, planHash } from '../../../services/metadata/planner/plan.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { readTemplate } from '../../../services/metadata/tenants.ts';
import { configuration } from '../../support/metadata-configurations.ts';
import { destructiveManifest, fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { acting } from '../../support/plans.ts';

type Files = Record<string, string>;

const CORE = readTemplate(new URL('../../../templates/core', import.meta.url).pathname);
interface Options {
  readonly platform?: boolean;
  readonly allowDestructiveChanges?: boolean;
  readonly permissions?: readonly SystemPermission[];
  readonly restores?: boolean;
}

const plan = async (
  before: State,
  files: Files,
  { platform = false, allowDestructiveChanges = false, permissions, restores = false }: Options = {},
): Promise<Plan> =>
  makePlan(before, await readProject(files, null), {
    allowDestructiveChanges,
    restores,
    ...(platform ? { platform } : { platform, ...acting(permissions) }),
  });

/** The store's content after the plan. */
const applied = (result: Plan, version = 2): State =>
  new Map(
    [...result.after].map(([key, component]): [string, Component] => [
      key,
      component.changedAtVersion === 0 ? { ...component, changedAtVersion: version } : component,
    ]),
  );

const texts = (state: State): Files => Object.fromEntries([...state.values()].map(({ path, yaml }) => [path, yaml]));

/** The same value with its keys in reverse. */
function turned<T>(value: T): T;
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, item]) => [key, turned(item)])
      .reverse(),
  );
}

describe('metadata: the planner', () => {
  let core: State;
  before(async () => {
    const result = await plan(new Map(), CORE, { platform: true });
    assert.deepEqual(result.blocked, []);
    const system = new Set(['CustomObject', 'CustomField']);
    core = new Map(
      [...applied(result, 1)].map(([key, component]) => [key, { ...component, system: system.has(component.type) }]),
    );
  });

  it('names the changed leaf regardless of key order', async () => {
    const permissions = (update: boolean, order: readonly string[]): Files => ({
      'permissionSets/Field.yaml': [
        'type: PermissionSet\napiName: Field\nlabel: Field\nobjects:\n  Plain__c:\n    create: true\n    read: true',
        `    update: ${update}\nfields:\n  Plain__c.Text__c:`,
        ...order.map((key) => `    ${key}: true`),
        '',
      ].join('\n'),
    });
    const files = {
      ...objectFiles('Plain__c', { Text__c: 'fieldType: text' }),
      ...permissions(false, ['read', 'edit']),
    };
    const before = applied(await plan(core, files));
    // The database gives bodies back with their keys in an order of its own.
    const stored = new Map(
      [...before].map(([key, component]) => [key, { ...component, body: turned(component.body) }]),
    );
    const now = [before, stored].map((state) => plan(state, permissions(true, ['edit', 'read'])));
    const [fresh, read] = await Promise.all(now);
    assert.deepEqual(
      read?.updates.map(({ properties }) => properties),
      [[{ name: 'objects.Plain__c.update', from: false, to: true }]],
    );
    assert.equal(planHash(read!, stored), planHash(fresh!, before));
  });

  it('suggests a similar name', async () => {
    const permissions =
      'type: PermissionSet\napiName: Field\nlabel: Field\nfields:\n  Plain__c.Note__c:\n    read: true\n';
    const files = {
      ...objectFiles('Plain__c', { Notes__c: 'fieldType: text' }),
      'permissionSets/Field.yaml': permissions,
      ...fieldFile('Plian__c', 'Other__c', 'fieldType: text'),
    };
    assert.deepEqual(
      (await plan(core, files)).blocked.map(({ message }) => message),
      [
        'CustomObject Plian__c is neither in the project nor in the tenant. Did you mean Plain__c?',
        'There is no field Plain__c.Note__c. Did you mean Plain__c.Notes__c?',
      ],
    );
  });

  it('names each component that uses an updated one once', async () => {
    const rule = 'condition: record.A__c == "x" && record.A__c != "y"\nmessage: No\nerrorField: A__c\n';
    const files = {
      ...objectFiles('Used__c', { A__c: 'fieldType: text' }),
      'objects/Used__c/validationRules/R.yaml': `type: ValidationRule\napiName: R\nobject: Used__c\n${rule}`,
    };
    const before = applied(await plan(core, files));
    const { updates } = await plan(before, fieldFile('Used__c', 'A__c', 'fieldType: text\nhelpText: Help'));
    assert.deepEqual(updates[0]?.impact.dependents, [{ type: 'ValidationRule', fullName: 'Used__c.R' }]);
  });

  it('limits the total length of an object’s default values', async () => {
    const fields = (chars: number): Files =>
      objectFiles('Long__c', {
        A__c: `fieldType: longText\nlength: 131072\ndefaultValue: ${'a'.repeat(131_072)}`,
        B__c: `fieldType: richText\ndefaultValue: ${'b'.repeat(chars)}`,
        C__c: `fieldType: richText\ndefaultValue: ${'c'.repeat(4)}`,
      });
    assert.deepEqual((await plan(core, fields(131_068))).blocked, []);
    const [problem, ...others] = (await plan(core, fields(131_069))).blocked;
    assert.deepEqual(
      [problem?.code, problem?.fullName, problem?.line, problem?.details, others],
      ['LIMIT_EXCEEDED', 'Long__c.C__c', 6, { max: 262_144 }, []],
    );
  });

  it('limits the total maximum length of an object’s texts', async () => {
    const fields = (last: string): Files =>
      objectFiles('Long__c', {
        ...Object.fromEntries(
          Array.from('ABCDEFGHIJKL', (letter, i) => [
            `${letter}__c`,
            i % 2 ? 'fieldType: json' : 'fieldType: longText\nlength: 131072',
          ]),
        ),
        M__c: last,
      });
    // Twelve texts of 131,072 leave half of one; the name of the object has 255.
    assert.deepEqual((await plan(core, fields('fieldType: longText\nlength: 60000'))).blocked, []);
    const [problem, ...others] = (await plan(core, fields('fieldType: longText\nlength: 66000'))).blocked;
    assert.deepEqual(
      [problem?.code, problem?.fullName, problem?.details, others],
      ['LIMIT_EXCEEDED', 'Long__c.M__c', { max: 1_638_400 }, []],
    );
  });

  it('plans from any configuration to any superset; replanning the result is no change', async () => {
    await fc.assert(
      fc.asyncProperty(configuration, configuration, async (one, two) => {
        const first = await plan(core, one);
        assert.deepEqual(first.blocked, []);
        const a = applied(first);
        const second = await plan(a, two);
        assert.deepEqual(second.blocked, []);
        const b = applied(second, 3);
        const again = await plan(b, two);
        assert.deepEqual([again.creates, again.updates, again.changed], [[], [], []]);
        assert.equal(again.noops.length, Object.keys(two).length);
        const whole = await plan(b, texts(b));
        assert.equal(whole.noops.length, b.size, 'what is stored is its own canonical form');
      }),
      { numRuns: 60 },
    );
  });

  it('computes the inverse plan', async () => {
    await fc.assert(
      fc.asyncProperty(configuration, configuration, async (one, two) => {
        const a = applied(await plan(core, one));
        const forth = await plan(a, two);
        const { files, deletes } = forth.inverse;
        const manifest = destructiveManifest(
          Object.fromEntries(deletes.map(({ name, members }): [string, readonly string[]] => [name, members])),
        );
        const b = applied(forth, 3);
        const back = await plan(b, { ...files, ...manifest }, { restores: true });
        assert.deepEqual(back.blocked, []);
        assert.deepEqual(texts(applied(back, 4)), texts(a));
      }),
      { numRuns: 60 },
    );
  });

  it('gives equal plans equal hashes regardless of file order', async () => {
    const files = { ...objectFiles('A__c', { B__c: 'fieldType: text', C__c: 'fieldType: date' }) };
    const reversed = Object.fromEntries(Object.entries(files).reverse());
    const hash = planHash(await plan(core, files), core);
    assert.equal(planHash(await plan(core, reversed), core), hash);
    assert.notEqual(
      planHash(await plan(core, { ...files, ...fieldFile('A__c', 'C__c', 'fieldType: time') }), core),
      hash,
    );
  });

  it('shows differences property by property', async () => {
    const a = applied(await plan(core, objectFiles('A__c')));
    const { updates } = await plan(a, objectFiles('A__c', {}, 'description: New\nfeatures:\n  history: false\n'));
    assert.deepEqual(updates[0]?.properties, [
      { name: 'description', from: null, to: 'New' },
      { name: 'features.history', from: true, to: false },
    ]);
  });

  const role = (name: string, parent?: string): Files => ({
    [`roles/${name}.yaml`]: `type: Role\napiName: ${name}\nlabel: ${name}\n${parent ? `parent: ${parent}\n` : ''}`,
  });
  const valueSet = (name: string, ...values: string[]): Files => ({
    [`valueSets/${name}.yaml`]: `type: ValueSet\napiName: ${name}\nvalues:\n${values.map((value) => `  - value: ${value}\n`).join('')}`,
  });
  const profile = (body: string): Files => ({ 'profiles/P.yaml': `type: Profile\napiName: P\nlabel: P\n${body}` });
  const client = (body: string): Files => ({
    'externalClients/App.yaml': `type: ExternalClient\napiName: App\nname: App\n${body}`,
  });
  const field = (yaml: string, name = 'F__c'): Files => ({ ...objectFiles('A__c'), ...fieldFile('A__c', name, yaml) });
  const identityProvider = (body: string, name = 'Corp'): Files => ({
    [`identityProviders/${name}.yaml`]: `type: IdentityProvider\napiName: ${name}\nlabel: Corp\nclientId: erp\n${body}`,
  });
  const settings = (body: string): Files => ({
    'settings/General.yaml': `type: TenantSettings\napiName: General\n${body}`,
  });

  it('warns of unverified domains of an identity provider', async () => {
    const files = {
      ...role('Seller'),
      ...profile(''),
      ...identityProvider(
        'issuer: https://id.corp.example/realms/one\ndomains: [corp.example, zoo.example]\ncreateUsers: {profileApiName: P, roleApiName: Seller}\n',
      ),
    };
    const project = await readProject(files, null);
    const verifiedDomains = new Set(['corp.example']);
    const options = { platform: false, allowDestructiveChanges: false, ...acting() } as const;
    const { blocked, warnings } = makePlan(core, project, { ...options, verifiedDomains });
    assert.deepEqual(blocked, []);
    assert.deepEqual(
      warnings.map(({ code, fullName, line }) => [code, fullName, line]),
      [['DOMAIN_NOT_VERIFIED', 'Corp', 6]],
    );
    const unknown = makePlan(core, project, options);
    assert.deepEqual(unknown.warnings, [], 'auth did not say');
    const tenant = { key: 'acme' } as Parameters<typeof compileSnapshot>[0];
    assert.deepEqual(compileSnapshot(tenant, 1, applied(unknown)).identityProviders, {
      Corp: {
        apiName: 'Corp',
        label: 'Corp',
        active: true,
        issuer: 'https://id.corp.example/realms/one',
        clientId: 'erp',
        domains: ['corp.example', 'zoo.example'],
        usernameClaim: 'email',
        createUsers: { profileApiName: 'P', roleApiName: 'Seller' },
        passwordSignIn: true,
      },
    });
  });

  it('drops the secret of an identity provider, with a warning, when issuer or client id changes', async () => {
    const corp = (issuer: string, more = ''): Files => ({
      ...role('Seller'),
      ...profile(''),
      ...identityProvider(`issuer: https://${issuer}\ndomains: [corp.example]\n${more}`),
    });
    const options = { platform: false, allowDestructiveChanges: false, ...acting() } as const;
    const first = makePlan(core, await readProject(corp('id.corp.example'), null), options);
    assert.deepEqual(first.warnings, []);
    const before = applied(first);
    const again = makePlan(
      before,
      await readProject(corp('id.corp.example', 'passwordSignIn: false\n'), null),
      options,
    );
    assert.deepEqual(again.warnings, [], 'another setting keeps it');
    const moved = makePlan(before, await readProject(corp('id.elsewhere.example'), null), options);
    assert.deepEqual(moved.blocked, []);
    assert.deepEqual(
      moved.warnings.map(({ code, fullName, message }) => [code, fullName, /secret/.test(message)]),
      [['WITHOUT_EFFECT', 'Corp', true]],
    );
  });

  const refused: [what: string, files: Files, codes: string[]][] = [
    ['a custom object without __c', objectFiles('Thing'), ['NAME_INVALID']],
    ['a custom field without __c', field('fieldType: text', 'Thing'), ['NAME_INVALID']],
    ['a field that every object has', field('fieldType: text', 'ownerId'), ['NAME_CONFLICT']],
    ['a field that differs from a system field in case only', field('fieldType: text', 'NAME'), ['NAME_CONFLICT']],
    ['objects that differ in case only', { ...objectFiles('A__c'), ...objectFiles('a__c') }, ['NAME_CONFLICT']],
    [
      'fields that differ in case only',
      { ...field('fieldType: text', 'X__c'), ...fieldFile('A__c', 'x__c', 'fieldType: text') },
      ['NAME_CONFLICT'],
    ],
    ['roles that differ in case only', { ...role('Sales'), ...role('SALES') }, ['NAME_CONFLICT']],
    ['value sets that differ in case only', { ...valueSet('A', 'x'), ...valueSet('a', 'x') }, ['NAME_CONFLICT']],
    [
      'a profile that differs in case only from one that the platform ships',
      { 'profiles/standard.yaml': 'type: Profile\napiName: standard\nlabel: S\n' },
      ['NAME_CONFLICT'],
    ],
    [
      'a field of an object that is nowhere',
      fieldFile('Nowhere__c', 'F__c', 'fieldType: text'),
      ['DEPENDENCY_MISSING'],
    ],
    ['a reference to nowhere', field('fieldType: reference\nreferenceTo: [Nowhere__c]'), ['DEPENDENCY_MISSING']],
    [
      'a picklist of values that are nowhere',
      field('fieldType: picklist\npicklist:\n  valueSet: Nowhere'),
      ['DEPENDENCY_MISSING'],
    ],
    ['a picklist without values', field('fieldType: picklist\npicklist: {restricted: true}'), ['YAML_SCHEMA_INVALID']],
    [
      'a value twice',
      field('fieldType: picklist\npicklist: {values: [{value: a}, {value: a}]}'),
      ['YAML_SCHEMA_INVALID'],
    ],
    [
      'a controlling field that is none',
      field('fieldType: picklist\npicklist: {values: [{value: a}], controllingField: X__c}'),
      ['REFERENCE_INVALID'],
    ],
    [
      'a value that nothing allows',
      {
        ...field('fieldType: boolean', 'Flag__c'),
        ...field('fieldType: picklist\npicklist: {values: [{value: a, validFor: []}], controllingField: Flag__c}'),
      },
      ['YAML_SCHEMA_INVALID'],
    ],
    [
      'a masterDetail field that can be emptied',
      field('fieldType: masterDetail\nreferenceTo: [User]\nonDelete: setNull'),
      ['YAML_SCHEMA_INVALID'],
    ],
    [
      'a required reference that is emptied',
      field('fieldType: reference\nreferenceTo: [User]\nrequired: true\nonDelete: setNull'),
      ['YAML_SCHEMA_INVALID'],
    ],
    ['an object that is its own master', field('fieldType: masterDetail\nreferenceTo: [A__c]'), ['REFERENCE_INVALID']],
    [
      'two child relationships of one name',
      {
        ...field('fieldType: reference\nreferenceTo: [User]'),
        ...fieldFile('A__c', 'G__c', 'fieldType: reference\nreferenceTo: [User]'),
      },
      ['NAME_CONFLICT'],
    ],
    ['an attribute of another type', field('fieldType: boolean\nlength: 5'), ['YAML_SCHEMA_INVALID']],
    ['a reference without a target', field('fieldType: reference'), ['YAML_SCHEMA_INVALID']],
    ['a masterDetail field without a target', field('fieldType: masterDetail'), ['YAML_SCHEMA_INVALID']],
    [
      'a masterDetail field without a target that decides who sees records',
      {
        ...objectFiles('A__c', {}, 'sharingDefault: controlledByParent\n'),
        ...fieldFile('A__c', 'F__c', 'fieldType: masterDetail'),
      },
      ['YAML_SCHEMA_INVALID'],
    ],
    ['scale above precision', field('fieldType: decimal\nprecision: 3\nscale: 4'), ['YAML_SCHEMA_INVALID']],
    ['minimum above maximum', field('fieldType: integer\nminimum: 2\nmaximum: 1'), ['YAML_SCHEMA_INVALID']],
    [
      'a default that is no value of the field',
      field('fieldType: date\ndefaultValue: tomorrow'),
      ['YAML_SCHEMA_INVALID'],
    ],
    [
      'a blank default of a required field',
      field('fieldType: text\nrequired: true\ndefaultValue: "\\u00a0 "'),
      ['YAML_SCHEMA_INVALID'],
    ],
    [
      'an empty list as the default of a required field',
      field('fieldType: multiPicklist\nrequired: true\ndefaultValue: []\npicklist: {values: [{value: a}]}'),
      ['YAML_SCHEMA_INVALID'],
    ],
    [
      'a default that is no value of its value set',
      {
        ...valueSet('Colours', 'red'),
        ...field('fieldType: picklist\ndefaultValue: blue\npicklist: {valueSet: Colours}'),
      },
      ['YAML_SCHEMA_INVALID'],
    ],
    ['a pattern outside the grammar', field('fieldType: text\npattern: "(?=a)"'), ['YAML_SCHEMA_INVALID']],
    [
      'a pattern that takes too long for the longest text',
      field('fieldType: text\nlength: 4000\npattern: "(a?){500}"'),
      ['YAML_SCHEMA_INVALID'],
    ],
    [
      'a formula that gives something else',
      field('fieldType: formula\nformula: {expression: "1", resultType: date}'),
      ['EXPRESSION_INVALID'],
    ],
    ['a text that is too long', field('fieldType: text\nlength: 5000'), ['YAML_SCHEMA_INVALID']],
    ['a currency without its code', field('fieldType: currency\ncurrencyField: X__c'), ['REFERENCE_INVALID']],
    ['a search field that is none', objectFiles('A__c', {}, 'defaultSearchFields: [X__c]\n'), ['REFERENCE_INVALID']],
    [
      'controlledByParent without a parent',
      objectFiles('A__c', {}, 'sharingDefault: controlledByParent\n'),
      ['REFERENCE_INVALID'],
    ],
    [
      'permissions on what is nowhere',
      profile('objects: {X__c: {read: true}}\nfields: {User.X__c: {read: true}}\n'),
      ['REFERENCE_INVALID', 'REFERENCE_INVALID'],
    ],
    [
      'permissions on a system field',
      profile('fields: {User.ownerId: {read: true, edit: true}}\n'),
      ['REFERENCE_INVALID'],
    ],
    ['update without read', profile('objects: {User: {update: true}}\n'), ['YAML_SCHEMA_INVALID']],
    ['a role under itself', { ...role('A', 'B'), ...role('B', 'A') }, ['REFERENCE_INVALID', 'REFERENCE_INVALID']],
    ['a role under nobody', role('A', 'B'), ['DEPENDENCY_MISSING']],
    [
      'a redirect in plain http',
      client('grantTypes: [authorization_code]\nredirectUris: ["http://evil.example/"]\n'),
      ['YAML_SCHEMA_INVALID'],
    ],
    [
      'a private key',
      client('grantTypes: ["urn:ietf:params:oauth:grant-type:device_code"]\njwks: {keys: [{kty: EC, d: secret}]}\n'),
      ['YAML_SCHEMA_INVALID'],
    ],
    ...[
      'http://app.example/client.json',
      'https://app.example',
      'https://app.example/client.json?x=1',
      'https://app.example/client.json#x',
      'https://app.example:8443/client.json',
      'https://user@app.example/client.json',
      'https://APP.example/client.json',
      'https://app.example/a/../client.json',
      'https://127.0.0.1/client.json',
      'https://[::1]/client.json',
      'https://localhost/client.json',
      'nonsense',
    ].map((address): [string, Files, string[]] => [
      `a metadata document at ${address}`,
      client(`grantTypes: [authorization_code]\nmetadataDocument: "${address}"\n`),
      ['YAML_SCHEMA_INVALID'],
    ]),
    [
      'a metadata document of a client that can do more',
      client(
        'grantTypes: [client_credentials]\nmetadataDocument: https://app.example/client.json\nredirectUris: ["https://app.example/cb"]\norigins: ["https://app.example"]\nconfidential: true\nintegrationUser: ada@demo.example\n',
      ),
      Array.from({ length: 5 }, () => 'YAML_SCHEMA_INVALID'),
    ],
    [
      'a metadata document of two clients',
      {
        ...client('grantTypes: [authorization_code]\nmetadataDocument: https://app.example/client.json\n'),
        'externalClients/Other.yaml':
          'type: ExternalClient\napiName: Other\nname: Other\ngrantTypes: [authorization_code]\nmetadataDocument: https://app.example/client.json\n',
      },
      ['NAME_CONFLICT'],
    ],
    ...(
      [
        ['an issuer in the clear', 'issuer: http://id.corp.example\ndomains: [corp.example]\n'],
        ['an issuer with a query', 'issuer: "https://id.corp.example/?realm=a"\ndomains: [corp.example]\n'],
        ['an issuer with a user', 'issuer: "https://a:b@id.corp.example"\ndomains: [corp.example]\n'],
        ['an issuer that is written otherwise', 'issuer: https://ID.corp.example\ndomains: [corp.example]\n'],
        ['no domains', 'issuer: https://id.corp.example\ndomains: []\n'],
        ['what is no domain', 'issuer: https://id.corp.example\ndomains: ["ada@corp.example"]\n'],
        ['a domain that is written otherwise', 'issuer: https://id.corp.example\ndomains: [Corp.Example]\n'],
        ['a secret', 'issuer: https://id.corp.example\ndomains: [corp.example]\nclientSecret: hush\n'],
      ] as const
    ).map(([what, body]): (typeof refused)[number] => [
      `an identity provider with ${what}`,
      identityProvider(body),
      ['YAML_SCHEMA_INVALID'],
    ]),
    [
      'two identity providers for one domain',
      {
        ...identityProvider('issuer: https://id.corp.example\ndomains: [a.example, corp.example]\n'),
        ...identityProvider('issuer: https://id2.corp.example\ndomains: [corp.example]\n', 'Other'),
        ...identityProvider('issuer: https://id3.corp.example\ndomains: [corp.example]\nactive: false\n', 'Off'),
      },
      ['NAME_CONFLICT'],
    ],
    [
      'an identity provider that creates users of what is not there',
      identityProvider(
        'issuer: https://id.corp.example\ndomains: [corp.example]\ncreateUsers: {profileApiName: No, roleApiName: Nor}\n',
      ),
      ['DEPENDENCY_MISSING', 'DEPENDENCY_MISSING'],
    ],
    [
      'a resource that there is none',
      client('grantTypes: ["urn:ietf:params:oauth:grant-type:device_code"]\nresources: [web]\n'),
      ['YAML_SCHEMA_INVALID'],
    ],
    ['no grants at all', client('grantTypes: []\nredirectUris: ["http://evil.example/"]\n'), ['YAML_SCHEMA_INVALID']],
    ['client_credentials of nobody', client('grantTypes: [client_credentials]\n'), ['YAML_SCHEMA_INVALID']],
    [
      'a network range that is none',
      client('grantTypes: ["urn:ietf:params:oauth:grant-type:device_code"]\nipRanges: [10.0.0.0/33]\n'),
      ['YAML_SCHEMA_INVALID'],
    ],
    [
      'settings that mean nothing',
      settings('locale: xx_YY\ntimezone: Mars/Base\ncurrency: QQQ\n'),
      ['YAML_SCHEMA_INVALID', 'YAML_SCHEMA_INVALID', 'YAML_SCHEMA_INVALID'],
    ],
    [
      'a destructive manifest without the flag',
      { 'manifest/destructiveChanges.yaml': 'version: 1\ntypes: [{name: Profile, members: [Minimal]}]\n' },
      ['DESTRUCTIVE_CHANGES_NOT_ALLOWED'],
    ],
  ];
  for (const [what, files, codes] of refused)
    it(`refuses ${what}`, async () => {
      const { blocked } = await plan(core, files);
      assert.deepEqual(
        blocked.map((p) => p.code),
        codes,
        JSON.stringify(blocked, null, 1),
      );
    });

  it('accepts exactly the time zone names that PostgreSQL understands alike', async () => {
    const codes = async (zone: string): Promise<string[]> =>
      (await plan(core, settings(`locale: en\ntimezone: "${zone}"\ncurrency: EUR\n`))).blocked.map((p) => p.code);
    for (const zone of ['UTC', 'Europe/Kyiv', 'Asia/Kolkata', 'America/Argentina/Buenos_Aires', 'Etc/GMT+12'])
      assert.deepEqual(await codes(zone), [], zone);
    for (const zone of ['CET', 'EST', '+05:30', 'UTC+3', 'Mars/Base', 'localtime', ''])
      assert.deepEqual(await codes(zone), ['YAML_SCHEMA_INVALID'], zone);
  });

  it('checks picklists again when their value set or controlling field changes', async () => {
    const colour = (more = '') => field(`fieldType: picklist\n${more}picklist: {valueSet: Colours}`, 'Colour__c');
    const shade = fieldFile(
      'A__c',
      'Shade__c',
      'fieldType: picklist\npicklist: {controllingField: Colour__c, values: [{value: navy, validFor: [blue]}]}',
    );
    const all = valueSet('Colours', 'red', 'blue');
    const told = async (before: Plan, files: Files) =>
      (await plan(applied(before), files)).blocked.map(({ code, fullName }) => `${code} ${fullName}`);
    const withDefault = await plan(core, { ...all, ...colour('defaultValue: red\n') });
    assert.deepEqual(withDefault.blocked, []);
    assert.deepEqual(await told(withDefault, valueSet('Colours', 'blue')), ['YAML_SCHEMA_INVALID A__c.Colour__c']);
    const withShade = await plan(core, { ...all, ...colour(), ...shade });
    assert.deepEqual(withShade.blocked, []);
    assert.deepEqual(await told(withShade, valueSet('Colours', 'red')), ['REFERENCE_INVALID A__c.Shade__c']);
    const own = fieldFile('A__c', 'Colour__c', 'fieldType: picklist\npicklist: {values: [{value: red}]}');
    assert.deepEqual(await told(withShade, own), ['REFERENCE_INVALID A__c.Shade__c']);
    assert.deepEqual(await told(withShade, valueSet('Colours', 'blue', 'red', 'grey')), []);
  });

  it('locates items of a set in the file regardless of their order', async () => {
    const told = async (files: Files): Promise<string[]> =>
      (await plan(core, files)).blocked.map(({ line, column, message }) => `${line}:${column} ${message}`).sort();
    assert.deepEqual(await told(profile('actions:\n  - User.z\n  - User.a\n')), [
      '5:5 There is no transition or action User.z.',
      '6:5 There is no transition or action User.a.',
    ]);
    const picklist = 'fieldType: picklist\npicklist:\n  values:\n    - value: z\n    - value: a\n';
    const type =
      'type: RecordType\napiName: R\nobject: A__c\nlabel: R\npicklistValues:\n  F__c:\n    - z\n    - b\n    - a\n';
    assert.deepEqual(await told({ ...field(picklist), 'objects/A__c/recordTypes/R.yaml': type }), [
      '8:7 A__c.F__c has no value b.',
    ]);
    const dependent = `fieldType: picklist\npicklist:\n  controllingField: F__c\n  values:\n    - value: x\n      validFor:\n        - z\n        - "e\u0301"\n        - a\n`;
    assert.deepEqual(await told({ ...field(picklist), ...fieldFile('A__c', 'G__c', dependent) }), [
      '12:11 A__c.F__c has no value \u00e9.',
    ]);
    const group = 'type: Group\napiName: G\nlabel: G\nmembers:\n  groups:\n    - Z\n    - G\n    - A\n';
    assert.deepEqual(await told({ 'groups/G.yaml': group }), [
      '6:7 Group Z is neither in the project nor in the tenant.',
      '7:7 The group is a member of itself.',
      '8:7 Group A is neither in the project nor in the tenant.',
    ]);
  });

  it('takes a value set without values, and keeps it', async () => {
    const text = 'type: ValueSet\napiName: Empty\nvalues: []\n';
    const { blocked, after } = await plan(core, { 'valueSets/Empty.yaml': text });
    assert.deepEqual(blocked, []);
    assert.equal(after.get(componentKey('ValueSet', 'Empty'))!.yaml, text);
  });

  it('requires manageAccess to change the second-factor policy', async () => {
    const settings = (more: string): Record<string, string> => ({
      'settings/General.yaml': `type: TenantSettings\napiName: General\nlocale: en\ntimezone: UTC\ncurrency: EUR\n${more}`,
    });
    const before = applied(await plan(core, settings('secondFactor: everyone\n')));
    const permissions = SYSTEM_PERMISSIONS.filter((name) => name !== 'manageAccess');
    for (const more of ['', 'secondFactor: off\n']) {
      const { blocked } = await plan(before, settings(more), { permissions });
      assert.deepEqual(
        blocked.map(({ code, fullName }) => [code, fullName]),
        [['COMPONENT_PERMISSION_DENIED', 'General']],
      );
      assert.deepEqual((await plan(before, settings(more))).blocked, []);
    }
    assert.deepEqual((await plan(before, settings('secondFactor: everyone\n'), { permissions })).blocked, []);
    assert.notDeepEqual((await plan(before, settings('secondFactor: sometimes\n'))).blocked, []);
  });

  it('requires manageAccess to change the audit retention', async () => {
    const settings = (more: string): Record<string, string> => ({
      'settings/General.yaml': `type: TenantSettings\napiName: General\nlocale: en\ntimezone: UTC\ncurrency: EUR\n${more}`,
    });
    const before = applied(await plan(core, settings('retention: {auditDays: 3000}\n')));
    const permissions = SYSTEM_PERMISSIONS.filter((name) => name !== 'manageAccess');
    for (const more of ['', 'retention: {auditDays: 730}\n', 'retention: {auditDays: 3600}\n']) {
      const { blocked } = await plan(before, settings(more), { permissions });
      assert.deepEqual(
        blocked.map(({ code, fullName }) => [code, fullName]),
        [['COMPONENT_PERMISSION_DENIED', 'General']],
      );
      assert.deepEqual((await plan(before, settings(more))).blocked, []);
    }
  });

  it('requires manageAccess to lower the tenant’s limits, which keep a minimum for repairs', async () => {
    const settings = (more: string): Record<string, string> => ({
      'settings/General.yaml': `type: TenantSettings\napiName: General\nlocale: en\ntimezone: UTC\ncurrency: EUR\n${more}`,
    });
    const before = applied(await plan(core, settings('rateLimits: {tenant: 600, daily: 500000}\n')));
    const permissions = SYSTEM_PERMISSIONS.filter((name) => name !== 'manageAccess');
    for (const more of ['', 'rateLimits: {tenant: 599, daily: 500000}\n', 'rateLimits: {tenant: 600}\n']) {
      const { blocked } = await plan(before, settings(more), { permissions });
      assert.deepEqual(
        blocked.map(({ code, fullName }) => [code, fullName]),
        [['COMPONENT_PERMISSION_DENIED', 'General']],
      );
      assert.deepEqual((await plan(before, settings(more))).blocked, []);
    }
    const same = settings('rateLimits: {daily: 500000, tenant: 600}\nsecondFactor: off\n');
    assert.equal((await plan(before, same, { permissions })).blocked.length, 1, 'the second factor alone');

    const low = settings('rateLimits: {connection: 299, tenant: 1, daily: 431999, concurrency: 4}\n');
    const { blocked } = await plan(core, low);
    assert.deepEqual(
      blocked.map(({ code, message }) => [code, /at least (\d+)/.exec(message)?.[1]]),
      [300, 300, 432_000, 5].map((min) => ['YAML_SCHEMA_INVALID', String(min)]),
    );
    const least = settings('rateLimits: {connection: 300, tenant: 300, daily: 432000, concurrency: 5}\n');
    assert.deepEqual((await plan(core, least)).blocked, []);
  });

  it('reserves standard names to the platform and lets the tenant change their labels', async () => {
    const files = objectFiles('Account', { city: 'fieldType: text' });
    const standard = await plan(core, files, { platform: true });
    assert.deepEqual(standard.blocked, []);
    const state = applied(standard);
    const relabelled = await plan(state, fieldFile('Account', 'city', 'fieldType: text\nhelpText: Where'));
    assert.deepEqual(relabelled.blocked, []);
    const own = await plan(state, fieldFile('Account', 'street', 'fieldType: text'));
    assert.deepEqual(
      own.blocked.map((p) => p.code),
      ['NAME_INVALID'],
    );
  });

  it('warns of a flag without a manifest and of an object that the API will not show', async () => {
    const files = {
      'objects/A__c/object.yaml': objectFiles('A__c')['objects/A__c/object.yaml']!.replace('true', 'false'),
    };
    const { warnings } = await plan(core, files, { allowDestructiveChanges: true });
    assert.deepEqual(warnings.map((p) => p.code).sort(), ['DESTRUCTIVE_FLAG_UNUSED', 'UNPUBLISHED_OBJECT']);
  });

  it('names child relationships after the child, in the plural', async () => {
    const files = {
      ...objectFiles('InvoiceLine__c', { User__c: 'fieldType: reference\nreferenceTo: [User]' }),
      ...objectFiles('Category__c', { User__c: 'fieldType: reference\nreferenceTo: [User]' }),
      ...objectFiles('Box__c', { User__c: 'fieldType: reference\nreferenceTo: [User]\nrelationshipName: Crates' }),
    };
    const state = applied(await plan(core, files));
    const tenant = { key: 'acme' } as Parameters<typeof compileSnapshot>[0];
    const { objects } = compileSnapshot(tenant, 2, state);
    assert.deepEqual(objects['User']!.childRelationships.map((c) => c.relationshipName).sort(), [
      'Categories__r',
      'Crates',
      'DirectReports',
      'InvoiceLines__r',
    ]);
  });

  it('compiles clients and settings into the form that other services read', async () => {
    const files = {
      ...client(
        'grantTypes: [refresh_token, authorization_code]\nredirectUris: ["http://127.0.0.1/callback"]\nscopes: ["data:read"]\norigins: ["https://app.example"]\nrateLimits: {connection: 10}\n',
      ),
      ...settings('locale: pt-BR\ntimezone: America/Sao_Paulo\ncurrency: BRL\nrateLimits: {tenant: 500}\n'),
    };
    const result = await plan(core, files);
    assert.deepEqual(result.blocked, []);
    const tenant = { key: 'acme', locale: 'en-US' } as Parameters<typeof compileSnapshot>[0];
    const snapshot = compileSnapshot(tenant, 2, applied(result));
    const { clientId, active, confidential, rateLimits } = snapshot.externalClients['App']!;
    assert.deepEqual([clientId, active, confidential, rateLimits.connection], ['acme-App', true, false, 10]);
    const address = 'https://app.example/client.json';
    const published = client(`grantTypes: [authorization_code]\nmetadataDocument: ${address}\n`);
    const { App } = compileSnapshot(tenant, 2, applied(await plan(core, published))).externalClients;
    assert.deepEqual([App?.clientId, App?.metadataDocument, App?.redirectUris], [address, address, []]);
    const bound = client('grantTypes: ["urn:ietf:params:oauth:grant-type:device_code"]\nresources: [mcp]\n');
    const ofBound = compileSnapshot(tenant, 2, applied(await plan(core, bound))).externalClients['App'];
    assert.deepEqual([App?.resources, ofBound?.resources], [undefined, ['mcp']]);
    const { locale, timezone, currency } = snapshot.tenant;
    assert.deepEqual([locale, timezone, currency], ['pt-BR', 'America/Sao_Paulo', 'BRL']);
    assert.equal(snapshot.tenant.rateLimits.tenant, 500);
  });

  it('answers any project with a plan or a catalogue error', async () => {
    const erp = readTemplate(new URL('../../../templates/erp', import.meta.url).pathname);
    const paths = Object.keys(erp).sort();
    const edit = fc.record({
      path: fc.constantFrom(...paths),
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      cut: fc.nat(20),
      put: fc.oneof(
        fc.string({ maxLength: 10 }),
        fc.constantFrom(
          '\n',
          ': ',
          '- ',
          '  ',
          '[]',
          '{}',
          'null',
          'true',
          '-1',
          '1e9',
          '"',
          "'",
          '|',
          '__c',
          'User',
          '*',
        ),
      ),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 6 }), async (edits) => {
        const files = { ...erp };
        for (const { path, at, cut, put } of edits) {
          const text = files[path]!;
          const from = Math.floor(at * text.length);
          files[path] = text.slice(0, from) + put + text.slice(from + cut);
        }
        try {
          const project = await readProject(files, null, { template: true });
          const result = makePlan(core, project, { allowDestructiveChanges: false, platform: true });
          if (result.blocked.length > 0) return;
          const state = applied(result);
          compileSnapshot({ key: 'acme' } as Parameters<typeof compileSnapshot>[0], 2, state);
          ddl(physicalModel(core), physicalModel(state), '"s"', '"r"');
        } catch (error) {
          assert.ok(error instanceof PlatformError, error instanceof Error ? (error.stack ?? '') : String(error));
        }
      }),
      { numRuns: 60 },
    );
  }).timeout(60_000);
});
