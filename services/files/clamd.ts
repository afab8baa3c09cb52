/** Asks clamd whether bytes are harmful: its command INSTREAM, over TCP or a socket in the file system. */
import { connect, type NetConnectOpts } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** Time without a byte in either direction; large archives take clamd some time. */
const IDLE_MS = 600_000;

/** `unscanned`: the content is larger than clamd accepts (StreamMaxLength). */
type Verdict = 'clean' | 'harmful' | 'unscanned';

export async function askClamd(address: NetConnectOpts, source: AsyncIterable<Uint8Array>): Promise<Verdict> {
  const socket = connect(address);
  let reply = '';
  socket.setEncoding('latin1').setTimeout(IDLE_MS, () => socket.destroy(new Error('clamd does not answer.')));
  socket.on('data', (text: string) => {
    reply += text;
  });
  const closed = new Promise<Error | null>((resolve) => {
    let failure: Error | null = null;
    socket.on('error', (error) => {
      failure = error;
    });
    socket.on('close', () => resolve(failure));
  });
  const failed = await pipeline(Readable.from(framed(source)), socket, { end: false }).then(
    () => null,
    (error: unknown) => error,
  );
  const lost = await closed;
  // clamd closes early when the content is too large, so the reply counts before the failed write.
  if (/^(?:stream: )?.*INSTREAM size limit exceeded/i.test(reply)) return 'unscanned';
  const verdict = /^stream: (?:(OK)|.{1,500} FOUND)\0?$/.exec(reply.trimEnd());
  if (!failed && verdict) return verdict[1] ? 'clean' : 'harmful';
  throw failed ?? lost ?? new Error(`clamd answered ${JSON.stringify(reply.slice(0, 200))}.`);
}

async function* framed(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield Buffer.from('zINSTREAM\0');
  for await (const chunk of source) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(chunk.length);
    yield length;
    yield chunk;
  }
  yield Buffer.alloc(4);
}
