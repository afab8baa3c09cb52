/**
 * Every regular expression that may meet a caller's text takes linear time: V8 backtracks, and one that is quadratic
 * stops the event loop for seconds on a text that the limits allow. Checked by `recheck`, which either proves it or
 * gives a text to attack with.
 */
import assert from 'node:assert/strict';
import { stripTypeScriptTypes } from 'node:module';
import { parse } from 'acorn';
import { full } from 'acorn-walk';
import { checkSync } from 'recheck';
import { OPERATIONS } from '../../contracts/operations.ts';
import { KINDS } from '../../services/metadata/kinds/registry.ts';
import { read, repositoryFiles } from '../support/sources.ts';

const SOURCES = /^(?:main\.ts$|(?:config|contracts|lib|mixins|services|web)\/.*\.ts$)/;
const CHECK_TIMEOUT_MS = 20_000;

/** Places that build one from a text, and its origin. */
const MADE_OF: Readonly<Record<string, string>> = {
  'lib/metadata/paths.ts': 'fixed paths',
  'lib/schema/field-types/common.ts': 'a fixed number of repetitions of one character',
  'lib/values/idempotency-key.ts': 'the pattern of a schema, checked below',
  'services/auth/interactions.ts': 'the name of a cookie of ours',
  'services/auth/provider/show.ts': 'a name in a page of our own',
  'services/gateway/doors/auth.ts': 'fixed paths',
  'services/mcp/tools/schemas.ts': 'the pattern of a schema, checked below',
  'services/metadata/project/project.ts': 'the pattern of a schema, checked below',
  'web/app-page.ts': 'fixed paths',
};

interface Found {
  readonly source: string;
  readonly flags: string;
  readonly places: string[];
}

const found = new Map<string, Found>();
const made = new Set<string>();

function add(source: string, flags: string, place: string): void {
  const key = `/${source}/${flags}`;
  const known = found.get(key) ?? { source, flags, places: [] };
  known.places.push(place);
  found.set(key, known);
}

/** Literals of a source file, and whether it makes others of texts. */
function collect(path: string): void {
  const program = parse(stripTypeScriptTypes(read(path)), {
    ecmaVersion: 'latest',
    sourceType: 'module',
    locations: true,
  });
  full(program, (node) => {
    const { regex, callee } = node as { regex?: { pattern: string; flags: string }; callee?: { name?: string } };
    if (regex) add(regex.pattern, regex.flags, `${path}:${node.loc?.start.line}`);
    if (callee?.name === 'RegExp') made.add(path);
  });
}

/** `pattern` anywhere in a JSON Schema. */
function collectPatterns(schema: unknown, place: string): void {
  if (typeof schema !== 'object' || schema === null) return;
  for (const [key, value] of Object.entries(schema))
    if (key === 'pattern' && typeof value === 'string') add(value, 'u', place);
    else if (key === 'patternProperties') {
      for (const pattern of Object.keys(value as object)) add(pattern, 'u', place);
      collectPatterns(value, place);
    } else collectPatterns(value, place);
}

describe('regular expressions', () => {
  before(() => {
    for (const path of repositoryFiles()) if (SOURCES.test(path)) collect(path);
    for (const operation of OPERATIONS) collectPatterns(operation, operation.operationId);
    for (const kind of KINDS) collectPatterns(kind, kind.type);
  });

  it('take linear time, whatever the text', function () {
    this.timeout(240_000);
    assert.ok(found.size > 100, `only ${found.size} were found`);
    const slow: string[] = [];
    for (const [key, { source, flags, places }] of found) {
      const result = checkSync(source, flags, { timeout: CHECK_TIMEOUT_MS });
      if (result.status === 'safe') continue;
      const attack =
        result.status === 'vulnerable' ? `${result.complexity.summary}, ${result.attack.pattern}` : 'unknown';
      slow.push(`${places.join(', ')}: ${key} (${attack})`);
    }
    assert.deepEqual(slow, []);
  });

  it('are built from fixed texts only', () => {
    assert.deepEqual(
      [...made].filter((path) => !(path in MADE_OF)),
      [],
      'say in MADE_OF what text it is made of; a caller’s text needs lib/values/pattern.ts',
    );
  });
});
