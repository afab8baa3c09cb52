/** Public operations of bulk: import and export of many records as jobs. Source: docs/reference/bulk.md. */
import { type Static, Type } from 'typebox';
import { LIMITS } from '../lib/limits.ts';
import { type ActionsOf, defineOperation, defineParameter, nullable, type Scope } from '../lib/operation.ts';
import { TRIED } from './data/mutations.ts';
import { QUERY_ERRORS } from './data/query.ts';
import { cursor, effectiveTake, KEY_ERRORS, nextCursor, take } from './data/rows.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { BULK_GUIDANCE } from './guidance/bulk.ts';

export interface BulkActions extends ActionsOf<typeof BULK_OPERATIONS> {
  /** The operation on records that a job of the client and user carries out, and its object; null: there is no such job. */
  'bulk.jobs.carried': {
    params: { tenantId: string; userId: string; clientId: string; jobId: string };
    result: { operationId: string; objectApiName: string } | null;
  };
  /** Removes parts and results of a tenant in erasure from the store. Answers how many blobs it removed; 0: none is left. */
  'bulk.tenants.erase': { params: { tenantId: string }; result: { removed: number } };
}

/** The states of jobs, by what happens in them. */
export const BULK_STATES = {
  takesParts: ['OPEN', 'UPLOADED'],
  waits: ['QUEUED'],
  works: ['PROCESSING', 'CANCELING'],
  hasEnded: ['COMPLETED', 'FAILED', 'CANCELED'],
} as const;
export type BulkState = (typeof BULK_STATES)[keyof typeof BULK_STATES][number];

export const BULK_OUTCOMES = ['succeeded', 'failed', 'unprocessed'] as const;

/** What each kind of job does to records: the operation on single ones whose scope and rules hold for it. */
export const CARRIED_OUT = {
  create: { operationId: 'data.records.create', scope: 'data:write' },
  update: { operationId: 'data.records.update', scope: 'data:write' },
  upsert: { operationId: 'data.records.upsert', scope: 'data:write' },
  delete: { operationId: 'data.records.delete', scope: 'data:delete' },
  export: { operationId: 'data.records.query', scope: 'data:read' },
} as const satisfies Record<string, { operationId: string; scope: Scope }>;

export type BulkOperation = keyof typeof CARRIED_OUT;

/** Media types of the formats, of parts and of results. */
export const BULK_TYPES = { csv: 'text/csv', ndjson: 'application/x-ndjson' } as const;

const closed = { additionalProperties: false };
const ApiName = Type.String({ minLength: 1, maxLength: 80 });
const count = (description: string) => nullable(Type.Integer({ minimum: 0, description }));
const moment = (description: string) => nullable(Type.String({ format: 'date-time', description }));

const Operation = Type.Enum(['create', 'update', 'upsert', 'delete', 'export'] as const, { title: 'BulkOperation' });
const Format = Type.Enum(['csv', 'ndjson'] as const, { title: 'BulkFormat' });
const State = Type.Enum(Object.values(BULK_STATES).flat(), { title: 'BulkState' });
const Outcome = Type.Enum([...BULK_OUTCOMES], { title: 'BulkOutcome' });

const CreateBody = Type.Object(
  {
    operation: Operation,
    objectApiName: ApiName,
    format: Format,
    externalIdField: Type.Optional(
      Type.String({ minLength: 1, maxLength: 80, description: 'Of an upsert: the field that finds the records.' }),
    ),
    csv: Type.Optional(
      Type.Object(
        {
          delimiter: Type.Optional(Type.Enum([',', ';', '\t', '|'] as const, { description: 'Default: a comma.' })),
          lineEnding: Type.Optional(
            Type.Enum(['LF', 'CRLF'] as const, { description: 'Of exports; default LF. Imports take both.' }),
          ),
          locale: Type.Optional(
            Type.String({
              maxLength: 35,
              description:
                'Language tag (BCP 47) by which numbers and days of an import are read, such as `de-DE`. Default: as in JSON.',
            }),
          ),
        },
        { ...closed, title: 'BulkCsv' },
      ),
    ),
    columns: Type.Optional(
      Type.Record(Type.String({ maxLength: 255 }), nullable(Type.String({ minLength: 1, maxLength: 255 })), {
        maxProperties: LIMITS.bulk_columns_max,
        description: 'Names of columns of the file, and what they stand for; null: the column is left out.',
      }),
    ),
    allOrNone: Type.Optional(
      Type.Boolean({
        description:
          'The rows of a chunk are committed together or not at all, and the job ends with the first row that fails. Default: false.',
      }),
    ),
    checkOnly: Type.Optional(Type.Boolean({ description: 'Every row is tried out, and nothing is changed.' })),
    duplicatePolicy: Type.Optional(
      Type.Enum(['reject', 'report'] as const, { description: 'Of duplicate rules that warn; default: reject.' }),
    ),
    conflictPolicy: Type.Optional(
      Type.Enum(['requireEtag', 'lastWriteWins'] as const, {
        description:
          'Default: each row names the version that it changes, in `_etag`. `lastWriteWins` takes the permission to modify all records of the object.',
      }),
    ),
    notify: Type.Optional(Type.Boolean({ description: 'The user is notified when the job has completed or failed.' })),
    query: Type.Optional(
      Type.Object(
        {},
        {
          additionalProperties: true,
          description: 'Of an export: the body of `data.records.query`, without `take`, `skip`, `expand` and `cursor`.',
        },
      ),
    ),
    compression: Type.Optional(Type.Enum(['none', 'gzip'] as const, { description: 'Of an export; default: none.' })),
  },
  { ...closed, title: 'BulkJobCreation' },
);

export type CreateBody = Static<typeof CreateBody>;

const Failure = Type.Object(
  { code: Type.String(), message: Type.String(), columns: Type.Optional(Type.Array(Type.String())) },
  { title: 'BulkJobError', description: 'Why the job has ended before its last row.' },
);
export type BulkFailure = Static<typeof Failure>;

const BulkJob = Type.Object(
  {
    jobId: Type.String({ format: 'uuid' }),
    operation: Operation,
    objectApiName: Type.String(),
    state: State,
    format: Format,
    checkOnly: Type.Boolean(),
    createdAt: Type.String({ format: 'date-time' }),
    startedAt: moment('null: not yet.'),
    finishedAt: moment('null: not yet.'),
    expiresAt: Type.String({
      format: 'date-time',
      description: `The job and its results are removed then, ${LIMITS.bulk_retention_days} days after it has ended, or was created.`,
    }),
    counts: Type.Object(
      {
        total: count('Rows of its parts; null: not known before the start, or of an export before its end.'),
        processed: Type.Integer({ minimum: 0 }),
        succeeded: Type.Integer({ minimum: 0 }),
        failed: Type.Integer({ minimum: 0 }),
        unprocessed: count('What is left; null like `total`.'),
      },
      { title: 'BulkCounts' },
    ),
    createdBy: Type.String({ format: 'uuid' }),
    error: nullable(Failure),
  },
  { title: 'BulkJob' },
);
export type BulkJob = Static<typeof BulkJob>;

const RowError = Type.Object(
  {
    code: Type.String(),
    message: Type.String(),
    column: Type.Optional(Type.String({ description: 'Of the file.' })),
  },
  { title: 'BulkRowError' },
);

const RowResult = Type.Object(
  {
    rowNumber: Type.Integer({
      minimum: 1,
      description: 'Over all parts, from 1; headers and blank lines do not count.',
    }),
    outcome: Outcome,
    id: nullable(Type.String({ description: 'Of the record; null: there is none.' })),
    etag: nullable(Type.String()),
    created: Type.Boolean(),
    errors: Type.Array(RowError),
  },
  { title: 'BulkRowResult' },
);
export type BulkRowResult = Static<typeof RowResult>;

const jobId = defineParameter({
  name: 'jobId',
  required: true,
  description: 'Id of a job that this user and client have created.',
  schema: Type.String({ format: 'uuid' }),
  example: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b25',
});

const EXAMPLE: BulkJob = {
  jobId: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b25',
  operation: 'upsert',
  objectApiName: 'Account',
  state: 'OPEN',
  format: 'csv',
  checkOnly: false,
  createdAt: '2026-11-21T00:01:22.123+00:00',
  startedAt: null,
  finishedAt: null,
  expiresAt: '2026-11-28T00:01:22.123+00:00',
  counts: { total: null, processed: 0, succeeded: 0, failed: 0, unprocessed: null },
  createdBy: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24',
  error: null,
};

const BULK = { tag: 'bulk', scopes: ['bulk:run'] } as const;
const JOB_ERRORS = ['JOB_NOT_FOUND', 'SCOPE_INSUFFICIENT'] as const;
/** A job begins to process; what it then does to records are the operations of CARRIED_OUT. */
const QUEUED = { ...EXAMPLE, state: 'QUEUED', counts: { ...EXAMPLE.counts, total: 2, unprocessed: 2 } } as const;

const BULK_OPERATIONS = [
  defineOperation({
    ...BULK,
    operationId: 'bulk.jobs.create',
    method: 'POST',
    path: '/bulk/jobs',
    summary: 'Create a bulk job',
    description:
      'An import waits for its parts and its start; an export begins at once. Besides `bulk:run` it takes the scope of the operation ' +
      'on records: `data:write`, `data:delete` or, for an export, `data:read`.',
    risk: 'medium',
    cost: 5,
    ...TRIED,
    carriesOut: 'body',
    requestBody: {
      required: true,
      schema: CreateBody,
      maxBytes: LIMITS.body_max_bytes,
      example: { operation: 'upsert', objectApiName: 'Account', externalIdField: 'accountNumber', format: 'csv' },
    },
    response: {
      status: 201,
      description: 'The job.',
      schema: BulkJob,
      headers: { Location: { description: 'Path of the job.', schema: Type.String() } },
      example: EXAMPLE,
    },
    errors: [
      ...KEY_ERRORS,
      'SCOPE_INSUFFICIENT',
      ...QUERY_ERRORS,
      'OBJECT_PERMISSION_DENIED',
      'PARAMETER_CONFLICT',
      'TOO_MANY_ITEMS',
    ],
    action: 'bulk.jobs.create',
  }),
  defineOperation({
    ...BULK,
    operationId: 'bulk.jobs.list',
    method: 'GET',
    path: '/bulk/jobs',
    summary: 'List bulk jobs',
    description:
      'The jobs of this user and client, the newest first. Assistants see those of every client of the user.',
    queryParameters: [
      { name: 'state', description: 'Only jobs in this state.', schema: State, example: 'PROCESSING' },
      take,
      cursor,
    ],
    response: {
      status: 200,
      description: 'A page of jobs.',
      schema: Type.Object({ records: Type.Array(BulkJob), nextCursor }, { title: 'BulkJobPage' }),
      headers: effectiveTake,
      example: { records: [EXAMPLE], nextCursor: null },
    },
    mcp: { tool: 'bulk_jobs_list' },
    errors: ['PARAMETER_INVALID', 'CURSOR_INVALID', 'CURSOR_EXPIRED', 'CURSOR_QUERY_MISMATCH'],
    action: 'bulk.jobs.list',
  }),
  defineOperation({
    ...BULK,
    operationId: 'bulk.jobs.get',
    method: 'GET',
    path: '/bulk/jobs/{jobId}',
    summary: 'Read a bulk job',
    description: 'Its state, the counts of its rows, and why it failed.',
    freePoll: true,
    mcp: { tool: 'bulk_jobs_get' },
    pathParameters: [jobId],
    response: { status: 200, description: 'The job as it is now.', schema: BulkJob, example: EXAMPLE },
    errors: ['JOB_NOT_FOUND'],
    action: 'bulk.jobs.get',
  }),
  defineOperation({
    ...BULK,
    operationId: 'bulk.parts.upload',
    method: 'PUT',
    path: '/bulk/jobs/{jobId}/parts/{partNumber}',
    summary: 'Upload a part of a bulk job',
    description:
      'Whole rows in the format of the job; each part of CSV begins with its own line of headers. Parts may come in any order and ' +
      'are replaced by one with the same number, until the job starts.',
    risk: 'low',
    cost: 1,
    carriesOut: 'job',
    timeLimitMs: LIMITS.bulk_upload_ms,
    pathParameters: [
      jobId,
      {
        name: 'partNumber',
        required: true,
        description: `From 1 to ${LIMITS.bulk_parts_max}, in the order of the rows.`,
        schema: Type.String({ pattern: '^[1-9][0-9]{0,3}$' }),
        example: '1',
      },
    ],
    requestBody: {
      required: true,
      kind: 'stream',
      schema: Type.String({ title: 'BulkRows' }),
      contentTypes: Object.values(BULK_TYPES),
      maxBytes: LIMITS.bulk_part_max_bytes,
      description: 'UTF-8, as it is, with `Content-Digest`.',
      example: 'accountNumber,name\nACC-0042,Acme GmbH\nACC-0043,Globex\n',
    },
    response: {
      status: 201,
      description: 'The part is stored.',
      schema: Type.Object(
        {
          partNumber: Type.Integer({ minimum: 1 }),
          bytes: Type.Integer({ minimum: 0 }),
          rows: Type.Integer({ minimum: 0 }),
          digest: Type.String({ description: 'SHA-256 of the part, as in `Content-Digest`.' }),
        },
        { title: 'BulkPart' },
      ),
      example: {
        partNumber: 1,
        bytes: 56,
        rows: 2,
        digest: 'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:',
      },
    },
    errors: [
      ...KEY_ERRORS,
      ...JOB_ERRORS,
      'PARAMETER_INVALID',
      'JOB_STATE_CONFLICT',
      'BULK_DATA_INVALID',
      'OBJECT_NOT_FOUND',
      'OBJECT_PERMISSION_DENIED',
      'TOO_MANY_ITEMS',
    ],
    action: 'bulk.parts.upload',
  }),
  defineOperation({
    ...BULK,
    operationId: 'bulk.jobs.start',
    method: 'POST',
    path: '/bulk/jobs/{jobId}/start',
    summary: 'Start a bulk job',
    description:
      'The parts must be there without a gap. The rows are processed as this user, with their rights of that moment.',
    risk: 'high',
    cost: 5,
    ...TRIED,
    carriesOut: 'job',
    pathParameters: [jobId],
    response: { status: 202, description: 'The job, which waits for its turn.', schema: BulkJob, example: QUEUED },
    errors: [...KEY_ERRORS, ...JOB_ERRORS, 'JOB_STATE_CONFLICT', 'OBJECT_NOT_FOUND', 'OBJECT_PERMISSION_DENIED'],
    action: 'bulk.jobs.start',
  }),
  defineOperation({
    ...BULK,
    operationId: 'bulk.jobs.cancel',
    method: 'POST',
    path: '/bulk/jobs/{jobId}/cancel',
    summary: 'Cancel a bulk job',
    description:
      'What has been committed stays. A chunk that is under way ends first: the job is CANCELING until then.',
    risk: 'medium',
    changes: { kind: 'end' },
    ...TRIED,
    pathParameters: [jobId],
    response: {
      status: 202,
      description: 'The job.',
      schema: BulkJob,
      example: { ...EXAMPLE, state: 'CANCELED', finishedAt: '2026-11-21T00:02:22.123+00:00' },
    },
    errors: [...KEY_ERRORS, 'JOB_NOT_FOUND', 'JOB_STATE_CONFLICT'],
    action: 'bulk.jobs.cancel',
  }),
  defineOperation({
    ...BULK,
    operationId: 'bulk.results.list',
    method: 'GET',
    path: '/bulk/jobs/{jobId}/results',
    summary: 'Read the results of a bulk job',
    description:
      'Of an import, the outcome of every row: JSON, or by `Accept` `text/csv` or `application/x-ndjson`, where the header `Link` ' +
      'leads to the next page. Of an export, when it is complete, the file.',
    cost: 2,
    carriesOut: 'job',
    pathParameters: [jobId],
    queryParameters: [
      {
        name: 'outcome',
        description: 'Only rows with this outcome.',
        schema: Outcome,
        example: 'failed',
      },
      {
        name: 'take',
        description: 'Rows on a page.',
        schema: Type.Integer({ minimum: 1, maximum: LIMITS.bulk_results_take_max, default: LIMITS.bulk_results_take }),
        example: 100,
      },
      cursor,
    ],
    headerParameters: [
      {
        name: 'Accept',
        description: 'Media type of the results of an import.',
        schema: Type.String(),
        example: 'text/csv',
      },
    ],
    response: {
      status: 200,
      kind: 'file',
      description: 'A page of outcomes, or the file of an export.',
      schema: Type.Object({ records: Type.Array(RowResult), nextCursor }, { title: 'BulkResultPage' }),
      example: {
        records: [
          {
            rowNumber: 2,
            outcome: 'failed',
            id: null,
            etag: null,
            created: false,
            errors: [{ code: 'FIELD_REQUIRED', message: 'name is required.', column: 'name' }],
          },
        ],
        nextCursor: null,
      },
    },
    errors: [
      ...JOB_ERRORS,
      'PARAMETER_INVALID',
      'CURSOR_INVALID',
      'CURSOR_EXPIRED',
      'CURSOR_QUERY_MISMATCH',
      'JOB_STATE_CONFLICT',
      'OBJECT_NOT_FOUND',
      'OBJECT_PERMISSION_DENIED',
      'RANGE_NOT_SATISFIABLE',
    ],
    action: 'bulk.results.list',
  }),
  defineOperation({
    ...BULK,
    operationId: 'bulk.jobs.delete',
    method: 'DELETE',
    path: '/bulk/jobs/{jobId}',
    summary: 'Delete a bulk job',
    description:
      'Its parts and results are gone; the records stay as they are. A job that is at work is canceled first.',
    risk: 'medium',
    cost: 1,
    changes: { kind: 'end' },
    ...TRIED,
    pathParameters: [jobId],
    response: { status: 204, description: 'The job is gone.' },
    errors: [...KEY_ERRORS, 'JOB_NOT_FOUND', 'JOB_STATE_CONFLICT'],
    action: 'bulk.jobs.delete',
  }),
] as const;

export const SERVICE = {
  purpose: 'Bulk jobs: parts that wait, rows on their way, results.',
  listens: 'health',
  awaitedByGateway: false,
  usesContents: true,
  kubernetes: {
    replicas: { min: 2, max: 4 },
    connections: 4,
    requests: { cpu: '100m', memory: '192Mi' },
    limits: { cpu: '1', memory: '512Mi' },
  },
  database: { tenants: 'records', jobs: true, routines: ['bulk.numbers'] },
  operations: BULK_OPERATIONS,
  guidance: BULK_GUIDANCE,
  calls: [
    'agent.runs.state',
    'data.grants.confirm',
    'data.rows.describe',
    'data.rows.export',
    'data.rows.read',
    'data.rows.settle',
    'data.rows.write',
    'metadata.tenants.get',
    'metadata.tenants.list',
  ],
  emits: ['events.log.written'],
  repeatable: ['bulk.tenants.erase'],
  // Rows are written by the same steps as those of requests, which know their user by the context.
  actsForUsers: { 'data.rows.settle': LIMITS.bulk_chunk_ms, 'data.rows.write': LIMITS.bulk_chunk_ms },
  consent: {
    'bulk:run': {
      area: 'records',
      text: 'Import and export many records at once, as far as it may read, change or delete them.',
      forAssistants: 'See the states of your imports and exports. It can start none.',
    },
  },
  moving: {
    parts: [],
    // Jobs and their files end with the move: what they have written travels with the records.
    leftBehind: ['bulk.jobs', 'bulk.blobs', 'bulk.results'],
  },
} as const satisfies ServiceDeclaration<typeof BULK_OPERATIONS>;
