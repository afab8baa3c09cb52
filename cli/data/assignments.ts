/**
 * The body of a record from the command line: `field=text`, `field:=json`, `--data`. Texts take the type of their field;
 * what the platform refuses, it refuses itself, with all violations at once.
 */
import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { usage } from '../failure.ts';
import { parseExact } from '../http/json.ts';
import type { Field } from './objects.ts';

export type Body = Record<string, unknown>;

const ASSIGNMENT = /^([^=:\s]+)(:?=)([\s\S]*)$/;
const JSON_TYPES = new Set(['geolocation', 'address', 'json']);

/** True when types of fields are needed to read these. */
export const needsTypes = (assignments: readonly string[]): boolean =>
  assignments.some((text) => ASSIGNMENT.exec(text)?.[2] === '=');

/** Names of fields that are assigned a text, `field=text`. */
export const assignedTexts = (assignments: readonly string[]): string[] =>
  assignments.flatMap((text) => {
    const [, name, sign] = ASSIGNMENT.exec(text) ?? [];
    return name !== undefined && sign === '=' ? [name] : [];
  });

/** `--data` and assignments as one body; assignments win. */
export async function readBody(
  assignments: readonly string[],
  data: string | undefined,
  fieldOf: (apiName: string) => Field | undefined,
): Promise<Body> {
  const body: Body = data === undefined ? {} : await readData(data);
  for (const text of assignments) {
    const [, name = '', sign, value = ''] = ASSIGNMENT.exec(text) ?? [];
    if (!name) throw usage(`${text} is no assignment.`, 'Write field=value, field= to clear it, or field:=JSON.');
    // defineProperty: a name such as __proto__ is a member like any other, for the platform to refuse.
    const content = sign === ':=' ? parseMember(value, name) : typed(value, fieldOf(name), name);
    Object.defineProperty(body, name, { value: content, enumerable: true, configurable: true, writable: true });
  }
  return body;
}

/** `{…}`, `@file`, or `-` for standard input. */
export async function readData<Expected extends object = Body>(data: string): Promise<Expected> {
  const value = parse(await textOf(data), '--data');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw usage('--data takes a JSON object.');
  // The platform checks it against the schema, and names everything that is wrong with it.
  return value as Expected;
}

async function textOf(data: string): Promise<string> {
  if (data === '-') return readAll(process.stdin);
  if (!data.startsWith('@')) return data;
  return readFile(data.slice(1), 'utf8').catch((error: unknown) => {
    throw usage(`--data: ${error instanceof Error ? error.message : String(error)}`);
  });
}

export function parse(text: string, what: string): unknown {
  try {
    return parseExact(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    throw usage(`${what} is no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const parseMember = (text: string, name: string): unknown => parse(text, `${name}:=…`);

/** A text as a value of the field. Numbers may be sent as texts, which keeps all their digits. */
export function typed(text: string, field: Field | undefined, name: string): unknown {
  if (text === '') return null;
  if (!field) return text;
  if (field.fieldType === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  if (field.fieldType === 'multiPicklist') return text.split(',').map((item) => item.trim());
  if (JSON_TYPES.has(field.fieldType)) return parseMember(text, name);
  return text;
}

/** The value of an option that counts something. */
export function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw usage(`${text} is no whole number from 1 on.`);
  return value;
}
