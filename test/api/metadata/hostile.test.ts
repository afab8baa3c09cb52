import assert from 'node:assert/strict';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type Api, api, tokenFor } from '../../support/client.ts';
import {
  HOSTILE_BODIES,
  HOSTILE_CONFIGURATION,
  HOSTILE_YAML,
  type HostileGenerator,
} from '../../support/hostile-metadata.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

/** In this process, which is platform and caller at once. */
const STALL_MAX_MS = 250;

describe('API: metadata that is made to cost much', function () {
  this.timeout(300_000);
  let platform: TestPlatform;
  let ada: Api;
  before(async () => {
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
  });
  after(() => platform?.stop());

  const throwAll = async (generators: readonly HostileGenerator[]): Promise<void> => {
    const stalls: string[] = [];
    for (const generator of generators) {
      const { name, method, path, headers, body } = generator();
      const options = { headers: { ...headers }, idempotencyKey: null };
      await new Promise((resolve) => setTimeout(resolve, 20));
      const watch = monitorEventLoopDelay({ resolution: 10 });
      watch.enable();
      const { status, text } = await ada.send(method, path, body, options);
      await new Promise((resolve) => setTimeout(resolve, 20));
      watch.disable();
      const worst = Math.round(watch.max / 1e6);
      if (process.env['DEBUG_STALLS']) console.log(`${worst} ms ${name} ${status}`);
      assert.ok(status < 500, `${name}: ${status} ${text.slice(0, 500)}`);
      if (worst > STALL_MAX_MS) stalls.push(`${name}: ${worst} ms`);
    }
    assert.deepEqual(stalls, []);
  };

  it('is answered when it is YAML', () => throwAll(HOSTILE_YAML));
  it('is answered when it is configuration', () => throwAll(HOSTILE_CONFIGURATION));
  it('is answered when it is a body', () => throwAll(HOSTILE_BODIES));
});
