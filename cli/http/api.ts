/**
 * The client of the public API. Methods, paths, parameters and types come from the rows of the operations, so that there
 * is no second list of them. A failed attempt is repeated a few times where that is safe: a read always, a change with
 * the same idempotency key and the same body, which the platform carries out once.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Doubt, type Failed, type Intention, underKey, untilAnswered } from '../../client/attempts.ts';
import {
  OPERATIONS,
  type OperationId,
  type OperationInput,
  type OperationOutput,
  operationRow,
} from '../../contracts/operations.ts';
import { API_PREFIX, apiUrl, pathOf } from '../../lib/addresses.ts';
import type { Operation } from '../../lib/operation.ts';
import type { StreamedBody } from '../../lib/streams.ts';
import { ApiFailure, type ErrorBody, EXIT, Failure, usage } from '../failure.ts';
import { plain } from '../output/table.ts';
import type { Intentions } from './intentions.ts';
import { parseExact } from './json.ts';
import { AnswerTooLarge, exchange, NetworkFailure, openContent, type Reply } from './transport.ts';

/** Parameters of an operation: path, query, body and those headers that the caller chooses. */
export type CallInput<Id extends OperationId> = Part<'path', OperationInput<Id>['path']> &
  Part<'query', OperationInput<Id>['query']> &
  BodyPart<OperationInput<Id>> & { headers?: CallHeaders };

export interface CallHeaders {
  ifMatch?: string | undefined;
  ifNoneMatch?: string | undefined;
  expectedRevision?: number | undefined;
  duplicateConfirmation?: string | undefined;
  fileName?: string | undefined;
  uploadOffset?: number | undefined;
}

type Part<Name extends string, Value> = [keyof Value] extends [never]
  ? { [N in Name]?: Record<never, never> }
  : Record<never, never> extends Value
    ? { [N in Name]?: Value }
    : { [N in Name]: Value };

/** A body whose bytes the platform reads itself is given as the value here, and one that it stores as `content`. */
type BodyPart<Input> = Input extends { body: StreamedBody }
  ? Record<never, never>
  : Input extends { body: infer Body }
    ? { body: Body extends Uint8Array ? object : Body }
    : Input extends { body?: infer Body }
      ? { body?: Exclude<Body, undefined> extends Uint8Array ? object : Body }
      : Record<never, never>;

export interface CallOptions {
  /** Decimals come as texts with all their digits: for answers that are shown and not handed on. */
  decimalsAsText?: boolean;
  /** Of a change: what it is in a word, for messages ("the creation"). */
  what?: string;
  /** A body that the platform stores as it is. */
  content?: { readonly type: string; readonly bytes: Uint8Array<ArrayBuffer> };
  /** The body of the request says itself whether it is a dry run. */
  saysDryRun?: boolean;
  /** Of a change: what it is about, so that `settle` finds it when its outcome was found out in another way. */
  subject?: string;
}

/** A successful answer. */
export interface Answer<Body> {
  status: number;
  headers: Headers;
  /** The body as it came, for --json. */
  text: string;
  body: Body;
}

/** The access token for a call; `renew` asks for another one because the platform has refused the last. */
export interface TokenSource {
  token(renew?: boolean): Promise<string>;
  /** Remedy when the platform refuses the token. */
  readonly onRefusal?: string;
}

export interface ApiOptions {
  baseUrl: string;
  tokens: TokenSource;
  intentions: Intentions;
  timeoutMs: number;
  /** --idempotency-key */
  idempotencyKey?: string | undefined;
  /** --agent-run */
  agentRun?: string | undefined;
  /** --dry-run */
  dryRun: boolean;
  /** A sentence about what is going on, for standard error. */
  note: (text: string) => void;
  /** The same, with --verbose alone. */
  trace: (text: string) => void;
}

/** A request that is ready to be sent, but for token and key. */
interface Prepared {
  row: Pick<Operation, 'method' | 'mutation' | 'scopes'>;
  url: URL;
  headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer> | undefined;
}

/** A request as a person wrote it; `path` with its query, and with or without the prefix of the API. */
interface WrittenRequest {
  method: Operation['method'];
  path: string;
  body?: object | undefined;
  headers: Readonly<Record<string, string>>;
}

interface LooseInput {
  path?: Record<string, string>;
  query?: Record<string, unknown>;
  body?: object;
  headers?: CallHeaders;
}

export class Api {
  readonly #options: ApiOptions;

  constructor(options: ApiOptions) {
    this.#options = options;
  }

  get baseUrl(): string {
    return this.#options.baseUrl;
  }

  /** Calls an operation. Throws ApiFailure with the answer of the platform, or NetworkFailure. */
  async call<Id extends OperationId>(
    id: Id,
    input: CallInput<Id>,
    options: CallOptions = {},
  ): Promise<Answer<OperationOutput<Id>>> {
    const { row, input: sent } = this.#toSend(operationRow(id), input, options);
    const request = this.#prepare(row, sent, options);
    const reply = row.mutation ? await this.#change(request, options) : await this.#send(request);
    // The contract tests hold every answer against the schema of its row, from which this type comes.
    const body = (reply.text === '' ? null : parseExact(reply.text)) as OperationOutput<Id>;
    return { status: reply.status, headers: reply.headers, text: reply.text, body };
  }

  /**
   * Sends a request as it was written. A change gets an idempotency key, as one of `call` does; what is no operation is
   * sent all the same, for the platform to refuse. Throws like `call`.
   */
  async send({ method, path, body, headers }: WrittenRequest): Promise<Reply> {
    const root = apiUrl(this.#options.baseUrl);
    const below = path.startsWith(`${API_PREFIX}/`) ? path.slice(API_PREFIX.length) : path;
    const url = new URL(root + below);
    if (!below.startsWith('/') || !url.href.startsWith(`${root}/`))
      throw usage(`${path} is no path of the API.`, 'Write a path such as /identity or /data/Account?take=5.');
    const row = operationAt(method, url.href.slice(root.length).replace(/[?#].*$/s, ''));
    const mutation = row?.mutation ?? method !== 'GET';
    if (mutation && this.#options.dryRun)
      throw usage(
        '--dry-run: a request that you write is sent as it is. POST /data/{objectApiName}/check tries a change.',
      );
    const request: Prepared = {
      row: { method, mutation, scopes: row?.scopes ?? [] },
      url,
      body: body === undefined ? undefined : JSON.stringify(body),
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(this.#options.agentRun === undefined ? {} : { 'x-agent-run-id': this.#options.agentRun }),
        ...headers,
      },
    };
    return mutation ? this.#change(request, {}) : this.#send(request);
  }

  /**
   * The content of a file from a byte on, as it comes. Throws like `call`; a stream that breaks off is asked for again by
   * the caller, from where it broke off.
   */
  async content<Id extends OperationId>(id: Id, input: CallInput<Id>, from: number): Promise<Response> {
    const request = this.#prepare(operationRow(id), input, {});
    const { timeoutMs, trace } = this.#options;
    return this.#until(request, async (headers) => {
      const range = { accept: '*/*', ...(from > 0 ? { range: `bytes=${from}-` } : {}) };
      const response = await openContent({ url: request.url, headers: { ...headers, ...range }, timeoutMs });
      trace(`GET ${request.url.pathname}${request.url.search} ${response.status}`);
      if (response.ok) return response;
      throw failureOf({ status: response.status, headers: response.headers, text: await response.text() }, request.url);
    });
  }

  /** Forgets unfinished requests of earlier processes on a subject, whose outcome is known by now. */
  settle(subject: string): Promise<void> {
    return this.#options.intentions.settle(this.#options.baseUrl, subject);
  }

  /** With --dry-run the check of a change in the place of the change. */
  #toSend(
    row: Operation,
    input: LooseInput,
    { saysDryRun = false }: CallOptions,
  ): { row: Operation; input: LooseInput } {
    if (!row.mutation || saysDryRun || !this.#options.dryRun) return { row, input };
    if (!row.checkedBy) throw usage(`--dry-run: ${row.operationId} cannot be tried out.`);
    return { row: operationRow('data.records.check'), input: checkOf(row.checkedBy.as, input) };
  }

  #prepare(row: Operation, input: LooseInput, { decimalsAsText, content }: CallOptions): Prepared {
    const path = pathOf(row.path, (name) => {
      const value = input.path?.[name];
      if (!value) throw usage(`${name} must not be empty.`);
      // "." and ".." are path segments with a meaning of their own, which no encoding takes from them.
      if (value === '.' || value === '..') throw usage(`${name} cannot be ${value}.`);
      return value;
    });
    const url = new URL(apiUrl(this.#options.baseUrl) + path);
    for (const [name, value] of Object.entries(input.query ?? {}))
      if (value !== undefined) url.searchParams.set(name, parameterText(value));
    const { ifMatch, ifNoneMatch, expectedRevision, duplicateConfirmation, fileName, uploadOffset } =
      input.headers ?? {};
    return {
      row,
      url,
      body: content?.bytes ?? (input.body === undefined ? undefined : JSON.stringify(input.body)),
      headers: {
        accept: decimalsAsText ? 'application/json;IEEE754Compatible=true' : 'application/json',
        ...(input.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(content === undefined
          ? {}
          : { 'content-type': content.type, 'content-digest': `sha-256=:${sha256(content.bytes, 'base64')}:` }),
        ...(fileName === undefined ? {} : { 'x-file-name': encodeURIComponent(fileName) }),
        ...(uploadOffset === undefined ? {} : { 'upload-offset': String(uploadOffset) }),
        ...(this.#options.agentRun === undefined ? {} : { 'x-agent-run-id': this.#options.agentRun }),
        ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
        ...(ifNoneMatch === undefined ? {} : { 'if-none-match': ifNoneMatch }),
        ...(expectedRevision === undefined ? {} : { 'x-expected-revision': String(expectedRevision) }),
        ...(duplicateConfirmation === undefined ? {} : { 'x-duplicate-confirmation': duplicateConfirmation }),
      },
    };
  }

  /** A change under an idempotency key that is kept until its outcome is known. */
  async #change(request: Prepared, { what = 'The request', subject }: CallOptions): Promise<Reply> {
    const { intentions, idempotencyKey, note } = this.#options;
    // Preconditions are no part of what is meant: after a crash the record may have moved on, by this very request.
    const intention = await intentions.begin(
      {
        baseUrl: this.#options.baseUrl,
        method: request.row.method,
        url: request.url.href,
        body: request.body instanceof Uint8Array ? sha256(request.body, 'hex') : request.body,
        subject,
      },
      request.headers,
      idempotencyKey,
    );
    if (intention.resumed)
      note(
        `${what} of ${intention.startedAt} ended without an answer. It is taken up again with its key ${intention.key}, so that nothing is done twice.`,
      );
    const headers = { ...request.headers, ...intention.headers, 'idempotency-key': intention.key };
    return underKey(intention, (doubt) => this.#send({ ...request, headers }, doubt), {
      failed: failedOf,
      undecided: (error) => undecided(error, intention, what),
    });
  }

  /** Sends until there is an answer that stands, a few times at most. */
  #send(request: Prepared, doubt?: Doubt): Promise<Reply> {
    return this.#until(request, (headers) => this.#attempt(request, headers), doubt);
  }

  async #until<R>(
    { row, headers }: Prepared,
    attempt: (headers: Record<string, string>) => Promise<R>,
    doubt?: Doubt,
  ): Promise<R> {
    const { tokens, trace, note } = this.#options;
    const open = row.scopes === 'public';
    const attempts = {
      mutation: row.mutation,
      attempt: async () => {
        const authorization = open ? {} : { authorization: `Bearer ${await tokens.token()}` };
        return attempt({ ...headers, ...authorization });
      },
      failed: failedOf,
      renew: open ? null : () => tokens.token(true),
      wait: (milliseconds: number, error: unknown) => {
        const message = error instanceof Error ? error.message : String(error);
        if (milliseconds >= 3_000)
          note(`${plain(message)} Trying again in ${Math.round(milliseconds / 1000)} seconds.`);
        else trace(`${message} Trying again.`);
        return sleep(milliseconds);
      },
    };
    return untilAnswered(attempts, doubt).catch((error: unknown) => {
      throw this.#advised(error);
    });
  }

  /** A refused token with advice that fits where it is from; a step-up has its own. */
  #advised(error: unknown): unknown {
    const { onRefusal } = this.#options.tokens;
    const refused = error instanceof ApiFailure && error.status === 401;
    if (!refused || !onRefusal || error.code === 'AUTHENTICATION_INSUFFICIENT') return error;
    return error.advised(onRefusal);
  }

  async #attempt({ row, url, body }: Prepared, headers: Record<string, string>): Promise<Reply> {
    const started = performance.now();
    const reply = await exchange({
      method: row.method,
      url,
      headers,
      timeoutMs: this.#options.timeoutMs,
      ...(body === undefined ? {} : { body }),
    });
    const took = Math.round(performance.now() - started);
    const id = reply.headers.get('x-request-id') ?? '';
    this.#options.trace(`${row.method} ${url.pathname}${url.search} ${reply.status} ${took} ms ${id}`);
    if (reply.status < 300 || reply.status === 304) return reply;
    throw failureOf(reply, url);
  }
}

/** The operation of a path; one that names it literally wins over one with parameters. */
function operationAt(method: string, path: string): Operation | undefined {
  const parts = path.split('/');
  const fits = ({ path: template }: Operation): boolean => {
    const segments = template.split('/');
    return segments.length === parts.length && segments.every((one, at) => one.startsWith('{') || one === parts[at]);
  };
  const parameters = ({ path: template }: Operation): number => template.split('{').length;
  const found = OPERATIONS.filter((row) => row.method === method && fits(row));
  return found.toSorted((a, b) => parameters(a) - parameters(b))[0];
}

const sha256 = (bytes: Uint8Array, encoding: 'hex' | 'base64'): string =>
  createHash('sha256').update(bytes).digest(encoding);

/** A failure as the rules about repeating read it. */
function failedOf(error: unknown): Failed | null {
  if (error instanceof NetworkFailure)
    return { status: null, neverSent: error.neverSent, final: error instanceof AnswerTooLarge };
  return error instanceof ApiFailure ? error.answer : null;
}

/** A failure after an attempt whose outcome is not known. The key of the request is kept. */
function undecided(error: unknown, { key }: Intention, what: string): unknown {
  if (!(error instanceof Failure)) return error;
  const advice = error.hint ? `${error.hint}\n` : '';
  const hint = `${advice}Whether it was done is not known. Repeat the same command within 24 hours: it uses the same key (${key}), so that nothing is done twice.`;
  if (error instanceof ApiFailure) return error.advised(hint);
  return new Failure(error.code, error.exitCode, `${what} failed: ${error.message}`, { cause: error, hint });
}

/** Lists and numbers of parameters as the platform reads them. */
function parameterText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The body of a check: what the change takes in address, headers and body. */
function checkOf(operation: string, { path = {}, headers = {}, body }: LooseInput): LooseInput {
  const { objectApiName = '', externalIdField, value, ...record } = path;
  const external = externalIdField === undefined ? {} : { external: { field: externalIdField, value } };
  const { ifMatch, ifNoneMatch, duplicateConfirmation } = headers;
  const content = operation === 'transition' || body === undefined ? body : { fields: body };
  return {
    path: { objectApiName },
    body: { operation, ...record, ...external, ifMatch, ifNoneMatch, duplicateConfirmation, ...content },
  };
}

/** An answer that is no success, as a failure. A proxy in between may have answered in its own way. */
function failureOf(reply: Reply, url: URL): Failure {
  const requestId = reply.headers.get('x-request-id') ?? '';
  const answer = errorBody(reply.text);
  if (answer) return new ApiFailure(answer, reply.text);
  const message =
    reply.status < 400
      ? `${url.origin} redirects to another address; give that one as --base-url.`
      : `${url.origin} answered with status ${reply.status} and no error of this API. Is it the right base URL?`;
  return reply.status >= 500
    ? new ApiFailure({ code: 'INTERNAL_ERROR', message, status: reply.status, requestId }, reply.text)
    : new Failure('CLIENT_PROTOCOL', EXIT.error, message);
}

function errorBody(text: string): ErrorBody | null {
  try {
    const value: unknown = parseExact(text);
    return typeof value === 'object' && value !== null && 'code' in value && 'status' in value && 'message' in value
      ? (value as ErrorBody)
      : null;
  } catch {
    return null;
  }
}
