/** The examples of the documents against a running platform; guides, README and operations have tests of their own. */
import { type Stage, TRIED } from '../support/documented-examples.ts';
import { allExamples } from '../support/examples.ts';
import { type NatsServer, startNats } from '../support/nats.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('the example', function () {
  this.timeout(30_000);
  let nats: NatsServer;
  let platform: TestPlatform;
  let stage: Stage;
  before(async function () {
    this.timeout(120_000);
    nats = await startNats();
    platform = await startPlatform({ natsUrl: nats.url });
    const { baseUrl, broker, database } = platform;
    stage = { baseUrl, broker, databaseUrl: database.url, natsUrl: nats.url };
  });
  after(async () => {
    await platform?.stop();
    await nats?.stop();
  });

  for (const { name, text } of allExamples()) {
    const trial = TRIED[name];
    if (trial)
      it(name, async () => {
        await trial(text, stage);
      });
  }
});
