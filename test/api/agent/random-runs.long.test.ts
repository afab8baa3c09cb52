/**
 * Random sequences: agents ask, people decide, administrators change the configuration and records in between, agents
 * execute. Source: docs/reference/agents.md. A failure prints its seed; AGENT_STEPS and AGENT_SEED repeat and extend it.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { parse } from 'yaml';
import { type Answer, type Api, api, type CallOptions, tokenFor } from '../../support/client.ts';
import {
  deploymentEnded,
  deployOverHttp,
  fieldFile,
  objectFiles,
  wholePackage,
} from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const STEPS = Number(process.env['AGENT_STEPS'] ?? 120);
const seed = Number(process.env['AGENT_SEED'] ?? Date.now() % 2 ** 31);

// biome-ignore lint/suspicious/noExplicitAny: bodies of answers are compared, not computed with
type Anything = any;

const MAX_MUTATIONS = 6;
const MAX_MUTATIONS_PER_DAY = Math.ceil(STEPS / 8);
const AGENTS = ['clerk', 'chief'] as const;
const DECIDERS = ['boss', 'root'] as const;
const PEOPLE = ['root', 'chief', 'boss', 'clerk', 'mule'] as const;
type Person = (typeof PEOPLE)[number];
const KEYS = ['k1', 'k2', 'k3'] as const;

const component = (type: string, apiName: string, more: object): string => JSON.stringify({ type, apiName, ...more });
const all = (given: boolean): object => ({ create: given, read: given, update: given, delete: given });
const field = (given: boolean): object => ({ read: given, edit: given });

/** Rights of a permission set that may be deployed in several versions. */
const BUNDLES = {
  nothing: {},
  vault: { objects: { Vault__c: all(true) } },
  cases: { objects: { Case__c: all(true) }, fields: { 'Case__c.Note__c': field(true) } },
  clients: { system: ['manageClients'] },
  access: { system: ['manageAccess'] },
} as const;
type Bundle = keyof typeof BUNDLES;
const bundleFile = (name: 'Tiny' | 'Spare', bundle: Bundle, label: string): Record<string, string> => ({
  [`permissionSets/${name}.yaml`]: component('PermissionSet', name, { label, ...BUNDLES[bundle] }),
});

const WORKING = {
  objects: { Client__c: all(true), Case__c: all(true) },
  fields: Object.fromEntries(
    ['Client__c.Key__c', 'Client__c.Grade__c', 'Case__c.Client__c', 'Case__c.Note__c', 'Case__c.State__c'].map(
      (name) => [name, field(true)],
    ),
  ),
  actions: ['Case__c.close'],
};

const POLICIES = {
  none: [],
  everything: [{ operationIds: ['data.*'], decision: 'approve' }],
  broad: [{ operationIds: ['data.*', 'metadata.*'], risk: 'medium', decision: 'allow' }],
  reviewed: [
    { operationIds: ['data.records.create', 'data.records.update', 'data.records.upsert'], decision: 'approve' },
    { risk: 'high', decision: 'approve', requiredApprovals: 1 },
  ],
} as const;
const policyFile = (name: keyof typeof POLICIES): Record<string, string> => ({
  'agentPolicies/Random.yaml': component('AgentPolicy', 'Random', {
    appliesTo: { clients: ['*'] },
    rules: POLICIES[name].length > 0 ? POLICIES[name] : [{ operationIds: ['data.records.get'], decision: 'allow' }],
  }),
});

const stateModel = (note: string): Record<string, string> => ({
  'objects/Case__c/stateModels/Life.yaml': component('StateModel', 'Life', {
    object: 'Case__c',
    field: 'State__c',
    initial: 'open',
    allowDirectEdit: false,
    transitions: [
      {
        key: 'close',
        label: 'Close',
        from: ['open'],
        to: 'closed',
        permission: 'Case__c.close',
        risk: 'high',
        effects: [{ verb: 'updateFields', fields: { Note__c: `"${note}"` } }],
      },
    ],
  }),
});
const noteField = (defaultValue: string): Record<string, string> =>
  fieldFile('Case__c', 'Note__c', `fieldType: text\nlength: 100\ndefaultValue: ${defaultValue}`);

const CONFIGURATION: Record<string, string> = {
  ...objectFiles('Client__c', {
    Key__c: 'fieldType: text\nlength: 20\nunique: true\nexternalId: true',
    Grade__c: 'fieldType: text\nlength: 20',
  }),
  ...objectFiles('Case__c', {
    Client__c: 'fieldType: masterDetail\nreferenceTo: [Client__c]',
    State__c:
      'fieldType: picklist\npicklist:\n  restricted: true\n  values:\n    - value: open\n      label: Open\n      default: true\n    - value: closed\n      label: Closed',
  }),
  ...objectFiles('Vault__c'),
  ...noteField('plain'),
  ...stateModel('closed'),
  ...bundleFile('Tiny', 'nothing', 'Tiny'),
  ...bundleFile('Spare', 'vault', 'Spare'),
  ...policyFile('none'),
  'agentPolicies/Days.yaml': component('AgentPolicy', 'Days', {
    appliesTo: { clients: ['*'] },
    rules: [{ operationIds: ['data.records.get'], decision: 'allow' }],
    budgets: { maxMutationsPerDay: MAX_MUTATIONS_PER_DAY },
  }),
  'permissionSets/Clerk.yaml': component('PermissionSet', 'Clerk', {
    label: 'Clerk',
    system: ['apiEnabled', 'manageUsers', 'metadataRead', 'metadataManage'],
    ...WORKING,
  }),
  'permissionSets/Boss.yaml': component('PermissionSet', 'Boss', {
    label: 'Boss',
    system: ['apiEnabled', 'approveAgentActions', 'manageUsers', 'metadataRead', 'metadataManage'],
    ...WORKING,
  }),
  'permissionSets/Work.yaml': component('PermissionSet', 'Work', { label: 'Work', ...WORKING }),
};

const bundle = fc.constantFrom(...(Object.keys(BUNDLES) as Bundle[]));
const key = fc.constantFrom(...KEYS);
const text = fc.constantFrom('one', 'two', 'three');
/** Requests that an agent may make. */
const wish = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('createCase' as const), key, note: fc.option(text) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('moveCase' as const), key, of: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('upsertClient' as const), key, grade: text }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('deleteClient' as const), key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('close' as const), of: fc.nat(5) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('changeUser' as const),
      user: fc.constantFrom('mule', 'clerk', 'boss'),
      fields: fc.constantFrom<object>(
        { profileApiName: 'Administrator' },
        { permissionSetApiNames: ['Tiny'] },
        { permissionSetApiNames: ['Spare', 'Work'] },
        { permissionSetApiNames: ['Work'] },
        { email: 'taken@random.example' },
        { displayName: 'Renamed' },
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('createUser' as const),
      profileApiName: fc.constantFrom('Administrator', 'Standard'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('deploy' as const), bundle, label: text }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('share' as const), of: fc.nat(5) }) },
);
/** Other changes in between. */
const turn = fc.oneof(
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('swapKeys' as const), a: key, b: key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('editCase' as const), of: fc.nat(5), note: text }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('default' as const), note: text }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('effect' as const), note: text }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('bundle' as const), bundle, label: text }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('policy' as const),
      name: fc.constantFrom(...(Object.keys(POLICIES) as (keyof typeof POLICIES)[])),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('newCase' as const), key }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('assign' as const),
      sets: fc.constantFrom<readonly string[]>([], ['Tiny'], ['Work']),
    }),
  },
);
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('ask' as const), agent: fc.constantFrom(...AGENTS), wish }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('decide' as const),
      by: fc.constantFrom(...DECIDERS),
      of: fc.nat(3),
      yes: fc.integer({ min: 0, max: 5 }).map((n) => n > 0),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('turn' as const), turn }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('execute' as const), of: fc.nat(3), times: fc.nat(2) }) },
);
type Wish = typeof wish extends fc.Arbitrary<infer T> ? T : never;
type Turn = typeof turn extends fc.Arbitrary<infer T> ? T : never;

/** A request of an agent that waits, was decided, or was executed. */
interface Intent {
  readonly agent: Person;
  readonly wish: Wish;
  readonly runId: string;
  readonly send: () => Promise<Answer>;
  readonly approvalId: string;
  /** As shown to the approver with all rights when approval was requested. */
  readonly shown: Anything;
  readonly approvers: Person[];
  done: boolean;
}

const GIVES_ACCESS: ReadonlySet<Wish['kind']> = new Set(['changeUser', 'createUser', 'deploy', 'share']);
/** Members that differ with every execution and are not part of the approved effect. */
const VOLATILE = new Set(['id', 'createdAt', 'updatedAt', 'recordVersion', 'lastSignInAt']);
const stable = (record: object): object =>
  Object.fromEntries(Object.entries(record).filter(([name]) => !VOLATILE.has(name)));
const changesOf = (plan: Anything): object =>
  Object.fromEntries(
    ['creates', 'updates', 'deletes'].map((part) => [
      part,
      plan[part].map(({ type, fullName, properties }: Anything) => ({ type, fullName, properties })),
    ]),
  );

describe('agents at random', () => {
  let platform: TestPlatform;
  const as = {} as Record<Person, Api>;
  const ids = {} as Record<Person, string>;
  const clients: Record<string, string> = {};
  const cases: string[] = [];
  const runs = new Map<string, string>();
  const intents: Intent[] = [];
  const executed = new Map<string, Set<string>>();
  const counts: Record<string, number> = {};
  const note = (what: string): void => {
    counts[what] = (counts[what] ?? 0) + 1;
  };

  before(async function () {
    this.timeout(180_000);
    platform = await startPlatform({ seed: false });
    const { broker, baseUrl } = platform;
    const created = { template: 'empty', key: 'random', name: 'Random' };
    const { tenantId } = (await broker.call('metadata.tenants.create', created)) as { tenantId: string };
    await broker.call('auth.domains.add', { tenantId, domain: 'random.example' });
    await broker.call('metadata.templates.deploy', { tenantId, files: CONFIGURATION });
    const sets: Record<Person, string[]> = { root: [], chief: [], boss: ['Boss'], clerk: ['Clerk'], mule: ['Work'] };
    const { userIds } = (await broker.call('data.users.provision', {
      tenantId,
      users: PEOPLE.map((name) => ({
        username: `${name}@random.example`,
        email: `${name}@random.example`,
        displayName: name,
        password: 'demo-password',
        profileApiName: name === 'root' || name === 'chief' ? 'Administrator' : 'Standard',
        permissionSetApiNames: sets[name],
      })),
    })) as { userIds: Record<string, string> };
    for (const name of PEOPLE) {
      ids[name] = userIds[`${name}@random.example`]!;
      as[name] = api(baseUrl, await tokenFor(baseUrl, `${name}@random.example`));
    }
    await deployOverHttp(as.root, { 'permissionSets/Work.yaml': CONFIGURATION['permissionSets/Work.yaml']! });
    for (const name of KEYS) {
      const reply = await as.clerk.post('/data/Client__c', { name, Key__c: name, Grade__c: 'one' });
      assert.equal(reply.status, 201, reply.text);
      clients[name] = reply.body.id;
      await newCase(name);
    }
  });
  after(() => platform?.stop());

  const newCase = async (of: string): Promise<void> => {
    const reply = await as.clerk.post('/data/Case__c', { name: `Case of ${of}`, Client__c: { Key__c: of } });
    if (reply.status === 201) cases.push(reply.body.id);
  };
  const etagOf = async (who: Api, path: string): Promise<string> => (await who.get(path)).headers.get('etag') ?? '"0"';

  const runOf = async (agent: Person): Promise<string> => {
    const known = runs.get(agent);
    const { body } = known ? await as[agent].get(`/agent/runs/${known}`) : { body: null };
    if (body && ['RUNNING', 'WAITING_APPROVAL'].includes(body.status) && body.usage.mutations < MAX_MUTATIONS)
      return known!;
    if (known) await as[agent].post(`/agent/runs/${known}/complete`, { outcome: 'succeeded', summary: 'Next.' });
    const goal = { agentKey: 'random', goal: 'Try everything.', budget: { maxMutations: MAX_MUTATIONS } };
    const reply = await as[agent].post('/agent/runs', goal);
    assert.equal(reply.status, 201, reply.text);
    runs.set(agent, reply.body.runId);
    return reply.body.runId;
  };

  /** The request of a wish, which can be sent repeatedly. */
  const requestOf = async (who: Api, one: Wish): Promise<(options: CallOptions) => Promise<Answer>> => {
    const aCase = (of: number): string => cases[of % Math.max(1, cases.length)] ?? randomUUID();
    switch (one.kind) {
      case 'createCase': {
        const given = one.note === null ? {} : { Note__c: one.note };
        const body = { name: `By an agent ${randomUUID()}`, Client__c: { Key__c: one.key }, ...given };
        return (options) => who.post('/data/Case__c', body, options);
      }
      case 'moveCase': {
        const path = `/data/Case__c/${aCase(one.of)}`;
        const etag = await etagOf(who, path);
        return (options) => who.patch(path, { Client__c: { Key__c: one.key } }, { ...options, etag });
      }
      case 'upsertClient': {
        const path = `/data/Client__c/by/Key__c/${one.key}`;
        return (options) => who.put(path, { name: one.key, Grade__c: one.grade }, options);
      }
      case 'deleteClient': {
        const path = `/data/Client__c/${clients[one.key]}`;
        const etag = await etagOf(who, path);
        return (options) => who.delete(path, { ...options, etag });
      }
      case 'close': {
        const path = `/data/Case__c/${aCase(one.of)}`;
        const etag = await etagOf(who, path);
        return (options) => who.post(`${path}/transitions/close`, {}, { ...options, etag });
      }
      case 'changeUser': {
        const path = `/data/User/${ids[one.user as Person]}`;
        const etag = await etagOf(as.root, path);
        return (options) => who.patch(path, one.fields, { ...options, etag });
      }
      case 'createUser': {
        const name = `made-${randomUUID()}`;
        const username = `${name}@random.example`;
        const body = { username, email: username, displayName: name, profileApiName: one.profileApiName };
        return (options) => who.post('/data/User', body, options);
      }
      case 'deploy': {
        const files = bundleFile('Tiny', one.bundle, one.label);
        return (options) => who.post('/metadata/deploy', { files, package: wholePackage(files) }, options);
      }
      case 'share': {
        const body = { principalType: 'user', principalId: ids.mule, access: 'read' };
        return (options) => who.post(`/data/Case__c/${aCase(one.of)}/shares`, body, options);
      }
    }
  };

  /** Rights by configuration and assignments, of every user: `person right`. */
  const rightsOfAll = async (): Promise<Map<string, Set<string>>> => {
    const types = ['Profile', 'PermissionSet'].map((name) => ({ name, members: ['*'] }));
    const retrieved = await as.root.post('/metadata/retrieve', { package: { version: 1, types } });
    assert.equal(retrieved.status, 200, retrieved.text);
    const rights = new Map<string, string[]>();
    for (const [path, yaml] of Object.entries<string>(retrieved.body.files)) {
      const found = /^(profiles|permissionSets)\/(.*)\.yaml$/.exec(path);
      if (!found) continue;
      const { system = [], objects = {}, fields = {}, actions = [] } = parse(yaml);
      const given = (of: object): string[] =>
        Object.entries(of).flatMap(([name, flags]) =>
          Object.entries(flags as object).flatMap(([flag, yes]) => (yes ? [`${name} ${flag}`] : [])),
        );
      rights.set(`${found[1]} ${found[2]}`, [...system, ...given(objects), ...given(fields), ...actions]);
    }
    const { body } = await as.root.get('/data/User?take=200&fields=id,profileApiName,permissionSetApiNames,managerId');
    return new Map(
      body.records.map(({ id, profileApiName, permissionSetApiNames, managerId }: Anything) => [
        id,
        new Set([
          ...(rights.get(`profiles ${profileApiName}`) ?? []),
          ...(permissionSetApiNames ?? []).flatMap((name: string) => rights.get(`permissionSets ${name}`) ?? []),
          ...(managerId ? [`reports to ${managerId}`] : []),
        ]),
      ]),
    );
  };

  const ask = async (agent: Person, one: Wish): Promise<void> => {
    const runId = await runOf(agent);
    const request = await requestOf(as[agent], one);
    const options = { idempotencyKey: randomUUID(), headers: { 'x-agent-run-id': runId } };
    const send = (): Promise<Answer> => request(options);
    const before = await rightsOfAll();
    const etags = await etagsOfUsers();
    const answer = await send();
    note(`asked ${one.kind}: ${answer.status} ${answer.body?.code ?? ''}`);
    if (answer.status < 300) {
      const used = await usedBy(runId, one);
      if (used) return settle(used, before, answer);
      if (GIVES_ACCESS.has(one.kind)) await changedNothing(one, answer, etags);
      await grewBy(before, [], one);
      count(agent, runId, options.idempotencyKey);
      return remember(one, answer);
    }
    if (answer.body.code !== 'APPROVAL_REQUIRED') return;
    const { approvalId } = answer.body.details;
    const { body: shown, status } = await as.root.get(`/agent/approvals/${approvalId}`);
    assert.equal(status, 200);
    if (GIVES_ACCESS.has(one.kind)) assert.equal(shown.risk, 'high', one.kind);
    intents.push({ agent, wish: one, runId, send, approvalId, shown, approvers: [], done: false });
  };

  const etagsOfUsers = async (): Promise<Map<string, string>> => {
    const { body } = await as.root.get('/data/User?take=200&fields=id&includeEtag=true');
    return new Map(body.records.map(({ id, _etag }: Anything) => [id, _etag]));
  };

  /** A call that gives access is executed without an approval only if it changes nothing. */
  const changedNothing = async (one: Wish, answer: Answer, etags: Map<string, string>): Promise<void> => {
    if (one.kind === 'deploy') {
      const { changes } = await deploymentEnded(as.root, { ...answer, status: 202 });
      assert.deepEqual(changesOf(changes), { creates: [], updates: [], deletes: [] }, 'deployed without an approval');
    } else assert.deepEqual(await etagsOfUsers(), etags, `${one.kind} without an approval: ${answer.text}`);
    assert.notEqual(one.kind, 'share', answer.text);
  };

  /** Of a run, and of all runs of an agent's user. */
  const count = (agent: Person, runId: string, idempotencyKey: string): void => {
    for (const [whose, most] of [
      [runId, MAX_MUTATIONS],
      [agent, MAX_MUTATIONS_PER_DAY],
    ] as const) {
      const known = executed.get(whose) ?? new Set();
      executed.set(whose, known.add(idempotencyKey));
      assert.ok(known.size <= most, `${known.size} mutations were executed under a budget of ${most}.`);
    }
  };

  const remember = (one: Wish, answer: Answer): void => {
    if (one.kind === 'createCase' && answer.status === 201) cases.push(answer.body.id);
    if (one.kind === 'deleteClient') delete clients[one.key];
    if (one.kind === 'upsertClient') clients[one.key] = answer.body.id;
  };

  const decide = async (by: Person, intent: Intent, yes: boolean): Promise<void> => {
    const { fingerprint } = intent.shown;
    const body = yes ? { decision: 'approve', fingerprint } : { decision: 'reject', fingerprint, comment: 'No.' };
    const answer = await as[by].post(`/agent/approvals/${intent.approvalId}/decision`, body);
    note(`decided ${intent.wish.kind}: ${answer.status} ${answer.body.code ?? answer.body.status}`);
    assert.ok([201, 403, 404, 409].includes(answer.status), answer.text);
    if (answer.status === 201 && yes) intent.approvers.push(by);
  };

  /** Every right that a user has gained was held by those who approved. */
  const grewBy = async (before: Map<string, Set<string>>, approvers: readonly Person[], one: Wish): Promise<void> => {
    const held = new Set(approvers.flatMap((name) => [...(before.get(ids[name]) ?? [])]));
    for (const [id, now] of await rightsOfAll())
      for (const right of now)
        if (!before.get(id)?.has(right))
          assert.ok(
            held.has(right) || held.has('manageAccess'),
            `${JSON.stringify(one)} gave ${right} to ${id}, approved by ${approvers.join(', ')}`,
          );
  };

  const execute = async (intent: Intent, times: number): Promise<void> => {
    const before = await rightsOfAll();
    const answers = await Promise.all(Array.from({ length: times + 1 }, () => intent.send()));
    const good = answers.filter(({ status }) => status < 300);
    const first = good.find(({ headers }) => headers.get('idempotency-replayed') !== 'true');
    for (const { status, body } of answers)
      if (status >= 300) note(`executed ${intent.wish.kind}: ${status} ${body.code}`);
    if (good.length === 0) return;
    if (intent.done) {
      assert.equal(first, undefined, 'it was executed twice');
      return;
    }
    assert.ok(first, `only replayed: ${good[0]!.text}`);
    assert.equal(good.filter(({ headers }) => headers.get('idempotency-replayed') !== 'true').length, 1);
    await settle(intent, before, first);
  };

  /** The approval of an earlier request with the same content, used by this one. */
  const usedBy = async (runId: string, one: Wish): Promise<Intent | undefined> => {
    for (const intent of intents) {
      if (intent.done || intent.runId !== runId || intent.wish.kind !== one.kind) continue;
      if ((await as.root.get(`/agent/approvals/${intent.approvalId}`)).body.status === 'CONSUMED') return intent;
    }
    return undefined;
  };

  const settle = async (intent: Intent, before: Map<string, Set<string>>, answer: Answer): Promise<void> => {
    intent.done = true;
    note(`executed ${intent.wish.kind}`);
    count(intent.agent, intent.runId, intent.approvalId);
    const { body: approval } = await as.root.get(`/agent/approvals/${intent.approvalId}`);
    if (approval.status !== 'CONSUMED') {
      // The policies have changed, and such a request needs no approval any more.
      assert.ok(!GIVES_ACCESS.has(intent.wish.kind), `${intent.wish.kind} was executed, and the approval not used.`);
      await grewBy(before, [], intent.wish);
      return remember(intent.wish, answer);
    }
    assert.ok(intent.approvers.length > 0, `${intent.wish.kind} was approved by no person.`);
    await asShown(intent, answer);
    await grewBy(before, intent.approvers, intent.wish);
    remember(intent.wish, answer);
    const { usage, budget } = (await as[intent.agent].get(`/agent/runs/${intent.runId}`)).body;
    assert.ok(usage.mutations <= budget.maxMutations && usage.cost <= budget.maxCost, JSON.stringify(usage));
    assert.ok(usage.recordsChanged <= budget.maxRecords, JSON.stringify(usage));
  };

  /** Field by field, the effect equals the preview. */
  const asShown = async ({ wish: one, shown }: Intent, { body }: Answer): Promise<void> => {
    const { preview } = shown;
    assert.ok(preview, 'nothing was shown');
    if (one.kind === 'deploy') {
      const found = await deploymentEnded(as.root, { status: 202, body, text: '' } as Answer);
      if (found.status === 'SUCCEEDED') assert.deepEqual(changesOf(found.changes), changesOf(preview));
      return note(`deployment ${found.status} ${found.error?.code ?? ''}`);
    }
    assert.equal(preview.valid, true, JSON.stringify(preview.errors));
    if (one.kind === 'deleteClient') {
      const sum = (parts: { count?: number }[]): number => parts.reduce((total, { count = 1 }) => total + count, 0);
      const deleted = preview.effects.filter(({ kind }: { kind: string }) => kind === 'delete');
      assert.equal(sum(deleted), sum(body.cascaded) + 1, JSON.stringify([body, preview.effects]));
    } else if (one.kind !== 'share') {
      assert.deepEqual(stable(body.record ?? body), stable(preview.record), one.kind);
    }
  };

  const change = async (one: Turn): Promise<void> => {
    const patch = async (path: string, fields: object): Promise<void> => {
      await as.root.patch(path, fields, { etag: await etagOf(as.root, path) });
    };
    switch (one.kind) {
      case 'swapKeys': {
        const [a, b] = [clients[one.a], clients[one.b]];
        if (!a || !b || a === b) return;
        await patch(`/data/Client__c/${a}`, { Key__c: 'between' });
        await patch(`/data/Client__c/${b}`, { Key__c: one.a });
        await patch(`/data/Client__c/${a}`, { Key__c: one.b });
        [clients[one.a], clients[one.b]] = [b, a];
        return;
      }
      case 'editCase':
        return patch(`/data/Case__c/${cases[one.of % cases.length]}`, { Note__c: one.note });
      case 'default':
        return deployOverHttp(as.root, noteField(one.note));
      case 'effect':
        return deployOverHttp(as.root, stateModel(one.note));
      case 'bundle':
        return deployOverHttp(as.root, bundleFile('Tiny', one.bundle, one.label));
      case 'policy':
        return deployOverHttp(as.root, policyFile(one.name));
      case 'newCase':
        return newCase(one.key);
      case 'assign':
        return patch(`/data/User/${ids.mule}`, { permissionSetApiNames: one.sets });
    }
  };

  it(`do nothing that was not shown and approved, ${STEPS} times (seed ${seed})`, async function () {
    this.timeout(60_000 + STEPS * 3_000);
    for (const one of fc.sample(step, { seed, numRuns: STEPS })) {
      const open = intents.filter(({ done }) => !done);
      const pick = (of: number): Intent | undefined => open.at(-1 - (of % Math.max(1, open.length)));
      if (one.kind === 'ask') await ask(one.agent, one.wish);
      else if (one.kind === 'turn') await change(one.turn);
      else {
        const intent = pick(one.of);
        if (!intent) continue;
        if (one.kind === 'decide') await decide(one.by, intent, one.yes);
        else await execute(intent, one.times);
      }
    }
    if (process.env['AGENT_STEPS']) console.log(counts);
    // A short sequence may execute no request that waited.
    assert.ok(STEPS < 300 || Object.keys(counts).some((what) => /^executed \w+$/.test(what)), JSON.stringify(counts));
  });
});
