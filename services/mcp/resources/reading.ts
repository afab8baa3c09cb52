/** Common to all resources: long texts come in pieces, and refusals have the Error body of the API. */
import { ProtocolError, ProtocolErrorCode, type ReadResourceResult } from '@modelcontextprotocol/server';
import type { ErrorBody } from '../../../lib/errors/error-body.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { pieceOf } from '../cursor.ts';
import { errorOf, type McpCall } from '../mcp-call.ts';

/** Of an answer: what the protocol and the address take. */
const ENVELOPE_BYTES = 16 * 1024;
/** Quotes and line breaks take twice as much within the JSON of an answer. */
const PIECE_BYTES = Math.floor((LIMITS.mcp_answer_max_bytes - ENVELOPE_BYTES) / 2);
const OF_THE_REQUEST = new Set([400, 404]);

/** Reads a resource; what `read` throws is answered as an error of the protocol. */
export async function answeringErrors(
  call: McpCall,
  read: () => Promise<ReadResourceResult>,
): Promise<ReadResourceResult> {
  try {
    return await read();
  } catch (thrown) {
    throw thrown instanceof ProtocolError ? thrown : protocolError(errorOf(call, thrown));
  }
}

/** The refusal as the protocol has it, with the Error body as its data. */
export function protocolError(error: ErrorBody): ProtocolError {
  const { InvalidParams, InvalidRequest, InternalError } = ProtocolErrorCode;
  const { status, message } = error;
  const code = OF_THE_REQUEST.has(status) ? InvalidParams : status < 500 ? InvalidRequest : InternalError;
  return new ProtocolError(code, message, error);
}

/** Content of an address from its cursor on. Throws as pieceOf. */
export function contentsOf(text: Buffer, { href, searchParams }: URL, mimeType: string): ReadResourceResult {
  const piece = pieceOf(text, searchParams.get('cursor') ?? undefined, PIECE_BYTES);
  const { nextCursor, isWhole } = piece;
  return {
    contents: [
      {
        uri: href,
        mimeType: isWhole ? mimeType : 'text/plain',
        text: piece.text,
        _meta: { truncated: nextCursor !== null, nextCursor, bytes: text.length },
      },
    ],
  };
}
