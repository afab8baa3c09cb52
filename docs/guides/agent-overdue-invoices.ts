/**
 * An agent that chases overdue invoices, with no model behind it: what a model would decide is a few rules here.
 * It drafts reminders, asks for the approval of each one before it goes out, waits, and sends what was approved.
 * Node 24 runs this file as it is; `--help` shows the options. The guide is let-an-agent-work.md.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs, styleText } from 'node:util';

const HELP = `Chases overdue invoices of the person who signs in.

  --base-url URL   the platform (BASE_URL, default http://localhost:3000)
  --client ID      the client that it is (default demo-DunningAgent)
  --days N         invoices that are late by more than so many days (default 14)
  --take N         so many of them, the largest open amount first (default 3, at most 20)
  --wait SECONDS   how long it waits for people (default 900)
  --rehearse       a dry run: everything is checked, nothing is stored
  --help

With an access token in AGENT_TOKEN it does not ask anybody to sign in.

Exit codes: 0 every proposal was decided, and what was approved was done. 1 it failed. 2 people rejected all proposals.
3 somebody did not decide in time. 4 somebody stopped the run. 130 it was interrupted, or 143 terminated, and took its
proposals back.`;

const EXIT = { done: 0, failed: 1, rejected: 2, undecided: 3, stopped: 4 } as const;

interface Settings {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly days: number;
  readonly take: number;
  readonly waitSeconds: number;
  readonly rehearse: boolean;
}

// ---- What it prints

const out = (line = ''): void => console.log(line);
const paint = (style: Parameters<typeof styleText>[0], text: string): string =>
  styleText(style, text, { stream: process.stdout });
const heading = (text: string): void => out(`\n${paint('bold', text)}`);
const detail = (text: string): void => out(`  ${paint('dim', text)}`);
const done = (text: string): void => out(`  ${paint('green', '✓')} ${text}`);
const waiting = (text: string): void => out(`  ${paint('yellow', '…')} ${text}`);
const refused = (text: string): void => out(`  ${paint('red', '✗')} ${text}`);

/** Texts of records were typed by anybody; a terminal must not take them for commands. */
const plain = (text: unknown): string => String(text ?? '').replace(/[^\P{C}]/gu, ' ');

// ---- How it signs in: as its own client, in the name of a person who allows it (RFC 8628)

interface Tokens {
  access_token: string;
  refresh_token?: string;
}

interface OAuthAnswer extends Partial<Tokens> {
  error?: string;
  error_description?: string;
  [more: string]: unknown;
}

/** While the platform restarts, the same request is sent again for so long. */
const PATIENCE_MS = 90_000;
const ANSWER_MS = 60_000;
const AWAY = [502, 503, 504];

/** Like fetch, but for requests that may be sent twice: it waits until the platform is there again. */
async function fetchPatiently(url: URL, options: RequestInit): Promise<Response> {
  const end = performance.now() + PATIENCE_MS;
  for (let seconds = 1; ; seconds = Math.min(seconds * 2, 8)) {
    const late = (): boolean => performance.now() > end;
    const response = await fetch(url, { ...options, signal: AbortSignal.timeout(ANSWER_MS) }).catch((error: Error) => {
      if (late()) throw error;
      return null;
    });
    if (response && (late() || !AWAY.includes(response.status))) return response;
    await pause(Math.max(seconds, Number(response?.headers.get('retry-after') ?? 0)) * 1_000);
  }
}

async function form(url: URL, fields: Record<string, string>): Promise<OAuthAnswer> {
  const response = await fetchPatiently(url, { method: 'POST', body: new URLSearchParams(fields) });
  return (await response.json()) as OAuthAnswer;
}

class SignIn {
  readonly #tokenEndpoint: URL;
  readonly #clientId: string;
  #tokens: Tokens;

  private constructor(tokenEndpoint: URL, clientId: string, tokens: Tokens) {
    this.#tokenEndpoint = tokenEndpoint;
    this.#clientId = clientId;
    this.#tokens = tokens;
  }

  get token(): string {
    return this.#tokens.access_token;
  }

  static async begin({ baseUrl, clientId }: Settings): Promise<SignIn> {
    const found = await fetch(`${baseUrl}/.well-known/oauth-authorization-server`).catch(() => null);
    if (!found?.ok) throw new Error(`No platform answers at ${baseUrl}. Is it running?`);
    const server = (await found.json()) as Record<string, string>;
    const at = (name: string): URL => new URL(new URL(server[name]!).pathname, baseUrl);
    const tokenEndpoint = at('token_endpoint');
    const given = process.env['AGENT_TOKEN'];
    if (given) return new SignIn(tokenEndpoint, clientId, { access_token: given });
    const device = await form(at('device_authorization_endpoint'), {
      client_id: clientId,
      scope: 'data:read data:write actions:read actions:execute agent:run offline_access',
    });
    if (device.error) throw new Error(`${device.error}: ${device.error_description}`);
    out(`  Open ${paint('underline', String(device['verification_uri_complete']))}`);
    out(`  and compare the code: ${paint('bold', String(device['user_code']))}`);
    for (let seconds = Number(device['interval'] ?? 5); ; ) {
      await pause(seconds * 1_000);
      const answer = await form(tokenEndpoint, {
        grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
        client_id: clientId,
        device_code: String(device['device_code']),
      });
      if (answer.access_token) return new SignIn(tokenEndpoint, clientId, answer as Tokens);
      if (answer.error === 'slow_down') seconds += 5;
      else if (answer.error !== 'authorization_pending')
        throw new Error(`${answer.error}: ${answer.error_description}`);
    }
  }

  /** Tokens of agents live for 15 minutes. False: there is no way to get another one. */
  async renew(): Promise<boolean> {
    const { refresh_token } = this.#tokens;
    if (!refresh_token) return false;
    const fields = { grant_type: 'refresh_token', client_id: this.#clientId, refresh_token };
    const answer = await form(this.#tokenEndpoint, fields);
    if (answer.access_token) this.#tokens = answer as Tokens;
    return answer.access_token !== undefined;
  }
}

// ---- How it calls the API: everything under its run, mutations with a key, the same request again when it may

/** A mutation that can be sent again as it is: what was approved is this very request. */
interface Mutation {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly etag?: string;
  readonly key: string;
}

// biome-ignore lint/suspicious/noExplicitAny: what the bodies hold differs from tenant to tenant
type Json = any;

interface Answer {
  readonly status: number;
  readonly etag: string | null;
  readonly body: Json;
}

/** The run has ended, or its person has withdrawn what they allowed. */
class Stopped extends Error {}

const ATTEMPTS_MAX = 5;

class Api {
  runId: string | null = null;
  readonly #baseUrl: string;
  readonly #signIn: SignIn;

  constructor(baseUrl: string, signIn: SignIn) {
    this.#baseUrl = baseUrl;
    this.#signIn = signIn;
  }

  get(path: string): Promise<Answer> {
    return this.#send('GET', path, {});
  }

  /** A search is no mutation and needs no key. */
  query(path: string, body: unknown): Promise<Answer> {
    return this.#send('POST', path, { body });
  }

  mutate({ method, path, ...rest }: Mutation): Promise<Answer> {
    return this.#send(method, path, rest);
  }

  async #send(method: string, path: string, { body, etag, key }: Partial<Mutation>): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const response = await fetchPatiently(new URL(`${this.#baseUrl}/api/v1${path}`), {
        method,
        headers: {
          authorization: `Bearer ${this.#signIn.token}`,
          ...(this.runId ? { 'x-agent-run-id': this.runId } : {}),
          ...(key ? { 'idempotency-key': key } : {}),
          ...(etag ? { 'if-match': etag } : {}),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const answer = { status: response.status, etag: response.headers.get('etag'), body: await response.json() };
      const { code, retryable, message } = answer.body as Record<string, unknown>;
      const last = attempt === ATTEMPTS_MAX;
      if (code === 'TOKEN_EXPIRED' && !last && (await this.#signIn.renew())) continue;
      if (code === 'TOKEN_REVOKED' || code === 'RUN_NOT_ACTIVE') throw new Stopped(String(message));
      if (response.status < 429 || AWAY.includes(response.status) || retryable !== true || last) return answer;
      await pause(Number(response.headers.get('retry-after') ?? attempt) * 1_000);
    }
  }
}

/** The body of an answer that had to succeed. */
function expected({ status, body }: Answer): Json {
  if (status >= 200 && status < 300) return body;
  throw new Error(`${body.code}: ${plain(body.message)} (${body.requestId})`);
}

// ---- What it does

interface Invoice {
  readonly id: string;
  readonly name: string;
  readonly customer: string;
  readonly dueDate: string;
  readonly daysLate: number;
  readonly open: number;
  readonly currency: string;
  readonly level: number;
  readonly notes: string | null;
  readonly etag: string;
}

/** A reminder that is ready to go out. */
interface Proposal {
  readonly invoice: Invoice;
  readonly request: Mutation;
  approvalId: string | null;
  outcome: 'waiting' | 'sent' | 'rehearsed' | 'rejected' | 'expired' | 'outdated';
  comment: string | null;
}

const PLAN = [
  { stepKey: 'find', operationId: 'data.records.query', summary: 'Find invoices that are late, the largest first.' },
  { stepKey: 'draft', operationId: 'data.records.update', summary: 'Write the text of a reminder into the notes.' },
  { stepKey: 'send', operationId: 'data.transitions.execute', summary: 'Send the reminder once a person approved.' },
];

async function beginRun(api: Api, { days, take, waitSeconds, rehearse }: Settings): Promise<string> {
  const run = expected(
    await api.mutate({
      method: 'POST',
      path: '/agent/runs',
      key: randomUUID(),
      body: {
        agentKey: 'dunning',
        agentVersion: '1.0.0',
        goal: `Remind up to ${take} customers of invoices that are late by more than ${days} days.`,
        plan: PLAN,
        // Enough for this and no more: whatever goes wrong, it cannot go far.
        budget: { maxCost: 20 + take * 20, maxMutations: take * 2, maxRecords: take * 4 },
        expiresInSeconds: Math.max(60, Math.min(86_400, waitSeconds + 300)),
        dryRun: rehearse,
      },
    }),
  );
  return run.runId;
}

async function findOverdue(api: Api, { days, take }: Settings): Promise<Invoice[]> {
  const condition = (id: string, field: string, operator: string, value: unknown) => ({ id, field, operator, value });
  const page = expected(
    await api.query('/data/Invoice__c/query', {
      filters: {
        logic: 'and',
        conditions: [
          condition('status', 'Status__c', 'eq', 'overdue'),
          condition('late', 'DaysOverdue__c', 'gt', days),
          condition('level', 'DunningLevel__c', 'lt', 3),
        ],
      },
      sort: [{ id: 'OpenAmount__c', desc: true }],
      fields:
        'id,name,AccountId__c,DueDate__c,DaysOverdue__c,OpenAmount__c,CurrencyIsoCode__c,DunningLevel__c,Notes__c',
      // The version that the text is written about.
      includeEtag: true,
      take,
    }),
  );
  const names = new Map<string, string>();
  for (const { AccountId__c: id } of page.records)
    if (!names.has(id)) names.set(id, (await api.get(`/data/Account/${id}?fields=name`)).body.name ?? 'Customer');
  return page.records.map((record: Json) => ({
    id: record.id,
    name: record.name,
    customer: names.get(record.AccountId__c)!,
    dueDate: record.DueDate__c,
    daysLate: record.DaysOverdue__c,
    open: record.OpenAmount__c,
    currency: record.CurrencyIsoCode__c,
    level: record.DunningLevel__c ?? 0,
    notes: record.Notes__c ?? null,
    etag: record._etag,
  }));
}

const TONES = ['friendly', 'firm', 'final'] as const;
const money = ({ open, currency }: Invoice): string =>
  new Intl.NumberFormat('en', { style: 'currency', currency }).format(open);

/** The text that a model would write. */
function reminderText(invoice: Invoice): string {
  const { name, customer, dueDate, daysLate, level } = invoice;
  return [
    `Reminder ${level + 1} of 3 (${TONES[level]}), drafted by an agent:`,
    `Dear ${plain(customer)}, invoice ${name} of ${money(invoice)} was due on ${dueDate}, ${daysLate} days ago.`,
    level < 2
      ? 'Please pay it within a week, or tell us what keeps you.'
      : 'Unless it is paid within a week, we hand it over to collection.',
  ].join(' ');
}

/** Writes the draft where the person finds it, and prepares the request that sends it; null: the record changed. */
async function draft(api: Api, invoice: Invoice, rehearse: boolean): Promise<Proposal | null> {
  const notes = [invoice.notes, reminderText(invoice)].filter(Boolean).join('\n\n');
  const written = await api.mutate({
    method: 'PATCH',
    path: `/data/Invoice__c/${invoice.id}`,
    key: randomUUID(),
    etag: invoice.etag,
    body: { Notes__c: notes },
  });
  if (written.status === 412) return null;
  expected(written);
  // A rehearsal stores nothing, so the record is as it was.
  const etag = rehearse ? invoice.etag : written.etag;
  const request = {
    method: 'POST',
    path: `/data/Invoice__c/${invoice.id}/transitions/SendReminder`,
    key: randomUUID(),
    ...(etag ? { etag } : {}),
    body: { comment: `Reminder ${invoice.level + 1} of 3.` },
  };
  return { invoice, request, approvalId: null, outcome: 'waiting', comment: null };
}

/** Sends the request, for the first time or again: the same one, to the last byte. */
async function attempt(api: Api, proposal: Proposal, rehearse: boolean): Promise<void> {
  const answer = await api.mutate(proposal.request);
  const { code, details } = answer.body as { code?: string; details?: Record<string, string> };
  switch (code) {
    case 'APPROVAL_REQUIRED':
    case 'APPROVAL_PENDING':
      proposal.approvalId = details?.['approvalId'] ?? null;
      return;
    case 'APPROVAL_REJECTED':
      proposal.outcome = 'rejected';
      proposal.comment = details?.['comment'] ?? null;
      return;
    case 'APPROVAL_EXPIRED':
      proposal.outcome = 'expired';
      return;
    case 'APPROVAL_STALE':
    case 'ETAG_MISMATCH':
    case 'STATE_CONFLICT':
      // Not what the person saw any more: a person decides anew, in another run.
      proposal.outcome = 'outdated';
      return;
    default:
      expected(answer);
      proposal.outcome = rehearse ? 'rehearsed' : 'sent';
  }
}

const POLL_SECONDS_MAX = 15;

/** Until everything is decided, or the time is over. One small request per round, and the rounds grow longer. */
async function waitForPeople(api: Api, proposals: readonly Proposal[], waitSeconds: number): Promise<void> {
  const open = new Set(proposals.filter(({ outcome }) => outcome === 'waiting'));
  const end = performance.now() + waitSeconds * 1_000;
  for (let seconds = 1; open.size > 0 && performance.now() < end; seconds = Math.min(seconds * 1.3, POLL_SECONDS_MAX)) {
    await pause(Math.min(seconds * 1_000, Math.max(0, end - performance.now())));
    const { pendingApprovals } = expected(await api.get(`/agent/runs/${api.runId}`));
    const undecided = new Set(pendingApprovals.map((one: Json) => one.approvalId));
    for (const proposal of open) {
      if (undecided.has(proposal.approvalId)) continue;
      await attempt(api, proposal, false);
      if (proposal.outcome === 'waiting') continue;
      open.delete(proposal);
      report(proposal);
      seconds = 1;
    }
  }
}

function report({ invoice: { name }, outcome, comment }: Proposal): void {
  if (outcome === 'sent') done(`${name}: approved, the reminder is sent`);
  else if (outcome === 'rehearsed') done(`${name}: the reminder would go out`);
  else if (outcome === 'rejected') refused(`${name}: rejected${comment ? `, “${plain(comment)}”` : ''}`);
  else if (outcome === 'expired') refused(`${name}: the approval has expired`);
  else if (outcome === 'outdated') refused(`${name}: changed meanwhile, so what was approved is not done`);
}

const count = (proposals: readonly Proposal[], outcome: Proposal['outcome']): number =>
  proposals.filter((one) => one.outcome === outcome).length;

/** What still waits for a decision is canceled with it. */
async function endRun(api: Api, body: { outcome: string; summary: string; output?: object }): Promise<Json> {
  const path = `/agent/runs/${api.runId}/complete`;
  return expected(await api.mutate({ method: 'POST', path, key: randomUUID(), body }));
}

/** Who ends the process ends the run. The exit codes are those of shells. */
function endOnSignal(api: Api): void {
  for (const [signal, exitCode, summary] of [
    ['SIGINT', 130, 'Interrupted at the terminal.'],
    ['SIGTERM', 143, 'The process was terminated.'],
  ] as const)
    process.once(signal, () => {
      const ended = endRun(api, { outcome: 'canceled', summary });
      void ended.catch(() => {}).finally(() => process.exit(exitCode));
    });
}

function exitOf(proposed: number, rejected: number, undecided: number): number {
  if (undecided > 0) return EXIT.undecided;
  return rejected > 0 && rejected === proposed ? EXIT.rejected : EXIT.done;
}

async function complete(api: Api, proposals: readonly Proposal[], rehearse: boolean): Promise<number> {
  const [sent, undecided] = [count(proposals, 'sent'), count(proposals, 'waiting')];
  const rejected = count(proposals, 'rejected');
  const exit = rehearse ? EXIT.done : exitOf(proposals.length, rejected, undecided);
  const summary = rehearse
    ? `A rehearsal: ${proposals.length} would be proposed.`
    : `${sent} sent, ${rejected} rejected, ${undecided} not decided, ${proposals.length} proposed.`;
  const run = await endRun(api, {
    outcome: exit === EXIT.done ? 'succeeded' : 'canceled',
    summary,
    output: {
      invoices: proposals.map(({ invoice: { id, name }, outcome, comment }) => ({ id, name, outcome, comment })),
    },
  });
  heading(`The run is ${run.status}: ${summary}`);
  const { cost, mutations, recordsChanged } = run.usage;
  detail(`It used ${cost} of ${run.budget.maxCost} cost units, ${mutations} mutations, ${recordsChanged} records.`);
  return exit;
}

async function work(settings: Settings): Promise<number> {
  heading('Sign in');
  const api = new Api(settings.baseUrl, await SignIn.begin(settings));
  const { user, connection } = expected(await api.get('/identity'));
  done(`as ${connection.clientName}, in the name of ${plain(user.displayName)}`);

  api.runId = await beginRun(api, settings);
  endOnSignal(api);
  heading(`Run ${api.runId}${settings.rehearse ? ' (a rehearsal: nothing is stored)' : ''}`);
  const invoices = await findOverdue(api, settings);
  for (const one of invoices)
    detail(`${one.name}  ${money(one).padStart(14)}  ${one.daysLate} days late  ${plain(one.customer)}`);
  if (invoices.length === 0) detail('Nothing is late.');

  heading('Draft and propose');
  const proposals: Proposal[] = [];
  for (const invoice of invoices) {
    const proposal = await draft(api, invoice, settings.rehearse);
    if (!proposal) {
      refused(`${invoice.name}: somebody is working on it`);
      continue;
    }
    proposals.push(proposal);
    await attempt(api, proposal, settings.rehearse);
    if (proposal.approvalId && proposal.outcome === 'waiting')
      waiting(`${invoice.name}: reminder ${invoice.level + 1} waits for a person, approval ${proposal.approvalId}`);
    else report(proposal);
  }

  if (count(proposals, 'waiting') > 0 && !settings.rehearse) {
    heading('Wait for people');
    detail(
      'Somebody else than you, who may approve and may send reminders: GET /api/v1/agent/approvals?status=PENDING',
    );
    await waitForPeople(api, proposals, settings.waitSeconds);
  }
  return complete(api, proposals, settings.rehearse);
}

function settingsOf(args: string[]): Settings | null {
  const { values } = parseArgs({
    args,
    options: {
      'base-url': { type: 'string' },
      client: { type: 'string', default: 'demo-DunningAgent' },
      days: { type: 'string', default: '14' },
      take: { type: 'string', default: '3' },
      wait: { type: 'string', default: '900' },
      rehearse: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  const integer = (name: 'days' | 'take' | 'wait', max: number): number => {
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < 0 || value > max) throw new Error(`--${name} is a number up to ${max}`);
    return value;
  };
  return {
    baseUrl: (values['base-url'] ?? process.env['BASE_URL'] ?? 'http://localhost:3000').replace(/\/+$/, ''),
    clientId: values.client,
    days: integer('days', 3_650),
    take: integer('take', 20),
    waitSeconds: integer('wait', 80_000),
    rehearse: values.rehearse,
  };
}

try {
  const settings = settingsOf(process.argv.slice(2));
  if (settings) process.exitCode = await work(settings);
  else out(HELP);
} catch (error) {
  const stopped = error instanceof Stopped;
  const cause = (error as { cause?: { code?: string } }).cause?.code;
  console.error(
    paint('red', `${stopped ? 'stopped' : 'agent'}: ${(error as Error).message}${cause ? ` (${cause})` : ''}`),
  );
  process.exitCode = stopped ? EXIT.stopped : EXIT.failed;
}
