/** Common to all tools: their arguments are checked, and failures answered, in the form of the API. */
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { TObject } from 'typebox';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import type { ErrorBody } from '../../../lib/errors/error-body.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { ViolationList } from '../../../lib/errors/violation-list.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { collectBodyViolations } from '../../../lib/validation.ts';
import { errorOf, type McpCall } from '../mcp-call.ts';
import { costOf } from './paging.ts';

export type Arguments = Record<string, unknown>;

/** Bytes of an answer besides what the protocol and the words about it take. */
export const ANSWER_ROOM = LIMITS.mcp_answer_max_bytes - 4 * 1024;
const MESSAGE_MAX_CHARS = 500;

/** Annotations of a tool that reads. */
export const READS = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
} as const;

/** Calls a tool; what it throws is its answer. */
export async function answeringErrors(call: McpCall, run: () => Promise<CallToolResult>): Promise<CallToolResult> {
  try {
    return await run();
  } catch (thrown) {
    return refusedWith(errorOf(call, thrown));
  }
}

/** Throws everything that is wrong with the arguments. */
export function checkArguments(schema: TObject, given: Arguments): void {
  const violations = new ViolationList<ErrorCode>();
  collectBodyViolations(schema, given, violations);
  const [first] = violations.list;
  if (!first) return;
  throw new PlatformError(
    first.code,
    violations.list.length === 1 ? first.message : `The arguments have ${violations.count} problems; see errors.`,
    { errors: [...violations.list] },
  );
}

export function refusedWith(error: ErrorBody): CallToolResult {
  const shown = fitting(error);
  return {
    content: [{ type: 'text', text: JSON.stringify(shown) }],
    structuredContent: { ...shown },
    isError: true,
  };
}

/** The error, without those of its violations that repeat too much of the request. */
function fitting(error: ErrorBody): ErrorBody {
  if (costOf(error) <= ANSWER_ROOM) return error;
  const { errors = [], details: _, ...rest } = error;
  const short = { ...rest, message: rest.message.slice(0, MESSAGE_MAX_CHARS).toWellFormed() };
  let room = ANSWER_ROOM - costOf(short);
  const kept = errors.filter((one) => {
    const cost = costOf(one);
    if (cost > room) return false;
    room -= cost;
    return true;
  });
  return { ...short, errors: kept };
}
