/** Bulk jobs as callers use them, for the tests beside this file. */
import assert from 'node:assert/strict';
import pg from 'pg';
import { LIMITS } from '../../../lib/limits.ts';
import { digestOf } from '../../service/gateway/streamed-service.ts';
import type { Answer, Api, CallOptions } from '../../support/client.ts';
import { until } from '../../support/until.ts';

const CSV = 'text/csv';
export const NDJSON = 'application/x-ndjson';

export const refused = (reply: Answer, status: number, code: string): void =>
  assert.deepEqual([reply.status, reply.body?.code], [status, code], reply.text);

export const upload = (who: Api, jobId: string, part: number, content: string | Uint8Array, more: CallOptions = {}) =>
  who.send('PUT', `/bulk/jobs/${jobId}/parts/${part}`, content, {
    ...more,
    headers: { 'content-type': CSV, ...digestOf(Buffer.from(content)), ...more.headers },
  });

export async function createJob(who: Api, body: object): Promise<string> {
  const reply = await who.post('/bulk/jobs', { format: 'csv', ...body });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.jobId;
}

/** Jobs of the demo tenant wait while `work` is done: as many as may be at work are. */
export async function whileJobsWait(databaseUrl: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`INSERT INTO bulk.jobs (tenant_id, job_id, user_id, client_id, state, operation, object_api_name, request, expires_at)
      SELECT id, gen_random_uuid(), gen_random_uuid(), 'holder', 'PROCESSING', 'create', 'Account', '{}', now() + interval '1 day'
      FROM metadata.tenants, generate_series(1, ${LIMITS.bulk_processing_max}) WHERE key = 'demo'`);
    await work(client);
  } finally {
    await client.query("DELETE FROM bulk.jobs WHERE client_id = 'holder'");
    await client.end();
  }
}

/** The job once it has ended. */
// biome-ignore lint/suspicious/noExplicitAny: the body of an answer
export async function ended(who: Api, jobId: string): Promise<any> {
  let reply = await who.get(`/bulk/jobs/${jobId}`);
  await until(async () => {
    reply = await who.get(`/bulk/jobs/${jobId}`);
    assert.equal(reply.status, 200, reply.text);
    return reply.body.finishedAt !== null;
  }, 60);
  return reply.body;
}

/** Runs an import of these parts to its end. */
export async function imported(who: Api, body: object, ...parts: readonly (string | Uint8Array)[]) {
  const jobId = await createJob(who, body);
  const type = 'format' in body && body.format === 'ndjson' ? NDJSON : CSV;
  for (const [i, part] of parts.entries()) {
    const reply = await upload(who, jobId, i + 1, part, { headers: { 'content-type': type } });
    assert.equal(reply.status, 201, reply.text);
  }
  const started = await who.post(`/bulk/jobs/${jobId}/start`);
  assert.equal(started.status, 202, started.text);
  return ended(who, jobId);
}

// biome-ignore lint/suspicious/noExplicitAny: the body of an answer
export async function results(who: Api, jobId: string, query = ''): Promise<any[]> {
  const reply = await who.get(`/bulk/jobs/${jobId}/results${query}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.records;
}
