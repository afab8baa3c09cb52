/** Delivers an event to a program on this machine as the platform delivers webhooks: docs/reference/webhooks.md. */
import { createHmac, randomBytes } from 'node:crypto';
import type { CloudEvent } from '../../contracts/events.ts';
import { networkFailure } from '../http/transport.ts';

export interface Outcome {
  /** Status of the answer; null: there was none. */
  readonly status: number | null;
  readonly latencyMs: number;
  readonly failure: string | null;
}

const ANSWER_MAX_MS = 15_000;
const SECRET_BYTES = 32;

/** A signing secret of Standard Webhooks 1.0: `whsec_` and Base64. */
export const newSecret = (): string => `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;

/** Posts the event once, signed with the secret. Never throws for what the receiver does. */
export async function forward(url: URL, secret: string, event: CloudEvent): Promise<Outcome> {
  const body = JSON.stringify(event);
  const seconds = Math.floor(Date.now() / 1_000);
  const began = performance.now();
  const outcome = (status: number | null, failure: string | null): Outcome => ({
    status,
    latencyMs: Math.round(performance.now() - began),
    failure,
  });
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/cloudevents+json',
        'webhook-id': event.id,
        'webhook-timestamp': String(seconds),
        'webhook-signature': signature(secret, `${event.id}.${seconds}.${body}`),
      },
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_MAX_MS),
    });
    await response.body?.cancel();
    return outcome(response.status, response.ok ? null : `The receiver answered ${response.status}.`);
  } catch (error) {
    return outcome(null, networkFailure(error, url, ANSWER_MAX_MS).message);
  }
}

function signature(secret: string, text: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return `v1,${createHmac('sha256', key).update(text).digest('base64')}`;
}
