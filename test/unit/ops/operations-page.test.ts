/** The page about operating a cluster says of every service what an operator has to know. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ALL_SERVICES, LEASE_CONNECTIONS, SERVICES } from '../../../config/services.ts';

const page = readFileSync(
  join(import.meta.dirname, '..', '..', '..', 'docs', 'reference', 'operations-cluster.md'),
  'utf8',
);

/** Cells of the rows of the table whose head begins with these cells. */
function table(...head: readonly string[]): string[][] {
  const rows = page.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
  const at = rows.findIndex((cells) => head.every((cell, index) => cells[index + 1] === cell));
  assert.notEqual(at, -1, head.join());
  const end = rows.findIndex((cells, index) => index > at && cells.length === 1);
  return rows.slice(at + 2, end).map((cells) => cells.slice(1, -1));
}

describe('the page about operating a cluster', () => {
  const services = [...ALL_SERVICES].sort();

  it('says what a process of each service needs, and what is not done while it is away', () => {
    assert.deepEqual(
      table('service', 'listens')
        .map(([name]) => name)
        .sort(),
      services,
    );
    const away = services.filter((name) => name !== 'gateway').map((name) => `\`${name}Unavailable\``);
    assert.deepEqual(
      table('`degraded`')
        .map(([name]) => name)
        .sort(),
      away,
    );
  });

  it('says which login each service has', () => {
    assert.deepEqual(
      table('login')
        .map(([name]) => name)
        .sort(),
      services.map((name) => `\`login_${name}\``),
    );
  });

  it('adds up the connections of all pods', () => {
    const expected = services.map((name) => {
      const { replicas, connections } = SERVICES[name].kubernetes;
      const leases = name === 'metadata' ? LEASE_CONNECTIONS : 0;
      const most = (replicas.max + 1) * (connections + leases);
      return [name, leases ? `${connections} + ${leases}` : `${connections}`, replicas.min, replicas.max, most].map(
        String,
      );
    });
    const rows = table('service', 'connections of a pod').sort(([one = ''], [other = '']) => one.localeCompare(other));
    assert.deepEqual(
      rows.filter(([name]) => name !== 'all'),
      expected,
    );
    const sums = [2, 3, 4].map((column) => expected.reduce((sum, cells) => sum + Number(cells[column]), 0));
    assert.deepEqual(rows.find(([name]) => name === 'all')?.slice(2), sums.map(String));
  });
});
