/**
 * `npm run advisories`: fails when a dependency that is shipped has a known vulnerability. Where the registry does not
 * answer such questions, as behind some mirrors, it says so and passes: a build must not depend on it.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

interface Vulnerability {
  readonly name: string;
  readonly severity: string;
  /** Advisories, or the names of the dependencies that bring them. */
  readonly via: readonly (string | { readonly title: string; readonly url: string })[];
  readonly range: string;
}

interface Advice {
  /** null: the registry did not answer. */
  readonly lines: readonly string[] | null;
  readonly reason?: string;
}

/** Formats the output of `npm audit --json` as one line per advisory. */
export function readAudit(output: string): Advice {
  let report: { vulnerabilities?: Record<string, Vulnerability>; message?: string; error?: { summary?: string } };
  try {
    report = JSON.parse(output);
  } catch {
    return { lines: null, reason: 'npm printed no report' };
  }
  if (!report.vulnerabilities)
    return { lines: null, reason: report.error?.summary || 'the registry does not answer requests for advisories' };
  const lines = Object.values(report.vulnerabilities).flatMap(({ name, severity, via, range }) =>
    via.flatMap((cause) =>
      typeof cause === 'string' ? [] : [`${name} ${range}: ${severity}: ${cause.title} (${cause.url})`],
    ),
  );
  return { lines };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { stdout } = spawnSync('npm', ['audit', '--json', '--omit=dev'], { encoding: 'utf8', timeout: 60_000 });
  const { lines, reason } = readAudit(stdout ?? '');
  if (!lines) console.log(`Advisories were not checked: ${reason}.`);
  else if (lines.length === 0) console.log('No dependency that is shipped has a known vulnerability.');
  else {
    console.error(lines.join('\n'));
    process.exitCode = 1;
  }
}
