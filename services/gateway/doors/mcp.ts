/**
 * The door for assistants: a request to /mcp is checked like an operation and handed to mcp, whose tools come back here
 * to run operations for the caller. mcp names a request by its ticket, and no user: what it can do is bounded by the
 * requests that are in flight and by the operations that read. Source: docs/reference/mcp.md.
 */
import { randomBytes } from 'node:crypto';
import { call } from '../../../contracts/call.ts';
import type { McpDoorActions, McpOutcome, McpRequest } from '../../../contracts/mcp.ts';
import { MCP_OPERATIONS } from '../../../contracts/mcp-offers.ts';
import { API_PREFIX, pathOf } from '../../../lib/addresses.ts';
import { errorBody } from '../../../lib/errors/error-body.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import { mark } from '../../../mixins/watchdog/work.ts';
import type { DoorKeeper, HttpEdge } from '../edge/edge.ts';
import type { Exchange } from '../edge/exchange.ts';
import { commonHeaders, send, sendOptions } from '../edge/reply.ts';
import { checkMediaType } from '../pipeline/body.ts';
import { Call } from '../pipeline/call.ts';
import { toPlatformError } from '../pipeline/failures.ts';
import type { Gate } from '../pipeline/gate.ts';
import { abortable, admit, answerWithin, chargeAddress } from '../pipeline/index.ts';

type Run = McpDoorActions['gateway.operations.run'];

/** A request that mcp is answering. */
interface OpenRequest {
  readonly x: Exchange;
  runs: number;
  /** Refusals that need another token, which answer the HTTP request itself. */
  refusal: PlatformError | null;
}

/** A request runs one operation; its call may be repeated when a process is lost. */
const RUNS_MAX = 3;
const ALLOW = 'POST, OPTIONS';
/** The protocol's headers, and the client's accepted media types. */
const HANDED_ON = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name'] as const;

export class McpDoor implements DoorKeeper {
  readonly #edge: HttpEdge;
  readonly #gate: Gate;
  readonly #openRequests = new Map<string, OpenRequest>();

  constructor(edge: HttpEdge, gate: Gate) {
    this.#edge = edge;
    this.#gate = gate;
  }

  /** Answers OPTIONS, which the caller's address pays. */
  async #preflight(x: Exchange): Promise<void> {
    x.label = 'preflight';
    await chargeAddress(this.#gate.budgets, x);
    const { origin } = x.headers;
    if (origin !== undefined && (await this.#gate.origins.allowed(origin))) x.allowedOrigin = origin;
    sendOptions(x, ALLOW, this.#edge.replyOptions());
  }

  async answer(x: Exchange): Promise<void> {
    if (x.method === 'OPTIONS') return this.#preflight(x);
    x.label = 'mcp';
    if (x.method !== 'POST')
      throw new PlatformError('METHOD_NOT_ALLOWED', 'The endpoint keeps no sessions and opens no streams: use POST.', {
        headers: { Allow: ALLOW },
      });
    await admit(this.#gate, x);
    checkMediaType(x, ['application/json']);
    const body = await x.receive(LIMITS.mcp_body_max_bytes);
    mark();
    const open: OpenRequest = { x, runs: 0, refusal: null };
    const ticket = randomBytes(24).toString('base64url');
    this.#openRequests.set(ticket, open);
    try {
      const request = this.#handedOn(x, ticket, body ?? new Uint8Array());
      const reply = await abortable(x, call(this.#gate.broker, 'mcp.http.handle', request));
      if (open.refusal) throw open.refusal;
      const headers = commonHeaders(x, this.#edge.replyOptions(), undefined);
      const { status, contentType, body: content } = reply;
      if (contentType !== null) headers.push('Content-Type', contentType);
      send(x, status, headers, contentType === null ? null : Buffer.from(content));
    } finally {
      this.#openRequests.delete(ticket);
    }
  }

  #handedOn(x: Exchange, ticket: string, body: Uint8Array): McpRequest {
    const given = HANDED_ON.flatMap((name) => {
      const value = x.headers[name];
      return typeof value === 'string' ? [[name, value]] : [];
    });
    return {
      requestId: x.requestId,
      gateway: this.#gate.broker.nodeID,
      ticket,
      baseUrl: this.#gate.baseUrl,
      headers: Object.fromEntries(given),
      body,
    };
  }

  /** Runs an operation for the caller of a request that is being answered. */
  async run({ ticket, operationId, path, query, body }: Run['params']): Promise<McpOutcome> {
    const open = this.#openRequests.get(ticket);
    const operation = MCP_OPERATIONS.get(operationId);
    if (!open || !operation || operation.mutation || ++open.runs > RUNS_MAX)
      throw new PlatformError('INTERNAL_ERROR', 'No request in flight may run this operation.');
    const { x: asking } = open;
    const { headers, ip, door, requestId, startedAt } = asking;
    const at = API_PREFIX + pathOf(operation.path, (name) => path[name] ?? '');
    const url = `${at}?${new URLSearchParams(query)}`;
    const x = new Call({ method: operation.method, url, headers, ip, door, requestId, startedAt });
    x.span = asking.span;
    x.session = asking.session;
    x.body = body && Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    asking.label = `mcp.${operationId}`;
    try {
      return { body: bytesOf(await answerWithin(this.#gate, x)), error: null };
    } catch (thrown) {
      const { error, unexpected } = toPlatformError(thrown);
      if (unexpected) this.#edge.logUnexpected(x, thrown);
      if (error.status === 401 || error.code === 'SCOPE_INSUFFICIENT') open.refusal = error;
      asking.code = error.code;
      return { body: null, error: errorBody(error, x.requestId, this.#gate.baseUrl) };
    } finally {
      x.leaveFlight();
      x.forget();
    }
  }
}

const bytesOf = ({ body }: OperationReply): Uint8Array =>
  body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body));
