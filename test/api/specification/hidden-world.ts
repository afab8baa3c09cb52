/**
 * Two tenants that look the same to one user: the first has records, fields and objects hidden from the user, the second
 * never had them. Any difference that the user can observe reveals hidden data.
 */
import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

export const PEOPLE = ['admin', 'uma', 'vic', 'max', 'wes'] as const;
type Name = (typeof PEOPLE)[number];

/** One of the two tenants. */
export interface Side {
  readonly key: string;
  readonly tenantId: string;
  readonly hides: boolean;
  readonly ids: Readonly<Record<Name, string>>;
  /** The user of the test. */
  readonly uma: Api;
  readonly admin: Api;
}

export interface World {
  readonly platform: TestPlatform;
  /** With hidden data, and without. */
  readonly sides: readonly [Side, Side];
}

type Files = Record<string, string>;

export const OBJECTS = ['Firm__c', 'Deal__c', 'Line__c'] as const;
export type ObjectName = (typeof OBJECTS)[number];
export const HIDDEN_OBJECTS = ['Vault__c', 'Trail__c', 'Keep__c', 'Draft__c'] as const;

const picklist = (values: readonly string[], more = ''): string =>
  `fieldType: picklist\npicklist:\n  restricted: true\n${more}  values:\n${values.map((value) => `    - value: ${value}\n`).join('')}`;
const reference = (to: string, relationshipName: string, onDelete: string): string =>
  `fieldType: reference\nreferenceTo: [${to}]\nrelationshipName: ${relationshipName}\nonDelete: ${onDelete}`;

/** Fields that the user reads and edits. */
export const FIELDS: Readonly<Record<ObjectName, Files>> = {
  Firm__c: {
    City__c: 'fieldType: text\nlength: 40',
    Ext__c: 'fieldType: text\nlength: 20\nexternalId: true',
    Code__c: 'fieldType: text\nlength: 20\nexternalId: true\nunique: true',
  },
  Deal__c: {
    Stage__c: picklist(['new', 'won', 'closed']),
    Amount__c: 'fieldType: decimal\nprecision: 12\nscale: 2',
    Close__c: 'fieldType: date',
    Note__c: 'fieldType: longText',
    Tax__c: 'fieldType: text\nlength: 20',
    Ext__c: 'fieldType: text\nlength: 20\nexternalId: true',
    Firm__c: reference('Firm__c', 'FirmDeals__r', 'setNull'),
    Color__c: picklist(['red', 'green', 'blue']),
    Double__c:
      'fieldType: formula\nformula:\n  expression: record.Amount__c * 2\n  resultType: decimal\nprecision: 18\nscale: 2',
    Lines__c: 'fieldType: rollup\nrollup:\n  childObject: Line__c\n  referenceField: Deal__c\n  function: count',
  },
  Line__c: {
    Deal__c: 'fieldType: masterDetail\nreferenceTo: [Deal__c]\nrelationshipName: DealLines__r',
    Qty__c: 'fieldType: integer',
  },
};

/** Fields that only the first tenant has, readable only by administrators. */
export const HIDDEN_FIELDS: Readonly<Record<ObjectName, Files>> = {
  Firm__c: {
    Rating__c: 'fieldType: text\nlength: 40',
    Phase__c: picklist(['early', 'late']).replace('value: early', 'value: early\n      default: true'),
  },
  Deal__c: {
    Secret__c: 'fieldType: text\nlength: 40\nexternalId: true',
    SecretAmount__c: 'fieldType: decimal\nprecision: 12\nscale: 2',
    Mode__c: picklist(['plain', 'odd']).replace('value: plain', 'value: plain\n      default: true'),
    Vault__c: reference('Vault__c', 'VaultDeals__r', 'setNull'),
    Twice__c:
      'fieldType: formula\nformula:\n  expression: record.SecretAmount__c * 2\n  resultType: decimal\nprecision: 18\nscale: 2',
    Tint__c:
      'fieldType: picklist\npicklist:\n  restricted: true\n  controllingField: Color__c\n  values:\n    - value: dark\n      validFor: [red]\n',
    Serial__c: 'fieldType: autoNumber\nformat: "S-{0000}"',
  },
  Line__c: { Cost__c: 'fieldType: decimal\nprecision: 12\nscale: 2', Memo__c: 'fieldType: text\nlength: 40' },
};

const FEATURES = 'features:\n  history: true\n  search: true\n  duplicates: true\n  events: true\n';

const transition = (key: string, from: string, to: string): string =>
  `  - key: ${key}\n    label: ${key}\n    from:\n      - ${from}\n    to: ${to}\n    risk: low\n    requiresComment: false\n`;

const duplicateRule = (object: string, name: string, threshold: number, match: readonly string[]): Files => ({
  [`objects/${object}/duplicateRules/${name}.yaml`]: `type: DuplicateRule\napiName: ${name}\nobject: ${object}\nactive: true\naction: confirm\nscope: visible\nrevealHiddenCount: false\nthreshold: ${threshold}\nmatch:\n${match
    .map((item) => {
      const [field, method, weight = '1'] = item.split(' ');
      return `  - field: ${field}\n    method: ${method}\n    weight: ${weight}\n`;
    })
    .join('')}`,
});

function configuration(hides: boolean): Files {
  const only = (text: string): string => (hides ? text : '');
  const object = (name: string, sharing: string, searched: string): Files =>
    objectFiles(name, {}, `sharingDefault: ${sharing}\ndefaultSearchFields: [${searched}]\n${FEATURES}`);
  const fields = (of: Readonly<Record<ObjectName, Files>>): Files =>
    Object.assign(
      {},
      ...OBJECTS.flatMap((name) => Object.entries(of[name]).map(([field, yaml]) => fieldFile(name, field, yaml))),
    );
  const given = OBJECTS.flatMap((name) =>
    Object.keys(FIELDS[name]).map((field) => `  ${name}.${field}:\n    read: true\n    edit: true\n`),
  );
  const recordType = (name: string, more: string): Files => ({
    [`objects/Firm__c/recordTypes/${name}.yaml`]: `type: RecordType\napiName: ${name}\nobject: Firm__c\nlabel: ${name}\n${more}`,
  });
  const files: Files = {
    ...object('Firm__c', 'private', `name, City__c${only(', Rating__c')}`),
    ...object('Deal__c', 'private', `name, Note__c${only(', Secret__c')}`),
    // A user who reads none of the default fields searches by name, as if there were none.
    ...object('Line__c', 'controlledByParent', only('Memo__c')),
    ...fields(FIELDS),
    'roles/Boss.yaml': 'type: Role\napiName: Boss\nlabel: Boss\n',
    'roles/Manager.yaml': 'type: Role\napiName: Manager\nlabel: Manager\nparent: Boss\n',
    'roles/Rep.yaml': 'type: Role\napiName: Rep\nlabel: Rep\nparent: Manager\n',
    'groups/Team.yaml': 'type: Group\napiName: Team\nlabel: Team\nmembers:\n  roles:\n    - Rep\n',
    'profiles/Worker.yaml': `type: Profile\napiName: Worker\nlabel: Worker\nsystem:\n  - apiEnabled\nobjects:\n${OBJECTS.map(
      (name) => `  ${name}:\n${['create', 'read', 'update', 'delete'].map((right) => `    ${right}: true\n`).join('')}`,
    ).join('')}fields:\n${given.join('')}`,
    'objects/Deal__c/sharingRules/Won.yaml':
      'type: SharingRule\napiName: Won\nobject: Deal__c\nkind: criteria\ncriteria: record.Stage__c == "won"\nto:\n  group: Team\naccess: read\n',
    'objects/Deal__c/stateModels/Life.yaml': `type: StateModel\napiName: Life\nobject: Deal__c\nfield: Stage__c\ninitial: new\nallowDirectEdit: false\ntransitions:\n${transition('win', 'new', 'won')}${transition('close', 'won', 'closed')}`,
    'objects/Deal__c/actions/Nudge.yaml': `type: CustomAction\napiName: Nudge\nobject: Deal__c\nlabel: Nudge\nrisk: low\nrequiresComment: false\neffects:\n  - verb: updateFields\n    fields:\n      Note__c: '"nudged"'\n${only(`      Secret__c: '"nudged"'\n`)}  - verb: createRecord\n    object: Firm__c\n    fields:\n      City__c: record.name\n      name: '"Firm of " + record.name'\n`,
    // Its input is visible, its target is not.
    'objects/Deal__c/validationRules/Negative.yaml': `type: ValidationRule\napiName: Negative\nobject: Deal__c\nactive: true\ncondition: record.Amount__c < 0\n${only('errorField: Secret__c\n')}message: Not below zero.\n`,
    ...duplicateRule('Deal__c', 'SameTax', 1, ['Tax__c normalized']),
    ...duplicateRule('Deal__c', 'LikeName', 0.75, ['name fuzzy 2', ...(hides ? ['Secret__c exact 3'] : [])]),
    ...recordType('Big', `default: true\n${only('picklistValues:\n  Phase__c:\n    - early\n')}`),
    ...recordType('Small', ''),
  };
  if (!hides) return files;
  return {
    ...files,
    ...fields(HIDDEN_FIELDS),
    ...fieldFile(
      'Deal__c',
      'Color__c',
      'fieldType: picklist\npicklist:\n  restricted: true\n  controllingField: Mode__c\n  values:\n    - value: red\n      validFor: [plain, odd]\n    - value: green\n      validFor: [plain, odd]\n    - value: blue\n      validFor: [odd]\n',
    ),
    ...objectFiles(
      'Vault__c',
      {
        Text__c: 'fieldType: text\nexternalId: true',
        Deal__c: reference('Deal__c', 'Vaults__r', 'setNull'),
        Firm__c: reference('Firm__c', 'FirmVaults__r', 'setNull'),
      },
      FEATURES,
    ),
    ...objectFiles(
      'Trail__c',
      {
        Deal__c: reference('Deal__c', 'Trails__r', 'cascade'),
        Text__c: 'fieldType: text',
      },
      FEATURES,
    ),
    ...objectFiles('Keep__c', { Deal__c: reference('Deal__c', 'Keeps__r', 'restrict') }),
    ...Object.fromEntries(
      Object.entries(objectFiles('Draft__c', { Deal__c: reference('Deal__c', 'Drafts__r', 'cascade') })).map(
        ([path, text]) => [path, text.replace('published: true', 'published: false')],
      ),
    ),
    ...duplicateRule('Deal__c', 'OnlySecret', 1, ['Secret__c exact']),
    ...duplicateRule('Firm__c', 'SameRating', 1, ['Rating__c exact']),
    'objects/Firm__c/stateModels/Phases.yaml': `type: StateModel\napiName: Phases\nobject: Firm__c\nfield: Phase__c\ninitial: early\nallowDirectEdit: false\ntransitions:\n${transition('age', 'early', 'late')}`,
  };
}

const id = (kind: number, n: number): string => `01939f6e-0000-7000-8${kind}00-${n.toString(16).padStart(12, '0')}`;
const CITIES = ['Bonn', 'Porto', 'Oslo', 'Lyon'];
const WORDS = ['alpha', 'beta', 'gamma', 'delta'];
const at = <T>(list: readonly T[], n: number): T => list[n % list.length]!;
const day = (n: number): string => `2026-0${1 + (n % 9)}-1${n % 10}T0${n % 10}:00:00.${100 + n}Z`;
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, n) => from + n);

export const VISIBLE = { firms: range(0, 16), deals: range(0, 36), lines: range(0, 30) };
export const HIDDEN = { firms: range(16, 30), deals: range(36, 80), lines: range(30, 60), vaults: range(0, 30) };
export const idOf = {
  Firm__c: (n: number) => id(1, n),
  Deal__c: (n: number) => id(2, n),
  Line__c: (n: number) => id(3, n),
};
export const vaultId = (n: number): string => id(4, n);
const trailId = (n: number): string => id(5, n);
/** Unknown ids. */
export const nowhereId = (n: number): string => id(9, n);

/** Hidden records come before, between and after the visible ones in every order, and share their words and values. */
const firm = (n: number) => ({
  id: idOf.Firm__c(n),
  name: `${at(WORDS, n)} firm ${n % 7}`,
  owner: (n >= 16 || n % 4 === 3 ? at(['vic', 'max', 'wes'], n) : 'uma') as Name,
  createdAt: day(n * 7),
  City__c: at(CITIES, n),
  Ext__c: `F${n % 9}`,
  Code__c: `C${n}`,
  recordTypeApiName: n % 2 ? 'Big' : 'Small',
});
const deal = (n: number) => {
  const hidden = n >= 36;
  const own = !hidden && n % 3 < 2;
  return {
    id: idOf.Deal__c(n),
    name: `${at(WORDS, n)} deal ${at(['north', 'south', 'east'], n)}`,
    owner: (own ? 'uma' : at(['vic', 'max', 'wes'], n)) as Name,
    createdAt: day(n * 11),
    // Of the others' deals, won ones are shared by a rule, and those with an odd number individually.
    Stage__c: hidden ? at(['new', 'closed'], n) : own ? at(['new', 'won', 'closed'], n) : n % 2 ? 'new' : 'won',
    Amount__c: n % 5 === 0 ? null : (n % 13) * 10.5,
    Close__c: n % 4 === 0 ? null : `2026-0${1 + (n % 9)}-1${n % 10}`,
    Note__c: `${at(WORDS, n + 1)} ${at(CITIES, n)}`,
    Tax__c: `DE ${n % 15}`,
    Ext__c: `D${n % 30}`,
    Firm__c: n % 6 === 5 ? null : idOf.Firm__c(at([0, 1, 2, 4, 5, 6, 8, 9], n)),
    Color__c: at(['red', 'green', null], n),
  };
};
const line = (n: number) => ({
  id: idOf.Line__c(n),
  name: `line ${at(WORDS, n)}`,
  owner: 'admin' as Name,
  createdAt: day(n * 3),
  Deal__c: idOf.Deal__c(n < 30 ? n % 36 : 36 + (n % 40)),
  Qty__c: n % 8,
});

async function fill(platform: TestPlatform, side: Side): Promise<void> {
  const load = async (objectApiName: string, rows: readonly { owner: Name; id: string }[]): Promise<void> => {
    const records: Record<string, unknown>[] = rows.map(({ owner, ...rest }) => ({
      ...rest,
      ownerId: side.ids[owner],
      createdById: side.ids[owner],
    }));
    const columns = Object.keys(records[0]!);
    await platform.broker.call('data.samples.load', {
      tenantId: side.tenantId,
      objectApiName,
      columns,
      rows: records.map((record) => columns.map((column) => record[column] ?? null)),
    });
  };
  const numbers = (visible: readonly number[], hidden: readonly number[]) =>
    side.hides ? [...visible, ...hidden] : visible;
  const extra = (fields: Record<string, unknown>) => (side.hides ? fields : {});
  if (side.hides)
    await load(
      'Vault__c',
      HIDDEN.vaults.map((n) => ({ id: vaultId(n), name: `vault ${n}`, owner: at(PEOPLE, n), Text__c: `V${n}` })),
    );
  await load(
    'Firm__c',
    numbers(VISIBLE.firms, HIDDEN.firms).map((n) => ({
      ...firm(n),
      ...extra({ Rating__c: `secretword ${n % 3}`, Phase__c: n < 16 ? 'early' : 'late' }),
    })),
  );
  await load(
    'Deal__c',
    numbers(VISIBLE.deals, HIDDEN.deals).map((n) => ({
      ...deal(n),
      ...extra({
        Secret__c: `secretword ${n % 4}`,
        SecretAmount__c: (n * 37) % 101,
        Mode__c: n % 2 ? 'plain' : 'odd',
        Vault__c: vaultId(n % 30),
      }),
    })),
  );
  await load(
    'Line__c',
    numbers(VISIBLE.lines, HIDDEN.lines).map((n) => ({ ...line(n), ...extra({ Cost__c: n * 3 }) })),
  );
  if (side.hides)
    await load(
      'Trail__c',
      range(0, 40).map((n) => ({
        id: trailId(n),
        name: `trail ${n}`,
        owner: at(PEOPLE, n),
        Deal__c: idOf.Deal__c(n),
        Text__c: 'secretword',
      })),
    );
  const share = async (object: string, record: string, access: string): Promise<void> => {
    const reply = await side.admin.post(`/data/${object}/${record}/shares`, {
      principalType: access === 'read' ? 'user' : 'group',
      principalId: access === 'read' ? side.ids.uma : 'Team',
      access,
      reason: 'asked for',
    });
    assert.equal(reply.status, 201, reply.text);
  };
  for (const n of VISIBLE.firms)
    if (firm(n).owner !== 'uma') await share('Firm__c', idOf.Firm__c(n), n % 8 === 3 ? 'edit' : 'read');
  for (const n of VISIBLE.deals)
    if (deal(n).owner !== 'uma' && deal(n).Stage__c === 'new')
      await share('Deal__c', idOf.Deal__c(n), n % 4 === 1 ? 'edit' : 'read');
}

async function sideOf(platform: TestPlatform, key: string, hides: boolean): Promise<Side> {
  const { broker, baseUrl } = platform;
  const { tenantId } = (await broker.call('metadata.tenants.create', { template: 'empty', key, name: 'Twin' })) as {
    tenantId: string;
  };
  await broker.call('auth.domains.add', { tenantId, domain: `${key}.example` });
  await broker.call('metadata.templates.deploy', { tenantId, files: configuration(hides) }, { timeout: 60_000 });
  const roles: Readonly<Record<Name, string | null>> = {
    admin: 'Boss',
    uma: 'Rep',
    vic: 'Rep',
    max: 'Manager',
    wes: null,
  };
  // Sequential: users created in one call have ids of one moment, whose order is random, and lists show it.
  const userIds: Record<string, string> = {};
  for (const name of PEOPLE) {
    const user = {
      username: `${name}@${key}.example`,
      email: `${name}@${key}.example`,
      displayName: name,
      profileApiName: name === 'admin' ? 'Administrator' : 'Worker',
      roleApiName: roles[name],
      password: process.env['DEMO_PASSWORD'] || 'demo-password',
    };
    const made = (await broker.call('data.users.provision', { tenantId, users: [user] })) as {
      userIds: Record<string, string>;
    };
    Object.assign(userIds, made.userIds);
  }
  const ids = Object.fromEntries(PEOPLE.map((name) => [name, userIds[`${name}@${key}.example`]!])) as Side['ids'];
  const as = async (name: Name): Promise<Api> => api(baseUrl, await tokenFor(baseUrl, `${name}@${key}.example`));
  const side: Side = { key, tenantId, hides, ids, uma: await as('uma'), admin: await as('admin') };
  await fill(platform, side);
  return side;
}

export async function startTwins(): Promise<World> {
  const platform = await startPlatform({ seed: false });
  try {
    return { platform, sides: [await sideOf(platform, 'twina', true), await sideOf(platform, 'twinb', false)] };
  } catch (error) {
    await platform.stop();
    throw error;
  }
}
