/**
 * Blobs as objects of a bucket. What is longer than one part is a multipart upload, which becomes an object when it is
 * completed: a process that is killed leaves an upload that no key leads to, and that a rule of the bucket ends
 * (docs/reference/configuration.md).
 */
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  NoSuchKey,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { S3Config } from '../../config/files.ts';
import { type Blobs, blobMissing, checkKey, type Download, newBlobKey, ofStore, type Range } from './blobs.ts';

/** S3 takes no smaller part but the last, and at most 10,000 parts. A write holds one part in memory. */
const PART_BYTES = 5 * 1024 * 1024;
const CONNECT_MS = 5_000;
/** Time limit of each attempt. */
const ANSWER_MS = 30_000;
/** Time limit of a read until its first byte, in each attempt, and from one to the next: a request can say in time that the store is away. */
const READ_ANSWER_MS = 10_000;
const ATTEMPTS = 2;

export class S3Blobs implements Blobs {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #redirects: boolean;

  constructor({ bucket, prefix, endpoint, region, redirects }: S3Config) {
    this.#bucket = bucket;
    this.#prefix = prefix;
    this.#redirects = redirects;
    this.#client = new S3Client({
      ...(region === null ? {} : { region }),
      ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
      maxAttempts: ATTEMPTS,
      // Other servers than Amazon's do not know the newer checksums.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      // Without throwOnRequestTimeout the handler only warns.
      requestHandler: {
        connectionTimeout: CONNECT_MS,
        requestTimeout: ANSWER_MS,
        throwOnRequestTimeout: true,
        socketTimeout: ANSWER_MS,
      },
    });
  }

  newKey(folder: string): string {
    return newBlobKey(folder);
  }

  async write(key: string, source: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
    const options = signal ? { abortSignal: signal } : {};
    const at = this.#at(key);
    const parts: CompletedPart[] = [];
    let UploadId: string | undefined;
    try {
      for await (const [Body, isLast] of partsOf(source)) {
        if (isLast && UploadId === undefined) {
          await ofStore(this.#client.send(new PutObjectCommand({ ...at, Body }), options), signal);
          return;
        }
        UploadId ??= (await ofStore(this.#client.send(new CreateMultipartUploadCommand(at), options), signal)).UploadId;
        const part = { ...at, UploadId, PartNumber: parts.length + 1 };
        const { ETag } = await ofStore(this.#client.send(new UploadPartCommand({ ...part, Body }), options), signal);
        parts.push({ ETag, PartNumber: part.PartNumber });
      }
      const complete = { ...at, UploadId, MultipartUpload: { Parts: parts } };
      await ofStore(this.#client.send(new CompleteMultipartUploadCommand(complete), options), signal);
    } catch (error) {
      if (UploadId !== undefined)
        await this.#client.send(new AbortMultipartUploadCommand({ ...at, UploadId })).catch(() => {});
      throw error;
    }
  }

  async read(key: string, { from, bytes }: Range): Promise<AsyncIterable<Uint8Array>> {
    const range = { ...this.#at(key), Range: `bytes=${from}-${from + bytes - 1}` };
    try {
      const { Body } = await this.#client.send(new GetObjectCommand(range), { requestTimeout: READ_ANSWER_MS });
      if (!(Body instanceof Readable)) throw new Error('Assertion failed: Node gets bodies as streams');
      return untilItStops(Body);
    } catch (error) {
      throw error instanceof NoSuchKey ? blobMissing(key, error) : await ofStore(Promise.reject(error));
    }
  }

  async remove(key: string): Promise<void> {
    await ofStore(this.#client.send(new DeleteObjectCommand(this.#at(key))));
  }

  async signedUrl(key: string, { contentType, disposition, validSeconds }: Download): Promise<string | null> {
    if (!this.#redirects) return null;
    const command = new GetObjectCommand({
      ...this.#at(key),
      ResponseContentType: contentType,
      ResponseContentDisposition: disposition,
      ResponseCacheControl: 'private, no-store',
    });
    // Signing sends no request to the store; credentials that have expired are renewed.
    return ofStore(getSignedUrl(this.#client, command, { expiresIn: validSeconds }));
  }

  #at(key: string): { Bucket: string; Key: string } {
    checkKey(key);
    return { Bucket: this.#bucket, Key: this.#prefix + key };
  }
}

/** The chunks of a body. Fails when the store sends nothing for long while one is awaited: who reads holds a place meanwhile. */
async function* untilItStops(body: Readable): AsyncGenerator<Uint8Array> {
  const chunks: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const timer = setTimeout(
        () => body.destroy(new Error('The store has stopped in the middle of a content.')),
        READ_ANSWER_MS,
      );
      const next = await chunks.next().finally(() => clearTimeout(timer));
      if (next.done) return;
      yield next.value;
    }
  } finally {
    body.destroy();
  }
}

/**
 * The bytes in parts of equal length; the last one, which may be empty, says so. All parts share one buffer: a part is valid
 * until the next one is asked for.
 */
async function* partsOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<[part: Buffer, isLast: boolean]> {
  const part = Buffer.allocUnsafe(PART_BYTES);
  let length = 0;
  for await (const chunk of source)
    for (let at = 0; at < chunk.length; ) {
      // A full part is kept until it is certain that it is not the last.
      if (length === PART_BYTES) {
        yield [part, false];
        length = 0;
      }
      const taken = Math.min(PART_BYTES - length, chunk.length - at);
      part.set(chunk.subarray(at, at + taken), length);
      at += taken;
      length += taken;
    }
  yield [part.subarray(0, length), true];
}
