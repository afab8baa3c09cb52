/**
 * Bytes that no call carries: what gateway and service say to each other about them. About a streamed body the service is
 * called twice. First it says where the bytes go, or answers; when they are there, or have failed, it is called with what became of
 * them, and concludes in its transaction. Reasons: docs/decisions/bytes-beside-the-bus.md.
 */
import type { ErrorCode } from './errors/catalogue.ts';

export interface StreamedBody {
  /** As the client sent it. */
  readonly contentType: string | null;
  /** null: not declared. */
  readonly bytes: number | null;
  /** SHA-256 in lower-case hex, by Content-Digest; null: not declared, which only operations that are no mutation allow. */
  readonly sha256: string | null;
  /** Absent in the first call. */
  readonly received?: ReceivedBlob | FailedBlob;
}

/** The destination of the bytes: a new key, which the service has noted, and the most that it takes. */
export interface ReceiveOrder {
  readonly key: string;
  readonly maxBytes: number;
  /** The bytes go on a content that arrives in pieces, whose SHA-256 is wanted as well. */
  readonly continues?: PieceOf;
}

/** The blob is there, and has the declared digest. */
interface ReceivedBlob {
  readonly key: string;
  readonly bytes: number;
  readonly sha256: string;
  /** Of the content that the bytes go on, up to their end; null: not wanted, or earlier pieces came by another process. */
  readonly wholeSha256: string | null;
}

/** A piece of a content that arrives in several. */
export interface PieceOf {
  readonly id: string;
  /** Bytes of the pieces before. */
  readonly from: number;
}

/** There is no blob; nothing waits for the answer to this. */
interface FailedBlob {
  readonly key: string;
  /** null: the client has gone. */
  readonly failed: ErrorCode | null;
}

/** Some bytes of a blob from its beginning on. */
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

/** A part of a stream of events, which goes on behind it. */
export interface EventPage {
  readonly events: readonly { readonly id: string; readonly type: string; readonly data: unknown }[];
  /** The start of the next page; the service gets it as Last-Event-ID, as it does from a client that reconnects. */
  readonly cursor: string;
  /** The stream is read on when one of these is woken (`gateway.streams.wake`). */
  readonly topics: readonly string[];
  /** More is there now. */
  readonly more: boolean;
}
