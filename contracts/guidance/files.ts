/** Guidance for the operations of files. */
import type { Guidance } from './types.ts';

export const FILES_GUIDANCE = {
  'files.items.create': {
    whenToUse: 'To store a file of up to 10 MiB in one request, attached to a record or not.',
    whenNotToUse: 'Not for larger files, and not over a connection that breaks off: begin an upload.',
    preconditions: [
      'The SHA-256 of the content, for `Content-Digest`.',
      'The right to change the record, if one is named.',
    ],
    commonErrors: ['UPLOAD_CHECKSUM_MISMATCH', 'REQUEST_TOO_LARGE', 'RECORD_ACCESS_DENIED'],
  },
  'files.items.list': {
    whenToUse: 'To find the files of a record, or the ones that the caller has stored.',
    whenNotToUse: 'Not to search contents or names: there is no search.',
    preconditions: [],
    commonErrors: ['RECORD_NOT_FOUND', 'PARAMETER_REQUIRED'],
  },
  'files.items.get': {
    whenToUse: 'Before a change, for the ETag; or to see whether a file has been scanned.',
    whenNotToUse: 'Not for the content: `files.content.get` has it.',
    preconditions: ['The id of the file, from a record or from `files.items.list`.'],
    commonErrors: ['FILE_NOT_FOUND'],
  },
  'files.content.get': {
    whenToUse: 'To read the bytes of a file, or a range of them after a download broke off.',
    whenNotToUse: 'Not to learn name, size or type: `files.items.get` has them.',
    preconditions: ['The file is `ready`.'],
    commonErrors: ['FILE_QUARANTINED', 'FILE_NOT_FOUND', 'RANGE_NOT_SATISFIABLE'],
  },
  'files.items.update': {
    whenToUse: 'To rename or describe a file, to attach it to a record, or to detach it from one.',
    whenNotToUse:
      'Not for a field of a record that holds the file: change the record. Not for another content: store another file.',
    preconditions: ['The ETag of the file.'],
    commonErrors: ['ETAG_MISMATCH', 'RECORD_ACCESS_DENIED', 'FILE_NOT_FOUND'],
  },
  'files.items.delete': {
    whenToUse: 'When a person has said that the file is no longer needed by anybody.',
    whenNotToUse: 'Not to take it off one record: detach it, or clear the field.',
    preconditions: ['The ETag of the file.', 'The caller has stored it, and no field refers to it.'],
    commonErrors: ['DELETE_RESTRICTED', 'ETAG_MISMATCH', 'RECORD_ACCESS_DENIED'],
  },
  'files.uploads.create': {
    whenToUse: 'For a file of more than 10 MiB, or where the connection may break off.',
    whenNotToUse: 'Not for small files: `files.items.create` takes one request.',
    preconditions: ['The size of the file.'],
    commonErrors: ['REQUEST_TOO_LARGE', 'TOO_MANY_ITEMS', 'RECORD_ACCESS_DENIED'],
  },
  'files.uploads.head': {
    whenToUse: 'After a chunk broke off, to learn from where to go on.',
    whenNotToUse: 'Not between chunks that succeeded: their answers have the offset.',
    preconditions: ['The caller began the upload.'],
    commonErrors: ['UPLOAD_NOT_FOUND'],
  },
  'files.uploads.append': {
    whenToUse: 'To send the next chunk of an upload.',
    whenNotToUse: 'Not for several chunks at a time: each begins where the one before it ended.',
    preconditions: ['The offset of the upload.'],
    commonErrors: ['UPLOAD_OFFSET_CONFLICT', 'UPLOAD_NOT_FOUND', 'REQUEST_TOO_LARGE'],
  },
  'files.uploads.complete': {
    whenToUse: 'When the offset has reached the size.',
    whenNotToUse: 'Not before: nothing is kept of an upload that lacks bytes.',
    preconditions: ['The SHA-256 of the whole content.'],
    commonErrors: ['UPLOAD_CHECKSUM_MISMATCH', 'UPLOAD_OFFSET_CONFLICT', 'UPLOAD_NOT_FOUND'],
  },
  'files.uploads.delete': {
    whenToUse: 'When an upload will not be completed, so that it no longer counts.',
    whenNotToUse: 'Not for a file: `files.items.delete` does that.',
    preconditions: ['The caller began the upload.'],
    commonErrors: ['UPLOAD_NOT_FOUND'],
  },
} as const satisfies Readonly<Record<string, Guidance>>;
