/** Follows CONTRIBUTING in a copy of the repository: adds a field type and a kind of component. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { COMPONENT_TYPES } from '../../../lib/schema/snapshot.ts';
import type { compileSnapshot } from '../../../services/metadata/compile.ts';
import { KINDS } from '../../../services/metadata/kinds/registry.ts';
import type { physicalModel } from '../../../services/metadata/physical/model.ts';
import type { makePlan } from '../../../services/metadata/planner/plan.ts';
import type { readProject } from '../../../services/metadata/project/project.ts';
import { acting } from '../../support/plans.ts';
import { aSnapshot } from '../../support/snapshots.ts';

const root = new URL('../../../', import.meta.url).pathname;

const FILES = {
  'objects/Paint__c/object.yaml':
    'type: CustomObject\napiName: Paint__c\nlabel: Paint\nlabelPlural: Paints\nnameField:\n  label: Name\n  fieldType: text\n',
  'objects/Paint__c/fields/Shade__c.yaml':
    'type: CustomField\napiName: Shade__c\nobject: Paint__c\nlabel: Shade\nfieldType: color\n',
  'glossary/Primer.yaml': 'type: GlossaryTerm\napiName: Primer\nmeaning: The first coat.\n',
};

describe('following CONTRIBUTING', () => {
  let copy = '';

  const write = (path: string, text: string): void => writeFileSync(join(copy, path), text);
  /** Puts lines before the first line that begins with each key, as one does who adds to a list. */
  const insert = (path: string, lines: Record<string, string>): void => {
    let text = readFileSync(join(copy, path), 'utf8');
    for (const [before, line] of Object.entries(lines)) {
      assert.ok(text.includes(`\n${before}`), `${path} has no line that begins with ${before}`);
      text = text.replace(`\n${before}`, `\n${line}\n${before}`);
    }
    write(path, text);
  };
  const load = async <T>(path: string): Promise<T> => (await import(pathToFileURL(join(copy, path)).href)) as T;

  before(() => {
    copy = mkdtempSync(join(realpathSync(tmpdir()), 'adding-'));
    for (const folder of ['lib', 'config', 'contracts', 'mixins', 'services/metadata', 'templates'])
      cpSync(join(root, folder), join(copy, folder), { recursive: true });
    cpSync(join(root, 'package.json'), join(copy, 'package.json'));
    symlinkSync(realpathSync(join(root, 'node_modules')), join(copy, 'node_modules'));
  });
  after(() => rmSync(copy, { recursive: true, force: true }));

  it('adds a field type and a kind with an entry, a line and, for a kind, its part of the snapshot', async () => {
    write('lib/schema/field-types/color.ts', readFileSync(join(root, 'test/cases/adding/color.txt'), 'utf8'));
    insert('lib/schema/field-types/registry.ts', {
      "import { currency } from './currency.ts';": "import { color } from './color.ts';",
      '  boolean,': '  color,',
    });
    write(
      'services/metadata/kinds/glossary-term.ts',
      readFileSync(join(root, 'test/cases/adding/glossary-term.txt'), 'utf8'),
    );
    insert('services/metadata/kinds/registry.ts', {
      "import { group } from './group.ts';": "import { glossaryTerm } from './glossary-term.ts';",
      '  externalClient,': '  glossaryTerm,',
    });
    insert('lib/schema/snapshot.ts', {
      '  ExternalClient:': "  GlossaryTerm: 'glossary/{apiName}.yaml',",
      '  readonly externalClients:': '  readonly glossary: Readonly<Record<string, string>>;',
      '  externalClients: {},': '  glossary: {},',
    });

    const project = await load<{ readProject: typeof readProject }>('services/metadata/project/project.ts');
    const planner = await load<{ makePlan: typeof makePlan }>('services/metadata/planner/plan.ts');
    const compiler = await load<{ compileSnapshot: typeof compileSnapshot }>('services/metadata/compile.ts');
    const physical = await load<{ physicalModel: typeof physicalModel }>('services/metadata/physical/model.ts');

    const options = { platform: false, allowDestructiveChanges: false, ...acting() } as const;
    const plan = planner.makePlan(new Map(), await project.readProject(FILES, null), options);
    assert.deepEqual(plan.blocked, []);
    const snapshot = compiler.compileSnapshot(aSnapshot([]).tenant, 1, plan.after);
    assert.equal(snapshot.objects['Paint__c']?.fields['Shade__c']?.fieldType, 'color');
    assert.deepEqual(Object.entries(snapshot).find(([part]) => part === 'glossary')?.[1], {
      Primer: 'The first coat.',
    });
    const column = physical.physicalModel(plan.after).get('Paint__c')?.columns.get('Shade__c');
    assert.equal(column?.type, 'text COLLATE "und-x-icu"');
  });
});

describe('the kinds', () => {
  it('are those that the snapshot names, in the same order', () => {
    assert.deepEqual(
      KINDS.map(({ type }) => type),
      COMPONENT_TYPES,
    );
  });
});
