/** Events and their deliveries, held against the libraries of their specifications. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { tool } from '../../support/tools.ts';
import { until } from '../../support/until.ts';

const { CloudEvent } = await import(tool('cloudevents', 'dist', 'index.js'));
const { Webhook } = await import(tool('standardwebhooks', 'dist', 'index.js'));

describe('events for the libraries of their specifications', function () {
  this.timeout(90_000);
  let platform: TestPlatform;
  let server: Server;
  let host: string;
  let ada: Api;
  const received: { readonly headers: Record<string, string>; readonly text: string }[] = [];
  before(async () => {
    server = createServer(async (request, response) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      received.push({ headers: request.headers as Record<string, string>, text });
      response.writeHead(204).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    platform = await startPlatform({ env: { WEBHOOK_PRIVATE_HOSTS: host } });
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
  });
  after(async () => {
    await platform?.stop();
    server?.close();
  });

  it('are CloudEvents 1.0, and signed by Standard Webhooks 1.0', async () => {
    const made = await ada.post('/events/subscriptions', {
      name: 'Libraries',
      url: `http://${host}/`,
      eventTypes: ['data.record.created'],
      payload: 'full',
    });
    const { body: record } = await ada.post('/data/Account', { name: `Library ${randomUUID()}` });
    await until(() => received.length > 0);
    const [{ headers, text }] = received as [(typeof received)[number]];
    const event = new Webhook(made.body.secret).verify(text, headers) as { data: { id: string } };
    assert.equal(event.data.id, record.id);
    assert.throws(() => new Webhook(made.body.secret).verify(`${text} `, headers));
    const { oldestCursor } = (await ada.get('/events')).body;
    const { records } = (await ada.get(`/events?payload=full&take=500&cursor=${oldestCursor}`)).body;
    assert.ok(records.length > 1);
    for (const one of records) assert.ok(new CloudEvent(one).validate());
  });
});
