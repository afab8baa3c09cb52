/**
 * How administrators let people in. Links and mails belong to auth, but the key and the audit entry of a mutation are
 * with the records of its tenant, so that this service makes all of them in one transaction.
 */
import { Type } from 'typebox';
import { defineOperation, defineParameter, nullable } from '../../lib/operation.ts';
import { KEY_ERRORS } from './rows.ts';

const userId = defineParameter({
  name: 'userId',
  required: true,
  description: 'Id of the `User` record.',
  schema: Type.String({ format: 'uuid' }),
  example: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
});

const LET_IN = {
  tag: 'data',
  // A link gives control of the account: a program that may only write records creates none.
  scopes: ['users:manage'],
  risk: 'high',
  stepUp: true,
  givesAccess: { scope: 'users:manage' },
  pathParameters: [userId],
} as const;

const ERRORS = [
  ...KEY_ERRORS,
  'OBJECT_PERMISSION_DENIED',
  'RECORD_NOT_FOUND',
  'RECORD_ACCESS_DENIED',
  'AGENT_POLICY_DENIED',
  'STATE_CONFLICT',
] as const;

const EXAMPLE_LINK = {
  userId: userId.example,
  signInName: 'sam@demo.example',
  url: 'https://erp.example.com/password/wq3tP2n0l8Zx5dVb7rYcGm1sKfJhUeOa4iTnWvQxR9E',
  expiresAt: '2026-11-22T00:01:22.123+00:00',
};

export const USER_OPERATIONS = [
  defineOperation({
    ...LET_IN,
    operationId: 'users.passwordLinks.create',
    method: 'POST',
    path: '/users/{userId}/password-links',
    summary: 'Make a link with which a user sets a password',
    description:
      'Returned once. Hand it over outside this platform: its holder can take over the account. Valid for 24 hours and one use. Requires `manageUsers` and every permission of the user.',
    response: {
      status: 201,
      description: 'The link. A repetition under the same key answers it without `url`.',
      schema: Type.Object(
        {
          userId: Type.String({ format: 'uuid' }),
          signInName: Type.String({ description: 'Name that the user types to sign in.' }),
          url: nullable(Type.String({ description: 'A secret. Null in a repetition: it is not stored.' })),
          expiresAt: Type.String({ format: 'date-time' }),
        },
        { title: 'PasswordLink' },
      ),
      example: EXAMPLE_LINK,
    },
    errors: ERRORS,
    action: 'data.users.createPasswordLink',
  }),
  defineOperation({
    ...LET_IN,
    operationId: 'users.invitations.create',
    method: 'POST',
    path: '/users/{userId}/invitations',
    summary: 'Invite a user again',
    description:
      'Sends another link to a user without a password, valid for 7 days and one use. Requires `manageUsers` and every permission of the user.',
    response: {
      status: 202,
      description: 'The mail is on its way to the address of the user.',
      schema: Type.Object({ userId: Type.String({ format: 'uuid' }) }, { title: 'Invitation' }),
      example: { userId: userId.example },
    },
    errors: ERRORS,
    action: 'data.users.invite',
  }),
] as const;
