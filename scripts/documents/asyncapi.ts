/** `asyncapi.json`: the events that the platform sends, in AsyncAPI 3.0, for programs that make types and documents of it. */
import { EVENT_TYPE_NAMES, EVENT_TYPES } from '../../contracts/event-types.ts';
import { CloudEvent } from '../../contracts/events.ts';
import { API_PREFIX, API_VERSION } from '../../lib/addresses.ts';

const CONTENT_TYPE = 'application/cloudevents+json';
const reference = (path: string): { $ref: string } => ({ $ref: `#/${path}` });

/** Without servers: every platform has its own address, and every webhook one of its receiver. */
export function asyncapi(): object {
  const messages = Object.fromEntries(EVENT_TYPE_NAMES.map((type) => [type, reference(`components/messages/${type}`)]));
  const sent = (channel: string, description: string): object => ({
    action: 'send',
    channel: reference(`channels/${channel}`),
    description,
    messages: EVENT_TYPE_NAMES.map((type) => reference(`channels/${channel}/messages/${type}`)),
  });
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'ERP platform events',
      version: API_VERSION,
      description:
        'What happens in a tenant, in the JSON format of CloudEvents 1.0, cut to what the reader may know of. The reference is `reference/events.html`.',
      license: { name: 'Apache-2.0' },
      tags: [{ name: 'events' }],
    },
    defaultContentType: CONTENT_TYPE,
    channels: {
      stream: {
        address: `${API_PREFIX}/events/stream`,
        title: 'Stream',
        description: 'Server-sent events of `events.stream.get`; `events.items.list` answers pages of the same.',
        messages,
      },
      webhook: {
        address: null,
        title: 'Webhook',
        description: 'A POST to the address of a subscription, signed by Standard Webhooks 1.0.',
        messages,
      },
    },
    operations: {
      stream: sent('stream', 'Tells who is connected.'),
      deliver: sent('webhook', 'Tells a receiver, again until it answers 2xx.'),
    },
    components: {
      messages: Object.fromEntries(
        EVENT_TYPE_NAMES.map((type) => [
          type,
          {
            name: type,
            title: type,
            summary: EVENT_TYPES[type]?.summary,
            contentType: CONTENT_TYPE,
            payload: {
              allOf: [
                reference('components/schemas/CloudEvent'),
                {
                  type: 'object',
                  properties: { type: { const: type }, data: reference(`components/schemas/${type}`) },
                },
              ],
            },
          },
        ]),
      ),
      schemas: {
        CloudEvent,
        ...Object.fromEntries(EVENT_TYPE_NAMES.map((type) => [type, { ...EVENT_TYPES[type]?.data, title: type }])),
      },
    },
  };
}
