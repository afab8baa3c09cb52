/**
 * The token by which a caller says: I was shown these matches, store it all the same. Sealed, so that no caller can forge or
 * reads it; bound to tenant, user and client, to operation, record and body, and to the matches; good once, for 15
 * minutes. Source: docs/reference/duplicates.md#confirming.
 */

import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { uuidv7 } from '../../../lib/values/ids.ts';
import { type Seal, sealed, sealFor, unsealed } from '../../../lib/values/sealed.ts';
import type { Confirmation, ConfirmedMatches, ReportedMatches, Write } from './write.ts';

const VALID_MS = 15 * 60 * 1000;
const PREFIX = 'dct_';
const PURPOSE = 'duplicate confirmation';

interface Payload extends ConfirmedMatches {
  /** Its id: each is used once. */
  readonly i: string;
  /** End of validity, milliseconds since 1970. */
  readonly e: number;
  /** Hash of the request it belongs to. */
  readonly r: string;
}

const short = (...parts: readonly string[]): string => hash('sha256', parts.join('\n'), 'base64url').slice(0, 12);

const sealOf = ({ deps, unit: { request } }: Write, now: number): Seal => sealFor(request, deps.sealingKeys, now);

/** Operation, address, record and body: what the confirmed request must have in common with the refused one. */
function requestOf({ call, object, id, recordVersion, mutation, unit, ownRequest }: Write): string {
  // A transition and what it creates are one request, which its address names.
  const whole = (unit.key.part && !ownRequest) || mutation === 'transition';
  const record = whole || recordVersion === 0 ? null : id;
  return short(
    canonicalize([call.operationId, whole ? null : object.apiName, call.path, record, call.body ?? null]) ?? '',
  );
}

/**
 * `earlier` is the confirmation that the request came with. What it covers stays covered: a transition is refused for
 * one of the records that it stores at a time.
 */
export function sealConfirmation(
  write: Write,
  shown: readonly ReportedMatches[],
  earlier: Confirmation | null = null,
): { token: string; expiresAt: Date } {
  const now = platformTime();
  const payload: Payload = {
    i: uuidv7(now),
    e: now + VALID_MS,
    r: requestOf(write),
    m: [
      ...new Set([
        ...(earlier?.shown.m ?? []),
        ...shown.flatMap(({ ruleApiName, ids }) => [short(ruleApiName), ...ids.map((id) => short(ruleApiName, id))]),
      ]),
    ],
    h: {
      ...earlier?.shown.h,
      ...Object.fromEntries(
        shown
          .filter((rule) => rule.hiddenMatchCount > 0)
          .map((rule) => [short(rule.ruleApiName), rule.hiddenMatchCount]),
      ),
    },
  };
  return { token: PREFIX + sealed(payload, sealOf(write, now), PURPOSE), expiresAt: new Date(payload.e) };
}

/**
 * @throws PlatformError 400 CONFIRMATION_TOKEN_INVALID: not ours, altered, expired, or of another request or caller.
 */
export function openConfirmation(write: Write, token: string): Confirmation {
  const now = platformTime();
  const payload = token.startsWith(PREFIX)
    ? unsealed<Payload>(token.slice(PREFIX.length), sealOf(write, now), PURPOSE)
    : null;
  if (payload === null || payload.e <= now || payload.r !== requestOf(write)) throw invalidConfirmation();
  const known = new Set(payload.m);
  return {
    id: payload.i,
    expiresAt: new Date(payload.e),
    shown: payload,
    covers: (found) =>
      found.every(
        ({ ruleApiName, ids, hiddenMatchCount }) =>
          known.has(short(ruleApiName)) &&
          ids.every((id) => known.has(short(ruleApiName, id))) &&
          hiddenMatchCount <= (payload.h[short(ruleApiName)] ?? 0),
      ),
  };
}

/** One answer for everything that can be wrong with a token: it says nothing about whose it is. */
export function invalidConfirmation(): PlatformError {
  const message = 'The duplicate confirmation is not valid for this request, has expired or was used before.';
  return new PlatformError('CONFIRMATION_TOKEN_INVALID', message, {
    errors: [violation('header:X-Duplicate-Confirmation', 'CONFIRMATION_TOKEN_INVALID', message)],
  });
}
