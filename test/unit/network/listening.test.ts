/** Addresses that the server listens on. Source: docs/reference/configuration.md#where-it-listens. */
import assert from 'node:assert/strict';
import { createServer, get, type Server } from 'node:http';
import { networkInterfaces } from 'node:os';
import { readConfig } from '../../../config/env.ts';
import { listen, stopListening } from '../../../services/gateway/edge/listening.ts';

const addresses = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
const hasIpv6 = addresses.some(({ address }) => address === '::1');

describe('the server', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      stopListening(server);
      server.closeAllConnections();
    }
  });
  const start = async (host: string): Promise<string> => {
    const server = createServer((_req, res) => res.end('here'));
    servers.push(server);
    const baseUrl = await listen(server, { host, port: 0, baseUrl: null });
    assert.match(baseUrl, /^http:\/\/localhost:\d+$/);
    return new URL(baseUrl).port;
  };
  const answers = (host: string, port: string): Promise<boolean> =>
    new Promise((resolve) => {
      get({ host, port, agent: false, timeout: 2_000 }, (res) => resolve(res.resume().statusCode === 200))
        .on('timeout', () => resolve(false))
        .on('error', () => resolve(false));
    });

  it('listens on both loopback families outside production, and on all addresses in production', () => {
    for (const mode of ['development', 'test', ''])
      assert.equal(readConfig({ NODE_ENV: mode }).host, 'localhost', mode);
    assert.equal(readConfig({ HOST: '0.0.0.0' }).host, '0.0.0.0');
    assert.equal(readConfig({}).healthHost, 'localhost');
    const production = { NODE_ENV: 'production', DATABASE_URL: 'postgres://localhost/erp' };
    assert.equal(readConfig(production, { command: true }).host, '0.0.0.0');
  });

  it('is reachable at both loopback addresses only', async () => {
    const port = await start('localhost');
    assert.equal(await answers('127.0.0.1', port), true);
    if (hasIpv6) assert.equal(await answers('::1', port), true);
    assert.equal(await answers('localhost', port), true);
    for (const { address } of addresses.filter(({ internal, scopeid }) => !internal && !scopeid))
      assert.equal(await answers(address, port), false, address);
    const everywhere = await start('0.0.0.0');
    for (const { address } of addresses.filter(({ internal, family }) => !internal && family === 'IPv4'))
      assert.equal(await answers(address, everywhere), true, address);
  });

  it('closes both sockets', async () => {
    const port = await start('localhost');
    stopListening(servers[0]!);
    for (const host of ['127.0.0.1', '::1']) assert.equal(await answers(host, port), false, host);
  });
});
