/**
 * Effect of one tenant's extreme load on another: `node bench/neighbors.ts [--base-url http://localhost:3000]
 * [--seconds 60] [--attackers 2]`. Against a running instance with the demo tenants: the second tenant asks for a list
 * ten times a second, first alone, then while processes of the first tenant throw the inputs of the stall suite at the
 * instance, four at a time each. Prints the percentiles of both and their ratio.
 */
import { fork } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { signIn } from '../scripts/sign-in.ts';
import { HOSTILE_TEXTS } from '../test/support/hostile.ts';
import { HOSTILE_METADATA } from '../test/support/hostile-metadata.ts';

const { values: options } = parseArgs({
  options: {
    'base-url': { type: 'string', default: 'http://localhost:3000' },
    seconds: { type: 'string', default: '60' },
    attackers: { type: 'string', default: '2' },
    attack: { type: 'boolean', default: false },
  },
});
const BASE_URL = options['base-url'];
const SECONDS = Number(options.seconds);
const AT_ONCE = 4;
const EVERY_MS = 100;
const LIST = '/data/User?take=50';
const PASSWORD = process.env['DEMO_PASSWORD'] || 'demo-password';

const tokenOf = async (user: string): Promise<string> =>
  (await signIn({ baseUrl: BASE_URL, user, password: PASSWORD })).access_token;

/** The worst that one process can do in that time; prints how often each status answered. */
async function attack(): Promise<void> {
  const authorization = `Bearer ${await tokenOf('ada@demo.example')}`;
  const requests = [...HOSTILE_TEXTS, ...HOSTILE_METADATA].map((generate) => generate());
  const statuses: Record<string, number> = {};
  const end = performance.now() + SECONDS * 1_000;
  let next = Math.floor(Math.random() * requests.length);
  const worker = async (): Promise<void> => {
    while (performance.now() < end) {
      const request = requests[next++ % requests.length]!;
      const status = await fetch(`${BASE_URL}/api/v1${request.path}`, {
        method: request.method,
        headers: { authorization, ...request.headers },
        body: request.body,
      }).then(
        async (response) => {
          await response.arrayBuffer();
          return response.status;
        },
        () => 'lost',
      );
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  console.log('attacker', JSON.stringify(statuses));
}

/** Milliseconds of each list, sorted; one begins every 100 ms, whether or not those before have been answered. */
async function lists(authorization: string, seconds: number): Promise<{ times: number[]; failed: number }> {
  const times: number[] = [];
  let failed = 0;
  const asked: Promise<void>[] = [];
  for (let n = 0; n < (seconds * 1_000) / EVERY_MS; n++) {
    const begun = performance.now();
    asked.push(
      fetch(`${BASE_URL}/api/v1${LIST}`, { headers: { authorization } }).then(
        async (response) => {
          await response.arrayBuffer();
          if (response.status !== 200) failed++;
          times.push(performance.now() - begun);
        },
        () => {
          failed++;
        },
      ),
    );
    await pause(EVERY_MS);
  }
  await Promise.all(asked);
  return { times: times.sort((a, b) => a - b), failed };
}

const percentile = (times: readonly number[], share: number): number => times[Math.floor(times.length * share)] ?? 0;

async function measure(): Promise<void> {
  const authorization = `Bearer ${await tokenOf('eve@acme.example')}`;
  await lists(authorization, 3); // warm
  const quiet = await lists(authorization, Math.min(SECONDS, 20));
  const attackers = Array.from({ length: Number(options.attackers) }, () =>
    fork(fileURLToPath(import.meta.url), ['--attack', '--base-url', BASE_URL, '--seconds', String(SECONDS)]),
  );
  // They stand for other machines, which take no processor from the platform.
  for (const { pid } of attackers) if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_LOW);
  const ended = Promise.all(attackers.map((child) => new Promise((resolve) => child.once('exit', resolve))));
  const busy = await lists(authorization, SECONDS);
  await ended;
  for (const [name, { times, failed }] of Object.entries({ alone: quiet, attacked: busy })) {
    const [p50, p99, most] = [0.5, 0.99, 0.9999].map((share) => percentile(times, share).toFixed(1));
    console.log(
      `${name.padEnd(8)} p50 ${p50} ms, p99 ${p99} ms, longest ${most} ms, ${times.length} lists, ${failed} failed`,
    );
  }
  console.log(`p99 ratio ${(percentile(busy.times, 0.99) / percentile(quiet.times, 0.99)).toFixed(1)}`);
}

await (options.attack ? attack() : measure());
