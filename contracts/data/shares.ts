/** The public operations on manual shares. */
import { Type } from 'typebox';
import { PRINCIPAL_TYPES } from '../../lib/access/sharing.ts';
import { LIMITS } from '../../lib/limits.ts';
import { defineOperation, defineParameter } from '../../lib/operation.ts';
import { TRIED } from './mutations.ts';
import { id, KEY_ERRORS, nextCursor, objectApiName } from './rows.ts';

const shareId = defineParameter({
  name: 'shareId',
  required: true,
  description: 'Id of the share.',
  schema: Type.String({ format: 'uuid' }),
  example: '0193d3aa-77e0-7b62-9f0a-3d5c8e7a1b24',
});

const PrincipalType = Type.Enum([...PRINCIPAL_TYPES], { title: 'PrincipalType' });
const Access = Type.Enum(['read', 'edit'], { title: 'ShareAccess' });

const Share = Type.Object(
  {
    shareId: Type.String(),
    principalType: PrincipalType,
    principalId: Type.String({ description: 'Id of the user, or apiName of the role or group.' }),
    access: Access,
    reason: Type.Union([Type.String(), Type.Null()]),
    createdAt: Type.String({ format: 'date-time' }),
    createdById: Type.String(),
  },
  { title: 'RecordShare' },
);

const EXAMPLE_GIVEN = { principalType: 'group', principalId: 'Finance', access: 'read', reason: 'Audit of 2026' };
const EXAMPLE_SHARE = {
  shareId: shareId.example,
  ...EXAMPLE_GIVEN,
  createdAt: '2026-11-21T00:01:22.123+00:00',
  createdById: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
};

const ERRORS = ['OBJECT_NOT_FOUND', 'RECORD_NOT_FOUND', 'RECORD_ACCESS_DENIED'] as const;

const CHANGE = {
  ...TRIED,
  tag: 'data',
  scopes: ['data:write'],
  risk: 'high',
  givesAccess: { scope: 'users:manage' },
  changes: { kind: 'record', needs: ['share'] },
} as const;

export const SHARE_OPERATIONS = [
  defineOperation({
    operationId: 'data.shares.list',
    method: 'GET',
    path: '/data/{objectApiName}/{id}/shares',
    tag: 'data',
    summary: 'List the manual shares of a record',
    description:
      'For users with full access: the owner, users above the owner, users who may modify all records, and every user where the default is readWrite.',
    scopes: ['data:read'],
    pathParameters: [objectApiName, id],
    response: {
      status: 200,
      description: `All shares, oldest first; a record has ${LIMITS.record_shares_max} at most.`,
      schema: Type.Object({ records: Type.Array(Share), nextCursor }, { title: 'RecordSharePage' }),
      example: { records: [EXAMPLE_SHARE], nextCursor: null },
    },
    errors: ERRORS,
    action: 'data.shares.list',
  }),
  defineOperation({
    ...CHANGE,
    operationId: 'data.shares.create',
    method: 'POST',
    path: '/data/{objectApiName}/{id}/shares',
    summary: 'Share a record',
    description:
      'Shares the record with a user, a role and the roles above it, or a group. Sharing again with the same principal replaces access and reason.',
    pathParameters: [objectApiName, id],
    requestBody: {
      required: true,
      schema: Type.Object(
        {
          principalType: PrincipalType,
          principalId: Type.String({ minLength: 1, maxLength: 255 }),
          access: Access,
          reason: Type.Optional(
            Type.String({ maxLength: 1_000, description: 'For those who look at the shares later.' }),
          ),
        },
        { title: 'RecordShareInput', additionalProperties: false },
      ),
      maxBytes: LIMITS.body_max_bytes,
      example: EXAMPLE_GIVEN,
    },
    response: { status: 201, description: 'The share.', schema: Share, example: EXAMPLE_SHARE },
    errors: [...KEY_ERRORS, ...ERRORS, 'BODY_REQUIRED', 'VALIDATION_FAILED', 'TOO_MANY_ITEMS'],
    action: 'data.shares.create',
  }),
  defineOperation({
    ...CHANGE,
    operationId: 'data.shares.delete',
    method: 'DELETE',
    path: '/data/{objectApiName}/{id}/shares/{shareId}',
    summary: 'Take a manual share back',
    description: 'Users keep access that they have otherwise; the rest ends with the next request.',
    pathParameters: [objectApiName, id, shareId],
    response: { status: 204, description: 'The share is gone.' },
    errors: [...KEY_ERRORS, ...ERRORS],
    action: 'data.shares.delete',
  }),
] as const;
