import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { type Beginning, begin, beginning, filesOf, NAMES, type Step, step, Tenant } from '../../support/climbing.ts';
import { wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const STEPS = Number(process.env['CLIMBING_STEPS'] ?? 40);
const seed = Number(process.env['CLIMBING_SEED'] ?? Date.now() % 2 ** 31);

/** The properties of the model (test/unit/metadata/climbing.test.ts) hold for the platform if both decide alike. */
describe('API: climbing', () => {
  let platform: TestPlatform;
  const callers = new Map<string, Api>();
  const ids = new Map<string, string>();
  const [drawn] = fc.sample(beginning, { seed, numRuns: 1 }) as [Beginning];
  const [attacker, ...others] = drawn.people;
  // Every user can sign in, and the attacker can try everything.
  const of: Beginning = {
    ...drawn,
    powers: ['system apiEnabled', 'system metadataManage', 'system manageUsers', 'system manageClients'],
    people: [attacker, ...others.map((person) => ({ ...person, active: true }))] as Beginning['people'],
  };

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform({ seed: false });
    const { broker } = platform;
    const { tenantId } = (await broker.call('metadata.tenants.create', {
      template: 'empty',
      key: 'climb',
      name: 'Climb',
    })) as {
      tenantId: string;
    };
    await broker.call('auth.domains.add', { tenantId, domain: 'climb.example' });
    const { files, people } = begin(of);
    await broker.call('metadata.templates.deploy', { tenantId, files });
    const { userIds } = (await broker.call('data.users.provision', {
      tenantId,
      users: people.map((person) => ({
        ...person,
        permissionSetApiNames: [...person.permissionSetApiNames],
        email: person.username,
        displayName: person.id,
        password: 'demo-password',
      })),
    })) as { userIds: Record<string, string> };
    for (const { id, username } of people) {
      ids.set(id, userIds[username]!);
      callers.set(id, api(platform.baseUrl, await tokenFor(platform.baseUrl, username)));
    }
  });
  after(() => platform?.stop());

  const deploy = async (by: Api, files: Record<string, string>): Promise<boolean> => {
    const { status, body, text } = await by.post('/metadata/deploy', { files, package: wholePackage(files) });
    if (status === 403) return false;
    assert.equal(status, 202, text);
    for (let i = 0; i < 400; i++) {
      const found = await callers.get('root')!.get(`/metadata/deployments/${body.deploymentId}`);
      if (found.body.status === 'FAILED') assert.equal(found.body.error.code, 'PLAN_BLOCKED', found.text);
      if (['SUCCEEDED', 'FAILED'].includes(found.body.status)) return found.body.status === 'SUCCEEDED';
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    return assert.fail('The deployment did not end.');
  };
  let emails = 0;
  const change = async (by: Api, one: Step & { kind: 'change' }): Promise<boolean> => {
    const path = `/data/User/${ids.get(one.user)}`;
    const etag = (await callers.get('root')!.get(path)).headers.get('etag')!;
    const fields = Object.keys(one.fields).length > 0 ? one.fields : { email: `e${emails++}@climb.example` };
    const { status, text } = await by.patch(path, fields, { etag });
    assert.ok([200, 403, 409, 422].includes(status), text);
    return status === 200;
  };
  const create = async (by: Api, { given, username }: Step & { kind: 'create' }, id: string): Promise<boolean> => {
    const name = `${username}@climb.example`;
    const body = { ...given, username: name, email: name, displayName: username };
    const { status, text, body: made } = await by.post('/data/User', body);
    assert.ok([201, 403, 409].includes(status), text);
    if (status === 201) ids.set(id, made.id);
    return status === 201;
  };

  it(`is refused by the platform as by its model, ${STEPS} times (seed ${seed})`, async function () {
    this.timeout(30_000 + STEPS * 2_000);
    const tenant = await Tenant.begin(of);
    const steps = fc.sample(fc.tuple(step, fc.nat(7)), { seed, numRuns: STEPS });
    const sleepers = new Set<string>();
    let taken = 0;
    for (const [one, by] of steps) {
      // A token ends with the deactivation of its user, and created users have no password yet.
      for (const { id, active } of tenant.people.values()) if (!active) sleepers.add(id);
      const actors = NAMES.filter((name) => tenant.controlled.has(name) && !sleepers.has(name));
      const actor = actors[by % Math.max(1, actors.length)];
      if (actor === undefined) continue;
      const caller = callers.get(actor)!;
      const files = filesOf(one, tenant.bundles);
      const id = `new${tenant.people.size}`;
      const expected = await tenant.take(one, actor);
      const done =
        files !== null
          ? await deploy(caller, files)
          : one.kind === 'change'
            ? await change(caller, one)
            : one.kind === 'create' && (await create(caller, one, id));
      assert.equal(done, expected, `${JSON.stringify(one)} by ${actor}`);
      if (done) taken++;
    }
    for (const person of tenant.people.values()) {
      const { body } = await callers.get('root')!.get(`/data/User/${ids.get(person.id)}`);
      const { username, profileApiName, permissionSetApiNames, roleApiName, active } = body;
      assert.deepEqual(
        { id: person.id, username, profileApiName, roleApiName, active },
        {
          id: person.id,
          username: person.username,
          profileApiName: person.profileApiName,
          roleApiName: person.roleApiName,
          active: person.active,
        },
      );
      assert.deepEqual([...(permissionSetApiNames ?? [])].sort(), [...person.permissionSetApiNames].sort());
    }
    assert.ok(taken > 0, 'no step was taken');
  });
});
