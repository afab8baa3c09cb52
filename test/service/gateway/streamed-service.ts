/** A service whose operations stream, behind a gateway: what files and imports will be, in memory and without rules. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { Type } from 'typebox';
import type { Operation, OperationCall, OperationReply } from '../../../lib/operation.ts';
import type { EventPage, FileContent, StreamedBody } from '../../../lib/streams.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { row, type Stage, startStage } from './stage.ts';

const GIB = 1024 ** 3;
const stream = { required: true, kind: 'stream', schema: Type.String(), maxBytes: 5 * GIB } as const;

const OPERATIONS: readonly Operation[] = [
  row({
    operationId: 'stub.files.create',
    method: 'POST',
    path: '/files',
    scopes: ['data:write'],
    mutation: true,
    timeLimitMs: 600_000,
    idleMs: 1_500,
    requestBody: stream,
    response: { status: 201, description: 'Created.' },
  }),
  row({
    operationId: 'stub.uploads.append',
    method: 'PATCH',
    path: '/uploads/{uploadId}',
    scopes: ['data:write'],
    timeLimitMs: 600_000,
    idleMs: 1_500,
    requestBody: { ...stream, contentTypes: ['application/offset+octet-stream'], maxBytes: 64 * 1024 * 1024 },
    response: { status: 204, description: 'Taken.' },
  }),
  row({
    operationId: 'stub.hurried.create',
    method: 'POST',
    path: '/hurried',
    scopes: ['data:write'],
    timeLimitMs: 1_000,
    requestBody: stream,
  }),
  row({
    operationId: 'stub.content.get',
    method: 'GET',
    path: '/files/content',
    idleMs: 4_000,
    response: { status: 200, description: 'The content.', kind: 'file' },
  }),
  row({
    operationId: 'stub.events.stream',
    method: 'GET',
    path: '/events/stream',
    headerParameters: [{ name: 'Last-Event-ID', description: 'Where to go on.', schema: Type.String() }],
    response: { status: 200, description: 'Events.', kind: 'events' },
  }),
  row({
    operationId: 'stub.events.briefly',
    method: 'GET',
    path: '/events/briefly',
    timeLimitMs: 1_000,
    response: { status: 200, description: 'Events.', kind: 'events' },
  }),
];

interface Upload {
  readonly operationId: string;
  readonly fingerprint: string | undefined;
  readonly body: StreamedBody;
}

export interface StreamedStage {
  readonly stage: Stage;
  readonly folder: string;
  /** Every call about a streamed body, in their order. */
  readonly calls: Upload[];
  /** Answer of the operation whose response is a file. */
  file: FileContent | null;
  /** The log that event streams show, two entries a page, and the cursors that were asked for. */
  readonly log: string[];
  readonly cursors: (string | undefined)[];
  /** Milliseconds that each page takes. */
  pageMs: number;
  /** Refuses the first or the second call. */
  refuse: ((body: StreamedBody) => void) | null;
  /** Opens a request whose body the test writes. */
  open(method: string, path: string, headers?: Record<string, string>): Promise<ClientRequest>;
}

export async function startStreamedStage(env: Record<string, string> = {}): Promise<StreamedStage> {
  const folder = env['DATA_DIR'] ?? temporaryFolder('streams');
  const stage = await startStage({ ...env, DATA_DIR: folder }, { operations: OPERATIONS });
  let keys = 0;
  const streamed: StreamedStage = {
    stage,
    folder,
    calls: [],
    file: null,
    log: [],
    cursors: [],
    pageMs: 0,
    refuse: null,
    async open(method, path, headers = {}) {
      const authorization = `Bearer ${await stage.token()}`;
      return httpRequest(`${stage.baseUrl}/api/v1${path}`, { method, headers: { authorization, ...headers } });
    },
  };
  stage.answer = async (call: OperationCall): Promise<OperationReply> => {
    const { operationId, fingerprint } = call;
    if (streamed.file && operationId === 'stub.content.get')
      return { body: null, file: streamed.file, headers: { 'Content-Disposition': 'attachment' } };
    if (operationId.startsWith('stub.events.')) {
      await pause(streamed.pageMs);
      return { body: null, events: pageOf(streamed, call.headers.lastEventId) };
    }
    const body = call.body as StreamedBody;
    streamed.calls.push({ operationId, fingerprint, body });
    streamed.refuse?.(body);
    if (!body.received) return { body: null, receive: { key: `files/${keys++}`, maxBytes: 5 * GIB } };
    return { body: { ...body.received } };
  };
  return streamed;
}

function pageOf({ log, cursors }: StreamedStage, cursor: string | undefined): EventPage {
  cursors.push(cursor);
  const from = Number(cursor ?? 0);
  const to = Math.min(from + 2, log.length);
  const events = log
    .slice(from, to)
    .map((text, i) => ({ id: String(from + i + 1), type: 'noted', data: JSON.stringify({ text }) }));
  return { events, cursor: String(to), topics: ['notes'], more: to < log.length };
}

export const digestOf = (...chunks: readonly Uint8Array[]): Record<string, string> => {
  const hash = createHash('sha256');
  for (const chunk of chunks) hash.update(chunk);
  return { 'content-digest': `sha-256=:${hash.digest('base64')}:` };
};

export async function answerOf(request: ClientRequest): Promise<{ status: number; json: Record<string, unknown> }> {
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const body = await text(response);
  return { status: response.statusCode ?? 0, json: body === '' ? {} : JSON.parse(body) };
}
