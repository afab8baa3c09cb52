/**
 * The bus between processes: Moleculer's NATS transporter with its own subjects, which make known who sends.
 *
 * A packet travels on `<prefix>.<sender>.<type>.<receiver>.<node>` or `<prefix>.<sender>.<type>.all`. `<sender>` and
 * `<receiver>` are identities: the services that a process hosts, or `operator`. A NATS user may publish only below its
 * own identity and subscribe only to what is addressed to it, so the subject proves the sender, and admission.ts checks
 * what a packet says against it. Reasons: docs/decisions/trust-on-the-bus.md.
 *
 * Packets too large for one message travel in parts. A lost connection is known at once, and after a reconnect the
 * processes find each other without waiting for heartbeats. Received bytes are used where they are, not copied.
 *
 * A packet to one node names a reply subject that no node uses: NATS itself answers there when no subscriber
 * subscribes to the node's subject any more. So a process whose connection ended is known to be gone with the first
 * packet that is sent to it, and an undelivered call fails at once.
 */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { checkServerIdentity, type DetailedPeerCertificate } from 'node:tls';
import { Errors, Transporters } from 'moleculer';
import {
  type Authenticator,
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  ErrorCode,
  type NatsConnection,
  type NatsError,
  nkeyAuthenticator,
  type PublishOptions,
  usernamePasswordAuthenticator,
} from 'nats';
import type { BusConfig, BusLogin } from '../../config/bus.ts';
import type { Config } from '../../config/env.ts';
import { OPERATOR } from '../../config/services.ts';
import { isObject } from '../../lib/json/objects.ts';
import { type CertifiedServer, chainExpiresAt } from '../certificate-expiry.ts';
import { isUntrustedCertificate } from '../certificates.ts';
import type { Timekeeper } from '../database/timekeeper.ts';
import { Outage } from '../outage.ts';
import { Admission, type BusPacket, CLOCKS_DIFFER, identityOfNode, Refused } from './admission.ts';
import { loseNode } from './lost-nodes.ts';
import { Joiner, split } from './parts.ts';
import type { BusPolicy } from './policy.ts';
import { otherSecret, type SecretMetadata, shareSecret } from './shared-secret.ts';
import { CallUndelivered } from './takeover.ts';
import { type BusTraffic, NO_TRAFFIC } from './traffic.ts';

const MESSAGE_MAX_BYTES = 1_048_576;
const SPARE_BYTES = 1_024;
/** How long an end waits for NATS to have taken everything. */
const FLUSH_MS = 1_000;
/** As much as one write to the socket takes well; more is sent before the turn of the event loop ends. */
const GATHERED_MAX_BYTES = 65_536;
const CONNECT_AGAIN_MS = 500;
const CONNECT_TIMEOUT_MS = 5_000;
/** At most one line of the log in so many milliseconds says that packets were refused. */
const REFUSALS_LOGGED_MS = 1_000;
/** Types of packets to one node whose loss matters. */
const EXPECTED = new Set(['REQ', 'PING']);
const NO_RESPONDERS = 503;

interface SecretOptions {
  /** Announced fingerprints of this process's secret. */
  readonly secret?: SecretMetadata | null;
  /** Called with a sentence about a process on the bus whose secret is another one. */
  readonly foreign?: (reason: string) => void;
}

class NatsBus extends Transporters.NATS {
  /** Set by Moleculer. */
  declare readonly messageHandler: (command: string, packet: BusPacket) => unknown;
  readonly #bus: BusConfig;
  readonly #timekeeper: Timekeeper | null;
  readonly #admission: Admission;
  readonly #joiners = new Map<string, Joiner>();
  #connection: NatsConnection | null = null;
  /** Packets of this turn of the event loop, which one system call sends. */
  #gathered: [subject: string, data: Buffer, options: PublishOptions][] = [];
  #gatheredBytes = 0;
  #certificateExpiresAt: number | null = null;
  #left = false;
  #linked = false;
  /**
   * Below this subject NATS returns undeliverable packets: a call by its id, anything else by its node.
   */
  #returns = '';
  /** Packets that were refused since the start. */
  refused = 0;
  #refusalsLogged = 0;
  #lastRefusal = '';
  /** Runs for as long as nothing more is said about refusals. */
  #refusalsPause: NodeJS.Timeout | undefined;
  /** NATS lets this connection not send or not hear what is its own. */
  #denied = false;
  readonly #lost = new Outage({
    began: () => this.logger.warn('Lost the connection to NATS; reconnecting.'),
    // At the same level, so that a log with the beginning has the end, too.
    ended: (seconds) => this.logger.warn({ seconds }, 'Reconnected to NATS.'),
  });
  /** Announced fingerprints of this process's secret; null: it seals nothing, as a console. */
  readonly #secret: SecretMetadata | null;
  readonly #foreign: (reason: string) => void;
  /** Why NATS does not take this process, or lets it do nothing; null when all is well. */
  trouble: string | null = null;

  constructor(
    bus: BusConfig,
    policy: BusPolicy,
    timekeeper: Timekeeper | null,
    { secret = null, foreign = () => {} }: SecretOptions,
  ) {
    super({});
    this.#secret = secret;
    this.#foreign = foreign;
    this.#bus = bus;
    this.#timekeeper = timekeeper;
    this.#admission = new Admission(bus, policy);
  }

  /** The connection to NATS stands now, and what is sent on it arrives. */
  get linked(): boolean {
    return this.#linked && !this.#denied;
  }

  /** Of the server, as the newest connection showed it, milliseconds since 1970; null: without TLS. */
  get certificateExpiresAt(): number | null {
    return this.#certificateExpiresAt;
  }

  /** Opens a connection of its own, which shows the present certificate of a server. */
  async meet(): Promise<void> {
    const options = { ...this.#options(), reconnect: false, maxReconnectAttempts: 0, ignoreAuthErrorAbort: false };
    const connection = await connect(options);
    await connection.close();
  }

  #options(): ConnectionOptions {
    return connectionOptions(this.#bus, this.nodeID, (certificate) => {
      this.#certificateExpiresAt = chainExpiresAt(certificate);
    });
  }

  /** Totals of the connection since the start; a reconnect does not change them. */
  get traffic(): BusTraffic {
    const stats = this.#connection?.stats();
    if (!stats) return NO_TRAFFIC;
    return {
      sent: { messages: stats.outMsgs, bytes: stats.outBytes },
      received: { messages: stats.inMsgs, bytes: stats.inBytes },
    };
  }

  /** Tries until NATS is there and accepts this process; the log says why it does not. */
  override async connect(): Promise<void> {
    if (!this.#bus.contextKeys && this.#bus.identity !== OPERATOR)
      this.logger.info('BUS_KEYS_FILE is not set: request contexts on the bus are not sealed.');
    while (!this.#left) {
      try {
        this.#connection = await connect(this.#options());
        break;
      } catch (error) {
        const reason = reasonOf(error);
        if (reason !== this.trouble) this.logger.warn(`NATS refused the connection: ${reason}`);
        this.trouble = reason;
        await pause(CONNECT_AGAIN_MS);
      }
    }
    if (!this.#connection) return;
    this.trouble = null;
    this.client = this.#connection;
    this.#linked = true;
    void this.#watch(this.#connection);
    this.#hearReturned(this.#connection);
    await this.onConnected();
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const { type, data } of connection.status()) {
      if (type === 'error' && data === ErrorCode.PermissionsViolation) this.#noteDenied();
      else if (type === 'error') this.logger.warn(`NATS reports: ${String(data)}`);
      if (type === 'disconnect') {
        this.#linked = false;
        if (!this.#left) this.#lost.begin();
        this.#forgetNodes();
      }
      if (type !== 'reconnect') continue;
      // The file of the user was read anew, and the server may have other permissions for it.
      this.#denied = false;
      this.trouble = null;
      this.#linked = true;
      this.#lost.end();
      await pause(50); // the subscriptions travel first
      if (this.#linked && this.#connection === connection) void Promise.resolve(this.onConnected(true)).catch(() => {});
    }
    this.#linked = false;
    this.connected = false;
  }

  /** A process sends and receives only on its own subjects: a refusal means that it signed in with another identity. */
  #noteDenied(): void {
    if (this.#denied) return;
    this.#denied = true;
    const { identity, login } = this.#bus;
    const proof = login && 'nkeyFile' in login ? `the seed in ${login.nkeyFile}` : 'what it signs in with';
    this.trouble = `its user may not send or hear as ${identity}: ${proof} is of another identity, or NATS has old permissions.`;
    this.logger.error(`NATS denied access to the subjects of this process: ${this.trouble}`);
  }

  /**
   * Others count as gone until they have announced themselves over the new connection. What waits for them fails at
   * once, and nothing is sent to a process that has not come back yet: NATS would drop it without a word.
   */
  #forgetNodes(): void {
    const { nodes } = this.broker.registry;
    for (const { id, local, available } of nodes.toArray()) if (!local && available) nodes.disconnected(id, true);
  }

  /**
   * Pending packets are flushed first. Without NATS they are lost, and a connection that is only left tries again for
   * ever.
   */
  override async disconnect(): Promise<void> {
    this.#left = true;
    clearTimeout(this.#refusalsPause);
    this.#tellRefusals();
    clearTimeout(this.#refusalsPause);
    const connection = this.#connection;
    if (!connection) return;
    this.#sendGathered();
    await Promise.race([connection.flush(), pause(FLUSH_MS)]).catch(() => {});
    this.#connection = null;
    await connection.close();
  }

  /** The subject on which a packet travels to a node, or to all. */
  override getTopicName(command: string, nodeId?: string): string {
    return this.#subject(this.#bus.identity, command, nodeId);
  }

  #subject(sender: string, command: string, nodeId?: string): string {
    return `${this.prefix}.${sender}.${command}.${nodeId ? `${identityOfNode(nodeId)}.${nodeId}` : 'all'}`;
  }

  override subscribe(command: string, nodeId?: string): Promise<void> {
    const senderAt = this.prefix.length + 1;
    this.#connection?.subscribe(this.#subject('*', command, nodeId), {
      callback: (error, { subject, data }) => {
        if (error) return;
        const sender = subject.slice(senderAt, subject.indexOf('.', senderAt));
        this.#receive(command, sender, Buffer.from(data.buffer, data.byteOffset, data.byteLength));
      },
    });
    return Promise.resolve();
  }

  #hearReturned(connection: NatsConnection): void {
    this.#returns = `${this.#subject(this.#bus.identity, 'UNHEARD', this.nodeID)}.`;
    connection.subscribe(`${this.#returns}*`, {
      callback: (error, message) => {
        if (!error && message.data.length === 0 && message.headers?.code === NO_RESPONDERS)
          this.#noteReturned(message.subject.slice(this.#returns.length));
      },
    });
  }

  #noteReturned(about: string): void {
    const { pendingRequests } = this.transit;
    const call = pendingRequests.get(about);
    const nodeID = call ? call.nodeID : about;
    if (call) {
      pendingRequests.delete(about);
      call.reject(new CallUndelivered({ action: call.ctx.action?.name, nodeID }));
    }
    loseNode(this.broker, nodeID, 'unsubscribed');
  }

  #receive(command: string, sender: string, data: Buffer): void {
    const packet = this.#admitted(command, sender, data);
    if (!packet) return;
    try {
      this.messageHandler(command, packet);
    } catch (error) {
      this.logger.error(`Handling an admitted packet (${command} of ${sender}) failed.`, error);
    }
  }

  /** The packet that `data` is or completes; null when it is refused or parts are missing. */
  #admitted(command: string, sender: string, data: Buffer): BusPacket | null {
    try {
      if (!this.#admission.knows(sender)) throw new Refused(`${command} from an unknown identity`);
      let joiner = this.#joiners.get(sender);
      if (!joiner) {
        joiner = new Joiner();
        this.#joiners.set(sender, joiner);
      }
      const whole = joiner.add(data, performance.now());
      if (!whole) return null;
      const packet: BusPacket = this.deserialize(command, whole);
      const { pendingRequests } = this.transit;
      const asked = (id: string): string | undefined => pendingRequests.get(id)?.nodeID;
      this.#admission.admit({ command, sender, packet, receiver: this.nodeID, asked });
      if (command === 'INFO') this.#checkSecret(packet.payload);
      if (command === 'RES' && isObject(packet.payload['error']) && packet.payload['error']['type'] === CLOCKS_DIFFER)
        this.#noteClocks(sender);
      return packet;
    } catch (error) {
      // Whatever fails up to here is the packet's fault, such as bytes that are no packet.
      this.#logRefusal(error);
      if (!(error instanceof Refused)) return null;
      if (error.type === CLOCKS_DIFFER) this.#noteClocks(sender);
      if (error.answer) this.#answerRefused(error, error.answer);
      return null;
    }
  }

  /** Throws Refused where the other process could not open what this one seals, nor this one what that one does. */
  #checkSecret({ sender, metadata }: BusPacket['payload']): void {
    if (!this.#secret || shareSecret(this.#secret, metadata)) return;
    this.#foreign(otherSecret(this.#secret, String(sender)));
    throw new Refused(`${String(sender)} has another PLATFORM_SECRET, and does not join`);
  }

  #noteClocks(sender: string): void {
    if (this.#timekeeper?.differs())
      this.logger.warn(
        `A call between this process and ${sender} was refused for clock skew; reading the database time.`,
      );
  }

  #answerRefused({ message, type }: Refused, { node, id }: NonNullable<Refused['answer']>): void {
    const refusal = new Errors.MoleculerClientError(message, 403, type);
    void this.transit.sendResponse(node, id, {}, {}, {}, refusal);
  }

  #logRefusal(error: unknown): void {
    this.refused++;
    this.#lastRefusal = error instanceof Error ? error.message : String(error);
    if (!this.#refusalsPause) this.#tellRefusals();
  }

  /** Those that come within the second behind a line are in the next one. */
  #tellRefusals(): void {
    const count = this.refused - this.#refusalsLogged;
    this.#refusalsLogged = this.refused;
    this.#refusalsPause = count === 0 ? undefined : setTimeout(() => this.#tellRefusals(), REFUSALS_LOGGED_MS).unref();
    if (count > 0) this.logger.warn(`Refused packets from the bus: ${count}; last: ${this.#lastRefusal}`);
  }

  override publish(packet: Parameters<Transporters.Base['publish']>[0]): Promise<void> {
    this.#admission.prepare(packet);
    return super.publish(packet);
  }

  override send(subject: string, data: Buffer, { packet }: Record<string, unknown> = {}): Promise<void> {
    const connection = this.#connection;
    if (!connection) return Promise.resolve();
    const most = (connection.info?.max_payload ?? MESSAGE_MAX_BYTES) - SPARE_BYTES;
    const about = packet ? expectedBy(packet as BusPacket) : null;
    const options = about ? { reply: `${this.#returns}${about}` } : {};
    if (data.length <= most) this.#gather(subject, data, options);
    else for (const part of split(data, most)) this.#gather(subject, part, options);
    return Promise.resolve();
  }

  /** A call of its own for each packet would be the largest part of what the bus costs a process. */
  #gather(subject: string, data: Buffer, options: PublishOptions): void {
    if (this.#gathered.push([subject, data, options]) === 1) setImmediate(() => this.#sendGathered());
    this.#gatheredBytes += data.length;
    if (this.#gatheredBytes >= GATHERED_MAX_BYTES) this.#sendGathered();
  }

  #sendGathered(): void {
    const packets = this.#gathered;
    this.#gathered = [];
    this.#gatheredBytes = 0;
    const connection = this.#connection;
    // A closed connection sends nothing any more: this process ends.
    if (!connection || connection.isClosed()) return;
    for (const [subject, data, options] of packets) connection.publish(subject, data, options);
  }
}

/** The call or node that NATS names for an undeliverable packet. null: its loss does not matter. */
function expectedBy({ type, target, payload }: BusPacket): string | null {
  if (!target || !EXPECTED.has(type)) return null;
  return type === 'REQ' ? String(payload['id']) : target;
}

function connectionOptions(
  bus: BusConfig,
  name: string,
  met: (certificate: DetailedPeerCertificate) => void,
): ConnectionOptions {
  // With this option the client refuses a server that offers no TLS.
  const tls = bus.tls && { ...bus.tls, checkServerIdentity: serverIdentityCheck(bus.servers, met) };
  return {
    name,
    servers: [...bus.servers],
    ...(tls ? { tls } : {}),
    ...(bus.login ? { authenticator: authenticatorOf(bus.login) } : {}),
    timeout: CONNECT_TIMEOUT_MS,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 500,
    // Credentials that are renewed while a process is refused bring it back.
    ignoreAuthErrorAbort: true,
    // Only the servers of NATS_URL: other servers that one announces are not part of the configuration.
    ignoreClusterUpdates: true,
  };
}

/**
 * Checks the certificate against the host that is dialled. For an IP address the client leaves the name out, and Node
 * would check `localhost` instead.
 */
function serverIdentityCheck(
  servers: readonly string[],
  met: (certificate: DetailedPeerCertificate) => void,
): typeof checkServerIdentity {
  const hosts = servers.map((server) => new URL(`nats://${server}`).hostname.replace(/^\[|\]$/g, ''));
  const addresses = hosts.filter((host) => isIP(host) !== 0);
  return (name, certificate) => {
    // Called for a certificate of a trusted authority, with its chain.
    met(certificate as DetailedPeerCertificate);
    if (hosts.includes(name)) return checkServerIdentity(name, certificate);
    const failures = addresses.map((address) => checkServerIdentity(address, certificate));
    return failures.some((failure) => failure === undefined)
      ? undefined
      : (failures[0] ?? new Error(`${name} is no server of NATS_URL.`));
  };
}

function authenticatorOf(login: BusLogin): Authenticator {
  const read = (path: string): string => readFileSync(path, 'utf8').trim();
  // A credentials file has to end with the end of a line.
  if ('credentialsFile' in login)
    return credsAuthenticator(() => new TextEncoder().encode(`${read(login.credentialsFile)}\n`));
  if ('nkeyFile' in login) return nkeyAuthenticator(() => new TextEncoder().encode(read(login.nkeyFile)));
  return usernamePasswordAuthenticator(
    login.user,
    'passwordFile' in login ? () => read(login.passwordFile) : login.password,
  );
}

/** The part of an error that helps an operator. Never the connection options, which hold the password. */
function reasonOf(error: unknown): string {
  const { code, message, chainedError } = error as NatsError;
  if (code === ErrorCode.ServerOptionNotAvailable) return 'the server offers no TLS, which NATS_URL asks for.';
  // A server that misses our certificate ends the connection without a word that the client passes on.
  if (code === ErrorCode.Timeout) return 'no answer in time; the server may ask for a client certificate.';
  if (code === ErrorCode.BadCreds) return 'NATS_CREDS_FILE is no credentials file.';
  if (code === ErrorCode.AuthorizationViolation) return 'the server refuses the credentials.';
  if (isUntrustedCertificate(chainedError ?? error))
    return 'the certificate of the server is not from an authority that NATS_CA_FILE names.';
  return chainedError ? `${message} (${chainedError.message})` : message;
}

/** The transporter of a process on `config.bus`; it keeps trying until NATS is there. `timekeeper`: of a process with a database. */
export function natsBus(
  { bus }: Config,
  policy: BusPolicy,
  timekeeper: Timekeeper | null = null,
  secret: SecretOptions = {},
): Transporters.Base & CertifiedServer & { readonly trouble: string | null } {
  return new NatsBus(bus!, policy, timekeeper, secret);
}
