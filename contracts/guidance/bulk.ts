/** Guidance for the operations of bulk. */
import type { Guidance } from './types.ts';

export const BULK_GUIDANCE = {
  'bulk.jobs.create': {
    whenToUse: 'To import or change more records than fit a request, from a file, or to export all records of a query.',
    whenNotToUse: 'Not for a few records: the operations on records answer at once, with every error.',
    preconditions: [
      'The scope `bulk:run`, and that of the operation on records.',
      'For updates and deletes the `_etag` of each record, or the permission to modify all records.',
    ],
    commonErrors: ['OBJECT_PERMISSION_DENIED', 'PARAMETER_CONFLICT', 'TOO_MANY_ITEMS'],
  },
  'bulk.jobs.list': {
    whenToUse: 'To find a job again, or to see which ones are at work.',
    whenNotToUse: 'Not to wait for one job: read that job.',
    preconditions: [],
    commonErrors: ['CURSOR_EXPIRED'],
  },
  'bulk.jobs.get': {
    whenToUse: 'To see the state of a job and how many of its rows are done; once a second is free.',
    whenNotToUse: 'Not for single rows: the results have them.',
    preconditions: ['The `jobId` of a job of this user and client.'],
    commonErrors: ['JOB_NOT_FOUND'],
  },
  'bulk.parts.upload': {
    whenToUse: 'To give the rows of an import to its job, in one part or several.',
    whenNotToUse: 'Not after the start: the parts of a job that has started stay as they are.',
    preconditions: ['The SHA-256 of the part, as `Content-Digest`.', 'UTF-8 in the format of the job.'],
    commonErrors: ['BULK_DATA_INVALID', 'JOB_STATE_CONFLICT', 'UPLOAD_CHECKSUM_MISMATCH'],
  },
  'bulk.jobs.start': {
    whenToUse: 'When all parts are there.',
    whenNotToUse: 'Not for an export: it starts by itself.',
    preconditions: ['The parts are numbered from 1 without a gap.'],
    commonErrors: ['JOB_STATE_CONFLICT', 'JOB_NOT_FOUND'],
  },
  'bulk.jobs.cancel': {
    whenToUse: 'To end a job before its last row.',
    whenNotToUse: 'Not to undo it: what has been committed stays.',
    preconditions: ['The job has not ended.'],
    commonErrors: ['JOB_STATE_CONFLICT', 'JOB_NOT_FOUND'],
  },
  'bulk.results.list': {
    whenToUse: 'To learn what became of each row, or to take the file of an export.',
    whenNotToUse: 'Not to learn whether a job has ended: read the job.',
    preconditions: ['The scope of the operation on records, besides `bulk:run`.'],
    commonErrors: ['JOB_STATE_CONFLICT', 'JOB_NOT_FOUND', 'CURSOR_EXPIRED'],
  },
  'bulk.jobs.delete': {
    whenToUse: 'To remove the parts and results of a job before they expire.',
    whenNotToUse: 'Not for a job that is at work: cancel it first.',
    preconditions: ['The job is not waiting or at work.'],
    commonErrors: ['JOB_STATE_CONFLICT', 'JOB_NOT_FOUND'],
  },
} as const satisfies Readonly<Record<string, Guidance>>;
