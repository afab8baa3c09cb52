/** Sends requests by the rows of their operations, and keeps requests and answers as examples. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Exchange } from '../../../contracts/examples.ts';
import { OPERATIONS, type OperationId } from '../../../contracts/operations.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';
import type { Answer, Api } from '../client.ts';

interface Sent {
  /** Values of the parameters in the path, of those in the query (JSON ones as values), and of headers. */
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Members of the answer that the example shows, where all would be too much. */
  readonly show?: readonly string[];
}

/** A call as it was: nothing is replaced, nothing left out. */
export interface Recorded {
  readonly operationId: OperationId;
  /** null: it was a success. */
  readonly error: ErrorCode | null;
  /** When it was sent, in milliseconds since 1970. */
  readonly at: number;
  readonly exchange: Exchange;
  readonly show: readonly string[] | null;
}

export class Recorder {
  readonly calls: Recorded[] = [];

  /** Sends it, keeps it as the example of the operation, and returns the answer, which must be a success. */
  async example(who: Api, operationId: OperationId, sent: Sent = {}): Promise<Answer> {
    const answer = await this.#send(who, operationId, null, sent);
    assert.ok(answer.status < 300, `${operationId}: ${answer.status} ${answer.text}`);
    return answer;
  }

  /** Keeps the refusal as an example of an error of the operation. */
  async refusal(who: Api, operationId: OperationId, code: ErrorCode, sent: Sent = {}): Promise<Answer> {
    const answer = await this.#send(who, operationId, code, sent);
    assert.equal(answer.body?.code, code, `${operationId}: ${answer.status} ${answer.text}`);
    return answer;
  }

  async #send(who: Api, operationId: OperationId, error: ErrorCode | null, sent: Sent): Promise<Answer> {
    const row = OPERATIONS.find((one) => one.operationId === operationId)!;
    const path = row.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(sent.path![name]!));
    const query = Object.fromEntries(
      Object.entries(sent.query ?? {}).map(([name, value]) => [
        name,
        typeof value === 'string' ? value : JSON.stringify(value),
      ]),
    );
    const headers = { ...(row.mutation ? { 'Idempotency-Key': randomUUID() } : {}), ...sent.headers };
    const at = Date.now();
    const search = Object.keys(query).length > 0 ? `?${new URLSearchParams(query)}` : '';
    // As the client names its own, so that a type takes the place of that of JSON.
    const sentHeaders = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const answer = await who.send(row.method, `${path}${search}`, sent.body, {
      headers: sentHeaders,
      idempotencyKey: null,
    });
    const named = [...Object.keys(row.response.headers ?? {}), ...(error ? ['Retry-After', 'WWW-Authenticate'] : [])];
    const answered = Object.fromEntries(
      named.flatMap((name) => {
        const value = answer.headers.get(name);
        return value === null ? [] : [[name, value]];
      }),
    );
    const requestHeaders = {
      ...(row.scopes === 'public' || error === 'TOKEN_MISSING' ? {} : { Authorization: 'Bearer {access_token}' }),
      ...(sent.body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    };
    this.calls.push({
      operationId,
      error,
      at,
      exchange: {
        request: {
          method: row.method,
          path,
          ...(search ? { query } : {}),
          ...(Object.keys(requestHeaders).length > 0 ? { headers: requestHeaders } : {}),
          ...(sent.body === undefined ? {} : { body: sent.body }),
        },
        response: {
          status: answer.status,
          ...(Object.keys(answered).length > 0 ? { headers: answered } : {}),
          ...(answer.text === '' ? {} : { body: answer.body }),
        },
      },
      show: sent.show ?? null,
    });
    return answer;
  }
}
