/** The fields of an object that the user may read, by which texts of the command line become values. */

import type { OperationOutput } from '../../contracts/operations.ts';
import type { Api } from '../http/api.ts';

export type ObjectDescription = OperationOutput<'schema.objects.describe'>;
export type Field = ObjectDescription['fields'][number];

export async function describe(api: Api, objectApiName: string): Promise<ObjectDescription> {
  const { body } = await api.call('schema.objects.describe', { path: { objectApiName } });
  return body;
}

export const fieldOf = ({ fields }: ObjectDescription, apiName: string): Field | undefined =>
  fields.find((field) => field.apiName === apiName);
