/** A record as the operations on records show it. */
import { Type } from 'typebox';
import { nullable } from '../../lib/operation.ts';

export const EXAMPLE_RECORD = {
  id: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24',
  ownerId: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
  createdAt: '2026-11-21T00:01:22.123+00:00',
  createdById: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
  updatedAt: '2026-11-21T00:01:22.123+00:00',
  updatedById: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
  recordVersion: 1,
  recordTypeApiName: null,
  name: 'Acme GmbH',
  city: 'Berlin',
  creditLimit: 25000.5,
};

export const RecordSchema = Type.Object(
  {},
  {
    $id: 'Record',
    additionalProperties: true,
    description:
      'A record keyed by field apiName; describe tells the fields of an object. A field that is absent is hidden or was not asked for; null is stored empty.',
  },
);

export const RecordPage = Type.Object({
  records: Type.Array(RecordSchema),
  total: Type.Optional(Type.Integer({ description: 'With includeTotal=true: all matching records.' })),
  nextCursor: nullable(Type.String({ description: 'null marks the last page.' })),
});

export const etagHeader = {
  ETag: { description: 'Version of the record; send it back as If-Match.', schema: Type.String() },
};
