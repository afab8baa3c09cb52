/**
 * Other systems that hear of what happens to accounts: a receiver of webhooks, a program that asks for events, and one that stays
 * connected, as docs/reference/events.md and webhooks.md tell them to.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Client as Connection } from 'pg';
import { eventId } from '../../services/events/log/cloud-event.ts';
import type { LogEvent } from '../../services/events/log/log.sql.ts';
import type { Client, Traffic } from './client.ts';
import type { Random } from './random.ts';

const OBJECT = 'Account';
const TYPES = ['created', 'updated', 'deleted', 'restored', 'transitioned'].map((act) => `data.record.${act}`);
/** Of all deliveries: the receiver is not well, or has taken the event and its answer is lost. */
const REFUSED = 0.02;
const UNANSWERED = 0.01;
/** A comment comes every 15 s. */
const STREAM_SILENCE_MS = 40_000;
/** Deliveries that have failed are tried again after 5 s, 30 s and 2 min; as long as some arrive, the others are waited for. */
const NOTHING_NEW_MS = 240_000;
const ALL_HEARD_MS = 1_200_000;

/** Takes events as they come: their ids, in the order of arrival. */
class Heard {
  readonly ids: string[] = [];

  clear(): void {
    this.ids.length = 0;
  }
}

/** Asks for the events behind the last one. Its user sees all records. */
class Puller {
  readonly heard = new Heard();
  /** Times that the log did not go on where it was left. */
  restarts = 0;
  readonly #client: Client;
  #cursor = '';

  constructor(client: Client) {
    this.#client = client;
  }

  async begin(): Promise<void> {
    this.#cursor = (await this.#client.get('/events')).body.oldestCursor;
  }

  async follow(waitSeconds = 1): Promise<void> {
    for (let cursor: string | null = this.#cursor; cursor !== null; ) {
      const query = new URLSearchParams({ cursor, types: TYPES.join(), objects: OBJECT, take: '200' });
      const path = `/events?${query}&waitSeconds=${waitSeconds}`;
      const { status, body, text } = await this.#client.get(path);
      if (status === 400 && body.code === 'SYNC_TOKEN_EXPIRED') {
        this.restarts++;
        this.heard.clear();
        this.#cursor = body.details.oldestCursor;
        return;
      }
      if (status !== 200) throw new Error(`Events: ${status} ${text}`);
      this.heard.ids.push(...body.records.map(({ id }: { id: string }) => id));
      this.#cursor = body.resumeCursor;
      cursor = body.nextCursor;
    }
  }
}

/** Stays connected, and goes on behind the last event when the connection has ended. */
class Streamer {
  readonly heard = new Heard();
  /** Connections that it has had. */
  connections = 0;
  readonly #client: Client;
  readonly #traffic: Traffic;
  #last = '';

  constructor(client: Client, traffic: Traffic) {
    this.#client = client;
    this.#traffic = traffic;
  }

  async begin(): Promise<void> {
    this.#last = (await this.#client.get('/events')).body.oldestCursor;
  }

  /** One connection, until it ends. */
  async follow(isWanted: () => boolean): Promise<void> {
    const ending = new AbortController();
    let heardAt = performance.now();
    const watch = setInterval(() => {
      if (!isWanted() || performance.now() - heardAt > STREAM_SILENCE_MS) ending.abort();
    }, 250);
    try {
      const token = await this.#client.token();
      const { port } = this.#traffic.cluster.gateway();
      const query = new URLSearchParams({ types: TYPES.join(), objects: OBJECT });
      const headers = { authorization: `Bearer ${token}`, 'last-event-id': this.#last };
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/events/stream?${query}`, {
        headers,
        signal: ending.signal,
      });
      if (!response.ok || !response.body) return await this.#refused(response);
      this.connections++;
      let text = '';
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        heardAt = performance.now();
        const messages = (text + chunk).split('\n\n');
        text = messages.pop() ?? '';
        for (const message of messages) this.#take(message);
      }
    } catch {
      // The connection has ended; the next one goes on behind what has arrived.
    } finally {
      clearInterval(watch);
    }
  }

  #take(message: string): void {
    const fields = new Map(
      message.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
    );
    const [data, id] = [fields.get('data'), fields.get('id')];
    if (data) this.heard.ids.push(JSON.parse(data).id);
    if (id) this.#last = id;
  }

  async #refused(response: Response): Promise<void> {
    const { code, details } = JSON.parse(await response.text());
    if (response.status === 401) return this.#client.refresh();
    if (code !== 'SYNC_TOKEN_EXPIRED') return;
    this.heard.clear();
    this.#last = details.oldestCursor;
  }
}

/** Takes what is sent, sometimes badly. */
class Receiver {
  readonly heard = new Heard();
  refused = 0;
  unanswered = 0;
  readonly #random: Random;
  readonly #server: Server;

  constructor(random: Random) {
    this.#random = random;
    this.#server = createServer((request, response) => void this.#answer(request, response).catch(() => {}));
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/accounts`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request) text += chunk;
    if (this.#random.chance(REFUSED)) {
      this.refused++;
      response.writeHead(503).end();
      return;
    }
    this.heard.ids.push(JSON.parse(text).id);
    if (this.#random.chance(UNANSWERED)) {
      this.unanswered++;
      request.socket.destroy();
    } else response.writeHead(204).end();
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

export class Listeners {
  readonly puller: Puller;
  readonly streamer: Streamer;
  readonly receiver: Receiver;
  readonly #client: Client;
  readonly #traffic: Traffic;

  /** `client` is of a user who sees all records. */
  constructor(traffic: Traffic, client: Client, random: Random) {
    this.#traffic = traffic;
    this.#client = client;
    this.puller = new Puller(client);
    this.streamer = new Streamer(client, traffic);
    this.receiver = new Receiver(random);
  }

  /** Each hears of everything that is in the log. */
  async begin(): Promise<void> {
    const url = await this.receiver.listen();
    await Promise.all([this.puller.begin(), this.streamer.begin()]);
    const made = await this.#client.send('POST', '/events/subscriptions', {
      ...{ name: 'Storm', url, eventTypes: TYPES, objects: [OBJECT], ordering: 'perRecord' },
    });
    if (made.status !== 201) throw new Error(`A webhook: ${made.status} ${made.text}`);
    this.#traffic.secrets.add(made.body.secret);
    await this.#client.send('POST', `/events/subscriptions/${made.body.subscriptionId}/replay`, {});
  }

  close(): void {
    this.receiver.close();
  }

  /** Those who ask have every event of the log once and in its order; the receiver has each, those of a record in order. */
  async compare(tenantId: string): Promise<number> {
    const { violations } = this.#traffic;
    const log = await this.#log(tenantId);
    const all = new Set(log.map(({ id }) => id));
    await this.puller.follow(0);
    const isHeard = (): boolean =>
      this.streamer.heard.ids.length >= all.size && all.isSubsetOf(new Set(this.receiver.heard.ids));
    const end = performance.now() + ALL_HEARD_MS;
    let [count, newAt] = [0, performance.now()];
    const goesOn = (): boolean => !isHeard() && performance.now() < Math.min(end, newAt + NOTHING_NEW_MS);
    const stayConnected = async (): Promise<void> => {
      while (goesOn()) await this.streamer.follow(goesOn);
    };
    const following = stayConnected();
    while (goesOn()) {
      await pause(1_000);
      const { length } = this.receiver.heard.ids;
      if (length > count) [count, newAt] = [length, performance.now()];
    }
    await following;
    for (const [name, { heard }] of [
      ['asks', this.puller],
      ['is connected', this.streamer],
    ] as const) {
      const at = log.findIndex(({ id }, index) => heard.ids[index] !== id);
      if (at >= 0 || heard.ids.length !== log.length)
        violations.add({
          oracle: 'who follows events hears each once, in order',
          what: `who ${name} has ${heard.ids.length} of ${log.length}, and another one at ${at}`,
          ledger: heard.ids.slice(Math.max(0, at - 1), at + 3),
          server: log.slice(Math.max(0, at - 1), at + 3),
        });
    }
    const first = new Map<string, number>();
    for (const [index, id] of this.receiver.heard.ids.entries()) if (!first.has(id)) first.set(id, index);
    const latest = new Map<string, number>();
    for (const event of log) {
      const index = first.get(event.id);
      const before = latest.get(event.recordId) ?? -1;
      if (index === undefined)
        violations.add({ oracle: 'a receiver gets each event', what: 'one has not arrived', server: event });
      else if (index < before)
        violations.add({
          oracle: 'a receiver gets the events of a record in order',
          what: 'one came early',
          server: event,
        });
      else latest.set(event.recordId, index);
    }
    return log.length;
  }

  /** What the database holds of accounts. */
  async #log(tenantId: string): Promise<{ id: string; recordId: string; recordVersion: number }[]> {
    const connection = new Connection({
      connectionString: this.#traffic.cluster.database.url,
      application_name: 'storm',
    });
    await connection.connect();
    try {
      // The relay has numbered what was committed before.
      for (let left = 60; left > 0; left--) {
        const { rows } = await connection.query(
          `SELECT sequence, outbox_id::int8 AS "outboxId", (extract(epoch FROM at) * 1000)::int8 AS at, type, record_id AS "recordId",
             record_version AS "recordVersion", request_id AS "requestId"
           FROM "t_${tenantId.replaceAll('-', '')}"._outbox WHERE type = ANY($1) AND object = $2 ORDER BY sequence NULLS LAST`,
          [TYPES, OBJECT],
        );
        const isNumbered = rows.every(({ sequence }) => sequence !== null);
        if (isNumbered)
          return rows.map((row) => ({
            id: eventId(tenantId, { ...row, outboxId: Number(row.outboxId), at: Number(row.at) } as LogEvent),
            recordId: row.recordId,
            recordVersion: row.recordVersion,
          }));
        await pause(1_000);
      }
      throw new Error('Events have no numbers a minute after the load has ended.');
    } finally {
      await connection.end();
    }
  }
}
