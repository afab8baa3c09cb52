/** The parts of the description that have a name, so that each is described once and generators give it one type. */
import { isDeepStrictEqual } from 'node:util';
import type { TSchema } from 'typebox';

export type Json = Record<string, unknown>;

/** A parameter with the name of its component, should several operations have it. */
export interface DescribedParameter {
  readonly component: string;
  readonly content: Json;
}

type Kind = 'schemas' | 'parameters' | 'responses';

export const reference = (kind: Kind | 'examples', name: string): Json => ({ $ref: `#/components/${kind}/${name}` });

export class Components {
  readonly all: Record<Kind, Record<string, Json>> = { schemas: {}, parameters: {}, responses: {} };
  readonly #occurrences = new Map<string, number>();

  /** Throws when another part of the kind has the name. */
  add(kind: Kind, name: string, content: Json): Json {
    const same = (this.all[kind][name] ??= content);
    if (same !== content && !isDeepStrictEqual(same, content))
      throw new Error(`Two different ${kind} of the API have the name ${name}.`);
    return reference(kind, name);
  }

  /** The schema as the description has it: parts with a title are components of that name. */
  schema(schema: TSchema): Json {
    return this.#visit(schema) as Json;
  }

  countParameters(parameters: readonly DescribedParameter[]): void {
    for (const { content } of parameters) {
      const text = JSON.stringify(content);
      this.#occurrences.set(text, (this.#occurrences.get(text) ?? 0) + 1);
    }
  }

  /** A parameter of one operation, or the name of one that several have. */
  parameter({ component, content }: DescribedParameter): Json {
    const described = this.#visit(content) as Json;
    const isShared = (this.#occurrences.get(JSON.stringify(content)) ?? 0) > 1;
    return isShared ? this.add('parameters', component, described) : described;
  }

  #visit(part: unknown): unknown {
    if (Array.isArray(part)) return part.map((one) => this.#visit(one));
    if (typeof part !== 'object' || part === null) return part;
    const entries = Object.entries(part).map(([key, inner]) => [key, key === 'example' ? inner : this.#visit(inner)]);
    const { title, ...schema } = plain(Object.fromEntries(entries));
    // A property can have this name: its value is a schema, and not a text.
    if (title === undefined || typeof title !== 'string') return title === undefined ? schema : { title, ...schema };
    return this.add('schemas', title, schema);
  }
}

/** The pattern by which typebox says that a mapping takes any name. */
const ANY_NAME = '^.*$';

/** The schema in the words that generators of clients understand. */
function plain(schema: Json): Json {
  return withTypeOfNull(withTypeOfEnum(withAnyName(schema)));
}

/** A mapping with any names. */
function withAnyName(schema: Json): Json {
  const { patternProperties: patterns, ...rest } = schema;
  if (typeof patterns !== 'object' || patterns === null || 'additionalProperties' in rest) return schema;
  const [only, ...others] = Object.entries(patterns);
  return only?.[0] === ANY_NAME && others.length === 0 ? { ...rest, additionalProperties: only[1] } : schema;
}

/** One of several texts: an enumeration, which has a type. */
function withTypeOfEnum(schema: Json): Json {
  const { anyOf, ...rest } = schema;
  const constants = Array.isArray(anyOf)
    ? anyOf.map((one: Json) => one['const'] ?? (isNull(one) ? null : undefined))
    : null;
  const values = constants ?? (rest['type'] === undefined ? rest['enum'] : undefined);
  if (!Array.isArray(values) || !values.every((one) => typeof one === 'string' || one === null)) return schema;
  const type = values.includes(null) ? ['string', 'null'] : 'string';
  return values.some((one) => one !== null) ? { ...rest, type, enum: values } : schema;
}

/** A text or number that can be null: of two types, which is shorter than two schemas and the same to generators. */
function withTypeOfNull(schema: Json): Json {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [value, none]: Json[] = anyOf;
  if (!value || !none || !isNull(none) || typeof value['type'] !== 'string' || 'enum' in value) return schema;
  return { ...value, ...rest, type: [value['type'], 'null'] };
}

const isNull = (schema: Json): boolean => schema['type'] === 'null' && Object.keys(schema).length === 1;
