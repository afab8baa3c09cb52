/**
 * Admission of packets from the bus: a packet is admitted when its content fits the identity that its subject proves, and when
 * that identity may do what the packet asks. What goes out carries the context of a request only from the gateway,
 * sealed.
 */
import type { BusConfig } from '../../config/bus.ts';
import { isServiceName, OPERATOR } from '../../config/services.ts';
import type { DatabaseTimeMeta, RequestContext } from '../../lib/context.ts';
import { membersOf } from '../../lib/json/objects.ts';
import { required } from '../../lib/values/required.ts';
import { traceparentOf } from '../../lib/values/traceparent.ts';
import { ClocksDiffer, ContextRefused, SealedContexts } from './contexts.ts';
import type { BusPolicy, Identity } from './policy.ts';

export interface BusPacket {
  readonly type: string;
  readonly target?: string | null;
  payload: Record<string, unknown>;
}

interface Arrival {
  readonly command: string;
  /** The identity of the subject. */
  readonly sender: string;
  readonly packet: BusPacket;
  /** The node that received it. */
  readonly receiver: string;
  /** The node that a call was sent to, by the call's id. */
  asked(id: string): string | undefined;
}

/** A packet that is not taken. `answer`: a call, whose sender is answered. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly answer: { readonly node: string; readonly id: string } | null;
  readonly type: string;

  constructor(message: string, answer: Refused['answer'] = null, type = 'CALL_REFUSED') {
    super(message);
    this.answer = answer;
    this.type = type;
  }
}

/** Type of the answer to a call whose context is not of this time: the caller may be right, and another node agree. */
export const CLOCKS_DIFFER = 'CLOCKS_DIFFER';

/** An identity and a name; nothing that would end a subject or a line of the NATS protocol. */
const NODE_ID = /^([a-z+]{1,200})\/[A-Za-z0-9_-]{1,253}$/;
/** Of ids of calls, and of names of actions and events. */
const NAME_MAX_CHARS = 200;

export const identityOfNode = (nodeId: string): string => nodeId.slice(0, Math.max(nodeId.indexOf('/'), 0)) || nodeId;

export class Admission {
  readonly #policy: BusPolicy;
  readonly #contexts: SealedContexts | null;
  readonly #own: Identity;
  /** The identities that sent something; as many as there are sets of services, at most. */
  readonly #identities = new Map<string, Identity>();

  constructor(bus: BusConfig, policy: BusPolicy) {
    this.#policy = policy;
    this.#contexts = bus.contextKeys && new SealedContexts(bus.contextKeys, policy);
    this.#own = bus.identity.split('+');
  }

  /** The token names services that exist, in the one order, or the operator. */
  knows(token: string): boolean {
    if (this.#identities.has(token)) return true;
    const names = token.split('+');
    const inOrder = names.every(isServiceName) && names.join() === [...new Set(names)].sort().join();
    if (token !== OPERATOR && !inOrder) return false;
    this.#identities.set(token, names);
    return true;
  }

  /** Makes a packet ready to leave: only calls and answers carry anything beside what they are about. */
  prepare({ type, target, payload }: BusPacket): void {
    if (type === 'REQ') payload['meta'] = this.#outgoing(payload, target);
    else if (type === 'RES') payload['meta'] = databaseTime(payload['meta']);
    else if ('meta' in payload) payload['meta'] = traceOf(payload['meta']);
  }

  #outgoing({ meta, action, id }: BusPacket['payload'], target: string | null | undefined): object {
    const { request } = (meta ?? {}) as { request?: RequestContext };
    const trace = traceOf(meta);
    if (!request || !this.#policy.mayActForUsers(this.#own, String(action))) return trace;
    if (!this.#contexts) return { ...trace, request };
    const call = { action: String(action), id: String(id), target: String(target) };
    return { ...trace, request: this.#contexts.seal(request, call) };
  }

  /** Throws Refused unless the packet may be handled; what is not the sender's to say is taken out of it. */
  admit({ command, sender, packet, receiver, asked }: Arrival): void {
    const { payload } = packet;
    if (payload === null || typeof payload !== 'object') throw new Refused(`${command} without content from ${sender}`);
    const node = payload['sender'];
    if (typeof node !== 'string' || NODE_ID.exec(node)?.[1] !== sender)
      throw new Refused(`${command} of ${sender} in the name of another node`);
    const identity = required(this.#identities, sender);
    if (command === 'REQ') this.#admitCall(packet, identity, node, receiver);
    else if (command === 'RES') admitAnswer(payload, node, asked);
    else if (command === 'EVENT') this.#admitEvent(payload, identity, node);
    else if (command === 'INFO') payload['services'] = this.#offered(payload['services'], identity);
  }

  #admitCall({ payload }: BusPacket, identity: Identity, node: string, receiver: string): void {
    const { action, id, meta } = payload;
    if (!isName(id) || !isName(action)) throw new Refused(`REQ of ${node} without id or action`);
    const answer = { node, id };
    if (!this.#policy.mayCall(identity, action)) throw new Refused(`${identity} may not call ${action}.`, answer);
    if (payload['stream']) throw new Refused(`${action} is not called with a stream.`, answer);
    payload['stream'] = undefined;
    const { request } = membersOf(meta);
    payload['meta'] = {
      ...traceOf(meta),
      ...(request === undefined ? {} : { request: this.#opened(request, { action, id, receiver }, identity, answer) }),
    };
  }

  #opened(
    request: unknown,
    { action, id, receiver }: { action: string; id: string; receiver: string },
    identity: Identity,
    answer: Refused['answer'],
  ): unknown {
    if (!this.#policy.mayActForUsers(identity, action)) throw new Refused(`${identity} may not act for users.`, answer);
    // Without keys (a development setup) the context is believed as it is.
    if (!this.#contexts) return request;
    if (!Buffer.isBuffer(request)) throw new Refused(`The context of a call of ${action} is not sealed.`, answer);
    try {
      return this.#contexts.open(request, { action, id, target: receiver });
    } catch (error) {
      if (error instanceof ClocksDiffer) throw new Refused(`${action}: ${error.message}`, answer, CLOCKS_DIFFER);
      if (error instanceof ContextRefused) throw new Refused(`${action}: ${error.message}`, answer);
      throw error;
    }
  }

  #admitEvent(payload: BusPacket['payload'], identity: Identity, node: string): void {
    const { event } = payload;
    if (!isName(event) || !this.#policy.maySend(identity, event))
      throw new Refused(`The event ${isName(event) ? event : 'without a name'} is not ${node}'s to send.`);
    payload['meta'] = traceOf(payload['meta']);
  }

  /** Of the services that a node announces: its own, with their own actions and the events that it may hear. */
  #offered(services: unknown, identity: Identity): unknown[] {
    if (!Array.isArray(services)) return [];
    return services
      .filter((service) => identity.includes(service?.name))
      .map((service) => ({
        ...service,
        fullName: service.name,
        version: undefined,
        actions: keep(service.actions, (name) => name.startsWith(`${service.name}.`)),
        events: keep(service.events, (name) => this.#policy.mayHear(identity, name)),
      }));
  }
}

const isName = (value: unknown): value is string => typeof value === 'string' && value.length <= NAME_MAX_CHARS;

function admitAnswer(payload: BusPacket['payload'], node: string, asked: Arrival['asked']): void {
  const { id } = payload;
  if (typeof id !== 'string') throw new Refused(`RES of ${node} without id`);
  const expected = asked(id);
  // The caller's time limit has passed.
  if (expected !== undefined && expected !== node) throw new Refused(`RES of ${node} to what was asked of ${expected}`);
  if (payload['stream']) throw new Refused(`RES of ${node} with a stream`);
  payload['stream'] = undefined;
  payload['meta'] = databaseTime(payload['meta']);
}

/** Of the meta of a call or an event: the trace that it belongs to, which is no secret and decides nothing. */
function traceOf(meta: unknown): { traceparent?: string } {
  const traceparent = traceparentOf(membersOf(meta)['traceparent']);
  return traceparent === null ? {} : { traceparent };
}

/** Meta that an answer may report; nothing else of it reaches the caller's context. */
function databaseTime(meta: unknown): DatabaseTimeMeta {
  const { databaseMs } = membersOf(meta);
  return typeof databaseMs === 'number' && databaseMs >= 0 && Number.isFinite(databaseMs) ? { databaseMs } : {};
}

/** The entries of an announcement whose key and name agree and satisfy `test`. */
function keep(entries: unknown, test: (name: string) => boolean): Record<string, unknown> {
  if (entries === null || typeof entries !== 'object') return {};
  return Object.fromEntries(
    Object.entries(entries).filter(([key, entry]) => (entry?.name ?? key) === key && test(key)),
  );
}
