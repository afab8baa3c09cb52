/**
 * Prometheus' own checker: that of the PATH, or that of Debian's package `prometheus`, from which it is taken out without
 * installing a server.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Kept from one run of the tests to the next: the package has 19 MB. */
const KEPT = join(tmpdir(), 'erp-test-promtool');

/** Path of promtool; null: it is not there, and cannot be fetched. */
export function findPromtool(): string | null {
  if (!spawnSync('promtool', ['--version'], { stdio: 'ignore' }).error) return 'promtool';
  const kept = join(KEPT, 'usr/bin/promtool');
  if (existsSync(kept)) return kept;
  mkdirSync(KEPT, { recursive: true });
  const folder = mkdtempSync(join(KEPT, 'fetched-'));
  try {
    execFileSync('apt-get', ['download', 'prometheus'], { cwd: folder, stdio: 'ignore', timeout: 60_000 });
    const [name] = readdirSync(folder);
    execFileSync('dpkg-deb', ['--extract', name!, 'files'], { cwd: folder, stdio: 'ignore' });
    // In one step, so that another run of the tests finds all of it or nothing.
    mkdirSync(join(KEPT, 'usr/bin'), { recursive: true });
    renameSync(join(folder, 'files/usr/bin/promtool'), kept);
    return kept;
  } catch {
    return null;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Checked {
  readonly code: number | null;
  /** Output of both streams. */
  readonly output: string;
}

export function promtool(
  path: string,
  args: readonly string[],
  { cwd, input }: { cwd?: string; input?: string } = {},
): Checked {
  const { status, stdout, stderr } = spawnSync(path, args, {
    ...(cwd ? { cwd } : {}),
    ...(input === undefined ? {} : { input }),
    encoding: 'utf8',
    timeout: 60_000,
  });
  return { code: status, output: stdout + stderr };
}
