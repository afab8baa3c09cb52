/**
 * Common properties of every refusal, however odd the request: a code of the catalogue with its status,
 * the one Error body, the headers of every response, and no write.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { Client } from 'pg';
import { CATALOGUE, type ErrorCode } from '../../../lib/errors/catalogue.ts';
import type { Answer } from '../../support/client.ts';
import type { TestPlatform } from '../../support/platform.ts';

/** No request of these suites may take longer; a longer one hangs. */
export const HANG_MS = 10_000;

/** Headers of every response, whatever its status. */
export function assertHeaders(answer: Answer, about: string): void {
  assert.match(answer.headers.get('x-request-id') ?? '', /^req_[0-9A-HJKMNP-TV-Z]{26}$/, about);
  assert.match(answer.headers.get('x-ratelimit-remaining') ?? '', /^\d+$/, about);
}

/** The answer is an error of the catalogue in the form of docs/reference/errors.md, and not a failure of ours. */
export function assertRefused(answer: Answer, about: string, expected?: ErrorCode | readonly ErrorCode[]): void {
  const shown = `${about.slice(0, 200)} → ${answer.status} ${answer.text.slice(0, 400)}`;
  assertHeaders(answer, shown);
  assert.ok(answer.status >= 400 && answer.status < 500, shown);
  const { code, message, status, requestId, type, retryable } = answer.body ?? {};
  assert.ok(Object.hasOwn(CATALOGUE, code), shown);
  assert.equal(CATALOGUE[code as ErrorCode].status, answer.status, shown);
  assert.equal(status, answer.status, shown);
  assert.equal(requestId, answer.headers.get('x-request-id'), shown);
  assert.ok(typeof message === 'string' && message.length > 0 && message.length < 1_000, shown);
  assert.ok(type.endsWith(`/api/v1/versions/1.0.0/docs/errors/${code}`), shown);
  assert.equal(typeof retryable, 'boolean', shown);
  assert.doesNotMatch(
    answer.text,
    /syntax error|invalid input|violates|node_modules|\.ts:\d|prepared statement/,
    shown,
  );
  if (expected !== undefined)
    assert.ok((Array.isArray(expected) ? expected : [expected]).includes(code), `${shown}, not ${expected}`);
}

/** Refused, or answered as any other request: never a failure of ours. */
export function assertSound(answer: Answer, about: string): void {
  if (answer.status >= 400) assertRefused(answer, about);
  else assertHeaders(answer, `${about} → ${answer.status} ${answer.text.slice(0, 200)}`);
}

/**
 * Every row of every tenant and of the metadata, as counts and versions: two equal pictures mean nothing was written.
 * Excluded are tables that grow by refusals on purpose: the audit of attempts and their used keys.
 */
export async function picture(platform: TestPlatform): Promise<Record<string, string>> {
  const client = new Client({ connectionString: platform.database.url, application_name: 'bad input test' });
  await client.connect();
  try {
    const { rows } = await client.query<{ schema: string; name: string; versioned: boolean }>(
      `SELECT n.nspname AS schema, c.relname AS name, EXISTS (
         SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'recordVersion') AS versioned
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.relkind = 'r' AND (n.nspname ~ '^t_[0-9a-f]{32}$' OR n.nspname = 'metadata')
         AND c.relname NOT IN ('_idempotency', '_audit', '_audit_chain') ORDER BY 1, 2`,
    );
    const parts = rows.map(({ schema, name, versioned }) => {
      const measure = versioned ? `count(*) || '/' || coalesce(sum("recordVersion"), 0)` : 'count(*)::text';
      return `SELECT ${client.escapeLiteral(`${schema}.${name}`)} AS name, ${measure} AS measure
              FROM ${client.escapeIdentifier(schema)}.${client.escapeIdentifier(name)}`;
    });
    const found = await client.query<{ name: string; measure: string }>(parts.join(' UNION ALL '));
    return Object.fromEntries(found.rows.map(({ name, measure }) => [name, measure]));
  } finally {
    await client.end();
  }
}

/** Sends bytes unchanged on a connection of their own; resolves with the whole response, in order. */
export function sendBytes(baseUrl: string, bytes: string | Uint8Array): Promise<Answer[]> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    const chunks: Buffer[] = [];
    socket.setTimeout(HANG_MS, () => {
      socket.destroy();
      reject(new Error(`No end after ${HANG_MS} ms: ${Buffer.concat(chunks).toString('latin1').slice(0, 200)}`));
    });
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
    socket.on('close', () => {
      try {
        resolve(parseAnswers(Buffer.concat(chunks)));
      } catch (error) {
        reject(error);
      }
    });
    socket.write(bytes);
  });
}

/** Splits a stream of HTTP/1.1 responses; each has a Content-Length or no body. */
function parseAnswers(bytes: Buffer): Answer[] {
  const answers: Answer[] = [];
  let at = 0;
  while (at < bytes.length) {
    const end = bytes.indexOf('\r\n\r\n', at);
    assert.ok(end >= 0, `no complete response: ${bytes.toString('latin1', at).slice(0, 300)}`);
    const [line = '', ...fields] = bytes.toString('latin1', at, end).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1]);
    const headers = new Headers(fields.map((field) => /^([^:]+): ?(.*)$/.exec(field)!.slice(1) as [string, string]));
    const length = status < 200 ? 0 : Number(headers.get('content-length') ?? 0);
    const content = bytes.subarray(end + 4, end + 4 + length);
    const text = (headers.get('content-encoding') === 'gzip' ? gunzipSync(content) : content).toString();
    at = end + 4 + length;
    if (status < 200) continue;
    const isJson = /^application\/(.*\+)?json/.test(headers.get('content-type') ?? '');
    answers.push({ status, headers, text, body: text === '' ? null : isJson ? JSON.parse(text) : text });
  }
  return answers;
}

/** Names that every JavaScript object has; none is a field, object, parameter or property of ours. */
export const PROTOTYPE_NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'valueOf',
  'hasOwnProperty',
  '__defineGetter__',
];

/** SQL and its delimiters, in common forms of injection. */
export const SQL = [
  `'`,
  `''`,
  `"`,
  `""`,
  `';--`,
  `" ; DROP TABLE "Account"; --`,
  `' OR '1'='1`,
  `1) OR (1=1`,
  `\\'; SELECT pg_sleep(5); --`,
  `$1`,
  `$$; SELECT 1; $$`,
  `E'\\x27'`,
  `/* */`,
  `name" FROM "Account" --`,
  `id::text`,
  `(SELECT "passwordHash" FROM auth.credentials)`,
  `%`,
  `_`,
  `\\`,
  `%_\\%`,
  `ﬀ'`,
  `ʼ`,
];

export const encoded = (value: unknown): string =>
  encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value));
