/**
 * From the text of an expression to a checked tree: names against the fields of one object, operators and functions
 * against types. Everything that is wrong is found at once, each with its place. The syntax is that of CEL; what the
 * parser makes of it is only read here, so nothing of it runs.
 * Source: docs/reference/expressions.md.
 */
import { type ASTNode, Environment, ParseError } from '@marcbachmann/cel-js';
import { messageOf } from '../errors/thrown.ts';
import { textProblem } from '../schema/field-types/common.ts';
import { ownEntry } from '../schema/lookup.ts';
import { SYSTEM_PERMISSIONS } from '../schema/snapshot.ts';
import { exactOf } from '../values/decimal.ts';
import { FUNCTIONS, isFunction, OPERATORS_ONLY, type Signature } from './functions.ts';
import { expressionSql } from './sql.ts';
import {
  type Expression,
  ExpressionError,
  type FunctionName,
  isScalar,
  itemOf,
  type Mistake,
  type Node,
  type ScalarType,
  type Schema,
  type Type,
  type VariableName,
} from './types.ts';
import { typeOfField } from './values.ts';

export const EXPRESSION_MAX_CHARS = 4_000;
const NODES_MAX = 1_000;
const DEPTH_MAX = 200;

const parser = new Environment({
  limits: {
    maxAstNodes: NODES_MAX,
    maxDepth: DEPTH_MAX,
    maxListElements: 200,
    maxMapEntries: 1,
    maxCallArguments: 10,
  },
});

/** Properties of `user`. */
const USER_PROPERTIES: Readonly<Record<string, Type>> = {
  id: 'text',
  username: 'text',
  displayName: 'text',
  locale: 'text',
  timezone: 'text',
  profileApiName: 'text',
  roleApiName: 'text',
  permissionSetApiNames: 'list:text',
};

const PARTS: Readonly<Partial<Record<Type, Readonly<Record<string, Type>>>>> = {
  address: { street: 'text', city: 'text', state: 'text', postalCode: 'text', country: 'text' },
  geolocation: { latitude: 'number', longitude: 'number' },
};

const ORDERED: ReadonlySet<Type> = new Set(['text', 'number', 'date', 'dateTime', 'time'] as const);
const VARIABLES: readonly VariableName[] = ['record', 'old', 'user', 'now', 'today'];

type How = 'exists' | 'all' | 'filter';
/** Operands of an operator between two values. */
type Operands = readonly [ASTNode, ASTNode];

const isVariable = (name: string): name is VariableName => VARIABLES.some((variable) => variable === name);
const isHow = (name: string): name is How => name === 'exists' || name === 'all' || name === 'filter';

const isList = (type: Type): type is `list:${ScalarType}` | 'list:null' => type.startsWith('list:');
const nameOf = (type: Type): string =>
  isList(type) ? (type === 'list:null' ? 'an empty list' : `a list of ${type.slice(5)}`) : type;

/**
 * Most units of an expression that the database runs for each record of a list: about five milliseconds at worst. What
 * is evaluated once for a request may cost more.
 */
export const RECORD_COST_MAX = 5_000;

const RECORD_AND_TIME: readonly VariableName[] = ['record', 'now', 'today'];

/**
 * Checks an expression over nothing but the record and the time (or fewer `variables`), which therefore has a form in
 * SQL: it also costs no more than RECORD_COST_MAX, whatever the record holds, because a database does not count. Throws
 * like checkExpression.
 */
export function checkRecordExpression(source: string, schema: Schema, results: readonly Type[]): Expression {
  const expression = checkExpression(source, { variables: RECORD_AND_TIME, ...schema }, results);
  const cost = recordCost(expression, schema);
  if (cost > RECORD_COST_MAX)
    throw new ExpressionError([
      {
        start: 0,
        message: `It can cost ${Math.ceil(cost)} units for one record, and ${RECORD_COST_MAX} are the most.`,
        remedy:
          'Do not go through lists within lists, nor change the case of long texts or look for one in another. A field with a ' +
          'smaller length costs less.',
      },
    ]);
  return expression;
}

/** Most units that an expression over a record costs, with texts and lists as long as its fields allow. */
export const recordCost = (expression: Expression, schema: Schema): number =>
  expressionSql(expression, {
    column: (name) => `"${name}"`,
    fieldType: (name) => schema.fieldType(name),
    length: (name) => schema.length?.(name) ?? null,
    cost: (name) => schema.cost?.(name) ?? 0,
    timezone: 'UTC',
  }).cost;

/**
 * Checks an expression that must give one of the types `results`. Throws ExpressionError with every mistake.
 * Costs no more than its length allows: at most 1,000 parts, 200 levels.
 */
export function checkExpression(source: string, schema: Schema, results: readonly Type[]): Expression {
  const check = new Check(source, schema);
  const ast = parse(source);
  const { node, type } = check.visit(ast, 0, []);
  if (type !== 'mistaken' && !results.includes(type))
    check.mistake(ast, `It gives ${nameOf(type)} where ${results.map(nameOf).join(' or ')} is needed.`);
  if (check.mistakes.length > 0) throw new ExpressionError(check.mistakes);
  return { root: node, type, fields: [...check.fields].sort() };
}

/** The fields of the record that a text names wherever it stands in it; null when it is not well-formed. */
export const fieldsOfExpression = (source: string): ReadonlySet<string> | null => partsNamed(source, ['record', 'old']);

/** The same of the input of a transition. */
export const inputsOfExpression = (source: string): ReadonlySet<string> | null => partsNamed(source, ['input']);

function partsNamed(source: string, variables: readonly string[]): ReadonlySet<string> | null {
  const found = new Set<string>();
  const left: unknown[] = [];
  try {
    left.push(parse(source));
  } catch (error) {
    if (error instanceof ExpressionError) return null;
    throw error;
  }
  for (let part = left.pop(); part !== undefined; part = left.pop()) {
    if (Array.isArray(part)) left.push(...part);
    if (!isAst(part)) continue;
    if ((part.op === '.' || part.op === '.?') && names(part.args[0], variables)) found.add(part.args[1]);
    left.push(part.args);
  }
  return found;
}

const isAst = (part: unknown): part is ASTNode =>
  typeof part === 'object' && part !== null && 'op' in part && 'args' in part;

const names = (target: ASTNode, variables: readonly string[]): boolean =>
  target.op === 'id' && variables.includes(target.args);

function parse(source: string): ASTNode {
  if (source.length > EXPRESSION_MAX_CHARS)
    throw new ExpressionError([
      { start: 0, message: `It is longer than ${EXPRESSION_MAX_CHARS} characters.`, remedy: null },
    ]);
  try {
    return parser.parse(source).ast;
  } catch (error) {
    const problem = error instanceof ParseError ? error : null;
    const summary = problem?.summary ?? messageOf(error);
    const start = problem?.range?.start ?? 0;
    const tooDeep = error instanceof RangeError || /^Exceeded max(?:Depth|AstNodes)/.test(summary);
    // The parser names half of a character beyond the first 65,536.
    const detail = inWords(summary).replace(/\p{Surrogate}/u, source.slice(start, start + 2));
    const message = tooDeep
      ? `It nests deeper than ${DEPTH_MAX} levels or has more than ${NODES_MAX} parts.`
      : `It is not well-formed: ${detail}.`;
    const remedy = source[start] === '=' ? 'Compare with `==`.' : null;
    throw new ExpressionError([{ start: Math.min(start, source.trimEnd().length), message, remedy }]);
  }
}

const TOKENS: Readonly<Record<string, string>> = {
  EOF: 'the end',
  RPAREN: '`)`',
  LPAREN: '`(`',
  RBRACKET: '`]`',
  RBRACE: '`}`',
  COLON: '`:`',
  COMMA: '`,`',
  IDENTIFIER: 'a name',
  NUMBER: 'a number',
  STRING: 'a text',
};

/** The parser's message without the names that its tokens have inside. */
const inWords = (message: string): string =>
  message.replace(/\b[A-Z]{3,}\b/g, (token) => TOKENS[token] ?? token.toLowerCase()).replace(/\.$/, '');

interface Checked {
  readonly node: Node;
  readonly type: Type;
}

interface Variable {
  readonly name: string;
  readonly type: ScalarType;
  readonly slot: number;
}

class Check {
  readonly mistakes: Mistake[] = [];
  readonly fields = new Set<string>();
  readonly #source: string;
  readonly #schema: Schema;

  constructor(source: string, schema: Schema) {
    this.#source = source;
    this.#schema = schema;
  }

  mistake(at: { start: number }, message: string, remedy: string | null = null): Checked {
    this.mistakes.push({ start: at.start, message, remedy });
    return { node: { op: 'literal', value: null, start: at.start }, type: 'mistaken' };
  }

  visit(ast: ASTNode, depth: number, scope: readonly Variable[]): Checked {
    const { start } = ast;
    if (depth > DEPTH_MAX) return this.mistake(ast, `It nests deeper than ${DEPTH_MAX} levels.`);
    const inner = (node: ASTNode): Checked => this.visit(node, depth + 1, scope);
    switch (ast.op) {
      case 'value':
        return this.#literal(ast);
      case 'id':
        return this.#variable(ast, ast.args, scope);
      case '.':
        return this.#member(ast, ast.args[0], ast.args[1], inner);
      case '!_':
        return { node: { op: 'not', value: this.#condition(ast.args, inner).node, start }, type: 'boolean' };
      case '-_':
        return this.#function(ast, 'negate', [ast.args], inner);
      case '&&':
      case '||': {
        const [left, right] = [this.#condition(ast.args[0], inner).node, this.#condition(ast.args[1], inner).node];
        return { node: { op: ast.op === '&&' ? 'and' : 'or', left, right, start }, type: 'boolean' };
      }
      case '?:':
        return this.#choice(ast, inner);
      case '==':
      case '!=':
        return this.#equality(ast, ast.args, ast.op, inner);
      case '<':
      case '<=':
      case '>':
      case '>=':
        return this.#order(ast, ast.args, ast.op, inner);
      case 'in':
        return this.#membership(ast, ast.args, inner);
      case '+':
        return this.#sum(ast, ast.args, inner);
      case '-':
        return this.#function(ast, 'subtract', ast.args, inner);
      case '*':
        return this.#function(ast, 'multiply', ast.args, inner);
      case '/':
        return this.#function(ast, 'divide', ast.args, inner);
      case '%':
        return this.#function(ast, 'remainder', ast.args, inner);
      case 'list':
        return this.#list(ast, ast.args, inner);
      case 'call':
        return this.#call(ast, ast.args[0], ast.args[1], inner);
      case 'rcall': {
        const [name, receiver, args] = ast.args;
        if (isHow(name)) return this.#each(ast, name, receiver, args, depth, scope);
        if (!isFunction(name)) return this.mistake(ast, `There is no function .${name}().`);
        if (!FUNCTIONS[name].method)
          return this.mistake(ast, `There is no function .${name}().`, `Write ${name}(…) before the value.`);
        return this.#function(ast, name, [receiver, ...args], inner);
      }
      case '[]':
      case '[?]':
        return this.mistake(ast, 'Items are not taken by their position or name.', 'Use `in`, exists() or all().');
      default:
        return this.mistake(ast, 'There are no maps or optional values.');
    }
  }

  #literal(ast: ASTNode & { op: 'value' }): Checked {
    const { args: value, start } = ast;
    if (value === null) return { node: { op: 'literal', value, start }, type: 'null' };
    if (typeof value === 'boolean') return { node: { op: 'literal', value, start }, type: 'boolean' };
    if (typeof value === 'string') {
      const problem = textProblem(value);
      if (problem !== null) return this.mistake(ast, `The text ${problem}`);
      return { node: { op: 'literal', value: value.normalize('NFC'), start }, type: 'text' };
    }
    // The digits as they are written: the parser has turned 0.1 into the nearest binary fraction.
    const number = exactOf(this.#source.slice(ast.start, ast.end));
    if (number) return { node: { op: 'literal', value: number, start }, type: 'number' };
    return this.mistake(ast, 'Numbers are written in decimal digits, such as 12.5; there are no bytes.');
  }

  #variable(ast: ASTNode, name: string, scope: readonly Variable[]): Checked {
    const { start } = ast;
    const found = scope.findLast((variable) => variable.name === name);
    if (found) return { node: { op: 'item', slot: found.slot, start }, type: found.type };
    if (name === 'input' && this.#schema.input)
      return this.mistake(ast, 'input is not a value.', 'Name a part of it: input.<name>.');
    const outside = this.#outside(ast, name);
    if (outside) return outside;
    switch (name) {
      case 'now':
        return { node: { op: 'now', start }, type: 'dateTime' };
      case 'today':
        return { node: { op: 'today', start }, type: 'date' };
      case 'old':
        return { node: { op: 'not', value: { op: 'isCreate', start }, start }, type: 'record' };
      case 'record':
        return { node: { op: 'literal', value: true, start }, type: 'record' };
      case 'user':
        return { node: { op: 'literal', value: true, start }, type: 'user' };
      default:
        return this.mistake(
          ast,
          `There is no variable ${name}; there ${inList([...(this.#schema.input ? ['input'] : []), ...(this.#schema.variables ?? VARIABLES)])}.`,
          this.#schema.fieldType(name) ? `Write record.${name}.` : null,
        );
    }
  }

  /** A mistake when this expression is not about `name`. */
  #outside(ast: { start: number }, name: string, called: string = name): Checked | null {
    const { variables } = this.#schema;
    if (!variables || !isVariable(name) || variables.includes(name)) return null;
    return this.mistake(ast, `${called} has no meaning here; there ${inList(variables)}.`);
  }

  #member(ast: ASTNode, target: ASTNode, name: string, inner: (node: ASTNode) => Checked): Checked {
    const { start } = ast;
    // The place of the name, not of what stands before it.
    const at = { start: ast.pos };
    const outside = target.op === 'id' ? this.#outside(target, target.args) : null;
    if (outside) return outside;
    if (target.op === 'id' && (target.args === 'record' || target.args === 'old')) {
      const fieldType = this.#schema.fieldType(name);
      const type = fieldType && typeOfField(fieldType);
      if (!fieldType)
        return this.mistake(
          at,
          `There is no field ${name} on ${this.#schema.object}.`,
          this.#schema.fieldType(`${name}__c`) ? `Write ${name}__c.` : null,
        );
      if (!type) return this.mistake(at, `${name} is a field of type ${fieldType}, which cannot be used here.`);
      this.fields.add(name);
      return { node: { op: 'field', of: target.args, field: name, start }, type };
    }
    if (target.op === 'id' && target.args === 'user') {
      const type = ownEntry(USER_PROPERTIES, name);
      if (!type) return this.mistake(at, `user has no ${name}.`, `It has ${Object.keys(USER_PROPERTIES).join(', ')}.`);
      return { node: { op: 'user', property: name, start }, type };
    }
    if (target.op === 'id' && target.args === 'input' && this.#schema.input) {
      const type = ownEntry(this.#schema.input, name);
      if (!type) return this.mistake(at, `input has no ${name}.`, `Add ${name} to the properties of its schema.`);
      return { node: { op: 'input', name, start }, type };
    }
    const value = inner(target);
    if (value.type === 'mistaken') return value;
    const type = ownEntry(PARTS[value.type] ?? {}, name);
    if (type) return { node: { op: 'part', value: value.node, part: name, start }, type };
    return this.mistake(
      at,
      `${nameOf(value.type)} has no ${name}.`,
      value.type === 'text' ? 'Fields of the record that a reference names cannot be read.' : null,
    );
  }

  /** Something that is true or false. */
  #condition(ast: ASTNode, inner: (node: ASTNode) => Checked): Checked {
    const value = inner(ast);
    if (value.type === 'boolean' || value.type === 'mistaken') return value;
    return this.mistake(ast, `It gives ${nameOf(value.type)} where true or false is needed.`);
  }

  #choice(ast: ASTNode & { op: '?:' }, inner: (node: ASTNode) => Checked): Checked {
    const condition = this.#condition(ast.args[0], inner).node;
    const [yes, no] = [inner(ast.args[1]), inner(ast.args[2])];
    const type = this.#common(yes.type, no.type);
    if (!type || type === 'record' || type === 'user')
      return this.mistake(ast, `The choice is between ${nameOf(yes.type)} and ${nameOf(no.type)}.`);
    return { node: { op: 'if', condition, yes: yes.node, no: no.node, start: ast.start }, type };
  }

  /** The type of a value that has either of two; null: there is none. */
  #common(a: Type, b: Type): Type | null {
    if (a === 'mistaken' || b === 'mistaken') return 'mistaken';
    if (a === b || b === 'null') return a;
    if (a === 'null') return b;
    if (isList(a) && b === 'list:null') return a;
    if (isList(b) && a === 'list:null') return b;
    return null;
  }

  #equality(ast: ASTNode, args: Operands, sign: '==' | '!=', inner: (node: ASTNode) => Checked): Checked {
    const { start } = ast;
    const [left, right] = [inner(args[0]), inner(args[1])];
    const types = [left.type, right.type];
    if (types.includes('record') && types.includes('null')) {
      const old = args.some((arg) => arg.op === 'id' && arg.args === 'old');
      if (!old) return this.mistake(ast, 'record is never null.');
      const isCreate: Node = { op: 'isCreate', start };
      return { node: sign === '==' ? isCreate : { op: 'not', value: isCreate, start }, type: 'boolean' };
    }
    const common = this.#common(left.type, right.type);
    const comparable =
      common !== null &&
      common !== 'record' &&
      common !== 'user' &&
      (common === 'mistaken' || isScalar(common) || types.includes('null'));
    if (!comparable) this.#incomparable(ast, left.type, right.type);
    return {
      node: { op: sign === '==' ? 'equal' : 'unequal', left: left.node, right: right.node, start },
      type: 'boolean',
    };
  }

  #order(ast: ASTNode, args: Operands, sign: '<' | '<=' | '>' | '>=', inner: (node: ASTNode) => Checked): Checked {
    const [left, right] = [inner(args[0]), inner(args[1])];
    const mistaken = left.type === 'mistaken' || right.type === 'mistaken';
    if (!mistaken && (left.type !== right.type || !ORDERED.has(left.type)))
      this.#incomparable(ast, left.type, right.type);
    const op = ({ '<': 'less', '<=': 'lessOrEqual', '>': 'greater', '>=': 'greaterOrEqual' } as const)[sign];
    return { node: { op, left: left.node, right: right.node, start: ast.start }, type: 'boolean' };
  }

  #incomparable(ast: ASTNode, left: Type, right: Type): void {
    const types = [left, right];
    const dated = types.find((type) => type === 'date' || type === 'dateTime' || type === 'time');
    let remedy: string | null = null;
    if (types.includes('date') && types.includes('dateTime')) remedy = 'Turn the moment into a day: date(…).';
    else if (dated && types.includes('text')) remedy = `Turn the text into a value: ${dated}("…").`;
    else if (types.some(isList)) remedy = 'Ask a list with `in`, size(), exists() or all().';
    else if (types.includes('null')) remedy = 'Ask with isBlank(…) or `== null`.';
    this.mistake(ast, `${nameOf(left)} and ${nameOf(right)} cannot be compared in this way.`, remedy);
  }

  #membership(ast: ASTNode, args: Operands, inner: (node: ASTNode) => Checked): Checked {
    const [value, list] = [inner(args[0]), inner(args[1])];
    const fits =
      value.type === 'mistaken' ||
      list.type === 'mistaken' ||
      (isScalar(value.type) && (list.type === `list:${value.type}` || list.type === 'list:null'));
    if (!fits)
      this.mistake(
        ast,
        `${nameOf(value.type)} is not looked for in ${nameOf(list.type)}.`,
        list.type === 'text' ? 'Look into a text with .contains(…).' : null,
      );
    return { node: { op: 'in', value: value.node, list: list.node, start: ast.start }, type: 'boolean' };
  }

  #sum(ast: ASTNode, args: Operands, inner: (node: ASTNode) => Checked): Checked {
    const [left, right] = [inner(args[0]), inner(args[1])];
    if (left.type === 'mistaken') return left;
    if (right.type === 'mistaken') return right;
    const types = [left.type, right.type];
    if (types.every((type) => type === 'text')) return this.#made(ast, 'join', [left, right], 'text');
    if (types.every((type) => type === 'number')) return this.#made(ast, 'add', [left, right], 'number');
    return this.mistake(
      ast,
      `${nameOf(left.type)} and ${nameOf(right.type)} cannot be added.`,
      types.some((type) => type === 'date' || type === 'dateTime') ? 'Use addDays(date, days).' : null,
    );
  }

  #list(ast: ASTNode, args: readonly ASTNode[], inner: (node: ASTNode) => Checked): Checked {
    const items = args.map((arg) => ({ arg, ...inner(arg) }));
    const first = items.find((item) => item.type !== 'mistaken')?.type ?? (items.length ? 'mistaken' : 'null');
    for (const { arg, type } of items)
      if (type !== 'mistaken' && (type !== first || !isScalar(type)))
        return this.mistake(
          arg,
          isScalar(first) ? `A list of ${first} takes no ${nameOf(type)}.` : `A list holds no ${nameOf(type)}.`,
        );
    const type: Type = first === 'mistaken' ? 'mistaken' : isScalar(first) ? `list:${first}` : 'list:null';
    return { node: { op: 'list', items: items.map((item) => item.node), start: ast.start }, type };
  }

  #each(
    ast: ASTNode,
    how: How,
    receiver: ASTNode,
    args: readonly ASTNode[],
    depth: number,
    scope: readonly Variable[],
  ): Checked {
    const list = this.visit(receiver, depth + 1, scope);
    const [variable, body, ...more] = args;
    if (variable?.op !== 'id' || body === undefined || more.length > 0)
      return this.mistake(ast, `.${how}() takes a name and a condition: .${how}(item, item != "").`);
    if (list.type !== 'mistaken' && !isList(list.type))
      return this.mistake(receiver, `.${how}() goes through a list, not through ${nameOf(list.type)}.`);
    const name = variable.args;
    const type = itemOf(list.type);
    const slot = scope.length;
    const condition = this.#condition(body, (node) =>
      this.visit(node, depth + 1, [...scope, { name, type, slot }]),
    ).node;
    return {
      node: { op: 'each', how, list: list.node, slot, condition, start: ast.start },
      type: how === 'filter' ? list.type : 'boolean',
    };
  }

  #call(ast: ASTNode, name: string, args: readonly ASTNode[], inner: (node: ASTNode) => Checked): Checked {
    const { start } = ast;
    const about = Object.hasOwn(FUNCTIONS_ABOUT, name) ? FUNCTIONS_ABOUT[name] : undefined;
    const outside = about && this.#outside(ast, about, `${name}()`);
    if (outside) return outside;
    switch (name) {
      case 'isChanged': {
        const [field] = args;
        if (args.length !== 1 || field?.op !== '.' || field.args[0].op !== 'id' || field.args[0].args !== 'record')
          return this.mistake(ast, 'isChanged() takes a field of the record: isChanged(record.name).');
        const value = inner(field);
        if (value.type === 'mistaken') return value;
        return { node: { op: 'changed', field: field.args[1], start }, type: 'boolean' };
      }
      case 'hasPermission': {
        const [permission] = args;
        const known = SYSTEM_PERMISSIONS.find((item) => permission?.op === 'value' && permission.args === item);
        if (args.length !== 1 || !known)
          return this.mistake(
            permission ?? ast,
            'hasPermission() takes the name of a system permission in quotes.',
            `There are ${SYSTEM_PERMISSIONS.join(', ')}.`,
          );
        return { node: { op: 'permission', name: known, start }, type: 'boolean' };
      }
      case 'inGroup': {
        const [group] = args;
        if (args.length !== 1 || group?.op !== 'value' || typeof group.args !== 'string')
          return this.mistake(group ?? ast, 'inGroup() takes the apiName of a group in quotes.');
        if (this.#schema.hasGroup && !this.#schema.hasGroup(group.args))
          return this.mistake(group, `There is no group ${group.args}.`);
        return { node: { op: 'group', name: group.args, start }, type: 'boolean' };
      }
      case 'isBlank': {
        const [value, ...more] = args.map(inner);
        if (!value || more.length > 0 || value.type === 'record' || value.type === 'user')
          return this.mistake(ast, 'isBlank() takes one value.');
        return { node: { op: 'isBlank', value: value.node, start }, type: 'boolean' };
      }
      case 'coalesce': {
        const items = args.map(inner);
        let type: Type | null = items[0]?.type ?? null;
        for (const item of items.slice(1)) type &&= this.#common(type, item.type);
        if (!type || type === 'record' || type === 'user')
          return this.mistake(ast, 'coalesce() takes values of one type.');
        return { node: { op: 'coalesce', items: items.map((item) => item.node), start }, type };
      }
      default: {
        if (!isFunction(name) || OPERATORS_ONLY.has(name)) return this.mistake(ast, `There is no function ${name}().`);
        if (FUNCTIONS[name].method && name !== 'size')
          return this.mistake(ast, `${name}() is called on a value.`, `Write value.${name}(…).`);
        return this.#function(ast, name, args, inner);
      }
    }
  }

  #function(ast: ASTNode, name: FunctionName, args: readonly ASTNode[], inner: (node: ASTNode) => Checked): Checked {
    const operands = args.map(inner);
    const mistaken = operands.find((operand) => operand.type === 'mistaken');
    if (mistaken) return mistaken;
    const { signatures } = FUNCTIONS[name];
    const found = signatures.find((signature) => fits(signature, operands));
    if (!found) {
      const given = operands.map((operand) => nameOf(operand.type)).join(', ') || 'nothing';
      const wanted = signatures.map((signature) => `(${signature.params.map(paramName).join(', ')})`).join(' or ');
      return this.mistake(ast, `${OPERATOR_NAMES[name] ?? `${name}()`} takes ${wanted}, not (${given}).`);
    }
    const arg = found.literal && args[found.literal.at];
    if (found.literal && arg) {
      if (arg.op !== 'value' || typeof arg.args !== 'string')
        return this.mistake(arg, `${name}() takes a text in quotes here, so that it can be checked beforehand.`);
      const problem = found.literal.problem(arg.args);
      if (problem) return this.mistake(arg, problem);
    }
    return this.#made(ast, name, operands, found.result);
  }

  #made(ast: ASTNode, fn: FunctionName, operands: readonly Checked[], type: Type): Checked {
    const args = operands.map((operand) => operand.node);
    return { node: { op: 'call', fn, args, onNull: type === 'boolean' ? false : null, start: ast.start }, type };
  }
}

const inList = (names: readonly string[]): string =>
  names.length === 1 ? `is ${names[0]}` : `are ${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;

/** Functions whose answer depends on a variable that they do not name. */
const FUNCTIONS_ABOUT: Readonly<Record<string, VariableName>> = {
  isChanged: 'old',
  hasPermission: 'user',
  inGroup: 'user',
};

const OPERATOR_NAMES: Readonly<Record<string, string>> = {
  negate: '-',
  subtract: '-',
  multiply: '*',
  divide: '/',
  remainder: '%',
};

const paramName = (param: Type | 'anyList'): string => (param === 'anyList' ? 'list' : param);

function fits({ params, optional = 0 }: Signature, operands: readonly Checked[]): boolean {
  if (operands.length > params.length || operands.length < params.length - optional) return false;
  return operands.every(({ type }, index) => type === params[index] || (params[index] === 'anyList' && isList(type)));
}
