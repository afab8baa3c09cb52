/**
 * `npm run bus-keys [-- --folder .bus] [--host NAME]… [--identity data+gateway]… [--rotate | --finish]`: makes what a
 * NATS server and the processes of a platform need to trust each other, a folder for each of them:
 *
 * - `nats`: the server's configuration with a user and its permissions per identity, its certificate and its key;
 * - one per service and `operator`: the certificate to trust, the seed of its user, and the keys of request contexts;
 * - `authority`: the key of the self-made certificate authority and what was given to whom, for this command alone.
 *
 * Existing keys are kept; the server's certificate is renewed each time. `--rotate` gives every identity a new user and new
 * keys and leaves the previous ones valid; `--finish` ends those. Source: docs/reference/operations-cluster.md#keys-of-the-bus.
 */
import 'reflect-metadata';
import { createPrivateKey, randomBytes, type webcrypto } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type JsonGeneralName,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { nkeys } from 'nats';
import { identityOf } from '../config/bus.ts';
import { ALL_SERVICES, isServiceName, keysOf, OPERATOR } from '../config/services.ts';
import { readArguments, refuse } from './arguments.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MS = 86_400_000;
const AUTHORITY_DAYS = 3_650;
const CERTIFICATE_DAYS = 825;
const CONTEXT_KEY_BYTES = 32;
/** By which the server of a compose file or a local cluster is reached. */
const HOSTS = ['nats', 'localhost', '127.0.0.1', '::1'];
/** Prefix of Moleculer's subjects: `MOL-` and the namespace of config/broker.ts. */
const PREFIX = 'MOL-erp';

interface BusKeysOptions {
  readonly folder: string;
  /** Names and addresses by which processes reach the server; default: those of the last time. */
  readonly hosts?: readonly string[];
  /** More identities than one per service, such as `data+gateway` for a process that runs both. */
  readonly identities?: readonly string[];
  readonly step?: 'rotate' | 'finish';
}

/** State kept beside the authority, because the other folders may be moved away. Nothing secret. */
interface State {
  /** By which the server is reached. */
  readonly hosts: readonly string[];
  /** Public keys by identity, that of the seed in its folder first; two of them between --rotate and --finish. */
  readonly users: Readonly<Record<string, readonly string[]>>;
}

/** Result of a run, by names of folders. */
interface BusKeys {
  /** Those that are there now. */
  readonly present: readonly string[];
  /** Those of them in which something is new: who has them in use needs the new files. */
  readonly changed: readonly string[];
  /** Those that were taken away; what was in them stays valid. */
  readonly absent: readonly string[];
}

/** Writes the folders. */
export async function makeBusKeys({ folder, hosts, identities = [], step }: BusKeysOptions): Promise<BusKeys> {
  const state = readState(folder);
  const everybody = [...new Set([...ALL_SERVICES, OPERATOR, ...Object.keys(state?.users ?? {}), ...identities])];
  if (state) checkStep(folder, state, step);
  mkdirSync(folder, { recursive: true });
  // Files below are readable by the users of containers that mount one of the folders.
  chmodSync(folder, 0o700);
  const before = new Map(everybody.map((identity) => [identity, contentOf(join(folder, identity))]));
  const named = hosts ?? state?.hosts ?? HOSTS;
  const authority = await makeServer(folder, named);
  const keys = makeContextKeys(folder, step);
  const users = everybody.map((identity): [string, string[]] => [
    identity,
    makeUser(join(folder, identity), state?.users[identity] ?? [], step),
  ]);
  const remembered: State = { hosts: named, users: Object.fromEntries(users) };
  writeFileSync(statePath(folder), `${JSON.stringify(remembered, null, 2)}\n`);
  writeFileSync(join(folder, 'nats', 'nats.conf'), serverConfiguration(users));
  for (const identity of everybody) {
    // A folder that was moved away would lack the seed, which is not stored here.
    if (!existsSync(join(folder, identity, SEED_FILE))) continue;
    writeFileSync(join(folder, identity, 'ca.pem'), authority);
    if (identity === OPERATOR) continue;
    const own = keysOf(identity.split('+').filter(isServiceName));
    const lines = own.flatMap((service) => (keys.get(service) ?? []).map((key) => `${service} ${key}\n`));
    writeFileSync(join(folder, identity, 'context.keys'), lines.join(''));
  }
  const [present = [], absent = []] = [true, false].map((there) =>
    everybody.filter((identity) => existsSync(join(folder, identity, SEED_FILE)) === there),
  );
  const changed = present.filter((identity) => contentOf(join(folder, identity)) !== before.get(identity));
  // The certificate of the server is new each time.
  return { present: ['nats', ...present], changed: ['nats', ...changed], absent };
}

/** The text of the files that an identity has. */
const contentOf = (folder: string): string =>
  [SEED_FILE, 'ca.pem', 'context.keys']
    .map((name) => join(folder, name))
    .map((path) => (existsSync(path) ? readFileSync(path, 'utf8') : ''))
    .join('\n');

const SEED_FILE = 'user.nk';
const statePath = (folder: string): string => join(folder, 'authority', 'state.json');
const contextKeysPath = (folder: string): string => join(folder, 'gateway', 'context.keys');

/** null: the folder is new. */
function readState(folder: string): State | null {
  if (existsSync(statePath(folder))) return JSON.parse(readFileSync(statePath(folder), 'utf8'));
  if (!existsSync(join(folder, 'authority', 'ca.pem'))) return null;
  throw new Error(
    `${statePath(folder)} is missing, which says whose keys are in use: restore it, or begin anew in another folder.`,
  );
}

/** Throws when a step would take away keys that are in use. */
function checkStep(folder: string, { users }: State, step: BusKeysOptions['step']): void {
  if (step === 'rotate' && Object.values(users).some((keys) => keys.length > 1))
    throw new Error('The rotation before has not ended: run --finish when everybody has what it made, then --rotate.');
  if (!existsSync(contextKeysPath(folder)))
    throw new Error(
      `${contextKeysPath(folder)} is missing, which has the keys of contexts in use: put the file of a gateway there.`,
    );
  const gone = Object.keys(users).filter((identity) => !existsSync(join(folder, identity, SEED_FILE)));
  if (step === 'finish' && gone.length > 0)
    throw new Error(`--finish needs the folders that --rotate wrote; put those of ${gone.join(', ')} back.`);
}

/** The server's certificate and key. Answers the certificate of the authority. */
async function makeServer(folder: string, hosts: readonly string[]): Promise<string> {
  const [authority, nats] = [join(folder, 'authority'), join(folder, 'nats')];
  mkdirSync(authority, { recursive: true, mode: 0o700 });
  mkdirSync(nats, { recursive: true });
  const [certificatePath, keyPath] = [join(authority, 'ca.pem'), join(authority, 'ca.key')];
  if (!existsSync(certificatePath)) await makeAuthority(certificatePath, keyPath);
  const ca = readFileSync(certificatePath, 'utf8');
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const issuer = new X509Certificate(ca);
  const certificate = await X509CertificateGenerator.create({
    subject: 'CN=NATS',
    issuer: issuer.subject,
    publicKey: keys.publicKey,
    signingKey: await readKey(keyPath),
    signingAlgorithm: ALGORITHM,
    ...validFor(CERTIFICATE_DAYS),
    extensions: [
      new BasicConstraintsExtension(false),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(
        hosts.map((host): JsonGeneralName => ({ type: isIP(host) ? 'ip' : 'dns', value: host })),
      ),
    ],
  });
  writeFileSync(join(nats, 'server.pem'), certificate.toString('pem'));
  writeFileSync(join(nats, 'server.key'), await keyText(keys.privateKey));
  return ca;
}

async function makeAuthority(certificatePath: string, keyPath: string): Promise<void> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=ERP platform bus',
    keys,
    signingAlgorithm: ALGORITHM,
    ...validFor(AUTHORITY_DAYS),
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  });
  writeFileSync(keyPath, await keyText(keys.privateKey), { mode: 0o600 });
  writeFileSync(certificatePath, certificate.toString('pem'));
}

/** A clock that runs behind takes a new certificate, too. */
const validFor = (days: number): { notBefore: Date; notAfter: Date } => ({
  notBefore: new Date(Date.now() - DAY_MS),
  notAfter: new Date(Date.now() + days * DAY_MS),
});

const keyText = async (key: webcrypto.CryptoKey): Promise<string> => {
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', key));
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    .export({ format: 'pem', type: 'pkcs8' })
    .toString();
};

const readKey = (path: string): Promise<webcrypto.CryptoKey> => {
  const der = createPrivateKey(readFileSync(path)).export({ format: 'der', type: 'pkcs8' });
  return crypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
};

/** The seed of an identity's user. Answers the public keys under which the server knows it. */
function makeUser(folder: string, known: readonly string[], step: BusKeysOptions['step']): string[] {
  if (step !== 'rotate' && known.length > 0) return step === 'finish' ? known.slice(0, 1) : [...known];
  mkdirSync(folder, { recursive: true });
  const user = nkeys.createUser();
  writeFileSync(join(folder, SEED_FILE), user.getSeed());
  return [user.getPublicKey(), ...known.slice(0, 1)];
}

/** Keys by service, the one to sign with first. The gateway's file has them all. */
function makeContextKeys(folder: string, step: BusKeysOptions['step']): Map<string, string[]> {
  const path = contextKeysPath(folder);
  const lines = existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
  const known = Map.groupBy(lines, (line) => line.replace(/ .*/s, ''));
  return new Map(
    ALL_SERVICES.filter((service) => service !== 'gateway').map((service) => {
      const keys = (known.get(service) ?? []).flatMap((line) => line.split(' ').slice(1, 2));
      const fresh = (): string => randomBytes(CONTEXT_KEY_BYTES).toString('base64url');
      if (step === 'rotate' || keys.length === 0) return [service, [fresh(), ...keys.slice(0, 1)]];
      return [service, step === 'finish' ? keys.slice(0, 1) : keys];
    }),
  );
}

/** Paths are relative to the folder that the server is started in. */
const serverConfiguration = (users: readonly [identity: string, publicKeys: readonly string[]][]): string => `\
# Written by \`npm run bus-keys\`. It holds no secret: users are known by public keys.
tls {
  cert_file: "server.pem"
  key_file: "server.key"
}
authorization {
  users: [
${users.flatMap(([identity, keys]) => keys.map((key) => userOf(identity, key))).join('\n')}
  ]
}
`;

/** No service publishes in another's name or receives what is sent to others. */
const userOf = (identity: string, key: string): string => `\
    # ${identity}
    {
      nkey: ${key}
      permissions: {
        publish: ["${PREFIX}.${identity}.>"]
        subscribe: ["${PREFIX}.*.*.${identity}.>", "${PREFIX}.*.*.all"]
      }
    }`;

const COMMAND = {
  name: 'bus-keys',
  usage: 'npm run bus-keys [-- --folder .bus] [--host NAME]… [--identity data+gateway]… [--rotate | --finish]',
};

function options(): BusKeysOptions {
  const { values } = readArguments(COMMAND, {
    options: {
      folder: { type: 'string', default: '.bus' },
      host: { type: 'string', multiple: true },
      identity: { type: 'string', multiple: true, default: [] },
      rotate: { type: 'boolean', default: false },
      finish: { type: 'boolean', default: false },
    },
  });
  const identities = values.identity.map((names) => {
    const services = names.split('+');
    const unknown = services.filter((name) => !isServiceName(name));
    if (unknown.length > 0) refuse(COMMAND, `There is no service ${unknown.join(', ')}.`);
    return identityOf(services.filter(isServiceName));
  });
  if (values.rotate && values.finish) refuse(COMMAND, '--finish follows when all processes have what --rotate made.');
  const step = values.rotate ? 'rotate' : values.finish ? 'finish' : undefined;
  return {
    folder: values.folder,
    identities,
    ...(values.host ? { hosts: values.host } : {}),
    ...(step ? { step } : {}),
  };
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename)
  try {
    process.umask(0o022);
    const asked = options();
    const { present, changed, absent } = await makeBusKeys(asked);
    console.log(`${asked.folder} has the keys of ${present.join(', ')}.`);
    console.log(`New or changed in this run: ${changed.join(', ')}.`);
    if (absent.length > 0)
      console.log(`Not here, and unchanged: ${absent.join(', ')}. They stay in use as they were given out.`);
  } catch (error) {
    console.error(`bus-keys: ${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  }
