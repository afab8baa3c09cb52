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

const id = Type.String({ description: 'Id of the record (UUID in lower case).' });

const recordVersion = Type.Integer({ description: 'Counts the changes of the record.' });
const timestamp = Type.String({ format: 'date-time' });

/** Names a record, of whatever object. */
export const RecordReference = Type.Object(
  {
    objectApiName: Type.String({ minLength: 1, maxLength: 80 }),
    id: Type.String({ format: 'uuid' }),
  },
  { title: 'RecordReference', additionalProperties: false },
);

/** A record as reads answer it: its id, and the fields that were asked for. */
export const RecordSchema = Type.Object(
  {
    id,
    recordVersion: Type.Optional(recordVersion),
    createdAt: Type.Optional(timestamp),
    updatedAt: Type.Optional(timestamp),
    _etag: Type.Optional(Type.String({ description: 'With includeEtag=true: the ETag, to be sent as If-Match.' })),
    _expanded: Type.Optional(
      Type.Record(Type.String(), nullable(Type.Object({}, { additionalProperties: true })), {
        title: 'ExpandedReferences',
        description: 'With expand: by reference, the fields of the record that it points to; null where there is none.',
      }),
    ),
  },
  {
    title: 'DataRecord',
    additionalProperties: true,
    description:
      'Values by apiName of the field; describe lists the fields of an object. An absent field is hidden or was not requested; null is an empty value.',
  },
);

/** A record as writes answer it: with every field that the caller reads. */
export const WrittenRecordSchema = Type.Object(
  { id, recordVersion, createdAt: timestamp, updatedAt: timestamp },
  {
    title: 'WrittenRecord',
    additionalProperties: true,
    description: 'A record as it is after a change, keyed by field apiName, with all fields that the user can read.',
  },
);

/** Fields of a record: of what a request sends, and of what a dry run would store. */
export const RecordFields = Type.Object(
  {},
  {
    title: 'RecordFields',
    additionalProperties: true,
    description:
      'Fields of a record by apiName. Of a request: decimals are numbers or strings, and null empties a field.',
  },
);

export const RecordPage = Type.Object(
  {
    records: Type.Array(RecordSchema),
    total: Type.Optional(Type.Integer({ description: 'With includeTotal=true: all matching records.' })),
    nextCursor: nullable(Type.String({ description: 'null marks the last page.' })),
  },
  { title: 'DataRecordPage' },
);

export const etagHeader = {
  ETag: { description: 'Version of the record; send it back as If-Match.', schema: Type.String() },
};
