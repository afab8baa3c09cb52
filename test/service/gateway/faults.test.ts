import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type NatsServer, startNats } from '../../support/nats.ts';
import type { RemoteAnswer } from './remote-node.ts';
import { type Answer, type Stage, startStage } from './stage.ts';

describe('The edge: failing services', function () {
  this.timeout(60_000);
  let nats: NatsServer;
  let stage: Stage;
  let node: ChildProcess | undefined;

  const startNode = async (): Promise<void> => {
    node = fork(join(import.meta.dirname, 'remote-node.ts'), [nats.url], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    await new Promise((resolve) => node!.once('message', resolve));
  };
  const killNode = async (): Promise<void> => {
    const gone = new Promise((resolve) => node!.once('exit', resolve));
    node!.kill('SIGKILL');
    await gone;
  };
  const get = (query = ''): Promise<Answer> => stage.send('GET', `/remote${query}`);
  const untilWorking = async (): Promise<void> => {
    for (let i = 0; i < 100; i++) {
      if ((await get()).status === 200) return;
      await pause(100);
    }
    assert.fail('The service was not found again.');
  };
  const isUnavailableSoon = async (asked: () => Promise<Answer>): Promise<void> => {
    const started = performance.now();
    const answer = await asked();
    assert.equal(answer.json?.code, 'SERVICE_UNAVAILABLE', answer.text);
    assert.equal(answer.status, 503);
    assert.equal(answer.headers['retry-after'], '1');
    const took = performance.now() - started;
    assert.ok(took < 10_000, `${Math.round(took)} ms: not as long as a call is waited for`);
  };

  before(async () => {
    nats = await startNats();
    stage = await startStage({ NATS_URL: nats.url, NODE_ID: `edge-${process.pid}` });
    await startNode();
    await untilWorking();
  });
  after(async () => {
    node?.kill('SIGKILL');
    await stage?.stop();
    await nats?.stop();
  });

  it('a service that is slow but alive gets the time it needs', async () => {
    assert.equal((await get('?delay=2500')).status, 200);
  });

  it('a service killed in the middle of a request answers 503 within a second, and so do the next requests', async () => {
    const inFlight = get('?delay=20000');
    await pause(400);
    await killNode();
    await isUnavailableSoon(() => inFlight);
    await isUnavailableSoon(get);
    await isUnavailableSoon(get);
  });

  it('the gateway rediscovers it automatically', async () => {
    await startNode();
    await untilWorking();
    assert.equal(((await get()).json as RemoteAnswer).pid, node!.pid);
  });

  it('a request to a service that was killed unnoticed answers 503 within a second', async () => {
    await killNode();
    await isUnavailableSoon(get);
    await startNode();
    await untilWorking();
  });

  it('a lost bus is answered 503 within a second, and recovers without a restart', async () => {
    await nats.stop();
    await isUnavailableSoon(get);
    await nats.start();
    await untilWorking();
  });

  it('operations of other services are not affected', async () => {
    await killNode();
    assert.equal((await stage.send('GET', '/stub/A')).status, 200);
  });
});
