/** The door of the API: operations, and what a browser asks before it calls one from another origin. */
import { API_PREFIX } from '../../../lib/addresses.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import type { Blobs } from '../../../mixins/blobs/blobs.ts';
import { mark } from '../../../mixins/watchdog/work.ts';
import { sendContent } from '../edge/content.ts';
import type { DoorKeeper, HttpEdge } from '../edge/edge.ts';
import type { Exchange } from '../edge/exchange.ts';
import { sendOptions, sendReply } from '../edge/reply.ts';
import { ANY_ORIGIN } from '../pipeline/call.ts';
import type { Gate } from '../pipeline/gate.ts';
import { answer, chargeAddress } from '../pipeline/index.ts';
import { allowed } from '../pipeline/router.ts';
import type { Streams } from '../pipeline/streams.ts';
import type { EventStreams } from './event-streams.ts';
import type { WaitingRequests } from './waiting-requests.ts';

export class ApiDoor implements DoorKeeper {
  readonly #edge: HttpEdge;
  readonly #gate: Gate;
  readonly #events: EventStreams;
  readonly #waiting: WaitingRequests;
  readonly #contents: { readonly blobs: Blobs; readonly streams: Streams };

  constructor(
    edge: HttpEdge,
    gate: Gate,
    { fileAnswers, events, waiting }: { fileAnswers: Streams; events: EventStreams; waiting: WaitingRequests },
  ) {
    this.#edge = edge;
    this.#gate = gate;
    this.#events = events;
    this.#waiting = waiting;
    this.#contents = { blobs: gate.blobs, streams: fileAnswers };
  }

  async answer(x: Exchange): Promise<void> {
    if (x.method === 'OPTIONS') return this.#answerOptions(x);
    const asked = performance.now();
    let reply = await answer(this.#gate, x);
    mark();
    if (reply.wait) reply = await this.#waiting.answer(x, reply, reply.wait, asked);
    if (reply.events && x.method === 'GET') this.#events.begin(x, reply.events, this.#edge.replyOptions());
    else if (reply.file) await sendContent(x, reply, reply.file, this.#contents, this.#edge.replyOptions());
    else sendReply(x, reply, this.#edge.replyOptions());
  }

  async #answerOptions(x: Exchange): Promise<void> {
    const { budgets, origins, router } = this.#gate;
    x.label = 'preflight';
    await chargeAddress(budgets, x);
    const match = router.match(x.path.slice(API_PREFIX.length), platformTime());
    if (!match) throw new PlatformError('ROUTE_NOT_FOUND', 'There is no operation at this path.');
    const { origin } = x.headers;
    const isPublic = [...match.methods.values()].every(({ operation }) => operation.scopes === 'public');
    if (isPublic) x.allowedOrigin = ANY_ORIGIN;
    else if (origin !== undefined && (await origins.allowed(origin))) x.allowedOrigin = origin;
    sendOptions(x, allowed(match.methods), this.#edge.replyOptions());
  }
}
