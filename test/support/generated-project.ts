/**
 * A generated configuration of a business system: of the requested size, the same for the same seed.
 * Its files are in the canonical form, so that a retrieve of what was deployed gives the same bytes. Pure.
 */
import { pathOf } from '../../lib/metadata/paths.ts';
import { emitYaml } from '../../lib/yaml/emit.ts';
import type { YamlValue } from '../../lib/yaml/parse.ts';
import { findKind } from '../../services/metadata/kinds/registry.ts';
import { canonicalBody } from '../../services/metadata/kinds/schema.ts';
import { Choices } from '../../templates/samples/random.ts';

/** How many components of each type. */
export interface Sizes {
  readonly objects: number;
  readonly fields: number;
  readonly validationRules: number;
  readonly duplicateRules: number;
  readonly stateModels: number;
  readonly actions: number;
  readonly recordTypes: number;
  readonly sharingRules: number;
  readonly roles: number;
  readonly groups: number;
  readonly permissionSets: number;
  readonly dashboards: number;
  readonly valueSets: number;
}

/** 60 objects with 1,200 fields, 200 rules, 40 state models, 30 sharing rules: a real business. */
export const BUSINESS: Sizes = {
  objects: 60,
  fields: 1_200,
  validationRules: 200,
  duplicateRules: 20,
  stateModels: 40,
  actions: 20,
  recordTypes: 40,
  sharingRules: 30,
  roles: 25,
  groups: 15,
  permissionSets: 20,
  dashboards: 12,
  valueSets: 30,
};

/** 5,000 components. */
export const LARGE: Sizes = {
  objects: 120,
  fields: 3_460,
  validationRules: 500,
  duplicateRules: 60,
  stateModels: 80,
  actions: 60,
  recordTypes: 100,
  sharingRules: 150,
  roles: 100,
  groups: 90,
  permissionSets: 100,
  dashboards: 50,
  valueSets: 130,
};

/** So many times as much of everything. */
export const multiplied = (sizes: Sizes, by: number): Sizes =>
  Object.fromEntries(Object.entries(sizes).map(([name, count]) => [name, count * by])) as unknown as Sizes;

type Body = Readonly<Record<string, YamlValue>>;

/** Bodies by the paths of their files. */
type Generated = ReadonlyMap<string, Body>;

const AREAS = [
  'Sales', 'Purchase', 'Stock', 'Service', 'Project', 'Asset', 'Travel', 'Quality', 'Fleet', 'Contract', 'Payroll',
  'Budget', 'Tender', 'Claim', 'Lease', 'Training', 'Audit', 'Energy', 'Safety', 'Media',
]; // biome-ignore format: a table of words
const NOUNS = ['Order', 'OrderLine', 'Request', 'RequestLine', 'Plan', 'PlanLine'];
const STATES = ['draft', 'submitted', 'approved', 'active', 'closed', 'canceled'];
const REGIONS = ['north', 'south', 'east', 'west'];

const words = (name: string): string =>
  name
    .replace(/__c$/, '')
    .replace(/(?<=[a-z])(?=[A-Z\d])/g, ' ')
    .toLowerCase()
    .replace(/^./, (first) => first.toUpperCase());

interface GeneratedObject {
  readonly name: string;
  /** The object that it is a detail of. */
  readonly master: string | null;
  readonly hasLines: boolean;
  readonly private: boolean;
}

function objectAt(i: number): GeneratedObject {
  const nameAt = (n: number): string => {
    const round = Math.floor(n / (AREAS.length * NOUNS.length));
    const area = AREAS[Math.floor(n / NOUNS.length) % AREAS.length];
    return `${area}${NOUNS[n % NOUNS.length]}${round === 0 ? '' : round + 1}__c`;
  };
  const isLine = i % 2 === 1;
  return { name: nameAt(i), master: isLine ? nameAt(i - 1) : null, hasLines: !isLine, private: !isLine && i % 4 === 0 };
}

/** Definition of a field by its name, beyond name and object. */
type FieldMaker = (choices: Choices, of: GeneratedObject) => Record<string, YamlValue>;

/** The fields of every object, in this order; what is beyond them repeats the later ones under numbered names. */
const CORE_FIELDS: readonly (readonly [string, FieldMaker])[] = [
  [
    'Status__c',
    () => ({
      fieldType: 'picklist',
      required: true,
      picklist: {
        values: STATES.map((value, i) => ({ value, label: words(value), ...(i === 0 ? { default: true } : {}) })),
      },
    }),
  ],
  ['Amount__c', () => ({ fieldType: 'currency', precision: 18, scale: 2 })],
  ['Quantity__c', () => ({ fieldType: 'decimal', precision: 12, scale: 3, minimum: 0 })],
  ['StartDate__c', () => ({ fieldType: 'date' })],
  ['EndDate__c', () => ({ fieldType: 'date' })],
  ['Code__c', () => ({ fieldType: 'text', length: 40, unique: true, externalId: true })],
  [
    'Region__c',
    () => ({ fieldType: 'picklist', picklist: { values: REGIONS.map((value) => ({ value, label: words(value) })) } }),
  ],
  ['Priority__c', () => ({ fieldType: 'integer', minimum: 1, maximum: 5, defaultValue: 3 })],
];

const LINKS: readonly string[] = ['Category__c', 'Responsible__c', 'Total__c', 'Days__c'];

const MORE_FIELDS: readonly (readonly [string, FieldMaker])[] = [
  ['Note', (choices) => ({ fieldType: 'longText', length: choices.one([2_000, 8_000, 32_768]) })],
  ['Reference', (choices) => ({ fieldType: 'text', length: choices.one([40, 80, 120, 255]) })],
  ['Discount', () => ({ fieldType: 'percent', precision: 7, scale: 3 })],
  ['Confirmed', (choices) => ({ fieldType: 'boolean', defaultValue: choices.chance(0.5) })],
  ['Email', () => ({ fieldType: 'email' })],
  ['Phone', () => ({ fieldType: 'phone' })],
  ['Website', () => ({ fieldType: 'url' })],
  ['ReceivedAt', () => ({ fieldType: 'dateTime' })],
  ['OpensAt', () => ({ fieldType: 'time' })],
  ['Cost', (choices) => ({ fieldType: 'decimal', precision: 18, scale: choices.integer(2, 6) })],
  ['Effort', () => ({ fieldType: 'duration' })],
  [
    'Tags',
    () => ({
      fieldType: 'multiPicklist',
      picklist: { values: ['urgent', 'export', 'internal', 'sample'].map((value) => ({ value, label: words(value) })) },
    }),
  ],
  ['Body', () => ({ fieldType: 'richText' })],
  ['Address', () => ({ fieldType: 'address' })],
  ['Position', () => ({ fieldType: 'geolocation' })],
  ['Settings', () => ({ fieldType: 'json' })],
  ['Count', (choices) => ({ fieldType: 'integer', minimum: 0, maximum: choices.integer(100, 10_000) })],
];

/** The path of a component's file, and its body as the platform writes it. */
function component(type: string, names: Record<string, string>, body: Record<string, YamlValue>): [string, Body] {
  const kind = findKind(type);
  const fullName = [names['object'], names['apiName']].filter((name) => name !== undefined).join('.');
  const path = pathOf(type, fullName);
  if (!kind || !path) throw new Error(`There is no ${type} ${fullName}.`);
  return [path, canonicalBody(kind.schema, { type, ...names, ...body })];
}

/** Counts of `total` things spread evenly over `places`. */
const share = (total: number, places: number, i: number): number =>
  places === 0 ? 0 : Math.floor((total * (i + 1)) / places) - Math.floor((total * i) / places);

class Project {
  readonly bodies = new Map<string, Body>();
  readonly #sizes: Sizes;
  readonly #choices: Choices;
  readonly #objects: readonly GeneratedObject[];
  readonly #fieldNames = new Map<string, string[]>();

  constructor(sizes: Sizes, seed: string) {
    this.#sizes = sizes;
    this.#choices = new Choices(`project/${seed}`);
    this.#objects = Array.from({ length: sizes.objects }, (_, i) => objectAt(i));
    this.#people();
    this.#valueSets();
    for (const [i, object] of this.#objects.entries()) this.#object(object, i);
    this.#rules();
    this.#permissionSets();
    this.#dashboards();
  }

  #add(type: string, names: Record<string, string>, body: Record<string, YamlValue>): void {
    const [path, canonical] = component(type, names, body);
    this.bodies.set(path, canonical);
  }

  #role(i: number): string {
    return `Team${(i % Math.max(1, this.#sizes.roles)) + 1}`;
  }

  #people(): void {
    for (let i = 0; i < this.#sizes.roles; i++)
      this.#add(
        'Role',
        { apiName: this.#role(i) },
        { label: `Team ${i + 1}`, ...(i === 0 ? {} : { parent: this.#role(Math.floor((i - 1) / 4)) }) },
      );
    for (let i = 0; i < this.#sizes.groups; i++)
      this.#add(
        'Group',
        { apiName: `Group${i + 1}` },
        {
          label: `Group ${i + 1}`,
          members: {
            roles: [...new Set([this.#role(i * 3), this.#role(i * 7 + 1)])],
            groups: i > 0 && i % 5 === 0 ? [`Group${i}`] : [],
          },
        },
      );
  }

  #valueSets(): void {
    for (let i = 0; i < this.#sizes.valueSets; i++)
      this.#add(
        'ValueSet',
        { apiName: `Category${i + 1}` },
        {
          label: `Category ${i + 1}`,
          description: 'How records of this kind are grouped in reports.',
          values: Array.from({ length: this.#choices.integer(5, 40) }, (_, n) => ({
            value: `c${n + 1}`,
            label: `Category ${i + 1}.${n + 1}`,
          })),
        },
      );
  }

  #object(object: GeneratedObject, i: number): void {
    const { name, master } = object;
    this.#add(
      'CustomObject',
      { apiName: name },
      {
        label: words(name),
        labelPlural: `${words(name)}s`,
        description: `${words(name)}s of the company, from the first draft until they are closed.`,
        nameField: master
          ? { label: 'Number', fieldType: 'autoNumber', format: 'L-{000000}' }
          : { label: 'Title', fieldType: 'text' },
        sharingDefault: master ? 'controlledByParent' : object.private ? 'private' : 'readWrite',
        api: { published: true },
        features: { duplicates: !master && i % 4 === 0 },
        defaultSearchFields: ['Code__c', 'name'],
      },
    );
    const fields = this.#fieldNames;
    fields.set(name, []);
    const wanted = Math.max(share(this.#sizes.fields, this.#sizes.objects, i), CORE_FIELDS.length);
    const made: (readonly [string, FieldMaker])[] = [...CORE_FIELDS, ...this.#links(object, i)];
    for (let n = 0; made.length < wanted; n++) {
      const [word, make] = MORE_FIELDS[n % MORE_FIELDS.length]!;
      const round = Math.floor(n / MORE_FIELDS.length);
      made.push([`${word}${round === 0 ? '' : round + 1}__c`, make]);
    }
    for (const [field, make] of made.slice(0, wanted)) {
      fields.get(name)!.push(field);
      this.#add(
        'CustomField',
        { apiName: field, object: name },
        {
          label: words(field),
          helpText: `${words(field)} of the ${words(name).toLowerCase()}, as agreed with those who ask for it.`,
          ...make(this.#choices, object),
        },
      );
    }
  }

  /** References between objects, and computed fields over them. */
  #links(object: GeneratedObject, i: number): (readonly [string, FieldMaker])[] {
    const { master, hasLines } = object;
    const links: (readonly [string, FieldMaker])[] = [];
    if (master)
      links.push([
        'Master__c',
        () => ({
          fieldType: 'masterDetail',
          required: true,
          referenceTo: [master],
          relationshipName: 'Lines',
          onDelete: 'cascade',
        }),
      ]);
    if (this.#sizes.valueSets > 0)
      links.push([
        LINKS[0]!,
        () => ({ fieldType: 'picklist', picklist: { valueSet: `Category${(i % this.#sizes.valueSets) + 1}` } }),
      ]);
    links.push([
      LINKS[1]!,
      () => ({ fieldType: 'reference', referenceTo: ['User'], relationshipName: `Responsible${i}` }),
    ]);
    const line = hasLines ? this.#objects[i + 1] : undefined;
    links.push([
      LINKS[2]!,
      () =>
        line
          ? {
              fieldType: 'rollup',
              rollup: {
                childObject: line.name,
                referenceField: 'Master__c',
                function: 'sum',
                field: 'Amount__c',
                criteria: 'record.Status__c != "canceled"',
              },
            }
          : {
              fieldType: 'formula',
              precision: 18,
              scale: 2,
              formula: {
                expression: 'coalesce(record.Amount__c, 0) * coalesce(record.Quantity__c, 1)',
                resultType: 'decimal',
              },
            },
    ]);
    links.push([
      LINKS[3]!,
      () => ({
        fieldType: 'formula',
        formula: { expression: 'daysBetween(record.StartDate__c, record.EndDate__c)', resultType: 'integer' },
      }),
    ]);
    const before = this.#objects[i - 2];
    if (before && i % 2 === 0)
      links.push([
        'Previous__c',
        () => ({
          fieldType: 'reference',
          referenceTo: [before.name],
          relationshipName: `Next${i}`,
          onDelete: 'setNull',
        }),
      ]);
    return links;
  }

  #rules(): void {
    const { validationRules, duplicateRules, stateModels, actions, recordTypes, sharingRules, objects } = this.#sizes;
    const heads = this.#objects.filter(({ master }) => master === null);
    const hidden = this.#objects.filter((object) => object.private);
    for (const [i, { name: object }] of this.#objects.entries()) {
      for (let n = 0; n < share(validationRules, objects, i); n++) this.#validationRule(object, n);
      for (let n = 0; n < share(stateModels, objects, i); n++) this.#stateModel(object);
      for (let n = 0; n < share(actions, objects, i); n++)
        this.#add(
          'CustomAction',
          { apiName: `Remind${n + 1}`, object },
          {
            label: 'Send a reminder',
            guard: 'record.Status__c == "active"',
            effects: [{ verb: 'updateFields', fields: { StartDate__c: 'today' } }],
          },
        );
      for (let n = 0; n < share(recordTypes, objects, i); n++)
        this.#add(
          'RecordType',
          { apiName: `Kind${n + 1}`, object },
          {
            label: `Kind ${n + 1}`,
            description: 'Records that are handled in their own way.',
            picklistValues: { Region__c: REGIONS.slice(0, 2 + (n % 2)) },
          },
        );
    }
    for (const [i, { name: object }] of hidden.entries()) {
      for (let n = 0; n < share(duplicateRules, hidden.length, i); n++)
        this.#add(
          'DuplicateRule',
          { apiName: `Same${n + 1}`, object },
          {
            action: n % 2 === 0 ? 'confirm' : 'block',
            threshold: 0.85,
            match: [
              { field: 'name', method: 'fuzzy', weight: 3 },
              { field: 'Code__c', method: 'normalized' },
            ],
          },
        );
    }
    const shared = hidden.length > 0 ? hidden : heads;
    for (const [i, { name: object }] of shared.entries())
      for (let n = 0; n < share(sharingRules, shared.length, i); n++) this.#sharingRule(object, n, i);
  }

  #validationRule(object: string, n: number): void {
    const least = this.#choices.integer(0, 500);
    const conditions: readonly (readonly [string, string])[] = [
      ['EndDate__c', 'record.EndDate__c < record.StartDate__c'],
      ['Amount__c', `record.Status__c == "approved" && record.Amount__c < ${least}`],
      ['Quantity__c', `record.Status__c in ["approved", "active"] && record.Quantity__c > ${least + 1_000}`],
      ['Priority__c', `record.Region__c == "north" && record.Priority__c > ${(n % 4) + 1}`],
      ['Code__c', `record.Status__c != "draft" && isBlank(record.Code__c)`],
    ];
    const [errorField, condition] = conditions[n % conditions.length]!;
    this.#add(
      'ValidationRule',
      { apiName: `Rule${n + 1}`, object },
      { condition, errorField, message: `${words(errorField)} does not fit the rest of the record.` },
    );
  }

  #stateModel(object: string): void {
    const step = (key: string, from: readonly string[], to: string, more: Record<string, YamlValue> = {}) => ({
      key,
      label: words(key),
      description: `The record goes on to ${to}.`,
      from: [...from],
      to,
      permission: `${object}.${key}`,
      ...more,
    });
    this.#add(
      'StateModel',
      { apiName: 'Lifecycle', object },
      {
        field: 'Status__c',
        initial: 'draft',
        transitions: [
          step('submit', ['draft'], 'submitted', {
            guard: 'record.Amount__c > 0',
            guardMessage: 'Nothing is asked for.',
            effects: [{ verb: 'updateFields', fields: { StartDate__c: 'coalesce(record.StartDate__c, today)' } }],
          }),
          step('approve', ['submitted'], 'approved', {
            requiresComment: true,
            effects: [{ verb: 'updateFields', fields: { StartDate__c: 'today' } }],
          }),
          step('begin', ['approved'], 'active'),
          step('close', ['active'], 'closed', {
            effects: [{ verb: 'updateFields', fields: { EndDate__c: 'today' } }],
          }),
          step('cancel', ['draft', 'submitted', 'approved'], 'canceled', { risk: 'high', requiresComment: true }),
        ],
      },
    );
  }

  #sharingRule(object: string, n: number, i: number): void {
    const { roles, groups } = this.#sizes;
    const to: YamlValue =
      n % 2 === 0 || groups === 0 ? { role: this.#role(i + n) } : { group: `Group${((i + n) % groups) + 1}` };
    const opens: Record<string, YamlValue> =
      n % 3 === 0 && roles > 0
        ? { kind: 'owner', from: { role: this.#role(i + n + 2) } }
        : {
            kind: 'criteria',
            criteria: `record.Region__c == "${REGIONS[(i + n) % REGIONS.length]}" && record.Amount__c > ${n * 1_000}`,
          };
    this.#add(
      'SharingRule',
      { apiName: `Share${n + 1}`, object },
      { ...opens, to, access: n % 2 === 0 ? 'read' : 'readWrite' },
    );
  }

  #permissionSets(): void {
    const models = this.#objects.filter(({ name }) => this.bodies.has(`objects/${name}/stateModels/Lifecycle.yaml`));
    for (let i = 0; i < this.#sizes.permissionSets; i++) {
      const objects = [0, 1, 2, 3].flatMap((n) => this.#objects[(i * 4 + n) % this.#objects.length] ?? []);
      const names = [...new Set(objects.map(({ name }) => name))];
      const acts = models.filter(({ name }) => names.includes(name));
      this.#add(
        'PermissionSet',
        { apiName: `Desk${i + 1}` },
        {
          label: `Desk ${i + 1}`,
          description: 'For those who work on these records every day.',
          objects: Object.fromEntries(
            names.map((name) => [name, { create: true, read: true, update: true, delete: i % 3 === 0 }]),
          ),
          fields: Object.fromEntries(
            names.flatMap((name) =>
              this.#fieldNames
                .get(name)!
                .map((field) => [`${name}.${field}`, { read: true, edit: !['Total__c', 'Days__c'].includes(field) }]),
            ),
          ),
          actions: acts.flatMap(({ name }) => [`${name}.submit`, `${name}.approve`]),
        },
      );
    }
  }

  #dashboards(): void {
    for (let i = 0; i < this.#sizes.dashboards; i++) {
      const widgets = [0, 1, 2, 3].flatMap((n) => {
        const object = this.#objects[(i * 2 + n) % this.#objects.length];
        if (!object) return [];
        const isMetric = n % 2 === 0;
        return [
          {
            widgetKey: `w${n + 1}`,
            title: `${words(object.name)}s${isMetric ? '' : ' by region'}`,
            type: isMetric ? 'metric' : 'bar',
            layout: { x: (n % 2) * 6, y: Math.floor(n / 2) * 4, w: 6, h: 4 },
            query: {
              objectApiName: object.name,
              ...(isMetric ? {} : { dimensions: [{ field: 'Region__c' }] }),
              measures: [{ key: 'amount', aggregation: 'sum', field: 'Amount__c' }],
              filters: {
                logic: 'and',
                conditions: [{ id: 'c1', field: 'Status__c', operator: 'eq', value: 'active' }],
              },
            },
          },
        ];
      });
      this.#add(
        'Dashboard',
        { apiName: `Overview${i + 1}` },
        {
          name: `Overview ${i + 1}`,
          description: 'What is open, and where.',
          visibility: 'shared',
          sharedWith:
            this.#sizes.roles > 0 ? [{ principalType: 'role', principalId: this.#role(i), access: 'view' }] : [],
          widgets,
        },
      );
    }
  }
}

export const generateProject = (sizes: Sizes, seed: string): Generated => new Project(sizes, seed).bodies;

/** The files of a project, by path. */
export const filesOf = (project: Generated): Record<string, string> =>
  Object.fromEntries([...project].map(([path, body]) => [path, emitYaml(body as { [key: string]: YamlValue })]));

/**
 * The same project after a while: `count` of its components say something else. Only the changed ones; what fits the
 * rest still does.
 */
export function changedComponents(project: Generated, count: number, seed: string): Generated {
  const choices = new Choices(`changes/${seed}`);
  const left = [...project];
  const changed = new Map<string, Body>();
  while (changed.size < count && left.length > 0) {
    const [[path, body] = []] = left.splice(choices.integer(0, left.length - 1), 1);
    if (path === undefined || body === undefined) break;
    changed.set(path, changeOf(body, choices.integer(2, 1_000_000)));
  }
  return changed;
}

function changeOf(body: Body, number: number): Body {
  const kind = findKind(String(body['type']));
  if (!kind) throw new Error('A component has a type.');
  const { length, condition, helpText, fieldType } = body;
  const more: Record<string, YamlValue> =
    typeof condition === 'string'
      ? { condition: `(${condition}) && record.Amount__c != ${number}` }
      : fieldType === 'text' && typeof length === 'number' && length < 255
        ? { length: length + 1 }
        : typeof helpText === 'string'
          ? { helpText: `${helpText} Revision ${number}.` }
          : body['type'] === 'SharingRule'
            ? { access: body['access'] === 'read' ? 'readWrite' : 'read' }
            : body['type'] === 'DuplicateRule'
              ? { threshold: 0.8 + (number % 100) / 1_000 }
              : body['type'] === 'StateModel'
                ? { allowDirectEdit: body['allowDirectEdit'] !== true }
                : body['type'] === 'Dashboard'
                  ? { description: `What is open, and where. Revision ${number}.` }
                  : { label: `${String(body['label'])} ${number}` };
  return canonicalBody(kind.schema, { ...body, ...more });
}
