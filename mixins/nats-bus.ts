/**
 * The bus between processes: Moleculer's NATS transporter, with three additions. Packets
 * above what the NATS server takes in one message (1 MiB unless set otherwise) travel in parts, so that pages of long
 * texts and whole configuration packages fit. A lost connection is known at once, and after a reconnect the processes
 * find each other without waiting for heartbeats. Received bytes are used where they are, not copied.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Transporters } from 'moleculer';
import type { Config } from '../config/env.ts';

/** Starts a part: no packet does, because 0x00 is a number in CBOR and every packet is a map. */
const MARK = Buffer.from([0x00, 0x50, 0x52, 0x54]);
const ID_BYTES = 16;
const HEAD_BYTES = MARK.length + ID_BYTES + 4;
const SPARE_BYTES = 1_024;
/** Unfinished messages that are remembered, and for how long. */
const UNFINISHED_MAX = 64;
const UNFINISHED_MS = 30_000;
/** How long an end waits for NATS to have taken everything. */
const FLUSH_MS = 1_000;

/** Cuts `data` into parts of at most `partMax` bytes each, heads included. */
export function split(data: Buffer, partMax: number): Buffer[] {
  const room = partMax - HEAD_BYTES;
  const count = Math.ceil(data.length / room);
  const id = randomBytes(ID_BYTES);
  return Array.from({ length: count }, (_, index) => {
    const numbers = Buffer.alloc(4);
    numbers.writeUInt16BE(index, 0);
    numbers.writeUInt16BE(count, 2);
    return Buffer.concat([MARK, id, numbers, data.subarray(index * room, (index + 1) * room)]);
  });
}

/** Puts parts together again. Parts of one message may come in any order, between those of others. */
export class Joiner {
  readonly #unfinished = new Map<string, { parts: (Buffer | undefined)[]; missing: number; at: number }>();

  get size(): number {
    return this.#unfinished.size;
  }

  /** The whole message when `data` completes one or is one; null while parts are missing. */
  add(data: Buffer, now: number): Buffer | null {
    if (data.length < HEAD_BYTES || data[0] !== 0x00 || !data.subarray(0, MARK.length).equals(MARK)) return data;
    const id = data.toString('latin1', MARK.length, MARK.length + ID_BYTES);
    const index = data.readUInt16BE(HEAD_BYTES - 4);
    const count = data.readUInt16BE(HEAD_BYTES - 2);
    let message = this.#unfinished.get(id);
    if (!message) {
      this.#forget(now);
      message = { parts: new Array(count), missing: count, at: now };
      this.#unfinished.set(id, message);
    }
    if (index >= message.parts.length || message.parts[index]) return null;
    message.parts[index] = data.subarray(HEAD_BYTES);
    if (--message.missing) return null;
    this.#unfinished.delete(id);
    return Buffer.concat(message.parts as Buffer[]);
  }

  /** What lost a part on the way is never finished; the oldest make room. */
  #forget(now: number): void {
    for (const [id, { at }] of this.#unfinished)
      if (now - at > UNFINISHED_MS || this.#unfinished.size >= UNFINISHED_MAX) this.#unfinished.delete(id);
  }
}

interface NatsClient {
  flush(): Promise<void>;
  close(): Promise<void>;
  info?: { max_payload: number };
  publish(topic: string, data: Buffer): void;
  subscribe(topic: string, options: { callback: (error: Error | null, message: { data: Uint8Array }) => void }): void;
  status(): AsyncIterable<{ type: string }>;
}

interface Registry {
  nodes: {
    toArray(): { id: string; local: boolean; available: boolean }[];
    disconnected(nodeId: string, unexpected: boolean): void;
  };
}

class NatsBus extends Transporters.NATS {
  readonly #joiner = new Joiner();
  #linked = false;

  /** The connection to NATS stands now. */
  get linked(): boolean {
    return this.#linked;
  }

  override async connect(): Promise<void> {
    await super.connect();
    this.#linked = true;
    void this.#watch(this.client as NatsClient);
  }

  async #watch(client: NatsClient): Promise<void> {
    for await (const { type } of client.status()) {
      if (type === 'disconnect') {
        this.#linked = false;
        this.#forgetNodes();
      }
      if (type !== 'reconnect') continue;
      this.#linked = true;
      await pause(50); // the subscriptions travel first
      if (this.#linked && this.client === client) void Promise.resolve(this.onConnected(true)).catch(() => {});
    }
    this.#linked = false;
  }

  /**
   * Others count as gone until they have announced themselves over the new connection. What waits for them fails at
   * once, and nothing is sent to a process that has not come back yet: NATS would drop it without a word.
   */
  #forgetNodes(): void {
    const { nodes } = (this.broker as unknown as { registry: Registry }).registry;
    for (const { id, local, available } of nodes.toArray()) if (!local && available) nodes.disconnected(id, true);
  }

  /**
   * What was said last goes out first. Without NATS nobody hears it, and a connection that is only left tries again for
   * ever.
   */
  override async disconnect(): Promise<void> {
    const client = this.client as NatsClient | null;
    if (!client) return;
    await Promise.race([client.flush(), pause(FLUSH_MS)]).catch(() => {});
    this.client = null;
    await client.close();
  }

  override subscribe(command: string, nodeId?: string): Promise<void> {
    (this.client as NatsClient).subscribe(this.getTopicName(command, nodeId), {
      callback: (error, message) => {
        if (error) return;
        const { buffer, byteOffset, byteLength } = message.data;
        const whole = this.#joiner.add(Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength), Date.now());
        if (whole) this.receive(command, whole);
      },
    });
    return Promise.resolve();
  }

  override send(topic: string, data: Buffer): Promise<void> {
    const client = this.client as NatsClient | null;
    if (!client) return Promise.resolve();
    const most = (client.info?.max_payload ?? 1_048_576) - SPARE_BYTES;
    if (data.length <= most) client.publish(topic, data);
    else for (const part of split(data, most)) client.publish(topic, part);
    return Promise.resolve();
  }
}

/** The transporter of a process on `config.natsUrl`; it keeps trying until NATS is there. */
export function natsBus(config: Config): Transporters.Base {
  return new NatsBus({
    url: config.natsUrl!,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 500,
    waitOnFirstConnect: true,
  });
}
