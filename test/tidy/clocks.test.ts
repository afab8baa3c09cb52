/**
 * Which clock is read where. The clock of a machine may be wrong, and is set while processes work: points in time are
 * those of the platform (`platformTime`, the database's), durations are measured with `performance.now()`.
 */
import assert from 'node:assert/strict';
import { stripTypeScriptTypes } from 'node:module';
import { type Node, parse } from 'acorn';
import { full } from 'acorn-walk';
import { read, repositoryFiles } from '../support/sources.ts';

const SOURCES = /^(?:main\.ts$|(?:cli|config|contracts|lib|mixins|scripts|services|templates|web)\/.*\.(?:ts|js)$)/;

/** The files that read the clock of the machine, and why they may. */
const ALLOWED: Readonly<Record<string, string>> = {
  'cli/data/times.ts': 'what the user of this machine calls today',
  'cli/events/forward.ts': 'compared by a receiver on the same machine',
  'cli/http/intentions.ts': 'compares times that this machine has written itself, to the day',
  'cli/profiles/oauth.ts': 'the answer says for how many seconds the token is valid',
  'cli/profiles/session.ts': 'when this machine has received the token, and for how long it is valid',
  'lib/values/clock.ts': 'until the database has told the time',
  'mixins/blobs/folder.ts': 'compares times of files, which the machine has written, to the hour',
  'scripts/bus-keys.ts': 'the dates of a certificate, made by a command without a database',
  'services/gateway/edge/answered.ts': 'a line of the log has the time that the lines of the logger have',
  'web/shared/sign-in.js': 'the clock of the browser, for how long the token is valid',
  'scripts/console/processes.ts': 'for how long a process has run, for people to read',
};

interface Expression extends Node {
  readonly callee?: Expression;
  readonly object?: Expression;
  readonly property?: Expression;
  readonly name?: string;
  readonly arguments?: readonly unknown[];
}

const isDate = (node: Expression | undefined): boolean => node?.type === 'Identifier' && node.name === 'Date';

/** `Date.now`, `new Date()` and `Date()`. */
function readsMachineClock({ type, callee, object, property, arguments: given }: Expression): boolean {
  if (type === 'MemberExpression') return isDate(object) && property?.name === 'now';
  return isDate(callee) && (type === 'CallExpression' || (type === 'NewExpression' && given?.length === 0));
}

function placesOf(path: string): number[] {
  const source = read(path);
  const program = parse(path.endsWith('.ts') ? stripTypeScriptTypes(source) : source, {
    ecmaVersion: 'latest',
    sourceType: 'module',
    locations: true,
  });
  const lines: number[] = [];
  full(program, (node) => {
    if (readsMachineClock(node as Expression)) lines.push(node.loc!.start.line);
  });
  return lines;
}

describe('the clock of the machine', function () {
  this.timeout(60_000);
  const found = new Map<string, number[]>();
  before(() => {
    for (const path of repositoryFiles()) {
      if (!SOURCES.test(path)) continue;
      const lines = placesOf(path);
      if (lines.length > 0) found.set(path, lines);
    }
  });

  it('is read only in listed places with a reason', () => {
    const places = [...found].filter(([path]) => !(path in ALLOWED)).map(([path, lines]) => `${path}:${lines}`);
    assert.deepEqual(places, []);
  });

  it('is still read in every listed place', () => {
    assert.deepEqual(
      Object.keys(ALLOWED).filter((path) => !found.has(path)),
      [],
    );
  });
});
