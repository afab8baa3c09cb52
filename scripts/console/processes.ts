/** `health` and `metrics` of the console: what the processes say of themselves, at a glance. */
import type { ServiceBroker } from 'moleculer';
import { isServiceName, type ServiceName } from '../../config/services.ts';
import { call } from '../../contracts/call.ts';
import type { ProcessState } from '../../contracts/process.ts';
import { NotCalled } from './call.ts';

const ASK_MS = 5_000;

interface Process {
  readonly node: string;
  readonly services: readonly [ServiceName, ...ServiceName[]];
}

/** The processes of the platform that can be seen, without consoles. */
function processesOf(broker: ServiceBroker): Process[] {
  const processes = new Map<string, Process>();
  const services = broker.registry.getServiceList({ onlyAvailable: true });
  for (const { name, nodeID: node } of services.toSorted(({ name: a = '' }, { name: b = '' }) => a.localeCompare(b)))
    if (name !== undefined && node !== undefined && isServiceName(name)) {
      const before = processes.get(node)?.services;
      processes.set(node, { node, services: before ? [...before, name] : [name] });
    }
  return [...processes.values()].sort((a, b) => a.node.localeCompare(b.node));
}

const ask = (broker: ServiceBroker, { node, services: [service] }: Process): Promise<ProcessState> =>
  call(broker, `${service}.process.describe`, {}, { nodeID: node, timeout: ASK_MS });

/** One process by its name, or the beginning of it; or those of a service. */
function chosen(broker: ServiceBroker, name: string | undefined): Process[] {
  const all = processesOf(broker);
  if (name === undefined) return all;
  const found = all.filter(({ node, services }) => node.startsWith(name) || services.some((one) => one === name));
  if (found.length === 0)
    throw new NotCalled(`There is no process ${name}; there are ${all.map(({ node }) => node).join(', ') || 'none'}.`);
  return found;
}

/** Readiness of each process, and the services that some process misses. */
export async function health(broker: ServiceBroker, name: string | undefined): Promise<string> {
  const lines = await Promise.all(
    chosen(broker, name).map(async (process) => {
      const head = `${process.node} (${process.services.join(', ')})`;
      const state = await ask(broker, process).catch((error: Error) => error);
      if (state instanceof Error) return `${head}: does not answer: ${state.message}`;
      const { status, checks, degraded = [], services = {} } = state.readiness;
      const missing = Object.entries(checks).flatMap(([check, ok]) => (ok ? [] : [`${check} is missing`]));
      const away = Object.entries(services).flatMap(([service, { status: is, awaySeconds }]) =>
        is === 'present'
          ? []
          : [`${service} is ${is}${awaySeconds === undefined ? '' : ` for ${Math.round(awaySeconds)} s`}`],
      );
      return `${head}: ${[status, ...missing, ...degraded, ...away].join('; ')}`;
    }),
  );
  return lines.join('\n') || 'No process of the platform can be seen.';
}

/** Values of a metric by their labels, out of the text format of Prometheus. */
type Values = (name: string, labels?: string) => number[];

const valuesOf =
  (text: string): Values =>
  (name, labels = '') => {
    const found: number[] = [];
    for (const line of text.split('\n'))
      if ((line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && line.includes(labels))
        found.push(Number(line.slice(line.lastIndexOf(' ') + 1)));
    return found;
  };

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const count = (value: number): string => value.toLocaleString('en', { maximumFractionDigits: 0 });
const mib = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`;
const ms = (seconds: number): string => `${(seconds * 1_000).toFixed(1)} ms`;
const since = (seconds: number): string =>
  seconds < 120
    ? `${Math.round(seconds)} s`
    : seconds < 7_200
      ? `${Math.round(seconds / 60)} min`
      : `${Math.round(seconds / 3_600)} h`;

/** The bound under which so many of a histogram's observations are, since the start. */
function quantile(text: string, name: string, share: number): string {
  const total = sum(valuesOf(text)(`${name}_count`));
  const upTo = new Map<number, number>();
  for (const [, le, value] of text.matchAll(new RegExp(`^${name}_bucket\\{(?:.*,)?le="([^"]+)"\\} (\\S+)$`, 'gm'))) {
    const bound = le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le);
    upTo.set(bound, (upTo.get(bound) ?? 0) + Number(value));
  }
  for (const [bound, within] of [...upTo].sort(([a], [b]) => a - b))
    if (within >= total * share) return Number.isFinite(bound) ? `≤ ${ms(bound)}` : 'beyond all bounds';
  return '-';
}

function glance({ node, services }: Process, { metrics: text }: ProcessState): string {
  const values = valuesOf(text);
  const [info = ''] = /^erp_build_info\{.*$/m.exec(text) ?? [];
  const label = (name: string): string => new RegExp(`${name}="([^"]*)"`).exec(info)?.[1] || '-';
  const requests = sum(values('erp_http_requests_total'));
  const calls = sum(values('erp_action_calls_total'));
  const rows: [string, string][] = [
    ['version', `${label('version')}, Node ${label('node')}, PostgreSQL ${label('postgres')}`],
    ['running for', since(Date.now() / 1_000 - sum(values('process_start_time_seconds')))],
    [
      'memory',
      `${mib(sum(values('process_resident_memory_bytes')))}, heap ${mib(sum(values('nodejs_heap_size_used_bytes')))}`,
    ],
    [
      'event loop',
      `p99 ${quantile(text, 'erp_event_loop_delay_seconds', 0.99)}, ${count(sum(values('erp_event_loop_stalls_total')))} stalls, longest turn lately ${ms(sum(values('erp_event_loop_longest_turn_seconds', 'clock="wall"')))}`,
    ],
    [
      'database',
      `${count(sum(values('erp_database_connections', 'state="in_use"')))} in use, ` +
        `${count(sum(values('erp_database_connections', 'state="idle"')))} idle of ${count(sum(values('erp_database_connections_max')))}; ` +
        `${count(sum(values('erp_database_waiting')))} wait, ${count(sum(values('erp_database_refusals_total')))} refused, ` +
        `${count(sum(values('erp_database_failures_total')))} failures`,
    ],
    [
      'bus',
      `${sum(values('erp_bus_connected')) ? 'connected' : 'NOT CONNECTED'}, sees ${count(sum(values('erp_bus_nodes')))} nodes, ${count(sum(values('erp_bus_refused_total')))} packets refused`,
    ],
    [
      'calls',
      `${count(calls)} answered, ${count(sum(values('erp_action_calls_total', 'outcome="failed"')))} failed, p99 ${quantile(text, 'erp_action_duration_seconds', 0.99)}`,
    ],
  ];
  if (services.includes('gateway'))
    rows.push([
      'requests',
      `${count(requests)} answered, ${count(sum(values('erp_http_requests_total', 'status="5')))} with 5xx, ` +
        `${count(sum(values('erp_rate_limit_refusals_total')))} refused by limits, p99 ${quantile(text, 'erp_http_request_duration_seconds', 0.99)}`,
    ]);
  if (values('erp_job_runs_total').length > 0)
    rows.push([
      'jobs',
      `${count(sum(values('erp_job_runs_total', 'outcome="done"')))} rounds, ${count(sum(values('erp_job_runs_total', 'outcome="failed"')))} failed, ` +
        `the oldest waits ${since(Math.max(0, ...values('erp_job_oldest_waiting_seconds')))}, ${count(sum(values('erp_job_dead_letters')))} dead`,
    ]);
  if (values('erp_deployments_oldest_seconds').length > 0)
    rows.push([
      'deployments',
      `${count(sum(values('erp_deployments_open')))} open, the oldest for ${since(sum(values('erp_deployments_oldest_seconds')))}`,
    ]);
  return [`${node} (${services.join(', ')})`, ...rows.map(([name, value]) => `  ${name.padEnd(12)} ${value}`)].join(
    '\n',
  );
}

/**
 * Numbers of all processes, of one, or of those of a service. `pattern`: the lines of the text format that have it in
 * their name.
 */
export async function numbers(
  broker: ServiceBroker,
  name: string | undefined,
  pattern: string | undefined,
): Promise<string> {
  const parts = await Promise.all(
    chosen(broker, name).map(async (process) => {
      const state = await ask(broker, process).catch((error: Error) => error);
      if (state instanceof Error) return `${process.node}: does not answer: ${state.message}`;
      if (pattern === undefined) return glance(process, state);
      const lines = state.metrics
        .split('\n')
        .filter((line) => !line.startsWith('#') && (line.split(/[{ ]/, 1)[0] ?? '').includes(pattern));
      return [process.node, ...lines.map((line) => `  ${line}`)].join('\n');
    }),
  );
  return parts.join('\n') || 'No process of the platform can be seen.';
}
