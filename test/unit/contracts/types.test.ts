/**
 * Handlers and callers are typed by the rows of operations. The type check is the test: each line below an expected
 * error would compile if a type were wider than its row.
 */
import assert from 'node:assert/strict';
import { Type } from 'typebox';
import { type ActionHandlers, broadcast, call, emit } from '../../../contracts/call.ts';
import type { MetadataActions } from '../../../contracts/metadata.ts';
import type { Handler, OperationId, OperationInput, OperationOutput } from '../../../contracts/operations.ts';
import { defineOperation, type InputOf, type Operation, type OperationCall } from '../../../lib/operation.ts';

/** Compiles when both types are the same. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
const same = <A, B>(answer: Same<A, B>): void => assert.equal(answer, true);

const READ = {
  method: 'GET',
  path: '/shelves/{shelfId}/books/{bookId}',
  tag: 'data',
  summary: 'Read a book',
  scopes: ['data:read'],
  risk: 'low',
  cost: 1,
  mutation: false,
  precondition: 'none',
  agentApproval: 'never',
  stability: 'stable',
  response: { status: 200, description: 'The book.' },
  errors: [],
  action: 'library.books.get',
} as const;

const BookBody = Type.Object({ title: Type.String(), pages: Type.Optional(Type.Integer()) });

const readBook = defineOperation({
  ...READ,
  operationId: 'library.books.get',
  queryParameters: [
    { name: 'language', required: true, description: 'Language.', schema: Type.String() },
    { name: 'pages', description: 'Pages.', schema: Type.Integer({ default: 10 }) },
    { name: 'where', description: 'Filter.', schema: Type.Object({}), json: true },
  ],
});

const changeBook = defineOperation({
  ...READ,
  operationId: 'library.books.update',
  method: 'PATCH',
  mutation: true,
  precondition: 'ifMatch',
  requestBody: { required: true, schema: BookBody, maxBytes: 1_000 },
});

const noteBook = defineOperation({
  ...READ,
  operationId: 'library.books.note',
  method: 'POST',
  requestBody: { required: false, schema: BookBody, maxBytes: 1_000, validate: false },
});

describe('a row', () => {
  const {
    mutation: _,
    risk: _risk,
    cost: _cost,
    precondition: _precondition,
    agentApproval: _approval,
    ...read
  } = READ;

  it('is that of a read or of a mutation by its method, unless it says otherwise', () => {
    const kept = ({ mutation, risk, cost, agentApproval }: Operation) => [mutation, risk, cost, agentApproval];
    const get = defineOperation({ ...read, operationId: 'x' });
    const patch = defineOperation({ ...read, operationId: 'x', method: 'PATCH', risk: 'high' });
    const query = defineOperation({ ...read, operationId: 'x', method: 'POST', mutation: false, cost: 3 });
    assert.deepEqual([get, patch, query].map(kept), [
      [false, 'low', 1, 'never'],
      [true, 'high', 2, 'policy'],
      [false, 'low', 3, 'never'],
    ]);
    same<(typeof get)['mutation'] | (typeof query)['mutation'], false>(true);
    same<(typeof patch)['mutation'], true>(true);
    // @ts-expect-error: a mutation without its risk
    defineOperation({ ...read, operationId: 'x', method: 'PATCH' });
  });
});

describe('the types of an operation', () => {
  it('have the names of the path', () => {
    same<InputOf<typeof readBook>['path'], { shelfId: string; bookId: string }>(true);
    same<OperationInput<'data.shares.delete'>['path'], { objectApiName: string; id: string; shareId: string }>(true);
    // @ts-expect-error: a path parameter that is not in the path
    defineOperation({ ...READ, operationId: 'x', pathParameters: [{ name: 'bokId', description: '', schema: {} }] });
  });

  it('have the query parameters, absent unless they are required', () => {
    same<InputOf<typeof readBook>['query'], { language: string; pages?: number; where?: unknown }>(true);
    same<OperationInput<'data.shares.list'>['query'], Record<never, never>>(true);
    same<
      OperationInput<'metadata.deployments.list'>['query']['status'],
      'QUEUED' | 'VALIDATING' | 'APPLYING' | 'CANCELING' | 'SUCCEEDED' | 'FAILED' | 'CANCELED' | undefined
    >(true);
  });

  it('have the body of the schema, unless the service validates it', () => {
    same<InputOf<typeof changeBook>['body'], { title: string; pages?: number }>(true);
    same<InputOf<typeof noteBook>['body'], Record<string, unknown> | undefined>(true);
    same<OperationInput<'data.records.create'>['body'], Record<string, unknown>>(true);
    same<OperationInput<'data.shares.create'>['body']['access'], 'read' | 'edit'>(true);
    // @ts-expect-error: the operation takes no body
    same<InputOf<typeof readBook>['body'], undefined>(true);
  });

  it('have the headers that mutation and precondition demand, and those that the row declares', () => {
    same<OperationInput<'data.records.update'>['headers']['ifMatch'], string>(true);
    same<OperationInput<'data.records.create'>['headers']['idempotencyKey'], string>(true);
    same<OperationInput<'data.records.create'>['fingerprint'], string>(true);
    same<OperationInput<'data.records.upsert'>['headers']['ifMatch'], string | undefined>(true);
    same<OperationInput<'data.records.get'>['headers'], { ifNoneMatch?: string }>(true);
    // @ts-expect-error: the row declares no such header
    same<OperationInput<'data.records.create'>['headers']['ifMatch'], string | undefined>(true);
    // @ts-expect-error: a read has no fingerprint
    same<OperationInput<'data.records.get'>['fingerprint'], string>(true);
  });

  it('have the body of the answer', () => {
    same<OperationOutput<'me.limits.get'>['daily'], { limit: number; used: number; remaining: number }>(true);
    same<OperationOutput<'me.identity.get'>['user']['email'], string | null>(true);
    same<OperationOutput<'data.shares.delete'>, null>(true);
    // @ts-expect-error: the answer has no such property
    same<OperationOutput<'me.identity.get'>['users'], never>(true);
  });

  it('match the parameters that the gateway builds for every operation', () => {
    const asCall = (input: OperationInput<OperationId>): OperationCall => input;
    const row: Operation = changeBook;
    assert.deepEqual([typeof asCall, row.operationId], ['function', 'library.books.update']);
  });
});

describe('a handler', () => {
  it('reads only parameters of its row', () => {
    const handler: Handler<'data.records.list', null> = async (_, __, { path, query }) => {
      const name: string = path.objectApiName;
      const take: number | undefined = query.take;
      // @ts-expect-error: a misspelt path parameter
      path.objectApiname;
      // @ts-expect-error: a parameter of another type
      const cursor: number | undefined = query.cursor;
      // @ts-expect-error: an unknown parameter
      query.page;
      return { body: { name, take, cursor } };
    };
    assert.ok(handler);
  });
});

describe('a call', () => {
  it('names a known action and passes its parameters', () => {
    const broker = { call: async () => null };
    const compiledOnly = () => [
      call(broker, 'data.users.get', { tenantId: '', userId: '' }),
      // @ts-expect-error: a misspelt action
      call(broker, 'data.user.get', { tenantId: '', userId: '' }),
      // @ts-expect-error: a missing parameter
      call(broker, 'data.users.get', { tenantId: '' }),
      call(broker, 'data.shares.list', {
        operationId: 'data.shares.list',
        // @ts-expect-error: a missing path parameter
        path: { objectApiName: 'Account' },
        query: {},
        headers: {},
      }),
    ];
    assert.ok(compiledOnly);
  });
});

describe('an event', () => {
  it('has a known name and the payload of its contract', () => {
    const broker = { emit: async () => {}, broadcast: async () => {} };
    const compiledOnly = () => {
      broadcast(broker, 'metadata.schema.changed', { tenantId: '', metadataVersion: 1 });
      // @ts-expect-error: a misspelt event
      broadcast(broker, 'metadata.schema.change', { tenantId: '', metadataVersion: 1 });
      // @ts-expect-error: a value of another type
      emit(broker, 'metadata.schema.changed', { tenantId: '', metadataVersion: '1' });
    };
    assert.ok(compiledOnly);
  });
});

describe('the handlers of a service', () => {
  it('are those of its actions, each with its parameters', () => {
    type Handlers = ActionHandlers<'metadata', MetadataActions>;
    const some = {
      'snapshots.get': async (ctx) => {
        // @ts-expect-error: not a parameter of this action
        ctx.params.tenant;
        return null;
      },
    } satisfies Partial<Handlers>;
    // @ts-expect-error: actions are missing
    const all: Handlers = some;
    // @ts-expect-error: an action that the contract does not have
    const more = { 'snapshots.drop': async () => null } satisfies Partial<Handlers>;
    assert.ok(all && more);
  });
});
