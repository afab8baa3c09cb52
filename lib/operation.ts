/**
 * One public operation is one row. Routes, scope and cost checks, the idempotency and precondition requirements,
 * /openapi.json, /capabilities, /scopes and the generated test suites are all derived from these rows; there is no
 * second list. Rows stand in contracts/<service>.ts, without what `defineOperation` and the optional properties here take
 * for granted. Source: docs/reference/operations.md.
 */
import { type Static, type TSchema, Type } from 'typebox';
import type { ErrorCode } from './errors/catalogue.ts';
import type { EventPage, FileContent, ReceiveOrder, StreamedBody, WaitOrder } from './streams.ts';

/** Every OAuth scope with its public description. */
export const SCOPES = {
  'data:read': 'Read objects, descriptions and records the user can see.',
  'data:write': "Create and update records within the user's permissions.",
  'data:delete': "Delete and restore records within the user's permissions.",
  'actions:read': 'List the transitions and actions of a record.',
  'actions:execute': 'Execute transitions and registered actions.',
  'analytics:read': 'Read catalogs and dashboards.',
  'analytics:run': 'Manage dashboards and run widgets.',
  'agent:run': 'Create, read and complete agent runs.',
  'agent:approve': 'Decide on agent approvals.',
  'setup:read': 'Read configuration and deployments.',
  'metadata:deploy': 'Validate and deploy configuration.',
  'bulk:run': 'Run bulk jobs (with the data scope of the job).',
  'files:read': 'Read files and their contents.',
  'files:write': 'Upload, attach, change and delete files.',
  'events:read': 'Read events: what has happened, as far as the user may know of it.',
  'events:manage': 'Manage webhook subscriptions.',
  'notifications:read': 'Read own notifications.',
  'notifications:write': 'Mark own notifications, and notify users.',
  'calendar:read': 'Read calendars and events.',
  'calendar:write': 'Change calendars and events.',
  'me:read': 'Read own profile and connections.',
  'me:write': 'Change preferences and revoke connections.',
  'audit:read': 'Read record history and audit entries.',
  'users:manage':
    'Give people access: create and change users and what they may do, invite them, make links with which they set a password, provision them through SCIM, and share records and dashboards.',
  offline_access: 'Receive a refresh token.',
} as const;

export type Scope = keyof typeof SCOPES;

/** Scopes of OpenID Connect: what an application learns about the person. No operation of the API asks for one. */
export const IDENTITY_SCOPES = {
  openid: 'Get an ID token, and ask who signed in.',
  profile: 'Learn name, username, language and time zone of the person.',
  email: 'Learn the e-mail address of the person.',
} as const;

export type IdentityScope = keyof typeof IDENTITY_SCOPES;

/** Areas of the API: their names and descriptions in the documents. */
export const TAGS = {
  schema: { name: 'Schema', description: 'What the API offers and which objects the caller can see.' },
  data: { name: 'Data', description: 'Records of the objects of a tenant.' },
  composite: { name: 'Composite', description: 'Several requests in one.' },
  files: { name: 'Files', description: 'Files and their contents.' },
  analytics: { name: 'Analytics', description: 'Dashboards and their widgets.' },
  bulk: { name: 'Bulk', description: 'Import and export of many records.' },
  events: { name: 'Events', description: 'What happened, and subscriptions to it.' },
  me: { name: 'Me', description: 'The caller, its limits and connections.' },
  notifications: { name: 'Notifications', description: 'Notifications of the caller.' },
  calendar: { name: 'Calendar', description: 'Calendars and their events.' },
  agent: { name: 'Agent', description: 'Runs of agents and the approval of what they want to do.' },
  metadata: { name: 'Metadata', description: 'The configuration of a tenant as files.' },
} as const;

type Tag = keyof typeof TAGS;

/** System permissions without which an operation is of no use to a user. */
type NeededPermission =
  | 'metadataRead'
  | 'metadataManage'
  | 'viewAudit'
  | 'approveAgentActions'
  | 'manageUsers'
  | 'sendNotifications';

type Risk = 'low' | 'medium' | 'high';

/**
 * The change that a mutation makes. An approval of it takes people who could make it themselves, and its preview shows
 * them what they can see. Source: docs/reference/agents.md#approvals.
 */
type Change =
  | RecordChange
  /** Dashboards: analytics says who may make the change. */
  | { readonly kind: 'dashboard'; readonly needs: 'create' | 'update' | 'publish' | 'delete' }
  /** The configuration: takes `manageAccess`, unless the plan in the preview hands out nothing. */
  | { readonly kind: 'configuration' }
  /** Ends something that the user or the tenant has begun: takes no right besides `permission`. */
  | { readonly kind: 'end' };

/** A change of the record that the path names, or of the object's records where it names none. */
interface RecordChange {
  readonly kind: 'record';
  /** Permissions on the object; on a record, its sharing as well. */
  readonly needs: readonly ('create' | 'update' | 'delete' | 'transition' | 'share')[];
  /** The properties of the body are fields of the object. */
  readonly setsFields?: true;
  /** The path names a record in the recycle bin. */
  readonly deleted?: true;
}

/** MCP's offer to assistants: a tool that runs the operation, or a resource that is its answer. */
type McpOffer = { readonly tool: string } | { readonly resource: string; readonly name: string };

/** Calls of an operation that give access: they change who may see or do what. */
interface AccessGiven {
  /** Calls on these objects; absent: on every object. */
  readonly objects?: readonly string[];
  /** Calls whose body has one of these properties, except with the value here, which gives none; absent: every body. */
  readonly properties?: Readonly<Record<string, unknown>>;
  /** Every client needs it for such a call, besides the scopes of the operation. */
  readonly scope: Scope;
}

/** A schema that also takes null. */
export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** Every way to the scopes of an operation: for each, scopes that are needed together. */
export const waysToScopes = ({ scopes, oneOfScopes }: Operation): Scope[][] =>
  oneOfScopes ? oneOfScopes.map((scope) => [scope]) : [typeof scopes === 'string' ? [] : [...scopes]];

/** True when a call gives access. `body`: undefined while it has not been read. */
export function givesAccess({ givesAccess: given }: Operation, objectApiName: string | null, body: unknown): boolean {
  if (!given) return false;
  const { objects, properties } = given;
  if (objects && (objectApiName === null || !objects.includes(objectApiName))) return false;
  if (!properties) return true;
  if (typeof body !== 'object' || body === null) return false;
  return Object.entries(body).some(
    ([name, value]) => Object.hasOwn(properties, name) && JSON.stringify(value) !== JSON.stringify(properties[name]),
  );
}

/** Whether a call of the operation belongs to the run that it names: agents must name one. */
export const belongsToRuns = ({ scopes, runs = 'inside' }: Operation): boolean =>
  scopes !== 'public' && runs === 'inside';

/** Whether MCP offers the operation as a tool. */
export const isMcpTool = ({ mcp }: Operation): boolean => mcp !== undefined && 'tool' in mcp;

/** The change of records that the operation makes; null: it makes none. */
export const recordChangeOf = (operation: Operation | undefined): RecordChange | null =>
  operation?.changes?.kind === 'record' ? operation.changes : null;

/** Deprecation: the end date and the replacement. Source: docs/reference/versioning.md. */
export interface Deprecation {
  /** Day of the notice (UTC): `2027-01-01`. */
  readonly since: string;
  /** The first day without it. */
  readonly sunset: string;
  /** operationId of what takes its place, or the name of a parameter; null: nothing does. */
  readonly replacement: string | null;
  /** The page that says how to do without it, below the documents of this version: `guides/move-to-queries`. */
  readonly documentation: string;
}

export interface Parameter {
  name: string;
  required?: boolean;
  description: string;
  schema: TSchema;
  /** Sent as serialized JSON in the query string; the gateway parses it strictly. */
  json?: true;
  example?: unknown;
  /** Of a parameter that is going to be gone; the operation stays. */
  deprecated?: Deprecation;
}

export interface HeaderParameter extends Parameter {
  name: keyof typeof HEADERS;
}

export interface RequestBody {
  required: boolean;
  schema: TSchema;
  description?: string;
  /** Media types in addition to application/json. */
  contentTypes?: readonly string[];
  maxBytes: number;
  /** Of a stream: what to do with a longer body, a sentence for the message that refuses it. */
  remedy?: string;
  example?: unknown;
  /**
   * false: the gateway checks only that the body is an object; the service owns the rest (records of tenant objects,
   * metadata files). Otherwise the gateway validates `schema` and answers all violations at once.
   */
  validate?: false;
  /**
   * `json` (default): the gateway parses the body. `raw`: it hands on the bytes, and the service parses them, where a
   * body is so large that parsing it would hold up everything else; `fingerprint` is then that of `fingerprintHead`,
   * which the service completes. `stream`: bytes that the gateway puts into the store of blobs (lib/streams.ts); without
   * `contentTypes` of any media type. The fingerprint covers the digest that the client declares.
   */
  kind?: 'json' | 'raw' | 'stream';
}

export interface Operation {
  operationId: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below /api/v1, parameters in braces: `/data/{objectApiName}/{id}`. */
  path: string;
  tag: Tag;
  summary: string;
  description?: string;
  /** Scopes that are all needed; `authenticated`: any valid token; `public`: no token. */
  scopes: readonly Scope[] | 'authenticated' | 'public';
  /** Scopes of which one is enough, of an operation that needs no other: which one it takes depends on what is asked for. */
  oneOfScopes?: readonly [Scope, ...Scope[]];
  /**
   * System permission that the user needs. The gateway asks for it before it receives the body, the service again when
   * it does the work; absent: the service decides by what is asked for.
   */
  permission?: NeededPermission;
  /** false: answered also to users without the API permission. Default: they are refused. */
  apiPermission?: false;
  risk: Risk;
  /** Cost units, spent before the action is called. */
  cost: number;
  /** One call per second is free: per id where the path ends with one, else per connection. */
  freePoll?: true;
  /**
   * The rate counters are asked for what is left, so that the answer is exact. A call costs one unit unless it is a free
   * poll; `cost` is 0.
   */
  reportsLimits?: true;
  mutation: boolean;
  /**
   * A page asks for many of them at once, each of which is short: in flight they count like operations that cost
   * little, whatever they cost.
   */
  manyAtOnce?: true;
  /** Leads along references by `expand`, filters and order, in the query or the body: each costs one unit more. */
  expands?: true;
  /** Milliseconds that one statement of it may take in the database; default: 5,000 for reads, 25,000 for mutations. */
  statementTimeoutMs?: number;
  /** Milliseconds until a call is answered, with the time that its body takes to arrive; default: 30,000. */
  timeLimitMs?: number;
  /**
   * Milliseconds in which a caller may take nothing of an answer, and send nothing of a streamed body; default: 60,000.
   * Beyond them the minimum rates of lib/limits.ts count.
   */
  idleMs?: number;
  /**
   * A mutation that can be tried out: with `dryRun` in its context it answers what it would do, and changes nothing.
   */
  dryRun?: true;
  /**
   * The operation that tries this one out, and how its body names this one (`operation`). What is true of a check is
   * said here alone: it needs the scopes of this operation, costs what it costs, and agent policies judge it like it.
   */
  checkedBy?: { readonly operationId: string; readonly as: string };
  /**
   * Carries out other operations, which its body names, and each is checked as if it had come alone. `requests`: those
   * of the list `requests`; the call costs what they cost. `rows`: the operation that is tried out as `operation`, on the
   * object `objectApiName`; each 10 items of the list `records` cost one unit more.
   */
  parts?: 'requests' | 'rows';
  /** It begins a transaction of a kind of its own, and cannot be a part of another one. */
  ownTransaction?: true;
  /**
   * The call belongs to work on many records: agent policies judge it, besides by itself, as the operation on records
   * that the work carries out. `body`: the body says which one, on which object; `job`: the job in the path does.
   */
  carriesOut?: 'body' | 'job';
  precondition: 'ifMatch' | 'expectedRevision' | 'none';
  /**
   * A person needs a recent sign-in with two factors, where the tenant requires second factors (RFC 9470): the
   * operation changes what users may do, or the configuration. A list: on these objects.
   */
  stepUp?: true | readonly string[];
  /** Such calls are of high risk, whatever `risk` says, and a broad `allow` of an agent policy does not cover them. */
  givesAccess?: AccessGiven;
  agentApproval: 'never' | 'policy' | 'always';
  /** Default: people cannot be asked to approve it. */
  changes?: Change;
  /**
   * `inside` (default): a call belongs to the run of an agent that it names, and an agent must name one. `outside`: a
   * call is neither a step of a run nor on its budget, because agents need it before they have a run, or to end one whose
   * budget is used up. `refused`: the same, and a call that names a run is refused, because only people make it. Public
   * operations are outside.
   */
  runs?: 'inside' | 'outside' | 'refused';
  /** Default: assistants are not offered it. */
  mcp?: McpOffer;
  stability: 'stable' | 'beta';
  /** Every answer says so; after the sunset there is no such operation. Who uses it is counted. */
  deprecated?: Deprecation;
  pathParameters?: readonly Parameter[];
  queryParameters?: readonly Parameter[];
  /** Request headers beyond those that mutation and precondition imply; no others are handed on. */
  headerParameters?: readonly HeaderParameter[];
  requestBody?: RequestBody;
  response: {
    status: 200 | 201 | 202 | 204;
    description: string;
    schema?: TSchema;
    contentType?: string;
    /**
     * `file`: the content of blobs, of which clients may ask for a part. `events`: a stream of server-sent events, which
     * ends with the access token or after `timeLimitMs` and costs `cost` for each page. Default: what the service has answered.
     */
    kind?: 'file' | 'events';
    headers?: Record<string, { description: string; schema: TSchema }>;
    example?: unknown;
  };
  /** Other successful answers than `response`. */
  alternatives?: readonly {
    status: 200 | 201 | 302;
    description: string;
    schema?: TSchema;
    headers?: Record<string, { description: string; schema: TSchema }>;
    example?: unknown;
  }[];
  /** Codes of this operation, in addition to those of every operation. */
  errors: readonly ErrorCode[];
  /** Moleculer action that answers it. */
  action: string;
}

/** Defaults of reads and of mutations. GET reads; other methods mutate. */
const READ = {
  mutation: false,
  risk: 'low',
  cost: 1,
  precondition: 'none',
  agentApproval: 'never',
  stability: 'stable',
} as const;
const MUTATION = {
  mutation: true,
  cost: 2,
  precondition: 'none',
  agentApproval: 'policy',
  stability: 'stable',
} as const;

/** A row without its defaults. The risk of a mutation has none. */
type WrittenRow = Omit<Operation, keyof typeof READ> &
  Partial<Pick<Operation, keyof typeof READ>> &
  ({ risk: Risk } | { method: 'GET' } | { mutation: false });

type CompleteRow<Row extends WrittenRow> = Row &
  Pick<Operation, keyof typeof READ> & {
    readonly mutation: Row extends { mutation: infer Given } ? Given : Row extends { method: 'GET' } ? false : true;
    readonly precondition: Row extends { precondition: infer Given } ? Given : 'none';
  };

/**
 * A row of the table of operations. Its literal types are kept, so that `OperationInput` derives path, query, body and
 * headers from them; a path parameter that is described but does not occur in `path` does not compile.
 */
export function defineOperation<const Row extends WrittenRow>(
  row: Row & { pathParameters?: readonly (Parameter & { name: NamesIn<Row['path']> })[] },
): CompleteRow<Row> {
  const { mutation = row.method !== 'GET' } = row;
  return { ...(mutation ? MUTATION : READ), ...row } as unknown as CompleteRow<Row>;
}

/** A parameter that several rows share, with its literal types. */
export function defineParameter<const One extends Parameter>(parameter: One): One {
  return parameter;
}

/** The property of `OperationHeaders` for each request header that a row can declare. */
export const HEADERS = {
  'Idempotency-Key': 'idempotencyKey',
  'If-Match': 'ifMatch',
  'If-None-Match': 'ifNoneMatch',
  'X-Expected-Revision': 'expectedRevision',
  'X-Duplicate-Confirmation': 'duplicateConfirmation',
  'Accept-Language': 'acceptLanguage',
  'Last-Event-ID': 'lastEventId',
  'X-File-Name': 'fileName',
  'Upload-Offset': 'uploadOffset',
  Accept: 'accept',
} as const satisfies Record<string, keyof OperationHeaders>;

/** Request headers that the gateway has checked. */
export interface OperationHeaders {
  idempotencyKey?: string;
  ifMatch?: string;
  ifNoneMatch?: string;
  expectedRevision?: number;
  duplicateConfirmation?: string;
  acceptLanguage?: string;
  lastEventId?: string;
  accept?: string;
  fileName?: string;
  /** Digits. */
  uploadOffset?: string;
}

/** Parameters of the action of any operation. The request context travels in ctx.meta. */
export interface OperationCall<Body = unknown> {
  operationId: string;
  path: Record<string, string>;
  /** Typed by the parameter's schema; serialized JSON already parsed. Absent parameters are absent. */
  query: Record<string, unknown>;
  body?: Body;
  headers: OperationHeaders;
  /** Mutations only: SHA-256 (hex) over the parts of the request that make it the same request; see `RequestBody.kind`. */
  fingerprint?: string;
  /** Decimals are answered as JSON strings (Accept: application/json;IEEE754Compatible=true). */
  ieee754Compatible?: boolean;
  /** The calls that it carries out, in the order of its body. */
  parts?: readonly PartCall[];
}

/** A part of a composite request, as the gateway has checked it: references stand in it as they were sent. */
export interface PartCall {
  readonly referenceId: string;
  readonly call: OperationCall;
}

/** Parameters of the action of the operation with this row. */
export type InputOf<Row extends Operation> = {
  operationId: Row['operationId'];
  path: { [Name in NamesIn<Row['path']>]: string };
  query: QueryOf<Row['queryParameters']>;
  headers: HeadersOf<Row>;
  ieee754Compatible?: boolean;
  parts?: readonly PartCall[];
} & BodyOf<Row['requestBody']> &
  (Row['mutation'] extends true ? { fingerprint: string } : unknown);

/** Names in braces in a path. */
type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;

/** Parameters by name; the gateway adds no defaults, so that all but the required ones can be absent. */
type QueryOf<Parameters> = Parameters extends readonly (infer One extends Parameter)[]
  ? Flat<
      { [P in One as P extends { required: true } ? P['name'] : never]: ValueOf<P> } & {
        [P in One as P extends { required: true } ? never : P['name']]?: ValueOf<P>;
      }
    >
  : Record<never, never>;

type Flat<T> = { [K in keyof T]: T[K] };

/** The gateway parses serialized JSON and leaves its validation to the service. */
type ValueOf<One extends Parameter> = One extends { json: true } ? unknown : Static<One['schema']>;

type HeadersOf<Row extends Operation> = Pick<OperationHeaders, DeclaredIn<Row['headerParameters']>> &
  (Row['mutation'] extends true ? { idempotencyKey: string } : unknown) &
  (Row['precondition'] extends 'ifMatch' ? { ifMatch: string } : unknown) &
  (Row['precondition'] extends 'expectedRevision' ? Pick<OperationHeaders, 'ifMatch' | 'expectedRevision'> : unknown);

type DeclaredIn<Parameters> = Parameters extends readonly (infer One extends HeaderParameter)[]
  ? (typeof HEADERS)[One['name']]
  : never;

type BodyOf<Body> = Body extends RequestBody
  ? Body extends { required: true }
    ? { body: ContentOf<Body> }
    : { body?: ContentOf<Body> }
  : unknown;

type ContentOf<Body extends RequestBody> = Body extends { kind: 'raw' }
  ? Uint8Array
  : Body extends { kind: 'stream' }
    ? StreamedBody
    : Body extends { validate: false }
      ? Record<string, unknown>
      : Static<Body['schema']>;

/** Body of the successful answer, by the schema of the row. */
export type OutputOf<Row extends Operation> = Row['response'] extends { schema: infer Schema extends TSchema }
  ? DeepReadonly<Static<Schema>>
  : null;

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

/** Answer of an action. A Buffer is written as it is; anything else is serialized once by the gateway. */
export interface OperationReply {
  /** Default: the row's response status. */
  status?: number;
  headers?: Record<string, string>;
  body: Buffer | object | null;
  /** Of a dry run: the request itself would change nothing either, as its body says. */
  changesNothing?: boolean;
  /** Stored under a mutation's key instead of a long body, and answered to a repetition. */
  kept?: object;
  /** Instead of an answer, to the first call about a streamed body: where the bytes go. */
  receive?: ReceiveOrder;
  /** Instead of a body, of an operation whose response is `file`. */
  file?: FileContent;
  /** The same where it is `events`: the first page of a stream, or the next one. */
  events?: EventPage;
  /** Beside an empty page: it may be waited for. */
  wait?: WaitOrder;
  /** Of a dry run under a run: the effects for which alone an approval is good. */
  basis?: string;
}

/** Parameters and result of the actions that answer these rows. */
export type ActionsOf<Rows extends readonly Operation[]> = {
  [Row in Rows[number] as Row['action']]: { params: InputOf<Row>; result: OperationReply };
};

/** Headers of an answer whose labels are in a language that the caller has chosen. */
export const languageHeaders = (language: string): Record<string, string> => ({
  'Content-Language': language,
  Vary: 'Accept-Language',
});
