/** The operations that carry out several changes in one request. */
import { type Static, Type } from 'typebox';
import { LIMITS } from '../../lib/limits.ts';
import { defineOperation, nullable } from '../../lib/operation.ts';
import { CheckedEffects } from './check.ts';
import { ACCESS_ERRORS, TRIED } from './mutations.ts';
import { EXAMPLE_RECORD, RecordFields } from './record.ts';
import { ROW_OPERATIONS } from './row-writes.ts';
import { KEY_ERRORS } from './rows.ts';

const closed = { additionalProperties: false };
const text = (description: string) => Type.String({ maxLength: LIMITS.uri_max_bytes, description });
const ifMatch = Type.Optional(text('ETag of the record, as in `If-Match` of the operation.'));
const duplicateConfirmation = Type.Optional(text('As in `X-Duplicate-Confirmation` of the operation.'));

const CompositePart = Type.Object(
  {
    referenceId: Type.String({
      pattern: '^[A-Za-z][A-Za-z0-9_]{0,39}$',
      description: 'Name of the part, by which later ones refer to its result.',
    }),
    method: Type.Enum(['GET', 'POST', 'PATCH', 'PUT', 'DELETE']),
    path: text('Path of the operation below `/api/v1`: below `/data` or `/objects`, without a query.'),
    query: Type.Optional(
      Type.Object({}, { additionalProperties: true, description: 'Query parameters by name; JSON values as such.' }),
    ),
    headers: Type.Optional(Type.Object({ ifMatch, duplicateConfirmation }, { title: 'CompositeHeaders', ...closed })),
    body: Type.Optional(Type.Object({}, { additionalProperties: true, description: 'Body of the operation.' })),
  },
  { title: 'CompositePart', ...closed },
);

const CompositeRequest = Type.Object(
  {
    allOrNone: Type.Optional(
      Type.Boolean({ description: 'Default true: all parts are one transaction; else each is one of its own.' }),
    ),
    checkOnly: Type.Optional(Type.Boolean({ description: 'Answers what would happen, and leaves nothing.' })),
    requests: Type.Array(CompositePart, { minItems: 1, maxItems: LIMITS.composite_requests_max }),
  },
  { title: 'CompositeRequest', ...closed },
);

const CompositeResult = Type.Object(
  {
    allOrNone: Type.Boolean(),
    committed: Type.Boolean({ description: 'false: nothing was stored, because this was a dry run.' }),
    effects: Type.Optional(CheckedEffects),
    results: Type.Array(
      Type.Object(
        {
          referenceId: Type.String(),
          status: Type.Integer({ description: 'As the operation alone would have answered.' }),
          headers: Type.Object(
            { etag: Type.Optional(Type.String()), location: Type.Optional(Type.String()) },
            { title: 'CompositePartHeaders' },
          ),
          body: nullable(
            Type.Object({}, { additionalProperties: true, description: 'As the operation alone would have answered.' }),
          ),
        },
        { title: 'CompositePartResult' },
      ),
    ),
  },
  { title: 'CompositeResult' },
);

const RecordsToWrite = Type.Object(
  {
    objectApiName: Type.String({ minLength: 1, maxLength: 200, description: 'apiName of the object of all rows.' }),
    operation: Type.Enum([...ROW_OPERATIONS]),
    allOrNone: Type.Optional(
      Type.Boolean({ description: 'Default true: a row that is refused leaves nothing of the others.' }),
    ),
    externalIdField: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Of an upsert: the field by which records are found.' }),
    ),
    records: Type.Array(
      Type.Object(
        {
          id: Type.Optional(Type.String({ maxLength: 200, description: 'Of an update or delete.' })),
          ifMatch,
          duplicateConfirmation,
          fields: Type.Optional(RecordFields),
        },
        { title: 'RecordToWrite', ...closed },
      ),
      { minItems: 1, maxItems: LIMITS.composite_records_max },
    ),
  },
  { title: 'RecordsToWrite', ...closed },
);

export type CompositeRequestBody = Static<typeof CompositeRequest>;

const RecordsWritten = Type.Object(
  {
    committed: Type.Boolean(),
    effects: Type.Optional(CheckedEffects),
    results: Type.Array(
      Type.Object(
        {
          index: Type.Integer({ description: 'Place among the records of the request.' }),
          id: nullable(Type.String({ description: 'Id of the record; null: there is none.' })),
          status: Type.Integer({ description: 'As the operation on this record alone would have answered.' }),
          etag: nullable(Type.String({ description: 'New version of the record.' })),
          created: Type.Boolean(),
          errors: Type.Array(
            Type.Object(
              {
                code: Type.String(),
                message: Type.String(),
                pointer: Type.Optional(Type.String({ description: 'JSON Pointer into the row.' })),
                field: Type.Optional(nullable(Type.String())),
                ruleApiName: Type.Optional(nullable(Type.String())),
                params: Type.Optional(
                  Type.Object(
                    {},
                    { additionalProperties: true, description: 'Facts of the violation, such as `pattern`.' },
                  ),
                ),
                detail: Type.Optional(Type.Object({}, { additionalProperties: true })),
              },
              { title: 'RecordWriteError' },
            ),
          ),
        },
        { title: 'RecordWriteResult' },
      ),
    ),
  },
  { title: 'RecordsWritten' },
);

const PART_ERRORS = [
  'SCOPE_INSUFFICIENT',
  'AUTHENTICATION_INSUFFICIENT',
  'COMPOSITE_FAILED',
  ...ACCESS_ERRORS,
] as const;

export const COMPOSITE_OPERATIONS = [
  defineOperation({
    ...TRIED,
    cost: 1,
    parts: 'requests',
    timeLimitMs: LIMITS.composite_timeout_ms,
    operationId: 'composite.requests.execute',
    method: 'POST',
    path: '/composite',
    tag: 'composite',
    summary: 'Execute several operations on records in one request',
    description:
      `Carries out up to ${LIMITS.composite_requests_max} operations below /data and /objects in their order, by default in one ` +
      'transaction. `@{referenceId.field}` stands for a value in the result of an earlier part. Each part needs the scopes and ' +
      'permissions that it needs alone, and costs the same.',
    scopes: 'authenticated',
    risk: 'high',
    requestBody: {
      required: true,
      schema: CompositeRequest,
      maxBytes: LIMITS.composite_body_max_bytes,
      example: {
        requests: [
          { referenceId: 'acc', method: 'POST', path: '/data/Account', body: { name: 'Acme GmbH', city: 'Berlin' } },
          {
            referenceId: 'inv',
            method: 'POST',
            path: '/data/Invoice__c',
            body: { AccountId__c: '@{acc.id}', Amount__c: 10.5 },
          },
        ],
      },
    },
    response: {
      status: 200,
      description: 'The result of each part, in their order.',
      schema: CompositeResult,
      example: {
        allOrNone: true,
        committed: true,
        results: [{ referenceId: 'acc', status: 201, headers: { etag: '"1"' }, body: EXAMPLE_RECORD }],
      },
    },
    errors: [...KEY_ERRORS, ...PART_ERRORS, 'COMPOSITE_REFERENCE_INVALID', 'PARAMETER_INVALID'],
    action: 'data.composite.execute',
  }),
  defineOperation({
    ...TRIED,
    cost: 2,
    parts: 'rows',
    timeLimitMs: LIMITS.composite_timeout_ms,
    operationId: 'composite.records.write',
    method: 'POST',
    path: '/composite/records',
    tag: 'composite',
    summary: `Write up to ${LIMITS.composite_records_max} records of one object`,
    description:
      'Creates, updates, upserts or deletes records of one object by the rules of single writes, in one transaction. Rows of an update or delete need `id` and `ifMatch`. Costs 2 units, and 1 more for each 10 rows.',
    scopes: 'authenticated',
    oneOfScopes: ['data:write', 'data:delete'],
    risk: 'high',
    requestBody: {
      required: true,
      schema: RecordsToWrite,
      maxBytes: LIMITS.composite_body_max_bytes,
      example: {
        objectApiName: 'Account',
        operation: 'create',
        records: [
          { fields: { name: 'Acme GmbH', city: 'Berlin' } },
          { fields: { name: 'Beispiel AG', city: 'Hamburg' } },
        ],
      },
    },
    response: {
      status: 200,
      description: 'The outcome of each row, in their order.',
      schema: RecordsWritten,
      example: {
        committed: true,
        results: [{ index: 0, id: EXAMPLE_RECORD.id, status: 201, etag: '"1"', created: true, errors: [] }],
      },
    },
    errors: [
      ...KEY_ERRORS,
      ...PART_ERRORS,
      'PARAMETER_REQUIRED',
      'PARAMETER_CONFLICT',
      'IF_MATCH_REQUIRED',
      'IF_MATCH_INVALID',
      'BODY_REQUIRED',
    ],
    action: 'data.composite.writeRecords',
  }),
] as const;
