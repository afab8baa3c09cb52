/** Public operations and internal actions of files. */
import { type Static, Type } from 'typebox';
import type { Asker } from '../lib/context.ts';
import { LIMITS } from '../lib/limits.ts';
import { type ActionsOf, defineOperation, defineParameter, nullable } from '../lib/operation.ts';
import { cursor, effectiveTake, KEY_ERRORS, nextCursor, take } from './data/rows.ts';
import type { ServiceDeclaration } from './declaration.ts';
import { FILES_GUIDANCE } from './guidance/files.ts';

/** The records that files are attached to without a field, by file. */
export interface AttachedFile {
  readonly fileId: string;
  readonly records: readonly { readonly objectApiName: string; readonly recordId: string }[];
}

/** A record that a user can read, and through which they can read the file. */
export interface FileRecord {
  readonly fileId: string;
  readonly objectApiName: string;
  readonly recordId: string;
  /** The field that holds the id of the file; null: it is attached without one. */
  readonly field: string | null;
  /** The user may change the record. */
  readonly edits: boolean;
}

/** For data's actions about files. */
export interface FileQuestion {
  readonly asker: Asker;
  readonly files: readonly AttachedFile[];
}

export interface FilesActions extends ActionsOf<typeof FILES_OPERATIONS> {
  /** Bytes of the tenant's files and open uploads. */
  'files.usage.get': { params: { tenantId: string }; result: { usedBytes: number; limitBytes: number } };
  /** Removes contents of a tenant in erasure from the store. Answers how many blobs it removed; 0: none is left. */
  'files.tenants.erase': { params: { tenantId: string }; result: { removed: number } };
}

const closed = { additionalProperties: false };
const uuid = Type.String({ format: 'uuid' });
const timestamp = Type.String({ format: 'date-time' });
const bytes = Type.Integer({ minimum: 0, maximum: LIMITS.file_max_bytes });
const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of the content in lower-case hex.' });

/** Neither a path nor what a file system or a reader of lists could take for something else. */
export const FileName = Type.String({
  minLength: 1,
  maxLength: LIMITS.file_name_max_chars,
  pattern: '^(?!\\.{1,2}$)[^\\u0000-\\u001f\\u007f-\\u009f/\\\\\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]+$',
  description: 'Without slashes, backslashes and control characters.',
});

const Description = Type.String({ maxLength: LIMITS.file_description_max_chars });

const RecordOfFile = Type.Object(
  { objectApiName: Type.String({ minLength: 1, maxLength: 80 }), recordId: uuid },
  { ...closed, title: 'FileTarget' },
);

const FieldOfFile = Type.Object(
  {
    ...RecordOfFile.properties,
    field: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 80,
        description: 'A field of type `file`, which gets the id of the file.',
      }),
    ),
  },
  { ...closed, title: 'FileUploadTarget' },
);

const File = Type.Object(
  {
    fileId: uuid,
    name: FileName,
    description: nullable(Type.String()),
    contentType: Type.String({ description: 'As the content shows it; what is declared counts for plain text alone.' }),
    size: bytes,
    sha256: Sha256,
    state: Type.Enum(['scanning', 'ready', 'quarantined'], { title: 'FileState' }),
    version: Type.Integer({ minimum: 1 }),
    attachedTo: Type.Array(
      Type.Object(
        {
          objectApiName: Type.String(),
          recordId: uuid,
          field: nullable(Type.String({ description: 'null: attached without a field.' })),
        },
        { title: 'FileAttachment' },
      ),
      {
        description: `Records that the caller can read, at most ${LIMITS.file_records_shown_max} for each field.`,
      },
    ),
    createdAt: timestamp,
    createdById: uuid,
    updatedAt: timestamp,
  },
  { title: 'StoredFile' },
);

export type FileBody = Static<typeof File>;

const Upload = Type.Object(
  {
    uploadId: uuid,
    name: FileName,
    offset: bytes,
    size: bytes,
    chunkMinBytes: Type.Integer({ description: 'Of every chunk but the last one.' }),
    chunkMaxBytes: Type.Integer(),
    expiresAt: timestamp,
    uploadUrl: Type.String({ description: 'Where chunks are sent.' }),
  },
  { title: 'FileUpload' },
);

export type UploadBody = Static<typeof Upload>;

const fileId = defineParameter({
  name: 'fileId',
  required: true,
  description: 'Id of the file.',
  schema: uuid,
  example: '0193d3b0-1c2d-7e3f-8a4b-5c6d7e8f9a0b',
});
const uploadId = defineParameter({
  name: 'uploadId',
  required: true,
  description: 'Id of the upload.',
  schema: uuid,
  example: '0193d3b1-2c2d-7e3f-8a4b-5c6d7e8f9a0b',
});
/** A record in a query; what for, as the end of a sentence. */
const record = (purpose: string) =>
  [
    {
      name: 'objectApiName',
      description: `apiName of the object of the record ${purpose}.`,
      schema: Type.String({ minLength: 1, maxLength: 80 }),
      example: 'Account',
    },
    {
      name: 'recordId',
      description: `Id of the record ${purpose}.`,
      schema: uuid,
      example: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24',
    },
  ] as const;

const EXAMPLE_FILE = {
  fileId: fileId.example,
  name: 'offer.pdf',
  description: null,
  contentType: 'application/pdf',
  size: 48_213,
  sha256: 'b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c',
  state: 'ready' as const,
  version: 1,
  attachedTo: [{ objectApiName: 'Account', recordId: '0193d3a8-4c1e-7b62-9f0a-3d5c8e7a1b24', field: null }],
  createdAt: '2026-11-21T00:01:22.123+00:00',
  createdById: '0193d3a7-10aa-7c55-8b21-6d1f0e9a7c33',
  updatedAt: '2026-11-21T00:01:22.123+00:00',
};
const EXAMPLE_UPLOAD = {
  uploadId: uploadId.example,
  name: 'film.mp4',
  offset: 0,
  size: 734_003_200,
  chunkMinBytes: LIMITS.file_chunk_min_bytes,
  chunkMaxBytes: LIMITS.file_chunk_max_bytes,
  expiresAt: '2026-11-22T00:01:22.123+00:00',
  uploadUrl: `/api/v1/files/uploads/${uploadId.example}`,
};

const ETAG = { ETag: { description: 'Of this version of the file.', schema: Type.String() } };
const OFFSET = {
  'Upload-Offset': { description: 'Bytes that are there.', schema: Type.Integer() },
  'Upload-Length': { description: 'Bytes of the whole file.', schema: Type.Integer() },
};
const ATTACH_ERRORS = [
  'OBJECT_NOT_FOUND',
  'OBJECT_PERMISSION_DENIED',
  'RECORD_NOT_FOUND',
  'RECORD_ACCESS_DENIED',
  'TOO_MANY_ITEMS',
] as const;
/** A body may take as long as it needs, as long as it does not stand still. */
const STREAM_MS = 3_600_000;

const READ = { tag: 'files', scopes: ['files:read'] } as const;
const WRITE = { tag: 'files', scopes: ['files:write'] } as const;

const FILES_OPERATIONS = [
  defineOperation({
    ...WRITE,
    operationId: 'files.items.create',
    method: 'POST',
    path: '/files',
    summary: 'Store a file',
    description: `The body is the content, of at most ${LIMITS.file_body_max_bytes} bytes. Larger files are uploads.`,
    risk: 'medium',
    timeLimitMs: STREAM_MS,
    queryParameters: record('that the file is attached to'),
    headerParameters: [
      {
        name: 'X-File-Name',
        required: true,
        description: 'Name of the file, percent-encoded UTF-8.',
        schema: Type.String({ minLength: 1, maxLength: 12 * LIMITS.file_name_max_chars }),
        example: 'offer.pdf',
      },
    ],
    requestBody: {
      required: true,
      kind: 'stream',
      schema: Type.String({ format: 'binary', title: 'FileBytes' }),
      maxBytes: LIMITS.file_body_max_bytes,
      remedy: 'Send a larger file in chunks: POST /files/uploads.',
    },
    response: {
      status: 201,
      description: 'The file.',
      schema: File,
      headers: { ...ETAG, Location: { description: 'Address of the file.', schema: Type.String() } },
      example: EXAMPLE_FILE,
    },
    errors: [...KEY_ERRORS, ...ATTACH_ERRORS, 'PARAMETER_REQUIRED'],
    action: 'files.items.create',
  }),
  defineOperation({
    ...READ,
    operationId: 'files.items.list',
    method: 'GET',
    path: '/files',
    summary: 'List files',
    description: 'The files of a record, or those that the caller has stored; the newest first.',
    queryParameters: [...record('whose files are listed'), take, cursor],
    response: {
      status: 200,
      description: 'A page of files.',
      schema: Type.Object({ records: Type.Array(File), nextCursor }, { title: 'FileList' }),
      headers: effectiveTake,
      example: { records: [EXAMPLE_FILE], nextCursor: null },
    },
    mcp: { tool: 'files_list' },
    errors: [
      'OBJECT_NOT_FOUND',
      'RECORD_NOT_FOUND',
      'PARAMETER_REQUIRED',
      'CURSOR_INVALID',
      'CURSOR_EXPIRED',
      'CURSOR_QUERY_MISMATCH',
    ],
    action: 'files.items.list',
  }),
  defineOperation({
    ...READ,
    operationId: 'files.items.get',
    method: 'GET',
    path: '/files/{fileId}',
    summary: 'Read what is known of a file',
    description: 'For its owner, and for those who can read a record that it is attached to.',
    pathParameters: [fileId],
    response: { status: 200, description: 'The file.', schema: File, headers: ETAG, example: EXAMPLE_FILE },
    mcp: { tool: 'files_get' },
    errors: ['FILE_NOT_FOUND'],
    action: 'files.items.get',
  }),
  defineOperation({
    ...READ,
    operationId: 'files.content.get',
    method: 'GET',
    path: '/files/{fileId}/content',
    summary: 'Read the content of a file',
    description:
      'As an attachment, whole or in ranges of bytes. With `redirect=true` the answer may be 302 to the store of contents, which has the ' +
      'bytes at the address in `Location` without a token; where the store cannot be reached so, they are answered as without it.',
    cost: 2,
    pathParameters: [fileId],
    queryParameters: [
      {
        name: 'redirect',
        description: 'The client follows a redirection to another host, without its token.',
        schema: Type.Boolean(),
        example: true,
      },
    ],
    response: {
      status: 200,
      kind: 'file',
      description: 'The content.',
      contentType: '*/*',
      schema: Type.String({ format: 'binary', title: 'FileContent' }),
      headers: {
        'Content-Disposition': { description: 'attachment, with the name of the file.', schema: Type.String() },
      },
    },
    alternatives: [
      {
        status: 302,
        description: `With \`redirect=true\`: where the bytes are, for ${LIMITS.file_url_seconds} seconds.`,
        headers: {
          Location: { description: 'A signed address of the store.', schema: Type.String({ format: 'uri' }) },
        },
      },
    ],
    errors: ['FILE_NOT_FOUND', 'FILE_QUARANTINED'],
    action: 'files.content.get',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'files.items.update',
    method: 'PATCH',
    path: '/files/{fileId}',
    summary: 'Rename, describe, attach or detach a file',
    description:
      'Name and description are changed by the owner and by those who may change a record that the file is attached to. ' +
      'To attach it takes the right to change the record; to detach it, that or the ownership of the file.',
    risk: 'low',
    precondition: 'ifMatch',
    cost: 1,
    pathParameters: [fileId],
    requestBody: {
      required: true,
      maxBytes: LIMITS.body_max_bytes,
      schema: Type.Object(
        {
          name: Type.Optional(FileName),
          description: Type.Optional(nullable(Description)),
          attachTo: Type.Optional(RecordOfFile),
          detachFrom: Type.Optional(RecordOfFile),
        },
        { ...closed, title: 'FileChange', minProperties: 1 },
      ),
      example: { name: 'offer-2026.pdf' },
    },
    response: { status: 200, description: 'The file.', schema: File, headers: ETAG, example: EXAMPLE_FILE },
    errors: [...KEY_ERRORS, ...ATTACH_ERRORS, 'FILE_NOT_FOUND', 'BODY_PROPERTY_UNKNOWN'],
    action: 'files.items.update',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'files.items.delete',
    method: 'DELETE',
    path: '/files/{fileId}',
    summary: 'Delete a file',
    description: 'By its owner; not while a field of a record refers to it. It cannot be restored.',
    risk: 'high',
    precondition: 'ifMatch',
    cost: 1,
    pathParameters: [fileId],
    response: {
      status: 200,
      description: 'What was deleted.',
      schema: Type.Object({ fileId: uuid, deleted: Type.Boolean(), deletedAt: timestamp }, { title: 'FileDeletion' }),
      example: { fileId: fileId.example, deleted: true, deletedAt: '2026-11-21T00:01:22.123+00:00' },
    },
    errors: [...KEY_ERRORS, 'FILE_NOT_FOUND', 'RECORD_ACCESS_DENIED', 'DELETE_RESTRICTED'],
    action: 'files.items.delete',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'files.uploads.create',
    method: 'POST',
    path: '/files/uploads',
    summary: 'Begin an upload',
    description: 'For files of any size: chunks are appended, and the upload is completed.',
    risk: 'low',
    requestBody: {
      required: true,
      maxBytes: LIMITS.body_max_bytes,
      schema: Type.Object(
        {
          name: FileName,
          contentType: Type.String({ minLength: 1, maxLength: 200 }),
          size: bytes,
          sha256: Type.Optional(Sha256),
          attachTo: Type.Optional(FieldOfFile),
        },
        { ...closed, title: 'FileUploadStart' },
      ),
      example: { name: 'film.mp4', contentType: 'video/mp4', size: 734_003_200 },
    },
    response: {
      status: 201,
      description: 'The upload.',
      schema: Upload,
      headers: { Location: { description: 'Address of the upload.', schema: Type.String() } },
      example: EXAMPLE_UPLOAD,
    },
    errors: [...KEY_ERRORS, ...ATTACH_ERRORS, 'BODY_PROPERTY_UNKNOWN', 'VALIDATION_FAILED'],
    action: 'files.uploads.create',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'files.uploads.head',
    method: 'GET',
    path: '/files/uploads/{uploadId}',
    summary: 'Read how far an upload is',
    description: 'HEAD answers the headers alone.',
    freePoll: true,
    pathParameters: [uploadId],
    response: { status: 200, description: 'The upload.', schema: Upload, headers: OFFSET, example: EXAMPLE_UPLOAD },
    errors: ['UPLOAD_NOT_FOUND'],
    action: 'files.uploads.head',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'files.uploads.append',
    method: 'PATCH',
    path: '/files/uploads/{uploadId}',
    summary: 'Append a chunk',
    description:
      'A chunk is taken as a whole or not at all: one that broke off is sent again from the offset of the upload. ' +
      'Content-Digest, when it is sent, is verified.',
    mutation: false,
    timeLimitMs: STREAM_MS,
    pathParameters: [uploadId],
    headerParameters: [
      {
        name: 'Upload-Offset',
        required: true,
        description: 'Where the chunk begins: the bytes that are there.',
        schema: Type.String({ pattern: '^(0|[1-9][0-9]{0,15})$' }),
        example: '0',
      },
    ],
    requestBody: {
      required: true,
      kind: 'stream',
      schema: Type.String({ format: 'binary', title: 'FileChunk' }),
      contentTypes: ['application/offset+octet-stream'],
      maxBytes: LIMITS.file_chunk_max_bytes,
    },
    response: { status: 204, description: 'The chunk is there.', headers: OFFSET },
    errors: ['UPLOAD_NOT_FOUND', 'UPLOAD_OFFSET_CONFLICT'],
    action: 'files.uploads.append',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'files.uploads.complete',
    method: 'POST',
    path: '/files/uploads/{uploadId}/complete',
    summary: 'Make a file of an upload',
    description:
      'When all bytes are there and have this SHA-256. A field of `attachTo` is written then, by the rules of an update of ' +
      'the record: if these refuse it, the file is there without it, and the request can be sent again.',
    risk: 'medium',
    pathParameters: [uploadId],
    requestBody: {
      required: true,
      maxBytes: LIMITS.body_max_bytes,
      schema: Type.Object({ sha256: Sha256 }, { ...closed, title: 'FileUploadEnd' }),
      example: { sha256: EXAMPLE_FILE.sha256 },
    },
    response: {
      status: 201,
      description: 'The file.',
      schema: File,
      headers: { ...ETAG, Location: { description: 'Address of the file.', schema: Type.String() } },
      example: EXAMPLE_FILE,
    },
    errors: [
      ...KEY_ERRORS,
      ...ATTACH_ERRORS,
      'UPLOAD_NOT_FOUND',
      'UPLOAD_OFFSET_CONFLICT',
      'UPLOAD_CHECKSUM_MISMATCH',
      'BODY_PROPERTY_UNKNOWN',
      'VALIDATION_FAILED',
      'DUPLICATE_RULE',
      'WRITE_CONTENTION',
    ],
    action: 'files.uploads.complete',
  }),
  defineOperation({
    ...WRITE,
    operationId: 'files.uploads.delete',
    method: 'DELETE',
    path: '/files/uploads/{uploadId}',
    summary: 'Give an upload up',
    risk: 'low',
    cost: 1,
    changes: { kind: 'end' },
    pathParameters: [uploadId],
    response: { status: 204, description: 'It is gone.' },
    errors: [...KEY_ERRORS, 'UPLOAD_NOT_FOUND'],
    action: 'files.uploads.delete',
  }),
] as const;

export const SERVICE = {
  purpose: 'Files: what they are called, whom they are shown to, and where their contents are kept.',
  listens: 'health',
  awaitedByGateway: false,
  usesContents: true,
  kubernetes: {
    replicas: { min: 2, max: 3 },
    connections: 3,
    requests: { cpu: '100m', memory: '192Mi' },
    limits: { cpu: '1', memory: '512Mi' },
  },
  database: { tenants: 'records', jobs: true, routines: ['files.numbers'] },
  operations: FILES_OPERATIONS,
  guidance: FILES_GUIDANCE,
  calls: [
    'data.access.check',
    'data.files.ofRecord',
    'data.files.referenced',
    'data.files.seen',
    'data.rows.describe',
    'data.rows.read',
    'data.rows.write',
    'metadata.tenants.list',
  ],
  actsForUsers: { 'data.rows.write': LIMITS.bulk_chunk_ms },
  repeatable: ['files.tenants.erase', 'files.usage.get'],
  consent: {
    'files:read': {
      area: 'records',
      text: 'Read files of the records that you can see.',
      forAssistants:
        'See names and other details of the files of records that you can see. It cannot read their contents.',
    },
    'files:write': { area: 'records', text: 'Store, attach, change and delete files.' },
  },
  moving: {
    parts: [
      { name: 'files/contents', table: 'files.contents', group: 'records' },
      { name: 'files/files', table: 'files.files', group: 'records' },
      { name: 'files/attachments', table: 'files.attachments', group: 'records' },
    ],
    // The bytes travel, and get keys of their own.
    made: ['files.blobs', 'files.usage'],
    leftBehind: ['files.uploads'],
  },
} as const satisfies ServiceDeclaration<typeof FILES_OPERATIONS>;
