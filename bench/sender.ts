/**
 * A thread that sends requests one after the other over one connection: as many as each message to it says, answered by
 * a message. A failed request is an error of the thread.
 */
import { Agent, request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';
import { type LoadRequest, numbered } from './load.ts';

export interface SenderData {
  readonly baseUrl: string;
  /** Sent in turn. */
  readonly requests: readonly LoadRequest[];
}

const { baseUrl, requests }: SenderData = workerData;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const firstNumber = Date.now() * 1_000;
let sent = 0;

function send(one: LoadRequest): Promise<void> {
  const { method, path, headers, body = '' } = numbered(one, firstNumber + sent++);
  return new Promise((resolve, reject) => {
    const outgoing = request(baseUrl + path, {
      agent,
      method,
      headers: body === '' ? headers : { ...headers, 'content-length': Buffer.byteLength(body) },
    });
    outgoing.once('error', reject);
    outgoing.once('response', (response) => {
      const { statusCode = 0 } = response;
      if (statusCode >= 300) reject(new Error(`${method} ${path}: HTTP ${statusCode}`));
      response.once('end', resolve).resume();
    });
    outgoing.end(body);
  });
}

parentPort?.on('message', async (count: number) => {
  for (let i = 0; i < count; i++) {
    const next = requests[sent % requests.length];
    if (next) await send(next);
  }
  parentPort?.postMessage(sent);
});
