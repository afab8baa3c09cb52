import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../../support/client.ts';
import {
  HOSTILE_BODIES,
  HOSTILE_CONFIGURATION,
  HOSTILE_YAML,
  type HostileGenerator,
} from '../../support/hostile-metadata.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

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
    for (const generator of generators) {
      const { name, method, path, headers, body } = generator();
      const options = { headers: { ...headers }, idempotencyKey: null };
      const { status, text } = await ada.send(method, path, body, options);
      assert.ok(status < 500, `${name}: ${status} ${text.slice(0, 500)}`);
    }
  };

  it('is answered when it is YAML', () => throwAll(HOSTILE_YAML));
  it('is answered when it is configuration', () => throwAll(HOSTILE_CONFIGURATION));
  it('is answered when it is a body', () => throwAll(HOSTILE_BODIES));
});
