/** One bounded run of wrk over a set of requests, and CPU time of process trees from /proc. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf } from '../lib/errors/thrown.ts';

/** The id of a process that was started. Throws when it could not be. */
export function pidOf({ pid, spawnfile }: ChildProcess): number {
  if (pid === undefined) throw new Error(`${spawnfile} could not be started.`);
  return pid;
}

export interface LoadRequest {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  /** `__N__` in path, headers or body becomes a number that is unique in the run. */
  body?: string;
}

/** A request as it is sent, with `n` as its number. */
export function numbered({ method = 'GET', path, headers = {}, body }: LoadRequest, n: number) {
  const withNumber = (text: string): string => text.replaceAll('__N__', String(n));
  return {
    method,
    path: withNumber(path),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, withNumber(value)])),
    ...(body === undefined ? {} : { body: withNumber(body) }),
  };
}

export interface LoadResult {
  requests: number;
  rps: number;
  p50: number;
  p99: number;
  bytesPerRequest: number;
  errors: number;
}

export function ensureWrk(): void {
  try {
    execFileSync('wrk', ['--version'], { stdio: 'ignore' });
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') return; // wrk answers --version with exit code 1
    if (process.getuid?.() !== 0) throw new Error('Install wrk first (Debian: apt-get install wrk).');
    execFileSync('apt-get', ['install', '-y', '-qq', 'wrk'], { stdio: 'ignore' });
  }
}

const lua = (text: string): string => `"${text.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n').replace(/\r/g, '\\r')}"`;

export async function runLoad(
  baseUrl: string,
  requests: readonly LoadRequest[],
  connections: number,
  seconds: number,
): Promise<LoadResult> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  const script = join(folder, 'load.lua');
  const specs = requests.map(
    (r) =>
      `{${lua(r.method ?? 'GET')},${lua(r.path)},{${Object.entries(r.headers ?? {})
        .map(([k, v]) => `[${lua(k)}]=${lua(v)}`)
        .join(',')}},${r.body === undefined ? 'nil' : lua(r.body)}}`,
  );
  const unique = JSON.stringify(requests).includes('__N__');
  writeFileSync(
    script,
    `local specs = {${specs.join(',\n')}}
local ready, i, n = {}, 0, ${Date.now()} * 1000
function init() ${unique ? '' : 'for k, s in ipairs(specs) do ready[k] = wrk.format(s[1], s[2], s[3], s[4]) end'} end
function request()
  i = i + 1; if i > #specs then i = 1 end
  ${
    unique
      ? `n = n + 1
  local s, number, headers = specs[i], string.format("%d", n), {}
  for k, v in pairs(s[3]) do headers[k] = v:gsub("__N__", number) end
  return wrk.format(s[1], (s[2]:gsub("__N__", number)), headers, s[4] and (s[4]:gsub("__N__", number)))`
      : 'return ready[i]'
  }
end
function done(summary, latency)
  local e = summary.errors
  print(string.format('@@{"requests":%d,"us":%d,"bytes":%d,"p50":%d,"p99":%d,"errors":%d}', summary.requests, summary.duration, summary.bytes,
    latency:percentile(50), latency:percentile(99), e.status + e.connect + e.read + e.write + e.timeout))
end`,
  );
  try {
    const child = spawn('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '20s', '-s', script, baseUrl]);
    let text = '';
    child.stdout.on('data', (chunk) => {
      text += chunk;
    });
    child.stderr.on('data', (chunk) => {
      text += chunk;
    });
    await new Promise((resolve, reject) => {
      child.on('exit', resolve);
      child.on('error', reject);
    });
    const [, found] = /@@(\{.*\})/.exec(text) ?? [];
    if (found === undefined) throw new Error(`wrk gave no result: ${text.slice(0, 400)}`);
    const raw: {
      requests: number;
      us: number;
      bytes: number;
      p50: number;
      p99: number;
      errors: number;
    } = JSON.parse(found);
    return {
      requests: raw.requests,
      rps: raw.requests / (raw.us / 1e6),
      p50: raw.p50 / 1000,
      p99: raw.p99 / 1000,
      bytesPerRequest: raw.requests ? Math.round(raw.bytes / raw.requests) : 0,
      errors: raw.errors,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function stat(pid: number): { parent: number; seconds: number } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const f = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { parent: Number(f[1]), seconds: (Number(f[11]) + Number(f[12]) + Number(f[13]) + Number(f[14])) / 100 };
  } catch {
    return null;
  }
}

/** CPU seconds of these processes and all their children so far. */
export function cpuSeconds(roots: readonly number[]): number {
  const all = new Map(
    readdirSync('/proc')
      .filter((d) => /^\d+$/.test(d))
      .flatMap((d) => {
        const s = stat(Number(d));
        return s ? [[Number(d), s] as const] : [];
      }),
  );
  const inTree = (pid: number): boolean => {
    for (let p: number | undefined = pid; p; p = all.get(p)?.parent) if (roots.includes(p)) return true;
    return false;
  };
  let sum = 0;
  for (const [pid, s] of all) if (inTree(pid)) sum += s.seconds;
  return sum;
}
