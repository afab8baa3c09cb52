/**
 * The steps of every operation, in their one order; the first failure answers. Idempotency, visibility, permissions,
 * preconditions and rules follow in the service that owns the data. Source: docs/reference/http.md, "Order of checks".
 */

import { CLI_CLIENT_ID } from '../../../contracts/auth.ts';
import { answerUnits, databaseUnits } from '../../../contracts/ratelimit.ts';
import { API_PREFIX } from '../../../lib/addresses.ts';
import type { DatabaseTimeMeta, RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { OperationCall, OperationReply } from '../../../lib/operation.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { mark } from '../../../mixins/watchdog/work.ts';
import { giveWay, LARGE_BODY_BYTES, receiveBody } from './body.ts';
import type { Call } from './call.ts';
import {
  authenticate,
  checkAccessScope,
  checkApiPermission,
  checkGrant,
  checkOrigin,
  checkPermission,
  checkScope,
  checkSignIn,
  chooseChecked,
  lacksStepUp,
  openSession,
  refuseAgent,
  spendExpansions,
  spendMcpRequest,
  spendOperation,
} from './caller.ts';
import { signInInsufficient } from './challenge.ts';
import { toPlatformError } from './failures.ts';
import { checkForm, identify } from './form.ts';
import type { Gate, Step } from './gate.ts';
import { enterParts, type PartSteps } from './parts.ts';
import { allowed } from './router.ts';
import { enterRun, runOf } from './run-calls.ts';
import { isAgent } from './session.ts';
import { checkStreamedBody, moveBody } from './streamed-body.ts';

/** Checks of an operation's caller, for every door. */
const OF_CALLER: readonly Step[] = [
  checkGrant,
  checkApiPermission,
  checkScope,
  checkPermission,
  checkSignIn,
  spendOperation,
];

const BEFORE_BODY: readonly Step[] = [findRoute, authenticate, ...OF_CALLER];
const OF_FORM: readonly Step[] = [chooseChecked, checkAccessScope, spendExpansions];
const OF_PART: PartSteps = {
  ofCaller: [findRoute, checkScope, checkPermission, checkSignIn],
  ofForm: [checkForm, ...OF_FORM],
};
const FROM_CALL: readonly Step[] = [identify, ...OF_FORM, enterParts(OF_PART), askRun];
const WITHOUT_BODY: readonly Step[] = [checkForm, ...FROM_CALL];
const WITH_BODY: readonly Step[] = [giveWay, checkForm, giveWay, ...FROM_CALL];
const RECEIVING_BODY: readonly Step[] = [receiveBody, ...WITH_BODY];

/** All that can be asked before the first byte is received. */
const STREAMED_BODY: readonly Step[] = [checkStreamedBody, checkForm, ...FROM_CALL];

const OF_STREAM: readonly Step[] = [checkGrant, checkApiPermission, checkScope, checkPermission];

const OF_MCP_REQUEST: readonly Step[] = [openSession, checkGrant, checkOrigin, checkApiPermission, spendMcpRequest];
/** Its session is known; a grant that has ended since the request came gets no further. */
const OF_MCP_OPERATION: readonly Step[] = [findRoute, ...OF_CALLER, ...WITH_BODY];

const OF_PROVISIONING: readonly Step[] = [openSession, checkGrant, refuseAgent, ...OF_CALLER];

/** The checks of a request to the endpoint for assistants, before its body is received. */
export const admit = async (gate: Gate, x: Call): Promise<void> => check(gate, x, OF_MCP_REQUEST);

/** The checks of a request to the endpoint for provisioning, whose route is known, before its body is received. */
export const admitProvisioning = async (gate: Gate, x: Call): Promise<void> => check(gate, x, OF_PROVISIONING);

/** Runs an operation within a request of an assistant, whose session and body `x` has. */
export async function answerWithin(gate: Gate, x: Call): Promise<OperationReply> {
  await check(gate, x, OF_MCP_OPERATION);
  return x.outcome ?? forward(gate, x);
}

/** Runs the checks, then the operation. */
export async function answer(gate: Gate, x: Call): Promise<OperationReply> {
  const waiting = check(gate, x, BEFORE_BODY);
  if (waiting) await waiting;
  if (x.route.operation.requestBody?.kind === 'stream') {
    await check(gate, x, STREAMED_BODY);
    return x.outcome ?? forwardStreamed(gate, x);
  }
  if (!x.hasBody) {
    const running = check(gate, x, WITHOUT_BODY);
    if (running) await running;
    return x.outcome ?? forward(gate, x);
  }
  const rest = async (): Promise<OperationReply> => {
    await check(gate, x, RECEIVING_BODY);
    return x.outcome ?? forward(gate, x);
  };
  return x.session && mayBeHuge(x) ? gate.hugeBodies.run(x.session.tenantId, rest) : rest();
}

/** Runs the steps in order; returns a promise only when one of them waits, which is rare. */
function check(gate: Gate, x: Call, steps: readonly Step[], from = 0): void | Promise<void> {
  const refuse = (error: unknown): never => {
    gate.refused(x, error);
    throw error;
  };
  let next = from;
  try {
    for (let step = steps[next]; step; step = steps[next]) {
      next++;
      const waiting = step(gate, x);
      if (waiting) return waiting.catch(refuse).then(() => check(gate, x, steps, next));
    }
  } catch (error) {
    refuse(error);
  }
}

/** True when the body may take much memory; the size of a compressed one is unknown. */
function mayBeHuge({ route, headers }: Call): boolean {
  if ((route.operation.requestBody?.maxBytes ?? 0) <= LIMITS.body_max_bytes) return false;
  const { 'content-length': length, 'content-encoding': encoding } = headers;
  return length === undefined || encoding !== undefined || Number(length) > LARGE_BODY_BYTES;
}

function findRoute(gate: Gate, x: Call): void {
  const match = gate.router.match(x.path.slice(API_PREFIX.length), platformTime());
  const method = x.method === 'HEAD' ? 'GET' : x.method;
  if (!match || match.ended.has(method))
    throw new PlatformError('ROUTE_NOT_FOUND', 'There is no operation at this path.');
  const route = match.methods.get(method);
  if (!route)
    throw new PlatformError('METHOD_NOT_ALLOWED', 'The request method is not supported for this path.', {
      headers: { Allow: allowed(match.methods) },
    });
  x.routed(route, match.values);
}

/** A call that names a run needs its leave; an agent's call without one is refused. */
function askRun(gate: Gate, x: Call): void | Promise<void> {
  if (x.headers['x-agent-run-id'] === undefined && !(x.session && isAgent(x.session))) return undefined;
  const runId = runOf(x);
  if (runId === null) return undefined;
  return enterRun(gate.runs, x, runId).then((outcome) => {
    x.outcome = outcome;
    mark();
  });
}

/** Whether the caller of a stream may still have what was asked for. */
export async function recheck(gate: Gate, x: Call): Promise<void> {
  for (const step of OF_STREAM) await step(gate, x);
}

/**
 * The page of a stream behind the cursor, which costs what the operation costs. Throws RATE_LIMIT_EXCEEDED or
 * DAILY_LIMIT_EXCEEDED.
 */
export async function readOn(gate: Gate, x: Call, cursor: string): Promise<OperationReply> {
  const payer = x.session?.connection ?? x.budget;
  if (payer) await gate.budgets.charge(payer, x.route.operation.cost);
  x.calledAt = platformTime();
  const asked = x.asked!;
  const headers = { ...asked.headers, lastEventId: cursor };
  return ask(gate, x, x.route.operation.action, { ...asked, headers }, requestContextOf(x));
}

/** Calls the operation and moves its streamed body. A run hears of the outcome once, when all is done. */
async function forwardStreamed(gate: Gate, x: Call): Promise<OperationReply> {
  const { route, run } = x;
  const ended = (status: number): void => {
    if (run) gate.runs.settle(x, run.stepId, status);
    noteWritten(gate, x, status);
  };
  try {
    const reply = await moveBody(gate, x, (body) =>
      ask(gate, x, route.operation.action, { ...x.asked!, body }, requestContextOf(x)),
    );
    ended(reply.status ?? route.operation.response.status);
    return reply;
  } catch (error) {
    ended(toPlatformError(error).error.status);
    throw error;
  }
}

/** Events of a change are delivered soon after it. */
function noteWritten(gate: Gate, { route, session }: Call, status: number): void {
  if (session && route.operation.mutation && status < 400) gate.wrote(session.tenantId);
}

function forward(gate: Gate, x: Call): Promise<OperationReply> {
  const { route, run } = x;
  const ended =
    run || route.operation.mutation
      ? (status: number): void => {
          if (run) gate.runs.settle(x, run.stepId, status);
          noteWritten(gate, x, status);
        }
      : undefined;
  return ask(gate, x, route.operation.action, x.asked, requestContextOf(x), ended).catch((error) => {
    // Services that demand a stronger sign-in do not know where their caller finds out how to get a token.
    const demanded = error instanceof PlatformError && error.code === 'AUTHENTICATION_INSUFFICIENT';
    throw demanded ? signInInsufficient(gate, x) : error;
  });
}

/**
 * Calls an action for the caller, who pays for what it takes beyond the price of the operation, also when the call fails
 * or answers after the caller has left. `x.abort` ends the wait, as the edge does at the time limit of the request. `ended`: called with the
 * status of its answer, however late that comes.
 */
export function ask(
  { broker, budgets }: Pick<Gate, 'broker' | 'budgets'>,
  x: Call,
  action: string,
  asked: OperationCall | null,
  request: RequestContext | undefined,
  ended?: (status: number) => void,
): Promise<OperationReply> {
  const { traceparent } = x;
  const { busMs } = x.timeLimits;
  const meta: DatabaseTimeMeta & { request?: RequestContext; traceparent?: string } = {};
  if (request) meta.request = request;
  if (traceparent) meta.traceparent = traceparent;
  return new Promise((resolve, reject) => {
    x.abort = reject;
    const options =
      busMs === undefined ? { meta, requestID: x.requestId } : { meta, requestID: x.requestId, timeout: busMs };
    broker.call<OperationReply, unknown>(action, asked, options).then(
      (reply) => {
        settle(budgets, x, meta.databaseMs ?? 0, reply?.body instanceof Uint8Array ? reply.body.length : 0);
        ended?.(reply.status ?? x.route.operation.response.status);
        resolve(reply);
      },
      (error) => {
        settle(budgets, x, meta.databaseMs ?? 0, 0);
        ended?.(toPlatformError(error).error.status);
        reject(error);
      },
    );
  });
}

/** Waits for a call, but not beyond the time limit of the request. */
export function abortable<T>(x: Call, answered: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    x.abort = reject;
    answered.then(resolve, reject);
  });
}

/**
 * Charges the time in the database and the bytes that the price of the operation does not include: to the connection,
 * or to the address of a caller who is not signed in.
 */
export function settle(budgets: Gate['budgets'], { session, budget }: Call, databaseMs: number, bytes: number): void {
  const units = databaseUnits(databaseMs) + answerUnits(bytes);
  const payer = session?.connection ?? budget;
  if (units > 0 && payer) budgets.settle(payer, units);
}

/** Every page, preflight and endpoint of OAuth costs the caller's address a unit, before anything is done for it. */
export async function chargeAddress(
  budgets: Gate['budgets'],
  x: Call,
  budget = budgets.anonymous(x.ip),
): Promise<void> {
  x.budget = budget;
  x.charged = true;
  await budgets.charge(budget, 1);
}

/** The context that is sent with the call: caller, tenant and deadline. */
export function requestContextOf(x: Call): RequestContext | undefined {
  const { session, run } = x;
  if (!session) return undefined;
  const context: RequestContext & { lacksStepUp?: boolean } = {
    requestId: x.requestId,
    clientRequestId: x.clientRequestId,
    tenantId: session.tenantId,
    userId: session.userId,
    clientId: session.clientId,
    grantId: session.grantId,
    scopes: session.scopes,
    agent: isAgent(session),
    person: session.signedIn !== null && !isAgent(session),
    agentRunId: run?.runId ?? x.refusedByRun,
    tokenExpiresAt: session.tokenExpiresAt,
    ip: x.ip,
    channel: x.door === 'mcp' ? 'mcp' : session.clientId === CLI_CLIENT_ID ? 'cli' : 'api',
    deadline: x.calledAt + x.timeLimits.callMs,
  };
  if (lacksStepUp(session, platformTime())) context.lacksStepUp = true;
  if (!run) return context;
  const { dryRun, approvalRequired, approval, deniedObjects } = run;
  return {
    ...context,
    dryRun,
    approvalRequired,
    ...(approval ? { approval } : {}),
    ...(deniedObjects ? { deniedObjects } : {}),
  };
}
