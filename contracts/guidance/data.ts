/** Guidance for the operations whose rows are those of data. */
import type { Guidance } from './types.ts';

const OBJECT = 'The apiName of the object, from `schema.objects.list`, and those of its fields, from its description.';
const ETAG = 'The record was read, and its `ETag` is sent as `If-Match`.';

export const DATA_GUIDANCE = {
  'schema.objects.list': {
    whenToUse: 'Before any work with records: which objects exist for this user, and what may be done with them.',
    whenNotToUse: 'Not to conclude that an object that is missing does not exist: it may be hidden or not published.',
    preconditions: [],
    commonErrors: ['SCOPE_INSUFFICIENT', 'API_ACCESS_DISABLED'],
  },
  'schema.objects.describe': {
    whenToUse:
      'Before the first query or write of an object: fields with types, limits, allowed values and filter operators. Keep it, and ask again with `If-None-Match`.',
    whenNotToUse: 'Not from memory of another tenant: objects and fields differ, and a label is not a name.',
    preconditions: ['The apiName of the object, from `schema.objects.list`.'],
    commonErrors: ['OBJECT_NOT_FOUND'],
  },
  'schema.objects.getSchema': {
    whenToUse: 'To generate types or to validate bodies in a program, with JSON Schema 2020-12.',
    whenNotToUse: 'Not for labels, filter operators or layouts: those are in `schema.objects.describe`.',
    preconditions: ['The apiName of the object, from `schema.objects.list`.'],
    commonErrors: ['OBJECT_NOT_FOUND'],
  },
  'data.records.list': {
    whenToUse: 'To find records by field values, conditions or words, page by page, with a query that fits an address.',
    whenNotToUse:
      'Not for sums or counts over many records: run a widget, or use `includeTotal`. Programs with filters are better off with `data.records.query`. An empty list proves nothing.',
    preconditions: [OBJECT],
    commonErrors: ['OBJECT_NOT_FOUND', 'FILTER_FIELD_UNKNOWN', 'PARAMETER_UNKNOWN', 'FILTER_OPERATOR_UNSUPPORTED'],
  },
  'data.records.query': {
    whenToUse:
      'The list for programs: the same parameters as plain JSON in a body, without encoding and of any length.',
    whenNotToUse: 'Not for a single record whose id is known: `data.records.get` returns its `ETag`.',
    preconditions: [OBJECT],
    commonErrors: ['OBJECT_NOT_FOUND', 'FILTER_FIELD_UNKNOWN', 'FILTER_OPERATOR_UNSUPPORTED', 'CURSOR_QUERY_MISMATCH'],
  },
  'data.records.get': {
    whenToUse: 'To read one record by its id, and always before changing or deleting it: the answer has the `ETag`.',
    whenNotToUse: 'Not in a loop over a list: a list returns all readable fields and, with `includeEtag`, the ETags.',
    preconditions: ['Object and id of the record.'],
    commonErrors: ['RECORD_NOT_FOUND', 'OBJECT_NOT_FOUND'],
  },
  'data.records.create': {
    whenToUse: 'To store a new record after checking that it does not exist yet.',
    whenNotToUse:
      'Not to repeat a request whose answer was lost with a new key: that makes a second record. Not for records with a key of another system: use `data.records.upsert`.',
    preconditions: [OBJECT, 'All required fields that have no default, with values that are known and not invented.'],
    commonErrors: ['VALIDATION_FAILED', 'DUPLICATE_RULE', 'UNIQUE_VALUE_CONFLICT', 'OBJECT_PERMISSION_DENIED'],
  },
  'composite.requests.execute': {
    whenToUse:
      'When several changes belong together: all are stored or none, and later ones use the ids of records that earlier ones create.',
    whenNotToUse:
      'Not to save requests for changes that have nothing to do with each other: one that fails takes back all. Many records of one object are better off with `composite.records.write`.',
    preconditions: [OBJECT, 'For changes of records that are there already, their ETags, as `headers.ifMatch`.'],
    commonErrors: ['COMPOSITE_FAILED', 'COMPOSITE_REFERENCE_INVALID', 'PARAMETER_INVALID', 'SCOPE_INSUFFICIENT'],
  },
  'composite.records.write': {
    whenToUse: 'To create, change or delete up to 200 records of one object at once.',
    whenNotToUse: 'Not for records of several objects, or that refer to each other: use `composite.requests.execute`.',
    preconditions: [OBJECT, 'Ids and ETags of the records that are changed or deleted.'],
    commonErrors: ['COMPOSITE_FAILED', 'IF_MATCH_REQUIRED', 'OBJECT_NOT_FOUND', 'OBJECT_PERMISSION_DENIED'],
  },
  'data.records.update': {
    whenToUse:
      'To change some fields of a record: send only those. null clears a field, a list replaces the whole list.',
    whenNotToUse:
      'Not for the state of a record that has a state model: execute a transition. Never without having read the record.',
    preconditions: [ETAG],
    commonErrors: ['ETAG_MISMATCH', 'VALIDATION_FAILED', 'FIELD_PERMISSION_DENIED', 'RECORD_ACCESS_DENIED'],
  },
  'data.records.upsert': {
    whenToUse: 'To keep records in step with another system: it creates or updates by a field that is an external id.',
    whenNotToUse:
      'Not with a field that is no external id, and not where an update alone is meant: send `If-Match` then.',
    preconditions: [OBJECT, 'A field whose description says `externalId`.'],
    commonErrors: ['VALIDATION_FAILED', 'UNIQUE_VALUE_CONFLICT', 'PARAMETER_INVALID', 'DUPLICATE_RULE'],
  },
  'data.records.delete': {
    whenToUse: 'When a person wants this record gone. It goes to the recycle bin with the records that depend on it.',
    whenNotToUse: 'Not to resolve a duplicate or an error on your own, and not for users: they are deactivated.',
    preconditions: [ETAG, 'Somebody has confirmed it, knowing what is deleted with it.'],
    commonErrors: ['ETAG_MISMATCH', 'DELETE_RESTRICTED', 'RECORD_ACCESS_DENIED', 'APPROVAL_REQUIRED'],
  },
  'data.records.restore': {
    whenToUse: 'To bring a deleted record back as it was, with what was deleted along with it.',
    whenNotToUse: 'Not to undo a change of fields: read the history and update. Not after the days of the recycle bin.',
    preconditions: ['The id of the deleted record, and the permission that deleting it needed.'],
    commonErrors: ['RECORD_NOT_FOUND', 'UNIQUE_VALUE_CONFLICT', 'VALIDATION_FAILED'],
  },
  'data.records.check': {
    whenToUse:
      'To learn beforehand whether a change of a record would be carried out, what is wrong with it, and what it would change besides: while a form is filled in, or to show somebody what they agree to.',
    whenNotToUse:
      'Not before every write: the write checks the same, and says the same of what is wrong. `valid: true` holds for that moment and is no promise, and nothing was stored.',
    preconditions: [
      'Everything that the operation itself needs: its scope, its permissions, and for a change of a record its `ETag` as `ifMatch`.',
    ],
    commonErrors: ['SCOPE_INSUFFICIENT', 'PARAMETER_REQUIRED', 'OBJECT_PERMISSION_DENIED', 'ETAG_MISMATCH'],
  },
  'data.transitions.list': {
    whenToUse: 'Before moving a record through its process: what can be done with it now, and why the rest cannot.',
    whenNotToUse: 'Do not keep the answer: what is available depends on the record, the caller and the moment.',
    preconditions: ['Object and id of the record.'],
    commonErrors: ['RECORD_NOT_FOUND', 'SCOPE_INSUFFICIENT'],
  },
  'data.transitions.execute': {
    whenToUse: 'To send, approve, cancel or otherwise move a record: with everything that belongs to that step.',
    whenNotToUse: 'Not with a key that was guessed: take one that the list says is `available`.',
    preconditions: [
      'The list of transitions was read, and its `etag` is sent as `If-Match`.',
      'An `input` that fits its schema, and a comment where `requiresComment` is true.',
    ],
    commonErrors: [
      'STATE_CONFLICT',
      'ETAG_MISMATCH',
      'TRANSITION_INPUT_INVALID',
      'TRANSITION_NOT_ALLOWED',
      'APPROVAL_REQUIRED',
    ],
  },
  'data.shares.list': {
    whenToUse: 'To see with whom a record was shared by hand.',
    whenNotToUse:
      'Not to learn who can see the record: rules, roles and defaults count as well. `data.access.explain` says why.',
    preconditions: ['Full access to the record, as its owner has it.'],
    commonErrors: ['RECORD_ACCESS_DENIED', 'RECORD_NOT_FOUND'],
  },
  'data.shares.create': {
    whenToUse: 'When a person wants somebody else to read or edit this one record.',
    whenNotToUse: 'Not for a whole class of records: that is a sharing rule, which is configuration.',
    preconditions: [
      'Full access to the record, as its owner has it.',
      'The id of the user, or the apiName of the role or group.',
    ],
    commonErrors: ['RECORD_ACCESS_DENIED', 'VALIDATION_FAILED', 'TOO_MANY_ITEMS'],
  },
  'data.shares.delete': {
    whenToUse: 'To take back what a manual share has given.',
    whenNotToUse: 'Not expecting that the person loses the record: a rule, a role or ownership may give it as well.',
    preconditions: ['The `shareId`, from `data.shares.list`.'],
    commonErrors: ['RECORD_ACCESS_DENIED', 'RECORD_NOT_FOUND'],
  },
  'data.access.explain': {
    whenToUse:
      'When something was refused, or is missing, and somebody asks why: it names the layer that denies and what an administrator can change.',
    whenNotToUse: 'Not to learn whether the content of a change is valid: only a dry run answers that.',
    preconditions: ['A record that the caller can read; about other users `metadataRead` and the scope `setup:read`.'],
    commonErrors: ['RECORD_NOT_FOUND', 'METADATA_PERMISSION_DENIED', 'VALIDATION_FAILED'],
  },
  'data.history.list': {
    whenToUse: 'To see who changed which fields of a record and when, with the old and the new values.',
    whenNotToUse: 'Not for deleted records or refused attempts: those are in the audit trail.',
    preconditions: ['A record that the caller can see, of an object that keeps history.'],
    commonErrors: ['RECORD_NOT_FOUND', 'SCOPE_INSUFFICIENT'],
  },
  'data.changes.list': {
    whenToUse: 'To keep a copy of an object up to date: first without a cursor, then list all records, then follow.',
    whenNotToUse:
      'Not as a history: a record stands in it once, as it is now. Not instead of a query for a few records.',
    preconditions: [
      'The first call needs none. Every further one: a copy that was listed after the first call, and the latest `resumeCursor`.',
    ],
    commonErrors: ['SYNC_TOKEN_EXPIRED', 'CURSOR_INVALID', 'SERVICE_UNAVAILABLE'],
  },
  'events.audit.list': {
    whenToUse: 'To answer who did or tried what: every mutation and every refused one, with client, address and run.',
    whenNotToUse: 'Not for the changes of one record that the caller can see: `data.history.list` is cheaper.',
    preconditions: ['The user has the permission `viewAudit`.'],
    commonErrors: ['OBJECT_PERMISSION_DENIED', 'PARAMETER_INVALID', 'CURSOR_EXPIRED'],
  },
  'users.passwordLinks.create': {
    whenToUse:
      'When an administrator wants to hand a user the link themselves, because no mail reaches them: a new colleague at the counter, a lost mailbox.',
    whenNotToUse:
      'Not where a mail would do: `users.invitations.create`, or the page for a forgotten password. Show the link only to its user, and never store it.',
    preconditions: [
      'The permission `manageUsers`, and everything that the user holds.',
      'An active user, whose identity the administrator has checked.',
    ],
    commonErrors: ['OBJECT_PERMISSION_DENIED', 'RECORD_ACCESS_DENIED', 'STATE_CONFLICT', 'AUTHENTICATION_INSUFFICIENT'],
  },
  'users.invitations.create': {
    whenToUse: 'When a user has lost the invitation or let it expire, or was created while no mails were sent.',
    whenNotToUse:
      'Not right after the user was created: the platform invites by itself. Not for somebody who has a password and forgot it.',
    preconditions: [
      'The permission `manageUsers`, and everything that the user holds.',
      'An active user with an `email` and without a password.',
    ],
    commonErrors: ['STATE_CONFLICT', 'OBJECT_PERMISSION_DENIED', 'RECORD_ACCESS_DENIED'],
  },
  'me.profile.get': {
    whenToUse:
      'To greet a person, to show dates and times as they want them, or before a change of preferences, for the ETag.',
    whenNotToUse: 'Not to learn about tenant and connection: `me.identity.get` needs no scope.',
    preconditions: [],
    commonErrors: ['SCOPE_INSUFFICIENT', 'API_ACCESS_DISABLED'],
  },
  'me.preferences.update': {
    whenToUse: 'When a person chooses their language, time zone, form of dates or digest.',
    whenNotToUse: 'Not for other users, and not for names, picture, profile or role: these are records of `User`.',
    preconditions: ['The ETag of `me.profile.get`.'],
    commonErrors: ['ETAG_MISMATCH', 'VALIDATION_FAILED', 'SCOPE_INSUFFICIENT'],
  },
  'me.permissions.get': {
    whenToUse: 'To show a person what they may do, or to hide what they may not, with one request for all objects.',
    whenNotToUse: 'Not for a single record, where sharing decides as well: `data.access.explain` says why.',
    preconditions: [],
    commonErrors: ['OBJECT_NOT_FOUND', 'API_ACCESS_DISABLED'],
  },
  'me.connections.revoke': {
    whenToUse: 'When a person wants an application to stop acting in their name.',
    whenNotToUse: 'Not to sign out of a browser. It may end the connection of this very request.',
    preconditions: ['The `connectionId`, from `me.connections.list`, confirmed by the person.'],
    commonErrors: ['CONNECTION_NOT_FOUND', 'SCOPE_INSUFFICIENT'],
  },
  'agent.runs.revert': {
    whenToUse:
      'When a person wants back what a run has changed in records; send it again while `remaining` is above 0.',
    whenNotToUse:
      'Not for an active run (cancel it first), and not for deployments, dashboards or messages: only records are reverted.',
    preconditions: [
      'The run has ended.',
      'A person with the permission `approveAgentActions`, signed in through a client that is no agent.',
    ],
    commonErrors: ['STATE_CONFLICT', 'RUN_NOT_FOUND', 'APPROVAL_ACTOR_NOT_HUMAN', 'TOO_MANY_ITEMS'],
  },
} as const satisfies Readonly<Record<string, Guidance>>;
