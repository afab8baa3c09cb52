/** A collector of traces that keeps what it is sent: OTLP over HTTP in protobuf, read as far as tests look at it. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

export interface RecordedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first of a trace. */
  readonly parentId: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  /** Milliseconds since 1970. */
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly failed: boolean;
  /** `service.name`. */
  readonly service: string;
  readonly resource: Readonly<Record<string, unknown>>;
}

export interface Collector {
  readonly url: string;
  readonly spans: RecordedSpan[];
  readonly headers: Record<string, unknown>[];
  /** Everything that was sent, as text: what must not be in it. */
  text(): string;
  stop(): Promise<void>;
}

type Fields = ReadonlyMap<number, readonly (Buffer | bigint)[]>;

function fieldsOf(message: Buffer): Fields {
  const fields = new Map<number, (Buffer | bigint)[]>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const number = tag >> 3;
    const type = tag & 7;
    let value: Buffer | bigint;
    if (type === 0) value = varint();
    else if (type === 1) {
      value = message.readBigUInt64LE(at);
      at += 8;
    } else if (type === 5) {
      value = BigInt(message.readUInt32LE(at));
      at += 4;
    } else {
      const length = Number(varint());
      value = message.subarray(at, (at += length));
    }
    fields.set(number, [...(fields.get(number) ?? []), value]);
  }
  return fields;
}

const bytes = (fields: Fields, number: number): Buffer[] => (fields.get(number) ?? []) as Buffer[];
const text = (fields: Fields, number: number): string => bytes(fields, number)[0]?.toString() ?? '';
const hex = (fields: Fields, number: number): string => bytes(fields, number)[0]?.toString('hex') ?? '';
const milliseconds = (fields: Fields, number: number): number =>
  Number(((fields.get(number) ?? [0n])[0] as bigint) / 1_000n) / 1_000;

function attributesOf(entries: Buffer[]): Record<string, unknown> {
  return Object.fromEntries(
    entries.map((entry) => {
      const pair = fieldsOf(entry);
      const value = fieldsOf(bytes(pair, 2)[0]!);
      const [[number, [raw]] = [0, []]] = [...value] as [number, (Buffer | bigint)[]][];
      return [text(pair, 1), Buffer.isBuffer(raw) ? raw.toString() : number === 2 ? raw === 1n : Number(raw)];
    }),
  );
}

function spansOf(request: Buffer): RecordedSpan[] {
  return bytes(fieldsOf(request), 1).flatMap((part) => {
    const of = fieldsOf(part);
    const resource = attributesOf(bytes(fieldsOf(bytes(of, 1)[0]!), 1));
    return bytes(of, 2)
      .flatMap((scope) => bytes(fieldsOf(scope), 2))
      .map((one): RecordedSpan => {
        const span = fieldsOf(one);
        const status = bytes(span, 15)[0];
        return {
          traceId: hex(span, 1),
          spanId: hex(span, 2),
          parentId: hex(span, 4),
          name: text(span, 5),
          kind: Number(span.get(6)?.[0] ?? 0),
          start: milliseconds(span, 7),
          end: milliseconds(span, 8),
          attributes: attributesOf(bytes(span, 9)),
          failed: status !== undefined && fieldsOf(status).get(3)?.[0] === 2n,
          service: String(resource['service.name']),
          resource,
        };
      });
  });
}

/** Listens on a free port, or on `port`. */
export async function startCollector(port = 0): Promise<Collector> {
  const spans: RecordedSpan[] = [];
  const headers: Record<string, unknown>[] = [];
  const bodies: Buffer[] = [];
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const sent = Buffer.concat(chunks);
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
    if (request.url === '/v1/traces') {
      headers.push(request.headers);
      bodies.push(body);
      spans.push(...spansOf(body));
    }
    response.writeHead(request.url === '/v1/traces' ? 200 : 404, { 'content-type': 'application/x-protobuf' }).end();
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    headers,
    text: () => Buffer.concat(bodies).toString('latin1'),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
