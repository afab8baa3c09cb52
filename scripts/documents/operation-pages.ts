/** One page for each operation, and the list of them, from the description of the API. */
import { EXAMPLES, type RecordedExample } from '../../contracts/examples.ts';
import { GUIDANCE } from '../../contracts/guidance.ts';
import { API_PREFIX } from '../../lib/addresses.ts';
import { CATALOGUE } from '../../lib/errors/catalogue.ts';
import { membersOf } from '../../lib/json/objects.ts';
import type { Operation } from '../../lib/operation.ts';
import { ownEntry } from '../../lib/schema/lookup.ts';
import { required } from '../../lib/values/required.ts';
import { type Described, type DescribedParameter, describedOperations, type Json } from './described.ts';
import { exampleSection } from './examples.ts';
import { type Page, page } from './page.ts';

/** Levels of a body that a table of its properties goes down. */
const DEPTH_MAX = 3;

export function operationPages(operations: readonly Operation[], description: Json): Page[] {
  const { schemas } = description['components'] as { schemas: Record<string, Json> };
  const all = describedOperations(description);
  const described = (one: Operation): Described => required(all, one.operationId);
  return [
    page('operations', 'operations', list(operations, described)),
    ...operations.map((one) =>
      page(
        `operations/${one.operationId}`,
        'operations',
        markdown(one, described(one), schemas, ownEntry(EXAMPLES, one.operationId)),
      ),
    ),
  ];
}

function list(operations: readonly Operation[], described: (one: Operation) => Described): string {
  const tags = new Map<string, Operation[]>();
  for (const one of operations) {
    const [tag = ''] = described(one).tags;
    tags.set(tag, [...(tags.get(tag) ?? []), one]);
  }
  const sections = [...tags].map(
    ([tag, rows]) => `## ${tag}

| operation | request |
| --------- | ------- |
${rows.map((one) => `| [${one.summary}](operations/${one.operationId}.md) | \`${one.method} ${one.path}\` |`).join('\n')}
`,
  );
  return `# API operations

Every operation with its parameters, bodies, answers and errors. Paths are below \`${API_PREFIX}\`. The same for programs is in
[the API description](openapi.json).

${sections.join('\n')}`;
}

function markdown(
  one: Operation,
  described: Described,
  schemas: Record<string, Json>,
  example: RecordedExample | undefined,
): string {
  const named = (scopes: readonly string[], word: string): string => scopes.map((scope) => `\`${scope}\``).join(word);
  const scopes = typeof one.scopes === 'string' ? one.scopes : named(one.scopes, ', ');
  const facts: [string, string][] = [
    ['request', `\`${one.method} ${API_PREFIX}${one.path}\``],
    ['operationId', `\`${one.operationId}\``],
    ['scope', one.oneOfScopes ? named(one.oneOfScopes, ' or ') : scopes],
    ...(one.permission ? [fact('system permission', `\`${one.permission}\``)] : []),
    ['risk', one.risk],
    ['cost', `${one.cost} ${one.cost === 1 ? 'unit' : 'units'}`],
    ['mutation', one.mutation ? 'yes: needs `Idempotency-Key`' : 'no'],
    ...(one.checkedBy ? [fact('tried out by', `\`${one.checkedBy.operationId}\``)] : []),
    ['precondition', one.precondition === 'none' ? 'none' : `\`${one.precondition}\``],
    ['approval for agents', one.agentApproval],
    ['stability', one.stability],
  ];
  const body = described.requestBody;
  const success = Object.entries(described.responses).filter(([status]) => Number(status) < 400);
  return `# ${one.summary}

${described.description}

${guidance(one)}
${table(['attribute', 'value'], facts)}
${parameters(described.parameters)}${body ? requestBody(body, schemas) : ''}
${example ? exampleSection(example) : ''}
## Answers

${success.map(([status, answer]) => answerOf(status, answer, schemas)).join('\n')}
## Errors

${errors(described)}
[Errors](../reference/errors.md) describes the body that all of them have.
`;
}

function guidance({ operationId }: Operation): string {
  const { whenToUse, whenNotToUse, preconditions } = required(GUIDANCE, operationId);
  const before = preconditions.map((one) => `- ${one}\n`).join('');
  return `**When to use it:** ${whenToUse}

**When not:** ${whenNotToUse}
${before && `\n**Before:**\n\n${before}`}`;
}

function parameters(given: readonly DescribedParameter[]): string {
  if (given.length === 0) return '';
  const rows = given.map((one) => [
    `\`${one.name}\``,
    one.in,
    typeOf(one.schema ?? Object.values(one.content ?? {})[0]?.schema ?? {}) + (one.required ? ', required' : ''),
    one.description,
  ]);
  return `\n## Parameters\n\n${table(['name', 'in', 'type', 'meaning'], rows)}`;
}

function requestBody(
  { required, description = '', content }: NonNullable<Described['requestBody']>,
  schemas: Record<string, Json>,
): string {
  const [media] = Object.values(content);
  const types = Object.keys(content).map((type) => `\`${type}\``);
  const rows = media ? properties(media.schema, schemas) : [];
  return `
## Body

${required ? 'Required' : 'Optional'}, ${types.join(' or ')}. ${description}

${rows.length > 0 ? table(['property', 'type', 'meaning'], rows) : ''}`;
}

function answerOf(
  status: string,
  { description, content }: Described['responses'][string],
  schemas: Record<string, Json>,
): string {
  const [media] = Object.values(content ?? {});
  const rows = media ? properties(media.schema, schemas) : [];
  return `### ${status}

${description}

${rows.length > 0 ? table(['property', 'type', 'meaning'], rows) : ''}`;
}

function errors({ 'x-erp-errors': codes }: Described): string {
  return table(
    ['status', 'code', 'meaning'],
    [...codes]
      .sort((one, other) => CATALOGUE[one].status - CATALOGUE[other].status)
      .map((code) => [String(CATALOGUE[code].status), `[\`${code}\`](../errors/${code}.md)`, CATALOGUE[code].title]),
  );
}

/** The properties of an object, those of its parts with a dot, of items with `[]`. */
function properties(schema: Json, schemas: Record<string, Json>, prefix = '', depth = 1): string[][] {
  const own = resolve(schema, schemas);
  const required = new Set(textsOf(own['required']));
  return Object.entries(membersOf(own['properties'])).flatMap(([name, given]) => {
    const part = resolve(membersOf(given), schemas);
    const array = part['type'] === 'array';
    const row = [
      `\`${prefix}${name}\``,
      typeOf(part) + (required.has(name) ? '' : ', optional'),
      String(membersOf(given)['description'] ?? part['description'] ?? ''),
    ];
    const inner = array ? membersOf(part['items']) : part;
    const more =
      depth < DEPTH_MAX ? properties(inner, schemas, `${prefix}${name}${array ? '[]' : ''}.`, depth + 1) : [];
    return [row, ...more];
  });
}

const fact = (name: string, text: string): [string, string] => [name, text];

const textsOf = (given: unknown): string[] => (Array.isArray(given) ? given.map(String) : []);

/** Target of a reference; for a nullable schema, its other part. */
function resolve(schema: Json, schemas: Record<string, Json>): Json {
  const name = String(schema['$ref'] ?? '').replace('#/components/schemas/', '');
  const found = name === '' ? schema : (schemas[name] ?? schema);
  const parts = Array.isArray(found['anyOf']) ? found['anyOf'].map(membersOf) : [];
  const filled = parts.filter(({ type }) => type !== 'null');
  const [only] = filled;
  return only && filled.length === 1 && parts.length === 2 ? resolve(only, schemas) : found;
}

function typeOf(schema: Json): string {
  const { type, enum: values, const: constant, anyOf, items, format } = schema;
  if (constant !== undefined) return `\`${JSON.stringify(constant)}\``;
  if (Array.isArray(values)) return values.length > 12 ? 'string' : values.map((value) => `\`${value}\``).join(', ');
  if (Array.isArray(anyOf)) return [...new Set(anyOf.map((part) => typeOf(membersOf(part))))].join(' or ');
  if (type === 'array') return `list of ${typeOf(membersOf(items))}`;
  if (typeof schema['$ref'] === 'string') return 'object';
  if (Array.isArray(type)) return type.join(' or ');
  return typeof type === 'string' ? (typeof format === 'string' ? `${type} (${format})` : type) : 'any value';
}

/** A table in Markdown; a line break or a bar in a cell would end it. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|').replace(/\s+/g, ' ');
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |\n`;
  return line(head) + line(head.map(() => '---')) + rows.map(line).join('');
}
