/** The TypeScript module of the types of a tenant's objects. Pure: the same schemas give the same text. */
import { comment, type JsonSchema, membersOf } from './type-of.ts';

/** An object, with the schemas of its bodies; `false`: the connection may not do that. */
export interface ObjectSchemas {
  readonly apiName: string;
  readonly label: string;
  readonly description: string | undefined;
  readonly create: JsonSchema | false;
  readonly update: JsonSchema | false;
  readonly read: JsonSchema;
}

const HEAD = `/**
 * The objects of a tenant, as the user sees them who ran \`erp types\`. Written by it: change the configuration, not this
 * file, and write it again. A read gets the fields that its \`fields\` names, and all of them without.
 */
`;

const PATHS = `
/**
 * The paths that openapi-typescript makes of /openapi.json, and those of every object here with its own types:
 * \`createClient<TenantPaths<paths>>(…)\` of openapi-fetch takes \`GET('/data/Account/{id}', …)\`, for an object Account.
 */
export type TenantPaths<Paths> = Paths`;

/**
 * Types alone, by which a client that openapi-typescript and openapi-fetch have made knows the objects of the tenant. They
 * name no schema of the description: a record is what has names that are not declared, and stands as the whole of a body
 * or under `records` or `record`.
 */
const CLIENT = `
/** The paths of one object, made of those with a parameter in the place of its name. */
type PathsOf<Paths, Name extends keyof Objects> = {
  [Path in keyof Paths as Path extends \`/data/{objectApiName}\${infer Rest}\` ? \`/data/\${Name}\${Rest}\` : never]: {
    [Method in keyof Paths[Path]]: OperationOf<Paths[Path][Method], Objects[Name], Method>;
  };
};

type OperationOf<Operation, Bodies extends Objects[keyof Objects], Method> = Operation extends {
  parameters: infer Parameters extends { path: object };
  responses: infer Responses;
}
  ? {
      parameters: Omit<Parameters, 'path'> & PathParameters<Omit<Parameters['path'], 'objectApiName'>>;
      responses: {
        [Status in keyof Responses]: Status extends 200 | 201
          ? AnswerOf<Responses[Status], Bodies['read']>
          : Responses[Status];
      };
    } & RequestOf<Operation, Method extends 'patch' ? Bodies['update'] : WrittenBy<Method, Bodies['create']>>
  : Operation;

type PathParameters<Path> = keyof Path extends never ? { path?: never } : { path: Path };

/** A PUT names the external id in its path, and creates nothing where it finds the record. */
type WrittenBy<Method, Create> = Method extends 'put' ? Partial<Create> : Create;

type RequestOf<Operation, Written> = Operation extends { requestBody: { content: infer Content } }
  ? {
      requestBody: {
        content: { [Type in keyof Content]: IsRecord<Content[Type]> extends true ? Written : Content[Type] };
      };
    }
  : Operation extends { requestBody?: infer Body }
    ? { requestBody?: Body }
    : unknown;

type AnswerOf<Response, Read> = {
  [Part in keyof Response]: Part extends 'content'
    ? { [Type in keyof Response[Part]]: Shown<Response[Part][Type], Read> }
    : Response[Part];
};

type Shown<Body, Read> = Body extends readonly (infer Item)[]
  ? Shown<Item, Read>[]
  : IsRecord<Body> extends true
    ? ShownRecord<Declared<Body>, Read> & Omit<Declared<Body>, keyof Read>
    : { [Key in keyof Body]: Key extends 'records' | 'record' ? Shown<Body[Key], Read> : Body[Key] };

/** Whole after a change; of a read its id and what \`fields\` names; of a dry run without what only a change gives. */
type ShownRecord<Known, Read> = Known extends { recordVersion: unknown }
  ? Read
  : Known extends { id: unknown }
    ? Partial<Read> & Pick<Read, 'id' & keyof Read>
    : { [Name in keyof Read]: Read[Name] | null };

type IsRecord<Body> = string extends keyof Body ? true : false;

type Declared<Body> = { [Key in keyof Body as string extends Key ? never : number extends Key ? never : Key]: Body[Key] };
`;

/** The module. Objects and their properties stand in it by name. */
export function moduleOf(objects: readonly ObjectSchemas[]): string {
  const sorted = objects.toSorted((a, b) => (a.apiName < b.apiName ? -1 : 1));
  const map = sorted.map(
    ({ apiName }) => `  ${apiName}: { read: ${apiName}Record; create: ${apiName}Create; update: ${apiName}Update };\n`,
  );
  const all = `\n/** The types of every object, by apiName. */\nexport interface Objects {\n${map.join('')}}\n`;
  const paths = sorted.map(({ apiName }) => ` &\n  PathsOf<Paths, '${apiName}'>`);
  return `${HEAD}${sorted.map(typesOf).join('')}${all}${PATHS}${paths.join('')};\n${CLIENT}`;
}

/**
 * Names are the apiName as it is with a word after it, so that no two objects share one and a new object never renames
 * the types of another.
 */
function typesOf({ apiName, label, description, create, update, read }: ObjectSchemas): string {
  // A record that is read has every field, empty ones as null.
  const whole = { ...read, required: Object.keys(read.properties ?? {}) };
  const said = (what: JsonSchema): string => `\n${comment(what).join('\n')}\n`;
  const written = (name: string, operation: string, schema: JsonSchema | false): string =>
    schema === false
      ? `${said({ title: `${apiName}: ${operation} is not allowed.` })}export type ${name} = never;\n`
      : `${said({ title: `${apiName}: the body of ${operation}.` })}export interface ${name} ${membersOf(schema)}\n`;
  const record = { title: apiName === label ? label : `${apiName}, ${label}`, ...(description ? { description } : {}) };
  return [
    `${said(record)}export interface ${apiName}Record ${membersOf(whole)}\n`,
    written(`${apiName}Create`, 'a create', create),
    written(`${apiName}Update`, 'an update', update),
  ].join('');
}
