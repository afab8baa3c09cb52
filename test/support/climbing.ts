/**
 * A tenant in which one user tries to escalate: random configurations, users and steps, and each user's abilities after
 * each. The platform's code decides what is forbidden; escalation is computed here, from
 * effective permissions, reached records and what formulas tell.
 */
import fc from 'fast-check';
import type { Directory } from '../../lib/access/directory.ts';
import { givesBeyond, holdsMore, managesAccess } from '../../lib/access/holdings.ts';
import { accessFor } from '../../lib/access/rules.ts';
import { grantsTo, RANK } from '../../lib/access/sharing.ts';
import type { Access, Principal } from '../../lib/access/types.ts';
import { type Snapshot, SYSTEM_PERMISSIONS } from '../../lib/schema/snapshot.ts';
import { accessSnapshot } from '../../services/metadata/acting.ts';
import { compileSnapshot } from '../../services/metadata/compile.ts';
import type { State } from '../../services/metadata/kinds/component.ts';
import { fieldFile, objectFiles } from './metadata-tenant.ts';
import { planBy } from './plans.ts';
import { aBundle, aPrincipal, aSnapshot } from './snapshots.ts';

type Files = Record<string, string>;

const OBJECTS = ['Alpha__c', 'Beta__c'] as const;
const FIELDS = ['Alpha__c.One__c', 'Alpha__c.Two__c', 'Alpha__c.Flag__c', 'Beta__c.Three__c'] as const;
const COMPUTED = ['Alpha__c.Sum__c', 'Alpha__c.Copy__c', 'Alpha__c.Count__c', 'Beta__c.Total__c'] as const;
const RIGHTS = ['create', 'read', 'update', 'delete', 'viewAll', 'modifyAll'] as const;
const ROLES = ['Top', 'Middle', 'Low', 'Side'] as const;
const GROUPS = ['Named', 'ByRole', 'Around'] as const;
const BUNDLES = ['P0', 'P1', 'P2', 'S0', 'S1', 'S2'] as const;
export const NAMES = ['root', 'attacker', 'vera', 'vito', 'vlad'] as const;
const DOMAIN = 'climb.example';
const usernameOf = (name: string): string => `${name}@${DOMAIN}`;

/** Grants of a profile or permission set, in terms of the model. */
type Atom = string;
const ATOMS: readonly Atom[] = [
  ...SYSTEM_PERMISSIONS.filter((name) => name !== 'manageAccess').map((name) => `system ${name}`),
  'system manageAccess',
  ...OBJECTS.flatMap((object) => RIGHTS.map((right) => `object ${object} ${right}`)),
  ...FIELDS.flatMap((field) => [`field ${field} read`, `field ${field} edit`]),
  'field Alpha__c.Sum__c read',
  'field Beta__c.Total__c read',
  'action Alpha__c.Act',
];

interface Bundle {
  readonly name: string;
  readonly atoms: readonly Atom[];
}

/** The file of a profile (P…) or permission set (S…). */
function bundleFile({ name, atoms }: Bundle): Files {
  const [type, folder] = name.startsWith('P') ? ['Profile', 'profiles'] : ['PermissionSet', 'permissionSets'];
  const of = (kind: string): string[][] => atoms.map((atom) => atom.split(' ')).filter(([first]) => first === kind);
  const entries = (kind: string): [string, Set<string>][] =>
    [...Map.groupBy(of(kind), ([, what]) => what!)].map(([what, given]) => [what, new Set(given.map((it) => it[2]!))]);
  // The platform requires that changing records includes reading them, and editing a field reading it.
  const flags = (rights: ReadonlySet<string>): string =>
    [...rights, ...(rights.has('viewAll') || rights.has('modifyAll') ? [] : ['read'])]
      .map((it) => `${it}: true`)
      .join(', ');
  const map = (title: string, list: [string, Set<string>][]): string =>
    list.length === 0
      ? ''
      : `${title}:\n${list.map(([what, rights]) => `  ${what}: {${flags(new Set([...rights].filter((it) => it !== 'read')))}}\n`).join('')}`;
  const system = of('system').map(([, it]) => it);
  const actions = of('action').map(([, it]) => it);
  return {
    [`${folder}/${name}.yaml`]: `type: ${type}\napiName: ${name}\nlabel: ${name}\nsystem: [${system.join(', ')}]\n${map('objects', entries('object'))}${map('fields', entries('field'))}actions: [${actions.join(', ')}]\n`,
  };
}

const roleFile = (name: string, parent: string | null): Files => ({
  [`roles/${name}.yaml`]: `type: Role\napiName: ${name}\nlabel: ${name}\n${parent ? `parent: ${parent}\n` : ''}`,
});
const groupFile = (
  name: string,
  members: { users: readonly string[]; roles: readonly string[]; groups: readonly string[] },
): Files => ({
  [`groups/${name}.yaml`]: `type: Group\napiName: ${name}\nlabel: ${name}\nmembers:\n  roles: [${members.roles.join(', ')}]\n  groups: [${members.groups.join(', ')}]\n  users: [${members.users.map(usernameOf).join(', ')}]\n`,
});
const ruleFile = (object: string, name: string, body: string): Files => ({
  [`objects/${object}/sharingRules/${name}.yaml`]: `type: SharingRule\napiName: ${name}\nobject: ${object}\n${body}\n`,
});
const objectFile = (name: string, sharingDefault: string, duplicates = false): Files =>
  objectFiles(name, {}, `sharingDefault: ${sharingDefault}\n${duplicates ? 'features:\n  duplicates: true\n' : ''}`);
const duplicateRule = (scope: string, revealHiddenCount: boolean): Files => ({
  'objects/Alpha__c/duplicateRules/Same.yaml': `type: DuplicateRule\napiName: Same\nobject: Alpha__c\nscope: ${scope}\nrevealHiddenCount: ${revealHiddenCount}\nmatch:\n  - field: name\n`,
});
const gate = (expression: string): Files =>
  fieldFile('Alpha__c', 'Gate__c', `fieldType: formula\nformula:\n  expression: ${expression}\n  resultType: boolean`);
const rollup = (object: string, name: string, of: string, more: string): Files =>
  fieldFile(object, name, `fieldType: rollup\nrollup:\n  childObject: ${of}\n  referenceField: Up__c\n  ${more}`);
const clientFile = (username: string): Files => ({
  'externalClients/Robot.yaml': `type: ExternalClient\napiName: Robot\nname: Robot\ngrantTypes: [client_credentials]\nconfidential: true\nintegrationUser: ${username}\n`,
});
const formulaFile = (object: string, name: string, expression: string): Files =>
  fieldFile(object, name, `fieldType: formula\nformula:\n  expression: ${expression}\n  resultType: text`);

/** Common part of every tenant of the model, besides its profiles and permission sets. */
const GROUND: Files = {
  ...objectFiles('Alpha__c', { One__c: 'fieldType: text', Two__c: 'fieldType: text' }, 'sharingDefault: private\n'),
  ...objectFiles('Beta__c', { Three__c: 'fieldType: text' }, 'sharingDefault: read\n'),
  ...formulaFile('Alpha__c', 'Sum__c', 'record.One__c'),
  // Components of others: records shared by a formula and a flag, rollups over hidden records, an inactive rule.
  ...fieldFile('Alpha__c', 'Flag__c', 'fieldType: boolean'),
  ...fieldFile('Alpha__c', 'Up__c', 'fieldType: reference\nreferenceTo: [Beta__c]'),
  ...fieldFile('Beta__c', 'Up__c', 'fieldType: reference\nreferenceTo: [Alpha__c]'),
  ...gate('record.name == "nothing"'),
  ...ruleFile('Alpha__c', 'Gated', 'kind: criteria\ncriteria: record.Gate__c\nto: {role: Side}\naccess: read'),
  ...ruleFile('Alpha__c', 'Flagged', 'kind: criteria\ncriteria: record.Flag__c == true\nto: {role: Low}\naccess: read'),
  ...rollup('Beta__c', 'Total__c', 'Alpha__c', 'function: count\n  criteria: record.Sum__c == "a"'),
  ...duplicateRule('all', false),
  'objects/Alpha__c/actions/Act.yaml': 'type: CustomAction\napiName: Act\nobject: Alpha__c\nlabel: Act\n',
  ...roleFile('Top', null),
  ...roleFile('Middle', 'Top'),
  ...roleFile('Low', 'Middle'),
  ...roleFile('Side', null),
  ...groupFile('Named', { users: ['root', 'vera'], roles: [], groups: [] }),
  ...groupFile('ByRole', { users: [], roles: ['Middle'], groups: [] }),
  ...groupFile('Around', { users: [], roles: [], groups: ['Named'] }),
  ...ruleFile('Alpha__c', 'ToNamed', 'kind: owner\nfrom: {role: Low}\nto: {group: Around}\naccess: read'),
  ...ruleFile('Alpha__c', 'OfNamed', 'kind: owner\nfrom: {group: Named}\nto: {role: Side}\naccess: readWrite'),
  ...bundleFile({ name: 'PRoot', atoms: SYSTEM_PERMISSIONS.map((name) => `system ${name}`) }),
};

const POWERS = ['system apiEnabled', 'system metadataManage', 'system manageUsers', 'system manageClients'];
const some = <T>(of: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...of);
const atoms = fc.uniqueArray(some(ATOMS.filter((atom) => atom !== 'system manageAccess')), { maxLength: 8 });

/** A user as the record of User says. */
interface Person {
  readonly id: string;
  readonly username: string;
  readonly profileApiName: string;
  readonly permissionSetApiNames: readonly string[];
  readonly roleApiName: string | null;
  readonly active: boolean;
}

const assignment = fc.record({
  profileApiName: some(['P0', 'P1', 'P2']),
  permissionSetApiNames: fc.uniqueArray(some(['S0', 'S1', 'S2']), { maxLength: 2 }),
  roleApiName: fc.option(some(ROLES)),
  active: fc.boolean(),
});

/** Profiles, permission sets, and their holders; the attacker may deploy, manage users and clients. */
export const beginning = fc.record({
  bundles: fc.tuple(...BUNDLES.map((name) => atoms.map((given): Bundle => ({ name, atoms: given })))),
  powers: fc.subarray(POWERS, { minLength: 2 }),
  people: fc.tuple(assignment, assignment, assignment, assignment),
});
export type Beginning = typeof beginning extends fc.Arbitrary<infer T> ? T : never;

/** One step of a controlled user: a deployment, a change of a user, a new one. */
export const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('atoms' as const),
      name: some(BUNDLES),
      atom: some(ATOMS),
      gives: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('newBundle' as const), name: some(['S8', 'P8']), atoms }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('role' as const),
      name: some([...ROLES, 'Extra']),
      parent: fc.option(some(ROLES)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('group' as const),
      name: some([...GROUPS, 'Extra']),
      users: fc.uniqueArray(some(NAMES), { maxLength: 2 }),
      roles: fc.uniqueArray(some(ROLES), { maxLength: 1 }),
      groups: fc.uniqueArray(some(GROUPS), { maxLength: 1 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('rule' as const),
      object: some(OBJECTS),
      name: some(['ToNamed', 'OfNamed', 'New']),
      from: fc.option(some([...ROLES.map((it) => `{role: ${it}}`), ...GROUPS.map((it) => `{group: ${it}}`)])),
      to: some([...ROLES.map((it) => `{role: ${it}}`), ...GROUPS.map((it) => `{group: ${it}}`)]),
      access: some(['read', 'readWrite']),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('default' as const),
      object: some(OBJECTS),
      shared: some(['private', 'read', 'readWrite']),
      duplicates: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('gate' as const),
      expression: some(['record.name == "a"', 'record.name != ""', 'record.name == "nothing"']),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('flag' as const), required: fc.boolean(), value: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('count' as const), gives: some(BUNDLES) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('duplicates' as const),
      scope: some(['visible', 'all']),
      reveals: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('formula' as const),
      name: some(['Sum__c', 'Copy__c']),
      reads: some(['One__c', 'Two__c', 'Sum__c']),
      gives: some(BUNDLES),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('client' as const), user: some(NAMES) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('change' as const),
      user: some(NAMES),
      fields: fc.oneof(
        fc.record({ profileApiName: some(['P0', 'P1', 'P2', 'PRoot']) }),
        fc.record({ permissionSetApiNames: fc.uniqueArray(some(['S0', 'S1', 'S2']), { maxLength: 2 }) }),
        fc.record({ roleApiName: fc.option(some(ROLES)) }),
        fc.record({ username: some([...NAMES.map((it) => usernameOf(it)), 'free@climb.example']) }),
        fc.record({ active: fc.boolean() }),
        fc.constant({}),
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('create' as const),
      given: assignment,
      username: some(['vera2', 'root', 'new']),
    }),
  },
);
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** The configuration and the users that a sequence begins with. */
export function begin({ bundles, powers, people }: Beginning): { files: Files; people: Person[] } {
  const files = { ...GROUND, ...bundleFile({ name: 'S9', atoms: powers }) };
  for (const bundle of bundles) Object.assign(files, bundleFile(bundle));
  const [attacker, ...others] = people;
  return {
    files,
    people: [
      { profileApiName: 'PRoot', permissionSetApiNames: [], roleApiName: 'Top', active: true },
      { ...attacker, permissionSetApiNames: [...attacker.permissionSetApiNames, 'S9'], active: true },
      ...others,
    ].map((person, i) => ({ id: NAMES[i]!, username: usernameOf(NAMES[i]!), ...person })),
  };
}

/** The files of a deployment step over the bundles as they are; null: the step is about users. */
export function filesOf(step: Step, bundles: ReadonlyMap<string, readonly Atom[]>): Files | null {
  switch (step.kind) {
    case 'atoms': {
      const old = bundles.get(step.name) ?? [];
      const rest = old.filter((atom) => atom !== step.atom);
      return bundleFile({ name: step.name, atoms: step.gives ? [...rest, step.atom] : rest });
    }
    case 'newBundle':
      return bundleFile(step);
    case 'role':
      return roleFile(step.name, step.parent === step.name ? null : step.parent);
    case 'group':
      return groupFile(step.name, { ...step, groups: step.groups.filter((it) => it !== step.name) });
    case 'rule':
      return ruleFile(
        step.object,
        step.name,
        `${step.from ? `kind: owner\nfrom: ${step.from}` : 'kind: criteria\ncriteria: record.name == "a"'}\nto: ${step.to}\naccess: ${step.access}`,
      );
    case 'default':
      return objectFile(step.object, step.shared, step.duplicates);
    case 'gate':
      return gate(step.expression);
    case 'flag':
      return fieldFile(
        'Alpha__c',
        'Flag__c',
        `fieldType: boolean\nrequired: ${step.required}\ndefaultValue: ${step.value}`,
      );
    case 'duplicates':
      return duplicateRule(step.scope, step.reveals);
    case 'count': {
      const given = [...(bundles.get(step.gives) ?? []), 'field Alpha__c.Count__c read'];
      return {
        ...rollup('Alpha__c', 'Count__c', 'Beta__c', 'function: count'),
        ...bundleFile({ name: step.gives, atoms: given }),
      };
    }
    case 'formula': {
      const files = formulaFile('Alpha__c', step.name, `record.${step.reads}`);
      const given = [...(bundles.get(step.gives) ?? []), `field Alpha__c.${step.name} read`];
      return { ...files, ...bundleFile({ name: step.gives, atoms: given }) };
    }
    case 'client':
      return clientFile(usernameOf(step.user));
    default:
      return null;
  }
}

const principal = (person: Person): Principal => aPrincipal({ ...person, userId: person.id, displayName: person.id });

/** The tenant of a sequence, its users, and who of them is controlled by the attacker. */
export class Tenant {
  state: State;
  people: Map<string, Person>;
  bundles: Map<string, readonly Atom[]>;
  readonly controlled = new Set<string>(['attacker']);
  /** Value of the records' flag since it became required. */
  flag: boolean | null = null;

  private constructor(state: State, people: readonly Person[], bundles: Map<string, readonly Atom[]>) {
    this.state = state;
    this.people = new Map(people.map((person) => [person.id, person]));
    this.bundles = bundles;
  }

  static async begin(of: Beginning): Promise<Tenant> {
    const { files, people } = begin(of);
    const { after, blocked } = await planBy(new Map(), files, null);
    if (blocked.length > 0) throw new Error(JSON.stringify(blocked));
    return new Tenant(after, people, new Map(of.bundles.map(({ name, atoms: given }) => [name, given])));
  }

  accessOf(id: string, snapshot = accessSnapshot(aSnapshot([]).tenant, this.state)): Access {
    return accessFor(snapshot, principal(this.people.get(id)!));
  }

  /** Takes a step as a controlled user; false: it is refused. */
  async take(step: Step, by: string): Promise<boolean> {
    const actor = this.accessOf(by);
    if (!actor.system.has('apiEnabled')) return false;
    const files = filesOf(step, this.bundles);
    if (files !== null) return actor.system.has('metadataManage') && this.#deploy(step, files, actor);
    if (!actor.system.has('manageUsers')) return false;
    return step.kind === 'change' ? this.#change(step, actor) : step.kind === 'create' && this.#create(step, actor);
  }

  async #deploy(step: Step, files: Files, actor: Access): Promise<boolean> {
    const snapshot = actor.snapshot;
    const clientUsers = new Map(
      [...this.people.values()].map((person) => [
        person.username.toLowerCase(),
        accessFor(snapshot, { ...principal(person), active: true }),
      ]),
    );
    const plan = await planBy(this.state, files, { actor, clientUsers });
    if (plan.blocked.length > 0) return false;
    this.state = plan.after;
    if (step.kind === 'atoms')
      this.bundles.set(step.name, [
        ...(this.bundles.get(step.name) ?? []).filter((it) => it !== step.atom),
        ...(step.gives ? [step.atom] : []),
      ]);
    if (step.kind === 'newBundle') this.bundles.set(step.name, step.atoms);
    if (step.kind === 'formula' || step.kind === 'count') {
      const name = step.kind === 'count' ? 'Count__c' : step.name;
      this.bundles.set(step.gives, [...(this.bundles.get(step.gives) ?? []), `field Alpha__c.${name} read`]);
    }
    if (step.kind === 'flag' && step.required) this.flag ??= step.value;
    const user =
      step.kind === 'client' && [...this.people.values()].find((it) => it.username === usernameOf(step.user));
    if (user) this.controlled.add(user.id);
    return true;
  }

  /** As services/data/users/rules.ts decides, with the same functions. */
  #change({ user, fields }: Step & { kind: 'change' }, actor: Access): boolean {
    const person = this.people.get(user)!;
    const after: Person = { ...person, ...fields };
    if (after.username !== person.username && this.#taken(after.username)) return false;
    if (actor.principal.userId === user && after.active === false) return false;
    const before = accessFor(actor.snapshot, principal({ ...person, active: true }));
    if (!managesAccess(actor)) {
      if (holdsMore(before, actor)) return false;
      if (givesBeyond(accessFor(actor.snapshot, principal({ ...after, active: true })), before, actor)) return false;
    }
    this.people.set(user, after);
    // A user who may change the email receives the link that sets a password.
    this.controlled.add(user);
    return true;
  }

  #create({ given, username }: Step & { kind: 'create' }, actor: Access): boolean {
    const id = `new${this.people.size}`;
    const person: Person = { ...given, id, username: usernameOf(username) };
    if (this.#taken(person.username)) return false;
    const nobody = accessFor(actor.snapshot, aPrincipal({ profileApiName: '', username: '' }));
    const after = accessFor(actor.snapshot, principal({ ...person, active: true }));
    if (!managesAccess(actor) && givesBeyond(after, nobody, actor)) return false;
    this.people.set(id, person);
    this.controlled.add(id);
    return true;
  }

  /**
   * Seen, not told: the permission on the field and the reach of the records may come from different people, and each is
   * held to be given by itself.
   */
  isSeen(ability: string, sets: readonly (ReadonlySet<string> | undefined)[]): boolean {
    if (ability.startsWith('sees ')) return true;
    return ability.startsWith('told ') && sets.some((set) => set?.has(ability.replace('told', 'sees')));
  }

  /** It concerns what only a step of the sequence has made. */
  isNew(ability: string): boolean {
    return /^(?:\w+ Extra|field Alpha__c\.(?:Copy|Count)__c)(?: |$)/.test(ability);
  }

  #taken(username: string): boolean {
    return [...this.people.values()].some((person) => person.username === username);
  }
}

/** A record of each user for each object, with the name that criteria ask for and with another. */
const RECORDS = OBJECTS.flatMap((object) =>
  NAMES.flatMap((owner) =>
    ['a', 'b'].map((name) => ({
      object,
      record: {
        id: `${object} ${owner} ${name}`,
        ownerId: owner,
        values: { name },
        owners: {},
        shares: [],
        parents: {},
      },
    })),
  ),
);

/** Everything that a user can do: permissions in effect, roles, groups, records, and readable fields. */
export function abilities(tenant: Tenant, id: string): Set<string> {
  const person = tenant.people.get(id)!;
  const snapshot = compileSnapshot(aSnapshot([]).tenant, 1, tenant.state);
  const directory: Directory = {
    users: [...tenant.people.values()].map(({ id: userId, username, roleApiName }) => ({
      userId,
      username,
      roleApiName,
    })),
  };
  // Of a deactivated user, what they would have again.
  const access = accessFor(snapshot, principal({ ...person, active: true }), directory);
  const found = new Set<string>();
  for (const name of access.system) found.add(`system ${name}`);
  for (const action of access.actions) found.add(`action ${action}`);
  for (const role of access.memberships.roles) found.add(`role ${role}`);
  for (const group of access.memberships.groups) found.add(`group ${group}`);
  for (const object of OBJECTS) {
    const given = access.objects[object];
    if (!given) continue;
    for (const right of RIGHTS) if (given.permission[right]) found.add(`object ${object} ${right}`);
  }
  for (const permission of ofBundles(access)) found.add(permission);
  for (const object of OBJECTS) {
    const { permission, object: meta } = access.objects[object] ?? {};
    if (!permission || !meta) continue;
    const tells = meta.duplicateRules.some((rule) => rule.active && (rule.scope === 'all' || rule.revealHiddenCount));
    const all = permission.viewAll || meta.sharingDefault !== 'private';
    if (all) found.add(`sees count ${object}`);
    if (meta.features.duplicates && tells) found.add(`told count ${object}`);
    for (const field of FIELDS)
      if (all && field.startsWith(`${object}.`) && found.has(`field ${field} read`)) found.add(`sees every ${field}`);
  }
  for (const field of [...FIELDS, ...COMPUTED])
    if (found.has(`field ${field} read`)) for (const told of toldBy(snapshot, field)) found.add(`told ${told}`);
  reached(snapshot, person, directory, tenant.flag, found);
  return found;
}

/** Entries on fields count by themselves: together with a permission on the object they take effect. */
function* ofBundles({ bundles, system }: Access): Generator<string> {
  const all = system.has('modifyAllData');
  for (const field of [...FIELDS, ...COMPUTED]) {
    const entries = bundles.map(({ bundle }) => bundle.fields[field]);
    if (all || entries.some((entry) => entry?.edit)) yield `field ${field} edit`;
    if (all || system.has('viewAllData') || entries.some((entry) => entry?.edit || entry?.read))
      yield `field ${field} read`;
  }
}

/** The stored fields whose values a field tells, of its record or of every record of a child. */
function toldBy(snapshot: Snapshot, fullName: string): string[] {
  const [object = '', name = ''] = fullName.split('.');
  const { formula, rollup: figure } = snapshot.objects[object]?.fields[name] ?? {};
  if (figure) {
    const { childObject, referenceField, criteria, reads } = figure;
    const told = reads.filter((read) => read !== referenceField).map((read) => `every ${childObject}.${read}`);
    return criteria === null ? [`count ${childObject}`, ...told] : told;
  }
  if (!formula) return [fullName];
  return Object.keys(formula.reads).flatMap((read) => toldBy(snapshot, `${object}.${read}`));
}

/** Records that sharing leads to, as if the user could read every object: `record <id> <level>`. */
function reached(
  snapshot: Snapshot,
  person: Person,
  directory: Directory,
  flag: boolean | null,
  found: Set<string>,
): void {
  const objects = Object.fromEntries(
    OBJECTS.map((it) => [
      it,
      { create: false, read: true, update: false, delete: false, viewAll: false, modifyAll: false },
    ]),
  );
  const reading = { ...snapshot, permissionSets: { ...snapshot.permissionSets, All: aBundle('All', { objects }) } };
  const access = accessFor(
    reading,
    principal({ ...person, active: true, permissionSetApiNames: [...person.permissionSetApiNames, 'All'] }),
    directory,
  );
  for (const { object, record } of RECORDS)
    for (const level of Object.keys(RANK) as (keyof typeof RANK)[])
      if (grantsTo(access, object, level, { ...record, values: { ...record.values, Flag__c: flag } }).length > 0)
        found.add(`record ${record.id} ${level}`);
}
