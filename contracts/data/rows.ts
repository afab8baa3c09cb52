/** Common to the rows of operations. */
import { Type } from 'typebox';
import { LIMITS } from '../../lib/limits.ts';
import { defineParameter } from '../../lib/operation.ts';

/** Objects whose records say what users may do. */
const ACCESS_OBJECTS = ['User'] as const;

/** Of every operation that changes records of any object. */
export const CHANGES_RECORDS = {
  stepUp: ACCESS_OBJECTS,
  givesAccess: { objects: ACCESS_OBJECTS, scope: 'users:manage' },
} as const;

/** Of every mutation, by its idempotency key. */
export const KEY_ERRORS = [
  'IDEMPOTENCY_KEY_REQUIRED',
  'IDEMPOTENCY_KEY_INVALID',
  'IDEMPOTENCY_KEY_REUSED',
  'IDEMPOTENCY_IN_PROGRESS',
  'WRITE_CONTENTION',
] as const;

/** Parameters of lists other than of records, and what ends them. */
export const take = defineParameter({
  name: 'take',
  description: `Page size; more than ${LIMITS.take_max} is answered with ${LIMITS.take_max} entries and \`X-Effective-Take\`.`,
  schema: Type.Integer({ minimum: 1, default: LIMITS.take_default }),
  example: 20,
});

export const cursor = defineParameter({
  name: 'cursor',
  description: 'The unmodified `nextCursor` of the previous page; every other parameter stays as it was.',
  schema: Type.String(),
});

export const nextCursor = Type.Union([Type.String(), Type.Null()], { description: 'null marks the last page.' });

/** Header of lists. */
export const effectiveTake = {
  'X-Effective-Take': {
    description: 'The page size, when `take` was larger than allowed.',
    schema: Type.Integer(),
  },
};

export const objectApiName = defineParameter({
  name: 'objectApiName',
  required: true,
  description: 'apiName of a published object, such as `Account`. Never a label.',
  schema: Type.String(),
  example: 'Account',
});

export const id = defineParameter({
  name: 'id',
  required: true,
  description: 'Id of the record (UUID in lower case).',
  schema: Type.String({ format: 'uuid' }),
  example: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24',
});

/** Of reads that answer 304. */
export const ifNoneMatch = defineParameter({
  name: 'If-None-Match',
  description: 'ETag of an earlier answer; 304 when nothing changed.',
  schema: Type.String(),
  example: '"k7"',
});

/** Of answers with labels. */
export const acceptLanguage = defineParameter({
  name: 'Accept-Language',
  description: 'Languages of the labels, by preference; names, codes and messages are the same in all of them.',
  schema: Type.String(),
  example: 'de-AT, de;q=0.9, en;q=0.5',
});

export const contentLanguage = {
  'Content-Language': { description: 'The language of the labels.', schema: Type.String() },
};
