/**
 * Packets above what the NATS server takes in one message (1 MiB unless set otherwise) travel in parts, so that pages
 * of long texts and whole configuration packages fit.
 */
import { randomBytes } from 'node:crypto';

/** Starts a part: no packet does, because 0x00 is a number in CBOR and every packet is a map. */
const MARK = Buffer.from([0x00, 0x50, 0x52, 0x54]);
const ID_BYTES = 16;
const HEAD_BYTES = MARK.length + ID_BYTES + 4;
/** Unfinished messages that are remembered, how long, and how many bytes of them. */
const UNFINISHED_MAX = 64;
const UNFINISHED_MS = 30_000;
const UNFINISHED_BYTES_MAX = 128 * 1024 * 1024;

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

interface Unfinished {
  readonly parts: (Buffer | undefined)[];
  readonly at: number;
  missing: number;
  bytes: number;
}

/** Puts parts of one sender together again. Parts of one message may come in any order, between those of others. */
export class Joiner {
  readonly #unfinished = new Map<string, Unfinished>();
  #bytes = 0;

  get size(): number {
    return this.#unfinished.size;
  }

  /** The whole message when `data` completes one or is one; null while parts are missing. `now`: monotonic. */
  add(data: Buffer, now: number): Buffer | null {
    if (data.length < HEAD_BYTES || data[0] !== 0x00 || !data.subarray(0, MARK.length).equals(MARK)) return data;
    const id = data.toString('latin1', MARK.length, MARK.length + ID_BYTES);
    const index = data.readUInt16BE(HEAD_BYTES - 4);
    const count = data.readUInt16BE(HEAD_BYTES - 2);
    this.#makeRoom(now, data.length, id);
    let message = this.#unfinished.get(id);
    if (!message) {
      message = { parts: new Array(count), missing: count, bytes: 0, at: now };
      this.#unfinished.set(id, message);
    }
    if (index >= message.parts.length || message.parts[index]) return null;
    message.parts[index] = data.subarray(HEAD_BYTES);
    message.bytes += data.length;
    this.#bytes += data.length;
    if (--message.missing) return null;
    this.#forget(id, message);
    return Buffer.concat(message.parts.filter((part) => part !== undefined));
  }

  /** A message that lost a part is never finished; the oldest are dropped. */
  #makeRoom(now: number, bytes: number, id: string): void {
    const full = (): boolean => this.#bytes + bytes > UNFINISHED_BYTES_MAX;
    const crowded = (): boolean => this.#unfinished.size >= UNFINISHED_MAX && !this.#unfinished.has(id);
    for (const [other, message] of this.#unfinished)
      if (now - message.at > UNFINISHED_MS || full() || crowded()) this.#forget(other, message);
  }

  #forget(id: string, message: Unfinished): void {
    this.#unfinished.delete(id);
    this.#bytes -= message.bytes;
  }
}
