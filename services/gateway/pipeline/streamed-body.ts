/**
 * A body that is streamed: the service says where its bytes go, they are put into the store of blobs as fast as it takes them,
 * and the service concludes. Source: docs/decisions/bytes-beside-the-bus.md.
 */
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { tooLarge } from '../../../lib/errors/too-large.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import type { StreamedBody } from '../../../lib/streams.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { CheckedBytes } from '../../../mixins/blobs/checked-bytes.ts';
import { checkMediaType } from './body.ts';
import type { Call } from './call.ts';
import type { Gate } from './gate.ts';

type Received = NonNullable<StreamedBody['received']>;

/** Step: what can be known of the body before it is received. */
export function checkStreamedBody(_gate: unknown, x: Call): void {
  const { maxBytes = 0, remedy, contentTypes } = x.route.operation.requestBody ?? {};
  if (contentTypes) checkMediaType(x, contentTypes);
  const encoding = x.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (encoding !== 'identity')
    throw new PlatformError(
      'MEDIA_TYPE_UNSUPPORTED',
      'Content-Encoding must be absent: the bytes are kept as they are sent.',
    );
  if (Number(x.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes, remedy);
}

/** `ask` calls the service with what is known of the body. */
export async function moveBody(
  gate: Gate,
  x: Call,
  ask: (body: StreamedBody) => Promise<OperationReply>,
): Promise<OperationReply> {
  const declared = x.asked!.body as StreamedBody;
  const leave = gate.streamedBodies.enter(x);
  try {
    const first = await ask(declared);
    if (!first.receive) return first;
    const { key, continues } = first.receive;
    const maxBytes = Math.min(first.receive.maxBytes, x.route.operation.requestBody!.maxBytes);
    const conclude = (received: Received): Promise<OperationReply> => {
      x.calledAt = platformTime();
      return ask({ ...declared, received });
    };
    const abortion = new AbortController();
    x.abort = (error) => abortion.abort(error);
    const whole = continues ? gate.pieceHashes.take(continues) : null;
    const bytes = new CheckedBytes(x.stream(abortion.signal), { maxBytes, sha256: declared.sha256, whole });
    try {
      await gate.blobs.write(key, bytes, abortion.signal);
    } catch (error) {
      const failed = error instanceof PlatformError ? error.code : null;
      conclude({ key, mayBeStored: bytes.passed, failed }).catch(() => {});
      throw error;
    } finally {
      gate.streamedBodies.bytes += bytes.bytes;
    }
    const wholeSha256 = whole?.copy().digest('hex') ?? null;
    const reply = await conclude({ key, bytes: bytes.bytes, sha256: bytes.sha256, wholeSha256 });
    if (continues && whole) gate.pieceHashes.keep({ id: continues.id, from: continues.from + bytes.bytes }, whole);
    return reply;
  } finally {
    leave();
  }
}
