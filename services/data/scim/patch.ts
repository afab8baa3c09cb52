/**
 * Changes a resource by the operations of a PATCH (RFC 7644 section 3.5.2), in the way that clients send them: names in
 * any case, operations with a capital, booleans as texts, several attributes in one value without a path. Pure.
 */
import { filter as matcher, parse } from 'scim2-parse-filter';
import { isObject } from '../../../lib/json/objects.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { scimError, shown } from './errors.ts';
import { localPath, readFilter } from './filter.ts';
import { type Json, member } from './messages.ts';
import {
  type Attribute,
  ENTERPRISE_ATTRIBUTES,
  ENTERPRISE_SCHEMA,
  IGNORED_ATTRIBUTES,
  IGNORED_PARTS,
} from './schema.ts';

type Op = 'add' | 'remove' | 'replace';

/** One operation on one attribute. */
export interface Change {
  readonly op: Op;
  readonly attribute: Attribute;
  /** The filter in brackets; null: the whole attribute. */
  readonly filter: string | null;
  readonly sub: Attribute | null;
  readonly value: unknown;
}

const PATH_MAX_CHARS = 1_000;
/** Of an attribute: each operation looks at all of them. */
const VALUES_MAX = 100;
const PATH = /^([a-z$][\w$-]*)(?:\[(.*)\])?(?:\.([a-z$][\w$-]*))?$/is;

/** Values by the names of attributes, extensions unfolded: `manager` stands beside `userName`. */
export type Attributes = Readonly<Record<string, unknown>>;

/** The attributes of `before` after the operations of the body. `table`: what the resource has. */
export function patched(before: Attributes, body: Json, table: readonly Attribute[]): Attributes {
  const after: Record<string, unknown> = { ...before };
  for (const change of changesOf(body, table)) after[change.attribute.name] = applied(after, change);
  return after;
}

/** The operations of a body, one attribute at a time. */
export function* changesOf(body: Json, table: readonly Attribute[]): Generator<Change, undefined> {
  const operations = member(body, 'Operations');
  if (!Array.isArray(operations) || operations.length === 0)
    throw scimError('invalidSyntax', 'The body needs Operations: a list of {op, path, value}.');
  if (operations.length > LIMITS.scim_patch_operations_max)
    throw scimError('invalidValue', `A request may have at most ${LIMITS.scim_patch_operations_max} operations.`);
  for (const operation of operations) yield* changesOfOne(operation, table);
}

/** The attributes of a whole resource: those that it names, in the names of the table. */
export function attributesOf(body: Json, table: readonly Attribute[]): Attributes {
  const found: Record<string, unknown> = {};
  for (const { attribute, value } of valueChanges('replace', body, table))
    if (attribute.mutability !== 'readOnly')
      found[attribute.name] = applied({}, { op: 'replace', attribute, filter: null, sub: null, value });
  return found;
}

function* changesOfOne(operation: unknown, table: readonly Attribute[]): Generator<Change, undefined> {
  if (!isObject(operation)) throw scimError('invalidSyntax', 'An operation must be an object {op, path, value}.');
  const given = member(operation, 'op');
  const op = typeof given === 'string' ? given.toLowerCase() : '';
  if (op !== 'add' && op !== 'remove' && op !== 'replace')
    throw scimError('invalidSyntax', `op must be add, remove or replace, not ${shown(given)}.`);
  const path = member(operation, 'path');
  const value = member(operation, 'value');
  if (op !== 'remove' && value === undefined) throw scimError('invalidValue', `The operation ${op} needs a value.`);
  if (path === undefined || path === null || path === '') {
    if (op === 'remove') throw scimError('noTarget', 'The operation remove needs a path.');
    if (!isObject(value)) throw scimError('invalidValue', `Without a path, ${op} needs an object as its value.`);
    yield* valueChanges(op, value, table);
    return;
  }
  if (typeof path !== 'string' || path.length > PATH_MAX_CHARS)
    throw scimError('invalidPath', `A path may have at most ${PATH_MAX_CHARS} characters.`);
  if (path.toLowerCase() === ENTERPRISE_SCHEMA.toLowerCase()) {
    if (isObject(value)) yield* valueChanges(op, value, table);
    else if (op === 'remove') yield* removalsOf(table);
    else throw scimError('invalidValue', 'An extension takes an object as its value.');
    return;
  }
  const change = changeAt(op, path, value, table);
  if (change?.attribute.mutability === 'readOnly' || change?.sub?.mutability === 'readOnly')
    throw scimError('mutability', `${shown(withoutSchema(path))} is read-only.`);
  if (change) yield change;
}

/** Attributes of the extension. */
function* removalsOf(table: readonly Attribute[]): Generator<Change, undefined> {
  for (const attribute of table)
    if (ENTERPRISE_ATTRIBUTES.includes(attribute))
      yield { op: 'remove', attribute, filter: null, sub: null, value: undefined };
}

/** A value without a path: each member is a path of its own, as are those of an extension. */
function* valueChanges(
  op: 'add' | 'replace' | 'remove',
  value: Json,
  table: readonly Attribute[],
): Generator<Change, undefined> {
  for (const [name, part] of Object.entries(value)) {
    if (name.toLowerCase() === ENTERPRISE_SCHEMA.toLowerCase()) {
      if (isObject(part)) yield* valueChanges(op, part, table);
      continue;
    }
    const change = changeAt(op, name, part, table);
    // A client may send back an attribute that it has read.
    if (change && change.attribute.mutability !== 'readOnly' && change.sub?.mutability !== 'readOnly') yield change;
  }
}

/** As it was written, in its own case. */
const withoutSchema = (path: string): string => path.slice(path.length - localPath(path).length);

/** null: an attribute of SCIM that has no place here. */
function changeAt(op: Op, path: string, value: unknown, table: readonly Attribute[]): Change | null {
  const named = PATH.exec(withoutSchema(path));
  const [, name = '', filter = null, sub = null] = named ?? [];
  if (!named) throw scimError('invalidPath', `${shown(path)} is not a path such as emails[type eq "work"].value.`);
  if (IGNORED_ATTRIBUTES.has(name.toLowerCase())) return null;
  const attribute = table.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (!attribute) {
    if (/^urn:/i.test(path)) return null;
    throw scimError('invalidPath', `There is no attribute ${shown(name)}.`);
  }
  if (filter !== null && !attribute.multiValued)
    throw scimError('invalidPath', `${attribute.name} has one value and takes no filter.`);
  if (sub === null) return { op, attribute, filter, sub: null, value };
  const subAttribute = attribute.subAttributes?.find((one) => one.name.toLowerCase() === sub.toLowerCase());
  if (subAttribute) return { op, attribute, filter, sub: subAttribute, value };
  if (IGNORED_PARTS.has(`${attribute.name}.${sub}`.toLowerCase())) return null;
  throw scimError('invalidPath', `${attribute.name} has no ${shown(sub)}.`);
}

/** The attribute after the change; undefined: it has no value. */
export function applied(current: Attributes, change: Change): unknown {
  const { attribute } = change;
  const before = Object.hasOwn(current, attribute.name) ? current[attribute.name] : undefined;
  if (attribute.multiValued) return appliedToList(Array.isArray(before) ? before : [], change);
  if (attribute.type === 'complex') return appliedToComplex(isObject(before) ? before : {}, change);
  return change.op === 'remove' ? undefined : single(change.value, attribute);
}

function appliedToComplex(before: Json, { op, attribute, sub, value }: Change): unknown {
  if (op === 'remove') return sub === null ? undefined : { ...before, [sub.name]: undefined };
  if (sub !== null) return { ...before, [sub.name]: single(value, sub) };
  if (value === null) return undefined;
  // Entra sends the id of a manager as a text.
  const given = item(value, attribute);
  return op === 'add' ? { ...before, ...given } : given;
}

function appliedToList(before: readonly unknown[], change: Change): unknown {
  const { op, attribute, filter, sub, value } = change;
  const items = before.filter(isObject);
  if (filter === null && sub === null) {
    const given = value === undefined || value === null ? [] : listOf(value, attribute);
    if (op === 'replace') return given;
    if (op === 'add') return bounded([...without(items, given).map((one) => demoted(one, given)), ...given], attribute);
    // Entra names the members to remove as a value.
    return value === undefined || value === null ? [] : without(items, given);
  }
  const matches = filter === null ? (): boolean => true : matching(filter);
  const matched = items.filter((one) => matches(one));
  if (op === 'remove') {
    if (sub === null) return items.filter((one) => !matched.includes(one));
    return items.map((one) => (matched.includes(one) ? { ...one, [sub.name]: undefined } : one));
  }
  const next = (one: Json): Json =>
    sub === null ? { ...one, ...item(value, attribute) } : { ...one, [sub.name]: single(value, sub) };
  if (matched.length > 0) return items.map((one) => (matched.includes(one) ? next(one) : one));
  // A value matching the filter is created: Entra replaces emails[type eq "work"].value of a user without any.
  const described = filter === null ? {} : describedBy(filter);
  if (described === null) throw scimError('noTarget', `No value of ${attribute.name} matches the filter of the path.`);
  return bounded([...items.map((one) => demoted(one, [next(described)])), next(described)], attribute);
}

function bounded(items: Json[], { name }: Attribute): Json[] {
  if (items.length > VALUES_MAX) throw scimError('invalidValue', `${name} may have at most ${VALUES_MAX} values.`);
  return items;
}

/** A value that is primary takes that from the others. */
const demoted = (one: Json, given: readonly Json[]): Json =>
  given.some((other) => other['primary'] === true) ? { ...one, primary: false } : one;

const without = (items: readonly Json[], given: readonly Json[]): Json[] => {
  const values = new Set(given.map((one) => one['value']));
  return items.filter((one) => !values.has(one['value']));
};

function matching(filter: string): (one: Json) => boolean {
  readFilter(filter);
  return matcher(parse(filter));
}

/** The value that matches a filter of `eq` joined by `and`; null: the filter determines none. */
function describedBy(filter: string): Json | null {
  const node = readFilter(filter);
  const leaves = node.kind === 'and' ? node.nodes : [node];
  const described: Json = {};
  for (const leaf of leaves) {
    if (leaf.kind !== 'leaf' || leaf.operator !== 'eq') return null;
    described[leaf.path] = leaf.path === 'primary' ? truth(leaf.value) : leaf.value;
  }
  return described;
}

const truth = (value: unknown): unknown =>
  typeof value === 'string' && /^(?:true|false)$/i.test(value) ? value.toLowerCase() === 'true' : value;

/** The value of a simple attribute; throws invalidValue. */
function single(value: unknown, { name, type }: Attribute): unknown {
  // Some clients wrap it: [{"value": "…"}].
  const [bare] = Array.isArray(value) && value.length === 1 ? value : [value];
  const plain: unknown = isObject(bare) && Object.hasOwn(bare, 'value') ? bare['value'] : bare;
  if (plain === null || plain === undefined) return undefined;
  if (type === 'boolean') {
    const flag = truth(plain);
    if (typeof flag !== 'boolean')
      throw scimError('invalidValue', `${name} must be true or false, not ${shown(plain)}.`);
    return flag;
  }
  if (typeof plain !== 'string') throw scimError('invalidValue', `${name} must be a text, not ${shown(plain)}.`);
  return plain;
}

/** One value of a complex attribute; a text is its `value`. */
function item(given: unknown, { name, subAttributes = [] }: Attribute): Json {
  const value = Array.isArray(given) && given.length === 1 ? given[0] : given;
  if (typeof value === 'string') return { value };
  if (!isObject(value)) throw scimError('invalidValue', `${name} must be an object, not ${shown(given)}.`);
  const known: Json = {};
  for (const [key, part] of Object.entries(value)) {
    const sub = subAttributes.find((one) => one.name.toLowerCase() === key.toLowerCase());
    if (sub) known[sub.name] = single(part, sub);
  }
  return known;
}

function listOf(value: unknown, attribute: Attribute): Json[] {
  const given = Array.isArray(value) ? value : [value];
  if (given.length > VALUES_MAX)
    throw scimError('invalidValue', `${attribute.name} may have at most ${VALUES_MAX} values.`);
  const items = given.map((one) => item(one, attribute));
  const byValue = new Map(items.map((one) => [one['value'], one]));
  return [...byValue.values()];
}
