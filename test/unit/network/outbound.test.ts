/** Outbound requests to addresses that tenants choose. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { ANSWER_MAX_BYTES, type GuardedFetch, guardedFetch } from '../../../mixins/outbound.ts';
import { isPublicAddress } from '../../../mixins/public-addresses.ts';

describe('requests to addresses that tenants name', () => {
  let server: Server;
  let base = '';
  const asked: string[] = [];

  before(async () => {
    server = createServer((req, res) => {
      asked.push(String(req.url));
      if (req.url === '/elsewhere') res.writeHead(302, { location: `${base}/secret` }).end();
      else if (req.url === '/long') res.writeHead(200).end(Buffer.alloc(ANSWER_MAX_BYTES + 1));
      else if (req.url === '/slow') return;
      else if (req.url === '/upgrade')
        req.socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
      else {
        const chunks: Buffer[] = [];
        req.on('data', (chunk: Buffer) => chunks.push(chunk));
        req.on('end', () =>
          res.writeHead(200, { 'content-type': 'text/plain' }).end(`${req.method} ${Buffer.concat(chunks)}`),
        );
      }
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const allowed = () => by(guardedFetch([new URL(base).host]));
  /** For a provider on the host. */
  const by =
    (fetch: GuardedFetch) =>
    (address: string, options: Parameters<GuardedFetch>[1]): Promise<Response> =>
      fetch(address, options, base);

  it('reach private hosts only when the operator has named them', async () => {
    const answer = await allowed()(`${base}/token`, { method: 'POST', body: new URLSearchParams({ a: 'b' }) });
    assert.deepEqual([answer.status, await answer.text()], [200, 'POST a=b']);
    asked.length = 0;
    const { port } = new URL(base);
    for (const address of [
      base,
      `https://127.0.0.1:${port}/`,
      `https://localhost:${port}/`,
      `https://[::1]:${port}/`,
      `https://[::ffff:127.0.0.1]:${port}/`,
      `https://0x7f000001:${port}/`,
      'http://login.example.com/',
      'https://10.1.2.3/',
      'ftp://login.example.com/',
    ])
      await assert.rejects(
        by(guardedFetch([]))(address, {}),
        { name: 'OutboundError', message: /public|https/ },
        address,
      );
    assert.deepEqual(asked, []);
  });

  it('reach no named host for a public provider, whose metadata may contain any address', async () => {
    asked.length = 0;
    const fetch = guardedFetch([new URL(base).host]);
    for (const issuer of [
      'https://login.evil.example',
      'https://127.0.0.1:1',
      `https://${new URL(base).hostname}.evil.example`,
    ])
      await assert.rejects(fetch(`${base}/admin`, { method: 'POST', body: 'x' }, issuer), /public|https/, issuer);
    assert.deepEqual(asked, []);
  });

  it('do not use up the slots of others at a host', async () => {
    const other = 'http://127.0.0.1:1';
    const fetch = guardedFetch([new URL(base).host, new URL(other).host]);
    const stop = new AbortController();
    const waiting = Array.from({ length: 20 }, () =>
      fetch(`${base}/slow`, { signal: stop.signal }, other).catch(() => null),
    );
    assert.equal((await fetch(`${base}/any`, {}, base)).status, 200);
    stop.abort();
    await Promise.all(waiting);
  });

  it('follow no redirect, and refuse long responses', async () => {
    asked.length = 0;
    assert.equal((await allowed()(`${base}/elsewhere`, {})).status, 302);
    await assert.rejects(allowed()(`${base}/long`, {}), /longer than/);
    assert.deepEqual(asked, ['/elsewhere', '/long']);
  });

  it('use a connection again where that is asked for, and another one when its host has closed it', async () => {
    let connections = 0;
    const answer = 'HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n';
    const closing = createTcpServer((socket) => {
      connections++;
      socket.on('error', () => {});
      socket.once('data', () => {
        socket.write(answer);
        socket.once('data', () => socket.resetAndDestroy());
      });
    });
    const keeping = createTcpServer((socket) => {
      connections++;
      socket.on('error', () => {});
      socket.on('data', () => socket.write(answer));
    });
    for (const [one, expected] of [
      [keeping, 1],
      [closing, 2],
    ] as const) {
      connections = 0;
      await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve));
      const address = `http://127.0.0.1:${(one.address() as AddressInfo).port}/`;
      const ask = guardedFetch([new URL(address).host]);
      for (let i = 0; i < 2; i++) {
        assert.equal((await ask(address, { keeps: true }, address)).status, 204);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      assert.equal(connections, expected);
      await ask(address, {}, address);
      assert.equal(connections, expected + 1, 'a request of another kind has a connection of its own');
      one.close();
    }
  });

  it('end with an answer that changes the protocol, and leave their place', async () => {
    const send = allowed();
    for (const keeps of [false, true])
      for (let n = 0; n < 21; n++)
        await assert.rejects(send(`${base}/upgrade`, { keeps }), /no status/, `request ${n}`);
  });

  it('do not tell which names there are inside', async () => {
    const fetch = guardedFetch([], (_name, _options, callback) =>
      callback(Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' }), []),
    );
    await assert.rejects(by(fetch)('https://nowhere.example/', {}), /no public address/);
  });

  it('are limited in concurrency per host', async () => {
    const send = allowed();
    const stop = new AbortController();
    const waiting = Array.from({ length: 20 }, () => send(`${base}/slow`, { signal: stop.signal }).catch(() => null));
    await assert.rejects(send(`${base}/any`, {}), /too many requests/);
    stop.abort();
    await Promise.all(waiting);
    assert.equal((await send(`${base}/any`, {})).status, 200);
  });

  it('connect to the checked address, even when the name resolves differently later', async () => {
    asked.length = 0;
    const { port } = new URL(base);
    const inside = [
      '127.0.0.1',
      '10.0.0.5',
      '169.254.169.254',
      '100.64.3.2',
      '::1',
      '::ffff:127.0.0.1',
      '64:ff9b::7f00:1',
    ];
    const answers = [...inside.map((address) => [address]), ['2002:7f00:1::', 'fd00::1', 'fe80::1']];
    let resolved = 0;
    for (const addresses of answers) {
      const fetch = guardedFetch([], (_name, _options, callback) => {
        resolved++;
        callback(
          null,
          addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        );
      });
      await assert.rejects(by(fetch)(`https://rebound.example:${port}/`, {}), /no public address/, String(addresses));
    }
    assert.equal(resolved, answers.length, 'each name is resolved once');
    assert.deepEqual(asked, []);
  });

  it('recognise public addresses', () => {
    const special = [
      ...['0.0.0.0', '10.0.0.1', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.31.255.255', '192.168.1.1'],
      ...['198.18.0.1', '203.0.113.5', '224.0.0.1', '255.255.255.255', '::', '::1', '::ffff:8.8.8.8', '64:ff9b::1'],
      ...['fc00::1', 'fe80::1', 'ff02::1', '2001:db8::1', '2002:7f00:1::', 'nothing', ''],
    ];
    assert.deepEqual(special.filter(isPublicAddress), []);
    assert.ok(['8.8.8.8', '1.1.1.1', '172.32.0.1', '2606:4700:4700::1111'].every(isPublicAddress));
  });
});
