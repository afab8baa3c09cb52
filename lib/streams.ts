/**
 * Messages between gateway and service about bytes that do not travel over the bus. For a streamed body the service is called
 * twice: first it names the key for the bytes, or answers at once; when they are stored, or could not be, it is called with the
 * outcome and concludes in its transaction. Reasons: docs/decisions/bytes-beside-the-bus.md.
 */
import type { ErrorCode } from './errors/catalogue.ts';

export interface StreamedBody {
  /** As the client sent it. */
  readonly contentType: string | null;
  /** Content-Length; null: not declared. */
  readonly bytes: number | null;
  /** SHA-256 in lower-case hex, from Content-Digest, which mutations require; null: not declared. */
  readonly sha256: string | null;
  /** Absent in the first call. */
  readonly received?: ReceivedBlob | FailedBlob;
}

/** The destination of the bytes: a new key, which the service has noted, and their maximum length. */
export interface ReceiveOrder {
  readonly key: string;
  readonly maxBytes: number;
  /** The bytes are a piece of a larger content, whose SHA-256 is wanted as well. */
  readonly continues?: PieceOf;
}

/** The blob is stored, and has the declared digest. */
interface ReceivedBlob {
  readonly key: string;
  readonly bytes: number;
  readonly sha256: string;
  /** SHA-256 of the larger content up to the end of this piece; null: not wanted, or another process received earlier pieces. */
  readonly wholeSha256: string | null;
}

/** The position of a piece in a content that arrives in several. */
export interface PieceOf {
  readonly id: string;
  /** Bytes of the pieces before. */
  readonly from: number;
}

/** The blob was not stored, as far as is known. The gateway does not wait for the answer to this. */
interface FailedBlob {
  readonly key: string;
  /** The store had all bytes and did not say what became of them, so that they may be there, or come yet. */
  readonly mayBeStored: boolean;
  /** null: the client has gone. */
  readonly failed: ErrorCode | null;
}

/** The first bytes of a blob. */
export interface BlobPart {
  readonly key: string;
  readonly bytes: number;
}

/** An answer that is the content of blobs, one after the other. */
export interface FileContent {
  readonly parts: readonly BlobPart[];
  /** SHA-256 of all of it in lower-case hex. */
  readonly sha256: string;
  readonly contentType: string;
}

/** Instead of an answer that is empty: the gateway asks again when one of the topics is woken, and at last after `seconds`. */
export interface WaitOrder {
  readonly seconds: number;
  readonly cursor: string;
  readonly topics: readonly string[];
}

/** A page of a stream of events. */
export interface EventPage {
  /** `data` is the text of the event, in one line. */
  readonly events: readonly { readonly id: string; readonly type: string; readonly data: string }[];
  /** The start of the next page; the service gets it as Last-Event-ID, as it does from a client that reconnects. */
  readonly cursor: string;
  /** The next page is read when one of these is woken (`gateway.streams.wake`). */
  readonly topics: readonly string[];
  /** The next page is not empty, and is read at once. */
  readonly more: boolean;
}
