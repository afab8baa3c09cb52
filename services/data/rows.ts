/** Path parameters that the operations on records have in common. */
import { Type } from 'typebox';
import type { Parameter } from '../../lib/operation.ts';

export const objectApiName: Parameter = {
  name: 'objectApiName',
  required: true,
  description: 'apiName of a published object, such as `Account`. Never a label.',
  schema: Type.String(),
  example: 'Account',
};

export const id: Parameter = {
  name: 'id',
  required: true,
  description: 'Id of the record (UUID in lower case).',
  schema: Type.String(),
  example: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24',
};
