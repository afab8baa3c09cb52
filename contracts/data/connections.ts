/**
 * The end of a connection. Grants belong to auth, but the key and the audit entry of a mutation are with the records of
 * its tenant, so that this service makes all three in one transaction.
 */
import { Type } from 'typebox';
import { defineOperation } from '../../lib/operation.ts';
import { TRIED } from './mutations.ts';
import { KEY_ERRORS } from './rows.ts';

export const CONNECTION_OPERATIONS = [
  defineOperation({
    ...TRIED,
    operationId: 'me.connections.revoke',
    method: 'DELETE',
    path: '/me/connections/{connectionId}',
    tag: 'me',
    summary: 'Revoke a connection',
    description:
      'Ends one authorization with its tokens and agent runs, also that of the request itself; others of the same application stay.',
    scopes: ['me:write'],
    risk: 'high',
    cost: 1,
    changes: { kind: 'end' },
    pathParameters: [
      {
        name: 'connectionId',
        required: true,
        description: 'Id of the connection, as it is listed.',
        schema: Type.String(),
        example: 'q7dhHYldwRX5KJEs_VEKsne-u1Wclg0D8q9zz2YqKzt',
      },
    ],
    response: { status: 204, description: 'The connection has ended.' },
    errors: [...KEY_ERRORS, 'CONNECTION_NOT_FOUND'],
    action: 'data.connections.revoke',
  }),
] as const;
