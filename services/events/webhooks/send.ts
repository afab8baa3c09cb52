/** One attempt to deliver an event to its receiver. */
import type { DeliveryAttempt } from '../../../contracts/events.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { type GuardedFetch, HostBusyError, OutboundError } from '../../../mixins/outbound.ts';
import { signedHeaders } from './signature.ts';

const ANSWER_MAX_SECONDS = 15;
const ANSWER_HEAD_BYTES = 4 * 1024;
const HEAD_MAX_CHARS = 500;
/** Many subscriptions may have the same host. */
const PLACE_WAIT_MS = 500;

interface Sent {
  /** null: it was not made, because too many requests to the host are under way. */
  readonly attempt: DeliveryAttempt | null;
  readonly delivered: boolean;
  /** The receiver wants nothing more. */
  readonly gone: boolean;
  readonly retryAfter: string | null;
}

/** `id` is that of the event: a receiver tells by it what it has had before. */
export async function send(
  outbound: GuardedFetch,
  url: string,
  secrets: readonly string[],
  { id, body }: { readonly id: string; readonly body: string },
): Promise<Sent> {
  const now = platformTime();
  const began = performance.now();
  const headers = {
    ...signedHeaders(secrets, { id, seconds: Math.floor(now / 1_000), body }),
    'content-type': 'application/cloudevents+json',
    'user-agent': 'erp-webhooks/1.0',
  };
  const attempt = (status: number | null, responseHead: string | null, failure: string | null): DeliveryAttempt => ({
    at: new Date(now).toISOString(),
    status,
    latencyMs: Math.round(performance.now() - began),
    responseHead,
    failure,
  });
  try {
    const bounds = { maxSeconds: ANSWER_MAX_SECONDS, headBytes: ANSWER_HEAD_BYTES, waitMs: PLACE_WAIT_MS, keeps: true };
    const answer = await outbound(url, { method: 'POST', headers, body, ...bounds }, url);
    const text = (await answer.text()).slice(0, HEAD_MAX_CHARS).replaceAll('\u0000', '').toWellFormed();
    const delivered = answer.status >= 200 && answer.status < 300;
    const failure = delivered ? null : `The receiver answered ${answer.status}.`;
    return {
      attempt: attempt(answer.status, text, failure),
      delivered,
      gone: answer.status === 410,
      retryAfter: answer.headers.get('retry-after'),
    };
  } catch (error) {
    if (error instanceof HostBusyError) return { attempt: null, delivered: false, gone: false, retryAfter: null };
    if (!(error instanceof OutboundError)) throw error;
    return { attempt: attempt(null, null, error.message), delivered: false, gone: false, retryAfter: null };
  }
}
