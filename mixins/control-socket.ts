/**
 * How an operator reaches a platform that runs in one process without NATS: a Moleculer transporter over a Unix socket
 * in the data folder, which only the owner of the folder may enter. The platform listens, `npm run repl` connects, and
 * both are ordinary nodes of one cluster. The same socket is the lock of the data folder: the process that listens owns
 * it.
 */
import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Transporters } from 'moleculer';

/** Longest path of a Unix socket that every system takes, in bytes. */
const SOCKET_PATH_MAX = 100;
const FRAME_MAX_BYTES = 64 * 1024 * 1024;

/** Path of a data folder's socket; a folder whose path is too long for a socket has it in the temp folder. */
function controlSocketPath(dataDir: string): string {
  const path = join(dataDir, 'control', 'socket');
  if (Buffer.byteLength(path) <= SOCKET_PATH_MAX) return path;
  return join(tmpdir(), `erp-control-${createHash('sha256').update(dataDir).digest('hex').slice(0, 16)}`, 'socket');
}

const dial = (path: string): Promise<Socket | null> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(null));
  });

/** `[length of the rest, 4 bytes][length of the topic, 2 bytes][topic][packet]` */
function frame(topic: string, data: Buffer): Buffer {
  const name = Buffer.from(topic);
  const head = Buffer.alloc(6);
  head.writeUInt32BE(2 + name.length + data.length, 0);
  head.writeUInt16BE(name.length, 4);
  return Buffer.concat([head, name, data]);
}

/** Calls `deliver` for every whole frame that arrives. A stream that makes no sense is cut. */
function readFrames(socket: Socket, deliver: (topic: string, data: Buffer, whole: Buffer) => void): void {
  let pending: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    pending = pending.length ? Buffer.concat([pending, chunk]) : chunk;
    while (pending.length >= 4) {
      const length = pending.readUInt32BE(0);
      if (length < 2 || length > FRAME_MAX_BYTES) {
        socket.destroy();
        return;
      }
      if (pending.length < 4 + length) return;
      const whole = pending.subarray(0, 4 + length);
      const topicEnd = 6 + whole.readUInt16BE(4);
      deliver(whole.toString('utf8', 6, topicEnd), whole.subarray(topicEnd), whole);
      pending = pending.subarray(4 + length);
    }
  });
}

/** Moleculer's side: what is sent reaches every node on the socket, what arrives reaches those who subscribed. */
class ControlTransporter extends Transporters.Base {
  readonly #subscriptions = new Map<string, string>();
  readonly #write: (whole: Buffer) => void;

  constructor(write: (whole: Buffer) => void) {
    super({});
    this.#write = write;
  }

  deliver(topic: string, data: Buffer): void {
    const command = this.#subscriptions.get(topic);
    if (command && this.connected) this.receive(command, data);
  }

  override connect(): Promise<void> {
    return Promise.resolve(this.onConnected(false)).then(() => {});
  }

  override disconnect(): Promise<void> {
    this.connected = false;
    this.#subscriptions.clear();
    return Promise.resolve();
  }

  override subscribe(command: string, nodeId?: string): Promise<void> {
    this.#subscriptions.set(this.getTopicName(command, nodeId), command);
    return Promise.resolve();
  }

  // Only brokers that leave balancing to their bus use these two.
  override subscribeBalancedRequest(): Promise<void> {
    return Promise.resolve();
  }

  override subscribeBalancedEvent(): Promise<void> {
    return Promise.resolve();
  }

  override send(topic: string, data: Buffer): Promise<void> {
    this.#write(frame(topic, data));
    return Promise.resolve();
  }
}

export interface ControlSocket {
  readonly transporter: Transporters.Base;
  close(): Promise<void>;
}

/** Thrown when another process owns the data folder; the message says what to do. */
class FolderInUse extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Takes the data folder and listens for operators. Throws FolderInUse when a living process has it; what a killed one
 * left behind is cleared away.
 */
export async function listenForOperators(dataDir: string): Promise<ControlSocket> {
  const path = controlSocketPath(dataDir);
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const owner = await lstat(folder);
  if (!owner.isDirectory() || (process.getuid && owner.uid !== process.getuid()))
    throw new FolderInUse(`${folder} belongs to another user: choose another folder with DATA_DIR.`);
  await chmod(folder, 0o700);

  const nodes = new Set<Socket>();
  const toAll = (whole: Buffer, except?: Socket): void => {
    for (const node of nodes) if (node !== except) node.write(whole);
  };
  const transporter = new ControlTransporter(toAll);
  const server = createServer((socket) => {
    nodes.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => nodes.delete(socket));
    readFrames(socket, (topic, data, whole) => {
      toAll(whole, socket);
      transporter.deliver(topic, data);
    });
  });
  await takePath(server, path, dataDir);
  await writeFile(join(folder, 'pid'), `${process.pid}\n`);
  server.unref();
  return {
    transporter,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const node of nodes) node.destroy();
      }),
  };
}

async function takePath(server: Server, path: string, dataDir: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const taken = await new Promise<boolean>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        error.code === 'EADDRINUSE' ? resolve(true) : reject(error),
      );
      server.listen(path, () => resolve(false));
    });
    server.removeAllListeners('error');
    if (!taken) return;
    const other = await dial(path);
    other?.destroy();
    if (other || attempt === 3) {
      const pid = (await readFile(join(dirname(path), 'pid'), 'utf8').catch(() => '')).trim();
      throw new FolderInUse(
        `Another instance${pid ? ` (process ${pid})` : ''} already runs on ${dataDir}: ` +
          'stop it, or choose another folder with DATA_DIR.',
      );
    }
    await rm(path, { force: true });
  }
}

/** The operator's end; null when no platform listens. `onClosed` is called when the platform goes away. */
export async function connectToPlatform(dataDir: string, onClosed: () => void): Promise<ControlSocket | null> {
  const socket = await dial(controlSocketPath(dataDir));
  if (!socket) return null;
  const transporter = new ControlTransporter((whole) => void socket.write(whole));
  let closing = false;
  socket.on('error', () => {});
  socket.once('close', () => {
    if (!closing) onClosed();
  });
  readFrames(socket, (topic, data) => transporter.deliver(topic, data));
  return {
    transporter,
    close: async () => {
      closing = true;
      socket.end();
    },
  };
}
