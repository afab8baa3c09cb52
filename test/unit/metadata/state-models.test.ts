import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileSnapshot } from '../../../services/metadata/compile.ts';
import { componentKey, type State } from '../../../services/metadata/kinds/component.ts';
import type { Plan } from '../../../services/metadata/planner/plan.ts';
import { fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { planOf } from '../../support/plans.ts';
import { aSnapshot } from '../../support/snapshots.ts';

type Files = Record<string, string>;

const MODEL = 'objects/Bill__c/stateModels/Lifecycle.yaml';
const ACTION = 'objects/Bill__c/actions/Remind.yaml';
const STATUS = `fieldType: picklist
picklist:
  restricted: true
  values:
    - value: draft
      label: Draft
    - value: sent
      label: Sent
    - value: paid
      label: Paid`;

const BILL: Files = {
  ...objectFiles('User'),
  ...objectFiles('Bill__c', {
    Amount__c: 'fieldType: currency',
    Due__c: 'fieldType: date',
    Number__c: 'fieldType: autoNumber\nformat: B-{000}',
    Status__c: STATUS,
    Twice__c: 'fieldType: formula\nformula:\n  expression: record.Amount__c * 2\n  resultType: decimal',
    Tag__c: 'fieldType: picklist\npicklist:\n  restricted: false\n  values:\n    - value: a',
    KeeperId__c: 'fieldType: reference\nreferenceTo:\n  - User\nrelationshipName: Bills__r',
  }),
  ...objectFiles('Note__c', { Text__c: 'fieldType: text\nrequired: true', On__c: 'fieldType: date' }),
};

const transition = (more = '', from = '      - draft', key = 'send', to = 'sent'): string =>
  `  - key: ${key}\n    label: Send\n    from:\n${from}\n    to: ${to}\n${more}    risk: medium\n    requiresComment: false\n`;

const model = (transitions = transition(), more = ''): Files => ({
  [MODEL]: `type: StateModel\napiName: Lifecycle\nobject: Bill__c\nfield: Status__c\ninitial: draft\nallowDirectEdit: false\n${more}transitions:\n${transitions}`,
});

const PAY = transition('', '      - sent', 'pay', 'paid');
const effects = (text: string): string => `    effects:\n${text}`;
const withEffects = (text: string): Files =>
  model(transition().replace(/(requiresComment: false\n)/, `$1${effects(text)}`) + PAY);
const action = (more = ''): Files => ({
  [ACTION]: `type: CustomAction\napiName: Remind\nobject: Bill__c\nlabel: Remind\nrisk: low\nrequiresComment: false\n${more}`,
});

const plan = (before: State, files: Files): Promise<Plan> => planOf(before, files, true);

const places = (result: Plan, list: 'blocked' | 'warnings' = 'blocked') =>
  result[list].map(({ code, line, column, message }) => `${code} ${line}:${column} ${message}`);
const problems = async (files: Files): Promise<string[]> => places(await plan(new Map(), { ...BILL, ...files }));

describe('metadata: state models and custom actions', () => {
  it('over other fields than picklists are refused without counting records', async () => {
    const { after } = await plan(new Map(), { ...BILL, ...fieldFile('Bill__c', 'Data__c', 'fieldType: json') });
    const [path, text] = Object.entries(model())[0]!;
    for (const field of [
      {},
      fieldFile('Bill__c', 'Data__c', 'fieldType: picklist\npicklist: {values: [{value: draft}]}'),
    ]) {
      const found = await plan(after, { ...field, [path]: text.replace('Status__c', 'Data__c') });
      assert.ok(found.blocked.length > 0);
      assert.deepEqual(
        found.dataChecks.filter(({ code }) => code === 'STATE_MODEL_INVALID'),
        [],
      );
    }
  });

  it('handle field names that are JavaScript properties', async () => {
    const [path, text] = Object.entries(model())[0]!;
    const type =
      'type: RecordType\napiName: Late\nobject: Bill__c\nlabel: Late\npicklistValues:\n  Status__c:\n    - draft\n';
    const files = {
      [path]: text.replace('Status__c', 'hasOwnProperty'),
      'objects/Bill__c/recordTypes/Late.yaml': type,
    };
    assert.match((await problems(files)).join(), /^DEPENDENCY_MISSING 4:1 /);
  });

  it('require an initial state', async () => {
    const nowhere = model(transition('', '      []'));
    assert.deepEqual(await problems(nowhere), ['STATE_MODEL_INVALID 10:5 A transition starts in one state at least.']);
  });

  it('are in the snapshot of their object, and keep their canonical form', async () => {
    const text = model(
      `  - key: send
    label: Send
    description: Off it goes.
    from:
      - draft
    to: sent
    guard: record.Amount__c > 0
    guardMessage: There is nothing to pay.
    permission: Bill__c.send
    risk: high
    requiresComment: true
    input:
      properties:
        day:
          format: date
          type: string
      required:
        - day
      type: object
    effects:
      - verb: updateFields
        fields:
          Due__c: input.day
          Tag__c: "null"
      - verb: createRecord
        object: Note__c
        fields:
          Text__c: record.name + " is sent"
          name: record.name
      - verb: sendNotification
        type: BillSent
        to: owner
      - verb: emitEvent
        type: billSent
        data:
          amount: record.Amount__c
${PAY}`,
    );
    const { blocked, warnings, after } = await plan(new Map(), { ...BILL, ...text, ...action() });
    assert.deepEqual([...blocked, ...warnings], []);
    assert.equal(after.get(componentKey('StateModel', 'Bill__c.Lifecycle'))!.yaml, text[MODEL]);
    const bill = compileSnapshot(aSnapshot([]).tenant, 1, after).objects['Bill__c']!;
    assert.equal(bill.fields['Status__c']!.stateField, true);
    assert.deepEqual(
      bill.stateModel!.transitions.map(({ key, to }) => [key, to]),
      [
        ['send', 'sent'],
        ['pay', 'paid'],
      ],
    );
    assert.deepEqual(bill.stateModel!.transitions[0], {
      key: 'send',
      label: 'Send',
      description: 'Off it goes.',
      guard: 'record.Amount__c > 0',
      guardMessage: 'There is nothing to pay.',
      permission: 'Bill__c.send',
      risk: 'high',
      requiresComment: true,
      input: { properties: { day: { format: 'date', type: 'string' } }, required: ['day'], type: 'object' },
      effects: [
        { verb: 'updateFields', fields: { Due__c: 'input.day', Tag__c: 'null' } },
        {
          verb: 'createRecord',
          object: 'Note__c',
          fields: { Text__c: 'record.name + " is sent"', name: 'record.name' },
        },
        { verb: 'sendNotification', type: 'BillSent', to: 'owner' },
        { verb: 'emitEvent', type: 'billSent', data: { amount: 'record.Amount__c' } },
      ],
      from: ['draft'],
      to: 'sent',
    });
    assert.deepEqual(
      bill.actions.map(({ key, permission }) => [key, permission]),
      [['Remind', 'Bill__c.Remind']],
    );
  });

  it('have no effect while inactive', async () => {
    const off = Object.fromEntries(
      Object.entries({ ...model(transition() + PAY), ...action() }).map(([path, text]) => [
        path,
        text.replace('object: Bill__c\n', 'object: Bill__c\nactive: false\n'),
      ]),
    );
    const { blocked, after } = await plan(new Map(), { ...BILL, ...off });
    assert.deepEqual(blocked, []);
    const bill = compileSnapshot(aSnapshot([]).tenant, 1, after).objects['Bill__c']!;
    assert.deepEqual([bill.stateModel, bill.actions, bill.fields['Status__c']!.stateField], [null, [], false]);
    const second = {
      [MODEL.replace('Lifecycle', 'Other')]: off[MODEL]!.replace('Lifecycle', 'Other').replace('active: false\n', ''),
    };
    assert.deepEqual((await plan(after, second)).blocked, []);
    assert.deepEqual(places(await plan(after, { ...second, ...model(transition() + PAY) })), [
      'STATE_MODEL_INVALID 1:1 Bill__c has the active state model Bill__c.Lifecycle already.',
    ]);
  });

  it('must name a restricted picklist and its values; unreachable states are warnings', async () => {
    const wrongField = model(transition() + PAY);
    wrongField[MODEL] = wrongField[MODEL]!.replace('field: Status__c', 'field: Tag__c');
    assert.deepEqual(await problems(wrongField), [
      'STATE_MODEL_INVALID 4:1 The state is a restricted picklist, and Tag__c is none.',
    ]);
    for (const system of ['name', 'recordTypeApiName'])
      assert.deepEqual(await problems({ [MODEL]: wrongField[MODEL]!.replace('Tag__c', system) }), [
        `STATE_MODEL_INVALID 4:1 The state is a restricted picklist, and ${system} is none.`,
      ]);
    assert.deepEqual(
      await problems(model(transition('', '      - draft\n      - draft\n      - lost', 'send', 'gone'))),
      [
        'STATE_MODEL_INVALID 12:9 Duplicate state draft.',
        'STATE_MODEL_INVALID 13:9 Status__c has no active value lost.',
        'STATE_MODEL_INVALID 14:5 Status__c has no active value gone.',
      ],
    );
    assert.deepEqual(await problems(model(transition() + PAY, 'states:\n  - value: draft\n  - value: sent\n')), [
      'STATE_MODEL_INVALID 22:5 paid is not among the states.',
    ]);
    const island = await plan(new Map(), { ...BILL, ...model() });
    assert.deepEqual(
      [places(island), places(island, 'warnings')],
      [[], ['STATE_MODEL_INVALID 7:1 No transition leads from draft to paid.']],
    );
  });

  it('have at most a hundred states, named or not', async () => {
    const values = (count: number) => Array.from({ length: count }, (_, i) => `{value: v${i}}`).join(', ');
    const status = (count: number) =>
      fieldFile(
        'Bill__c',
        'Status__c',
        `fieldType: picklist\npicklist: {values: [{value: draft}, {value: sent}, ${values(count)}]}`,
      );
    assert.deepEqual(await problems({ ...model(), ...status(98) }), []);
    assert.deepEqual(await problems({ ...model(), ...status(99) }), [
      'LIMIT_EXCEEDED 4:1 An object may have at most 100 states.',
    ]);
    const named = model(transition(), 'states:\n  - value: draft\n  - value: sent\n');
    assert.deepEqual(await problems({ ...named, ...status(99) }), []);
  });

  it('have unique names, inactive ones included', async () => {
    const [[path, text]] = Object.entries(model(transition() + PAY)) as [[string, string]];
    const small = text
      .replace('Lifecycle', 'lifecycle')
      .replace('object: Bill__c\n', 'object: Bill__c\nactive: false\n');
    assert.deepEqual(await problems({ [path]: text, [path.replace('Lifecycle', 'lifecycle')]: small }), [
      'NAME_CONFLICT 2:1 Differs from Bill__c.Lifecycle in upper and lower case only.',
    ]);
  });

  it('are reported only when they, or a field of an object that they name, change', async () => {
    const { after } = await plan(new Map(), { ...BILL, ...model() });
    const told = async (files: Files): Promise<string[]> => places(await plan(after, files), 'warnings');
    const island = ['STATE_MODEL_INVALID null:null No transition leads from draft to paid.'];
    assert.deepEqual(await told(fieldFile('Bill__c', 'Due__c', 'fieldType: date\nhelpText: When')), island);
    assert.deepEqual(await told(fieldFile('Note__c', 'On__c', 'fieldType: date\nhelpText: When')), []);
    const effect = withEffects(
      '      - verb: createRecord\n        object: Note__c\n        fields:\n          Text__c: record.name\n          name: record.name\n',
    );
    const making = await plan(new Map(), { ...BILL, ...effect });
    const { blocked } = await plan(making.after, fieldFile('Note__c', 'On__c', 'fieldType: date\nrequired: true'));
    assert.deepEqual(
      blocked.map(({ message }) => message),
      ['The effect creates a record of Note__c without On__c, which is required.'],
    );
  });

  // Source: docs/reference/metadata.md#validate.
  it('that an earlier version accepted do not block unrelated changes', async () => {
    const nameless = withEffects(
      '      - verb: createRecord\n        object: Note__c\n        fields:\n          Text__c: record.name\n',
    );
    const taken = await plan(new Map(), { ...BILL, ...nameless });
    assert.match(taken.blocked[0]!.message, /without name/);
    const told = async (files: Files) => {
      const { blocked, warnings } = await plan(taken.after, files);
      const messages = (list: typeof blocked) => list.map(({ fullName, message }) => `${fullName}: ${message}`);
      return {
        blocked: messages(blocked),
        warnings: messages(warnings).filter((text) => /which is required/.test(text)),
      };
    };
    const old = 'Bill__c.Lifecycle: The effect creates a record of Note__c without name, which is required.';
    assert.deepEqual(await told(fieldFile('Note__c', 'On__c', 'fieldType: date\nhelpText: When')), {
      blocked: [],
      warnings: [old],
    });
    assert.deepEqual(
      await told(fieldFile('Note__c', 'On__c', 'fieldType: date\nrequired: true')),
      {
        blocked: ['Bill__c.Lifecycle: The effect creates a record of Note__c without On__c, which is required.'],
        warnings: [old],
      },
      'what is new',
    );
    const touched = Object.fromEntries(
      Object.entries(nameless).map(([path, text]) => [path, text.replace('initial: draft', 'initial: sent')]),
    );
    assert.ok((await told(touched)).blocked.includes(old), 'whoever changes it puts it right');
  });

  it('have an initial state that every record type allows', async () => {
    const type = (values: string[], field = 'Status__c'): Files => ({
      'objects/Bill__c/recordTypes/Late.yaml': `type: RecordType\napiName: Late\nobject: Bill__c\nlabel: Late\nactive: true\npicklistValues:\n  ${field}:\n${values.map((value) => `    - ${value}\n`).join('')}`,
    });
    const told = async (files: Files, before: State = new Map()): Promise<string[]> =>
      (await plan(before, files)).blocked.map((found) => `${found.code} ${found.fullName} ${found.message}`);
    const refusal = ['STATE_MODEL_INVALID Bill__c.Lifecycle Records of the type Bill__c.Late do not take draft.'];
    assert.deepEqual(await told({ ...BILL, ...model(), ...type(['paid', 'sent']) }), refusal);
    assert.deepEqual(await told({ ...BILL, ...model(), ...type(['draft', 'sent']) }), []);
    assert.deepEqual(await told({ ...BILL, ...model(), ...type(['a'], 'Tag__c') }), []);
    const { after } = await plan(new Map(), { ...BILL, ...model() });
    assert.deepEqual(await told(type(['paid']), after), refusal, 'the record type comes later');
  });

  it('set the initial state of records that effects create', async () => {
    const made = (state: string): Files =>
      withEffects(
        `      - verb: createRecord\n        object: Bill__c\n        fields:\n          Status__c: ${state}\n          name: record.name\n`,
      );
    assert.deepEqual(await problems(made(`'"draft"'`)), []);
    assert.deepEqual(await problems(made('record.Status__c')), [], 'the record tells');
    const [refusal, ...more] = await problems(made(`'"sent"'`));
    assert.match(refusal!, /^STATE_MODEL_INVALID \d+:\d+ A new record of Bill__c begins in the state draft\.$/);
    assert.deepEqual(more, []);
  });

  it('have keys that are unique over transitions and actions', async () => {
    const files = { ...model(transition() + transition('', '      - sent', 'Remind', 'paid')), ...action() };
    assert.deepEqual(await problems(files), [
      'NAME_CONFLICT 2:1 Duplicate key Remind among the transitions and actions of the object.',
    ]);
    const small = {
      [ACTION.replace('Remind', 'remind')]: files[ACTION]!.replace('apiName: Remind', 'apiName: remind'),
    };
    assert.deepEqual(await problems({ [MODEL]: files[MODEL]!, ...small }), [
      'NAME_CONFLICT 2:1 Bill__c.remind differs from Bill__c.Remind in upper and lower case only.',
    ]);
  });

  it('must have boolean guards and existing permissions', async () => {
    assert.deepEqual(await problems(model(transition('    guard: record.Amount__c\n') + PAY)), [
      'EXPRESSION_INVALID 13:12 It gives number where boolean is needed.',
    ]);
    assert.deepEqual(await problems(model(transition('    guard: input.day == today\n') + PAY)), [
      'EXPRESSION_INVALID 13:12 There is no variable input; there are record, old, user, now and today.',
    ]);
    assert.deepEqual(await problems(model(transition('    permission: Note__c.send\n') + PAY)), [
      'REFERENCE_INVALID 13:5 A permission here begins with Bill__c.',
    ]);
    assert.deepEqual(await problems(model(transition('    permission: Bill__c.sent\n') + PAY)), [
      'REFERENCE_INVALID 13:5 There is no transition or action Bill__c.sent.',
    ]);
    assert.deepEqual(await problems(model(transition('    guardMessage: No.\n') + PAY)), [
      'YAML_SCHEMA_INVALID 13:5 There is no guard to speak for.',
    ]);
  });

  it('accept a bounded JSON Schema as input', async () => {
    const input = (text: string) => model(transition(`    input:\n${text}`) + PAY);
    const wrong: [string, RegExp][] = [
      ['      type: string\n', /13:5 An input is an object/],
      ['      type: object\n      $ref: "https://elsewhere.example/schema"\n', /15:7 \$ref cannot be used/],
      ['      type: object\n      propertis:\n        a: true\n', /15:7 propertis is no keyword/],
      [
        '      type: object\n      properties:\n        a: true\n      required:\n        - a\n        - b\n',
        /19:11 b is none of the properties\./,
      ],
      ['      type: object\n      properties:\n        a:\n          type: text\n', /17:11 The value must be/],
      [
        '      type: object\n      properties:\n        a:\n          type: string\n          pattern: "^(a+)+b"\n',
        /18:11 A pattern .* begins with \^ and ends/,
      ],
      [
        '      type: object\n      properties:\n        a:\n          type: string\n          pattern: "^a|b$"\n',
        /18:11 Put the alternatives/,
      ],
      [
        '      type: object\n      properties:\n        a:\n          type: string\n          pattern: "^(?=a)b$"\n',
        /18:11 /,
      ],
      [
        '      type: object\n      properties:\n        a:\n          type: string\n          format: regex\n',
        /18:11 There are the formats/,
      ],
      [
        '      type: object\n      properties:\n        a:\n          minLength: 3\n',
        /cannot be used: strict mode: missing type "string"/,
      ],
      [
        '      type: object\n      properties:\n        a:\n          type: array\n          uniqueItems: true\n',
        /18:11 uniqueItems needs maxItems/,
      ],
    ];
    for (const [text, pattern] of wrong) assert.match((await problems(input(text))).join('\n'), pattern, text);
    const deep = Array.from({ length: 12 }, (_, i) => `${' '.repeat(6 + i * 2)}items:\n`).join('');
    assert.match(
      (await problems(input(`      type: object\n${deep}${' '.repeat(30)}type: object\n`))).join(),
      /nests deeper than 10/,
    );
    assert.deepEqual(
      await problems(
        input(
          '      type: object\n      properties:\n        a:\n          type: string\n          pattern: "^(?:a|b)+\\\\d{2}$"\n',
        ),
      ),
      [],
    );
  });

  it('accept only known effect verbs with their required properties', async () => {
    const cases: [string, string[]][] = [
      [
        '      - verb: updateFields\n        fields:\n          Twice__c: "1"\n',
        ['REFERENCE_INVALID 18:11 Twice__c is kept by the platform and cannot be set.'],
      ],
      ['      - verb: runScript\n', ['YAML_SCHEMA_INVALID']],
      [
        '      - verb: requestApproval\n',
        ['FEATURE_NOT_AVAILABLE 16:9 The effect requestApproval is not available yet.'],
      ],
      ['      - verb: updateFields\n', ['YAML_SCHEMA_INVALID 16:9 updateFields needs fields.']],
      [
        '      - verb: emitEvent\n        type: x\n        to: owner\n',
        ['YAML_SCHEMA_INVALID 18:9 emitEvent has no to.'],
      ],
      [
        '      - verb: updateFields\n        fields:\n          Status__c: \'"paid"\'\n',
        ['STATE_MODEL_INVALID 18:11 Status__c is the state, which only transitions change.'],
      ],
      [
        '      - verb: updateFields\n        fields:\n          Number__c: \'"B-1"\'\n',
        ['REFERENCE_INVALID 18:11 Number__c is kept by the platform and cannot be set.'],
      ],
      [
        '      - verb: updateFields\n        fields:\n          ownerId: user.id\n',
        ['REFERENCE_INVALID 18:11 ownerId is kept by the platform and cannot be set.'],
      ],
      [
        '      - verb: updateFields\n        fields:\n          Lost__c: today\n',
        ['REFERENCE_INVALID 18:11 There is no field Lost__c on Bill__c.'],
      ],
      [
        '      - verb: updateFields\n        fields:\n          Due__c: now\n',
        ['EXPRESSION_INVALID 18:19 It gives dateTime where date or null is needed.'],
      ],
      [
        '      - verb: updateFields\n        fields:\n          Due__c: input.day\n',
        ['EXPRESSION_INVALID 18:25 input has no day.'],
      ],
      [
        '      - verb: createRecord\n        object: Note__c\n        fields:\n          name: record.name\n',
        ['REFERENCE_INVALID 18:9 The effect creates a record of Note__c without Text__c, which is required.'],
      ],
      [
        '      - verb: createRecord\n        object: Note__c\n        fields:\n          Text__c: record.name\n',
        ['REFERENCE_INVALID 18:9 The effect creates a record of Note__c without name, which is required.'],
      ],
      [
        '      - verb: createRecord\n        object: User\n        fields:\n          name: record.name\n',
        ['DEPENDENCY_MISSING', 'REFERENCE_INVALID'],
      ],
      [
        '      - verb: sendNotification\n        type: Sent\n        to: Amount__c\n',
        ['REFERENCE_INVALID 18:9 Amount__c is neither owner nor actor nor a field of Bill__c that refers to a user.'],
      ],
      ['      - verb: sendNotification\n        type: Sent\n        to: KeeperId__c\n', []],
      [
        '      - verb: emitEvent\n        type: sent\n        data:\n          all: record.Lost__c\n',
        ['EXPRESSION_INVALID 19:23 There is no field Lost__c on Bill__c.'],
      ],
    ];
    for (const [text, expected] of cases) {
      const found = await problems(withEffects(text));
      if (expected.every((item) => item.includes(' '))) assert.deepEqual(found, expected, text);
      else assert.match(found.join(), new RegExp(expected.at(-1)!), text);
    }
  });

  describe('effects that are not available yet', () => {
    const EMIT = '      - verb: emitEvent\n        type: sent\n        data:\n          all: record.Amount__c\n';
    const OTHER = EMIT.replace('type: sent', 'type: gone');
    const withAction = (text: string): Files => action(`effects:\n${text.replaceAll(/^ {4}/gm, '')}`);
    const asked = async (before: State, files: Files): Promise<string[]> =>
      places(await planOf(before, files)).map((text) => text.replace(/ \d+:\d+/, ''));

    it('are refused in transitions and actions, with an alternative', async () => {
      const { after } = await plan(new Map(), BILL);
      const { blocked } = await planOf(after, { ...withEffects(EMIT), ...withAction(OTHER) });
      assert.deepEqual(blocked.map(({ code, type, message }) => [code, type, message]).toSorted(), [
        ['FEATURE_NOT_AVAILABLE', 'CustomAction', 'The effect emitEvent is not available yet.'],
        ['FEATURE_NOT_AVAILABLE', 'StateModel', 'The effect emitEvent is not available yet.'],
      ]);
      for (const { remedy } of blocked) assert.match(remedy!, /^Remove the effect/);
    });

    it('stay where already deployed when other parts change, and are refused when changed', async () => {
      const { after, blocked } = await plan(new Map(), { ...BILL, ...withEffects(OTHER + EMIT) });
      assert.deepEqual(blocked, [], 'the platform brings back what has been deployed');
      const relabelled = (text: string): Files => {
        const files = withEffects(text);
        return { [MODEL]: files[MODEL]!.replace('label: Send', 'label: Send it') };
      };
      assert.deepEqual(await asked(after, relabelled(OTHER + EMIT)), []);
      assert.deepEqual(await asked(after, relabelled(EMIT)), [], 'one less');
      assert.deepEqual(await asked(after, relabelled(OTHER.replace('gone', 'lost') + EMIT)), [
        'FEATURE_NOT_AVAILABLE The effect emitEvent is not available yet.',
      ]);
      const elsewhere = { ...relabelled(OTHER + EMIT), ...withAction(OTHER) };
      assert.deepEqual(await asked(after, elsewhere), [
        'FEATURE_NOT_AVAILABLE The effect emitEvent is not available yet.',
      ]);
    });

    it('are not in the templates', () => {
      const folder = join(import.meta.dirname, '../../../templates');
      const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.yaml'));
      assert.ok(files.length > 100);
      for (const path of files)
        assert.doesNotMatch(readFileSync(join(folder, path), 'utf8'), /verb: (emitEvent|requestApproval)/, path);
    });
  });

  it('block changes of referenced components, as permissions block the removal of a key', async () => {
    const grants = {
      'profiles/Clerk.yaml': 'type: Profile\napiName: Clerk\nlabel: Clerk\nactions:\n  - Bill__c.pay\n',
    };
    assert.deepEqual(await problems({ ...model(), ...grants }), [
      'REFERENCE_INVALID 5:5 There is no transition or action Bill__c.pay.',
    ]);
    const { after, blocked } = await plan(new Map(), {
      ...BILL,
      ...model(transition('    guard: record.Due__c <= today\n') + PAY),
      ...grants,
    });
    assert.deepEqual(blocked, []);
    const gone = await plan(after, model());
    assert.deepEqual(
      gone.blocked.map(({ type, message }) => [type, message]),
      [['Profile', 'There is no transition or action Bill__c.pay.']],
    );
    const path = 'objects/Bill__c/fields/Status__c.yaml';
    const fewer = await plan(after, { [path]: BILL[path]!.replace('    - value: paid\n      label: Paid\n', '') });
    assert.deepEqual(
      fewer.blocked.map(({ type, message }) => [type, message]),
      [['StateModel', 'Status__c has no active value paid.']],
    );
  });
});
