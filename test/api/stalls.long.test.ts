/**
 * No request stops a process: inputs at every limit of the contract are sent to a running platform, whose log reports
 * long turns of its event loop. Processor time of the loop's thread counts, so that a busy machine causes no failure.
 * Source: docs/reference/operations.md, "Stalls". STALL_RUNS=2000 tries more random texts.
 */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { ALL_SERVICES } from '../../config/services.ts';
import { Database } from '../../mixins/database/database.ts';
import { api, tokenFor } from '../support/client.ts';
import type { TestDatabase } from '../support/database.ts';
import {
  DASHBOARD_ID,
  HOSTILE_DASHBOARD,
  HOSTILE_TEXTS,
  type HostileRequest,
  hostileWith,
} from '../support/hostile.ts';
import { GROUP_ID, HOSTILE_PROVISIONING, HOSTILE_VISITS, USER_ID } from '../support/hostile-entrances.ts';
import { HOSTILE_METADATA } from '../support/hostile-metadata.ts';
import { createPlatformDatabase } from '../support/platform.ts';
import { type ServiceProcess, startProcess } from '../support/processes.ts';
import { authorizeUrl, Browser, pkce } from './auth/browser.ts';

const TURN_MAX_MS = 250;
const MEMORY_MAX_BYTES = 1_500 * 1024 * 1024;
const ANSWER_MAX_MS = 60_000;
/** The watchdog looks fifty times a second. */
const NOTICED_MS = 50;
const RANDOM_RUNS = Number(process.env['STALL_RUNS'] ?? 60);

describe('the event loop of a process under hostile input', function () {
  this.timeout(120_000);
  let database: TestDatabase;
  let platform: ServiceProcess;
  let token: string;
  /** For SCIM. */
  let provisioning: string;
  /** By their names in paths. */
  const ids: Record<string, string> = {};
  /** Number of characters read from the log. */
  let read = 0;

  before(async () => {
    database = await createPlatformDatabase();
    platform = await startProcess({
      services: ALL_SERVICES,
      databaseUrl: database.url,
      natsUrl: '',
      env: { LOG_LEVEL: 'warn' },
    });
    token = await tokenFor(platform.baseUrl, 'ada');
    provisioning = await tokenFor(platform.baseUrl, 'ada', 'users:manage');
    const ada = api(platform.baseUrl, token);
    const made = await ada.post('/analytics/dashboards', HOSTILE_DASHBOARD);
    assert.equal(made.status, 201, made.text);
    ids[DASHBOARD_ID] = made.body.dashboardId;
    ids[USER_ID] = (
      await ada.get('/data/User?where=%7B%22username%22%3A%22sam%40demo.example%22%7D')
    ).body.records[0].id;
    ids[GROUP_ID] = 'BillingApi';
    await pause(NOTICED_MS);
    read = platform.output().length;
  });
  after(async () => {
    await platform?.stop();
    await database?.drop();
  });

  async function metric(pattern: RegExp): Promise<number> {
    const text = await (await fetch(`${platform.baseUrl}/metrics`)).text();
    const value = pattern.exec(text)?.[1];
    assert.ok(value, `no metric matches ${pattern}`);
    return Number(value);
  }

  /** Processor time of the longest turn logged since the last call; those below 200 ms are not logged. */
  async function longestTurnMs(): Promise<number> {
    await pause(NOTICED_MS);
    const lines = platform.output().slice(read);
    read += lines.length;
    const turns = [...lines.matchAll(/^\{.*"cpuMs":(\d+).*"The event loop was blocked\."\}$/gm)];
    return Math.max(0, ...turns.map(([, ms]) => Number(ms)));
  }

  async function send(request: HostileRequest): Promise<{ status: number; text: string }> {
    const { method, path, root = '/api/v1', headers, body } = request;
    const named = Object.entries(ids).reduce((text, [name, id]) => text.replace(name, id), path);
    const response = await fetch(`${platform.baseUrl}${root}${named}`, {
      method,
      headers: { authorization: `Bearer ${root === '/scim/v2' ? provisioning : token}`, ...headers },
      body: body as Uint8Array<ArrayBuffer> | null,
      signal: AbortSignal.timeout(ANSWER_MAX_MS),
    });
    return { status: response.status, text: await response.text() };
  }

  /** An accepted deployment continues after the response. */
  async function deployed(text: string): Promise<void> {
    const { deploymentId } = JSON.parse(text) as { deploymentId?: string };
    if (!deploymentId) return;
    for (;;) {
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch(`${platform.baseUrl}/api/v1/metadata/deployments/${deploymentId}`, { headers });
      const { status } = (await response.json()) as { status: string };
      if (!['QUEUED', 'VALIDATING', 'APPLYING'].includes(status)) return;
      await pause(100);
    }
  }

  async function survives(request: HostileRequest): Promise<void> {
    const { status, text } = await send(request);
    if (status === 202) await deployed(text);
    await wentOn(status, text);
  }

  async function wentOn(status: number, text: string): Promise<void> {
    const turn = await longestTurnMs();
    assert.equal(platform.crash(), null);
    assert.notEqual(status, 500, text.slice(0, 500));
    assert.ok(turn < TURN_MAX_MS, `a turn of ${Math.round(turn)} ms, answered with ${status} ${text.slice(0, 200)}`);
  }

  for (const generate of [...HOSTILE_TEXTS, ...HOSTILE_METADATA, ...HOSTILE_PROVISIONING]) {
    const { name } = generate();
    it(`continues during ${name}`, () => survives(generate()));
  }

  describe('from unauthenticated callers', () => {
    let pool: Database;
    before(() => {
      pool = new Database(database.url, { size: 1, applicationName: 'test' });
    });
    after(() => pool?.close());

    for (const visit of HOSTILE_VISITS)
      it(`continues during ${visit.name}`, async () => {
        // Each as if it were the first: a rate-limited request is not parsed.
        await pool.query('DELETE FROM auth.attempts');
        const browser = new Browser();
        const page = await browser.visit(authorizeUrl(platform.baseUrl, pkce().challenge));
        const csrf = / name="csrf" value="([^"]+)"/.exec(page.html)?.[1] ?? assert.fail(page.html);
        const open = { path: page.url.pathname, csrf };
        const form = visit.form?.(open);
        const response = await fetch(platform.baseUrl + visit.path(open), {
          method: visit.method,
          redirect: 'manual',
          headers: {
            cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
            ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
            ...visit.headers,
          },
          body: typeof form === 'object' ? new URLSearchParams(form).toString() : (form ?? null),
          signal: AbortSignal.timeout(ANSWER_MAX_MS),
        });
        await wentOn(response.status, await response.text());
      });
  });

  it('continues during repeated texts of any kind in any place', async function () {
    this.timeout(30 * 60_000);
    const fragments = fc.array(fc.constantFrom(...FRAGMENTS), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...hostileWith), fragments, fragments, (place, repeated, end) =>
        survives(place(repeated.join(''), end.join(''))),
      ),
      { numRuns: RANDOM_RUNS, endOnFailure: true },
    );
  });

  it('stays within its memory', async () => {
    const bytes = await metric(/^process_resident_memory_bytes (\S+)$/m);
    assert.ok(bytes < MEMORY_MAX_BYTES, `${Math.round(bytes / 1024 / 1024)} MiB`);
  });
});

/** Characters that parsers look for. */
const FRAGMENTS = [
  ...'[]{}()<>"\'`\\/|&!?*+-=~^$#%@:;,._ \n\t\r0aeEß\u0301\u0130\ufdfa\u200d',
  '🏳️‍🌈',
  '\\u0000',
  '&amp;',
  '1e9',
  '- ',
  ': ',
  '? ',
  '(a?)',
  '{1,9}',
  'a.b',
];
