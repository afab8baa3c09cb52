/** `npm run bus-keys`: what it makes fits together, stays when it runs again, and can be replaced in use. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nkeys } from 'nats';
import { readConfig } from '../../../config/env.ts';
import { ALL_SERVICES } from '../../../config/services.ts';
import { makeBusKeys } from '../../../scripts/bus-keys.ts';

describe('the keys of the bus', () => {
  let folder: string;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'erp-bus-keys-'));
    await makeBusKeys({ folder, hosts: ['nats.internal', '192.0.2.1'], identities: ['data+gateway'] });
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const read = (...path: string[]): string => readFileSync(join(folder, ...path), 'utf8');
  const users = (): Map<string, string[]> => {
    const found = new Map<string, string[]>();
    for (const [, identity, key] of read('nats', 'nats.conf').matchAll(/# (\S+)\n *\{\n *nkey: (\w+)/g))
      found.set(identity!, [...(found.get(identity!) ?? []), key!]);
    return found;
  };
  const contextKeys = (identity: string) => {
    const env = {
      NATS_URL: 'tls://nats',
      SERVICES: identity.replace('+', ','),
      BUS_KEYS_FILE: join(folder, identity, 'context.keys'),
    };
    return readConfig(env).bus!.contextKeys!;
  };

  it('let each identity sign in, publish in its own name, and receive messages addressed to it', () => {
    const configuration = read('nats', 'nats.conf');
    assert.deepEqual([...users().keys()].sort(), [...ALL_SERVICES, 'data+gateway', 'operator'].sort());
    for (const [identity, keys] of users()) {
      const seed = new TextEncoder().encode(read(identity, 'user.nk'));
      assert.deepEqual(keys, [nkeys.fromSeed(seed).getPublicKey()]);
      const [, rest = ''] = configuration.split(`nkey: ${keys[0]}`);
      const [publish, subscribe] = [...rest.matchAll(/(?:publish|subscribe): (\[.*\])/g)].map(([, list]) =>
        JSON.parse(list!),
      );
      assert.deepEqual(publish, [`MOL-erp.${identity}.>`]);
      assert.deepEqual(subscribe, [`MOL-erp.*.*.${identity}.>`, 'MOL-erp.*.*.all']);
    }
  });

  it('give the gateway all keys of contexts, a service its own and those of whom it calls for users, and the operator none', () => {
    const all = contextKeys('gateway');
    for (const service of ALL_SERVICES.filter((name) => name !== 'gateway')) {
      // They act for users by an action of data.
      const names = ['bulk', 'files'].includes(service) ? ['data', service] : [service];
      assert.deepEqual(
        [...contextKeys(service)],
        names.map((name) => [name, all.get(name)]),
      );
    }
    assert.deepEqual(contextKeys('data+gateway'), all);
    assert.throws(() => read('operator', 'context.keys'));
  });

  it('certify the server for its hosts, by an authority whose key only the owner can read', () => {
    const [certificate, authority] = [read('nats', 'server.pem'), read('data', 'ca.pem')].map(
      (pem) => new X509Certificate(pem),
    );
    assert.equal(certificate!.verify(authority!.publicKey), true);
    assert.equal(certificate!.subjectAltName, 'DNS:nats.internal, IP Address:192.0.2.1');
    assert.equal(certificate!.ca, false);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    assert.equal(statSync(join(folder, 'authority', 'ca.key')).mode & 0o777, 0o600);
  });

  it('stay when the command runs again, with hosts and identities', async () => {
    const [before, keys] = [read('nats', 'nats.conf'), contextKeys('gateway')];
    const { changed, absent } = await makeBusKeys({ folder });
    assert.deepEqual([changed, absent], [['nats'], []]);
    assert.equal(read('nats', 'nats.conf'), before);
    assert.deepEqual(contextKeys('gateway'), keys);
    assert.match(new X509Certificate(read('nats', 'server.pem')).subjectAltName!, /nats\.internal/);
  });

  it('of an earlier version gain those of a new service, and the identities that need new files are reported', async () => {
    const [statePath, keysPath] = [join(folder, 'authority', 'state.json'), join(folder, 'gateway', 'context.keys')];
    const { users: of, ...state } = JSON.parse(readFileSync(statePath, 'utf8'));
    const { agent: _, ...earlier } = of;
    writeFileSync(statePath, JSON.stringify({ ...state, users: earlier }));
    writeFileSync(keysPath, readFileSync(keysPath, 'utf8').replace(/^agent .*\n/m, ''));
    rmSync(join(folder, 'agent'), { recursive: true });
    const { changed } = await makeBusKeys({ folder });
    assert.deepEqual(changed, ['nats', 'gateway', 'agent', 'data+gateway']);
    assert.equal(users().get('agent')!.length, 1);
  });

  it('are replaced in two steps, the first of which keeps the previous ones valid', async () => {
    const [user, key] = [users().get('data')![0]!, contextKeys('data').get('data')![0]!];
    await makeBusKeys({ folder, step: 'rotate' });
    assert.equal(users().get('data')!.length, 2);
    assert.equal(users().get('data')![1], user);
    assert.deepEqual(contextKeys('data').get('data')![1], key);
    assert.notDeepEqual(contextKeys('gateway').get('data')![0], key, 'the gateway seals with the new one');
    await makeBusKeys({ folder, step: 'finish' });
    assert.equal(users().get('data')!.length, 1);
    assert.notEqual(users().get('data')![0], user);
    assert.equal(contextKeys('data').get('data')!.length, 1);
  });

  it('stay valid with only the folders of authority, operator and gateway present', async () => {
    const before = read('nats', 'nats.conf');
    const key = contextKeys('data').get('data')![0];
    for (const name of ['nats', 'data', 'auth', 'metadata', 'analytics', 'ratelimit', 'data+gateway'])
      rmSync(join(folder, name), { recursive: true });
    const { present, changed, absent } = await makeBusKeys({ folder });
    assert.deepEqual(
      [present, changed],
      [
        ['nats', 'gateway', 'agent', 'mcp', 'files', 'bulk', 'events', 'notifications', 'calendar', 'operator'],
        ['nats'],
      ],
    );
    assert.deepEqual(absent, ['auth', 'data', 'metadata', 'analytics', 'ratelimit', 'data+gateway']);
    assert.equal(read('nats', 'nats.conf'), before);
    assert.match(new X509Certificate(read('nats', 'server.pem')).subjectAltName!, /nats\.internal/);
    assert.throws(() => read('data', 'context.keys'), 'a folder without the seed of its user would be no use');
    const known = users();
    await makeBusKeys({ folder, step: 'rotate' });
    for (const [identity, [, previous]] of users()) assert.deepEqual([previous], known.get(identity), identity);
    assert.deepEqual(contextKeys('data').get('data')![1], key);
  });

  it('are not replaced when the keys in use are unknown', async () => {
    rmSync(join(folder, 'gateway'), { recursive: true });
    for (const step of [undefined, 'rotate', 'finish'] as const)
      await assert.rejects(makeBusKeys({ folder, ...(step ? { step } : {}) }), /gateway\/context\.keys is missing/);
    rmSync(join(folder, 'authority', 'state.json'));
    await assert.rejects(makeBusKeys({ folder }), /state\.json is missing/);
  });

  it('are not replaced again before the rotation is finished, which needs its folders', async () => {
    await makeBusKeys({ folder, step: 'rotate' });
    const before = read('nats', 'nats.conf');
    await assert.rejects(makeBusKeys({ folder, step: 'rotate' }), /run --finish/);
    rmSync(join(folder, 'data'), { recursive: true });
    await assert.rejects(makeBusKeys({ folder, step: 'finish' }), /put those of data back/);
    assert.equal(read('nats', 'nats.conf'), before);
  });
});
