/**
 * Tasks as steps, in a form that a program can follow: what each request takes and what its answer gives to later
 * ones. Source: docs/reference/assistant-manifest.md.
 */
import { OPEN_STATUSES } from '../../../contracts/metadata.ts';
import type { OperationId } from '../../../contracts/operations.ts';
import type { ErrorCode } from '../../../lib/errors/catalogue.ts';

/**
 * A place in a request or an answer, as in the violations of an error: a JSON Pointer into the body (`""` is all of
 * it), `path:<name>`, `query:<name>` or `header:<name>`.
 */
type Place = '' | `/${string}` | `path:${string}` | `query:${string}` | `header:${string}`;

/** Value sent there: a named value, omitted while it is null or missing; a constant; a new UUID. */
type Source = { readonly from: string } | { readonly value: unknown } | { readonly new: 'uuid' };

/** True when the named value is one of these; without `in`, when it is there and not null. */
interface Condition {
  readonly name: string;
  readonly in?: readonly unknown[];
}

interface Step {
  readonly id: string;
  readonly operationId: OperationId;
  readonly note: string;
  readonly takes?: Readonly<Partial<Record<Place, Source>>>;
  /** Names of values, and where they stand in the answer. */
  readonly gives?: Readonly<Record<string, Place>>;
  /** Decision after it, by a person or by the program from what it knows, before continuing. */
  readonly ask?: string;
  /** The step is repeated as long as this is true. */
  readonly again?: Condition & { readonly afterSeconds?: number };
  /** Errors that are part of the way; `gives` are places in the error. Every other error ends the workflow. */
  readonly onError?: readonly {
    readonly code: ErrorCode;
    readonly note: string;
    readonly gives?: Readonly<Record<string, Place>>;
    readonly ask?: string;
    readonly if?: Condition;
    readonly goTo: string;
  }[];
  /** The step after it; null: done. Default: the next of the list. */
  readonly next?: string | null;
}

interface Workflow {
  readonly id: string;
  readonly title: string;
  readonly scopes: readonly string[];
  /** Input values. */
  readonly inputs: readonly { readonly name: string; readonly description: string; readonly required: boolean }[];
  readonly steps: readonly Step[];
}

const KEY = { 'header:Idempotency-Key': { new: 'uuid' } } as const;
const OBJECT = { 'path:objectApiName': { from: 'objectApiName' } } as const;
const RECORD = { ...OBJECT, 'path:id': { from: 'id' } } as const;

const given = (name: string, description: string, required = true) => ({ name, description, required });
const objectApiName = given('objectApiName', 'apiName of the object, from the list of objects.');
const id = given('id', 'Id of the record.');

export const WORKFLOWS: readonly Workflow[] = [
  {
    id: 'discover-objects',
    title: 'Learn who is acting and what can be used',
    scopes: ['data:read'],
    inputs: [objectApiName],
    steps: [
      {
        id: 'identity',
        operationId: 'me.identity.get',
        note: 'In whose name the token acts, in which tenant, with which scopes.',
        gives: { tenant: '/tenant', user: '/user', scopes: '/connection/scopes' },
      },
      {
        id: 'objects',
        operationId: 'schema.objects.list',
        note: 'Everything that this user can read. What is missing may be hidden.',
        gives: { objects: '/records' },
        ask: 'Choose the object by its apiName.',
      },
      {
        id: 'describe',
        operationId: 'schema.objects.describe',
        note: 'Fields with types, limits, allowed values and filter operators, and what may be done.',
        takes: OBJECT,
        gives: { fields: '/fields', capabilities: '/capabilities', schemaTag: 'header:ETag' },
      },
    ],
  },
  {
    id: 'find-records',
    title: 'Find records, page by page',
    scopes: ['data:read'],
    inputs: [
      objectApiName,
      given('filters', '`{logic, conditions}` with fields and operators of the description.', false),
      given('sort', 'List of up to two `{id, desc}`.', false),
    ],
    steps: [
      {
        id: 'page',
        operationId: 'data.records.query',
        note: 'Every page repeats the same body; only the cursor differs. null marks the last one.',
        takes: { ...OBJECT, '/filters': { from: 'filters' }, '/sort': { from: 'sort' }, '/cursor': { from: 'cursor' } },
        gives: { records: '/records', cursor: '/nextCursor' },
        again: { name: 'cursor' },
      },
    ],
  },
  {
    id: 'create-record',
    title: 'Create a record that may exist already',
    scopes: ['data:read', 'data:write'],
    inputs: [objectApiName, given('fields', 'Values by apiName of the field.')],
    steps: [
      {
        id: 'describe',
        operationId: 'schema.objects.describe',
        note: 'Which fields are required and creatable, and what values they take.',
        takes: OBJECT,
        gives: { description: '/fields' },
      },
      {
        id: 'create',
        operationId: 'data.records.create',
        note: 'Repeat it after a lost answer with the same key and body.',
        takes: { ...OBJECT, '': { from: 'fields' }, ...KEY },
        gives: { id: '/id', etag: 'header:ETag', record: '' },
        onError: [
          {
            code: 'DUPLICATE_RULE',
            note: 'Nothing was stored.',
            gives: {
              rules: '/details/rules',
              confirmable: '/details/confirmable',
              confirmationToken: '/details/confirmationToken',
            },
            ask: 'Show the matches to a person. Go on only if they want another record all the same; otherwise use the one that exists.',
            if: { name: 'confirmable', in: [true] },
            goTo: 'confirm',
          },
        ],
        next: null,
      },
      {
        id: 'confirm',
        operationId: 'data.records.create',
        note: 'The same body with the confirmation and a new key.',
        takes: {
          ...OBJECT,
          '': { from: 'fields' },
          'header:X-Duplicate-Confirmation': { from: 'confirmationToken' },
          ...KEY,
        },
        gives: { id: '/id', etag: 'header:ETag', record: '' },
        next: null,
      },
    ],
  },
  {
    id: 'update-record',
    title: 'Change a record that others change, too',
    scopes: ['data:read', 'data:write'],
    inputs: [objectApiName, id, given('changes', 'The fields to change, by apiName.')],
    steps: [
      {
        id: 'read',
        operationId: 'data.records.get',
        note: 'The record as it is now, and its version.',
        takes: RECORD,
        gives: { record: '', etag: 'header:ETag' },
        ask: 'Compare the record with what the changes were based on. If somebody has changed the same fields, ask a person.',
      },
      {
        id: 'update',
        operationId: 'data.records.update',
        note: 'Only the fields that change.',
        takes: { ...RECORD, 'header:If-Match': { from: 'etag' }, '': { from: 'changes' }, ...KEY },
        gives: { record: '', etag: 'header:ETag' },
        onError: [
          {
            code: 'ETAG_MISMATCH',
            note: 'Somebody was faster, and nothing was changed. Read again, reconcile, and send it with a new key.',
            goTo: 'read',
          },
        ],
      },
    ],
  },
  {
    id: 'move-record',
    title: 'Take a record to its next state',
    scopes: ['actions:read', 'actions:execute'],
    inputs: [
      objectApiName,
      id,
      given('transitionKey', 'One of the list that is available.'),
      given('input', 'What its `input` schema asks for.', false),
      given('comment', 'Why; needed where `requiresComment` is true.', false),
    ],
    steps: [
      {
        id: 'transitions',
        operationId: 'data.transitions.list',
        note: 'What can be done with the record now, and why the rest cannot.',
        takes: RECORD,
        gives: { transitions: '/records', etag: '/etag' },
        ask: 'Choose one that is available. If its risk is high, ask a person.',
      },
      {
        id: 'execute',
        operationId: 'data.transitions.execute',
        note: 'State, effects, history and events are one transaction.',
        takes: {
          ...RECORD,
          'path:transitionKey': { from: 'transitionKey' },
          'header:If-Match': { from: 'etag' },
          '/input': { from: 'input' },
          '/comment': { from: 'comment' },
          ...KEY,
        },
        gives: { record: '/record', etag: 'header:ETag' },
        onError: [
          {
            code: 'ETAG_MISMATCH',
            note: 'The record has changed: what is available may be something else now.',
            goTo: 'transitions',
          },
        ],
      },
    ],
  },
  {
    id: 'explain-refusal',
    title: 'Find out why something is not allowed',
    scopes: ['data:read'],
    inputs: [objectApiName, id, given('operation', 'read, create, update, delete or transition.')],
    steps: [
      {
        id: 'explain',
        operationId: 'data.access.explain',
        note: 'The first layer that denies has a remedy for an administrator. Report it; look for no way around it.',
        takes: { ...RECORD, '/operation': { from: 'operation' } },
        gives: { allowed: '/allowed', layers: '/steps' },
      },
    ],
  },
  {
    id: 'follow-changes',
    title: 'Keep a copy of an object up to date',
    scopes: ['data:read'],
    inputs: [objectApiName],
    steps: [
      {
        id: 'begin',
        operationId: 'data.changes.list',
        note: 'Without a cursor: from this moment on.',
        takes: OBJECT,
        gives: { resumeCursor: '/resumeCursor' },
      },
      {
        id: 'list',
        operationId: 'data.records.query',
        note: 'All records into the copy.',
        takes: { ...OBJECT, '/cursor': { from: 'pageCursor' } },
        gives: { records: '/records', pageCursor: '/nextCursor' },
        again: { name: 'pageCursor' },
      },
      {
        id: 'follow',
        operationId: 'data.changes.list',
        note: 'Take in what comes, as often as it is wanted; keep the cursor for the next time, at most 7 days.',
        takes: { ...OBJECT, 'query:cursor': { from: 'resumeCursor' } },
        gives: { changes: '/records', nextCursor: '/nextCursor', resumeCursor: '/resumeCursor' },
        again: { name: 'nextCursor' },
        onError: [
          {
            code: 'SYNC_TOKEN_EXPIRED',
            note: 'The copy is outdated: list everything again.',
            gives: { resumeCursor: '/details/oldestCursor' },
            goTo: 'list',
          },
        ],
      },
    ],
  },
  {
    id: 'validate-configuration',
    title: 'Change configuration files and see what that would do',
    scopes: ['setup:read', 'metadata:deploy'],
    inputs: [
      given('package', '`{version: 1, types: [{name, members}]}`; `*` stands for all of a type.'),
      given('edits', 'Texts by path that replace or add files; none: the plan is one without changes.', false),
    ],
    steps: [
      {
        id: 'types',
        operationId: 'metadata.types.list',
        note: 'Paths, member formats and the JSON Schema of each type.',
        gives: { types: '/records' },
      },
      {
        id: 'retrieve',
        operationId: 'metadata.components.retrieve',
        note: 'The whole tree goes back, with what was changed in it.',
        takes: { '/package': { from: 'package' } },
        gives: { files: '/files', package: '/package', metadataVersion: '/metadataVersion' },
        ask: 'Put the edits into `files`, and name in `package` (and in `manifest/package.yaml`, which says the same) what they add.',
      },
      {
        id: 'validate',
        operationId: 'metadata.components.validate',
        note: 'Nothing is applied. `valid` is true when nothing is in `blocked`.',
        takes: {
          '/files': { from: 'files' },
          '/package': { from: 'package' },
          '/baseMetadataVersion': { from: 'metadataVersion' },
          '/allowDestructiveChanges': { value: false },
        },
        gives: {
          valid: '/valid',
          blocked: '/blocked',
          creates: '/creates',
          updates: '/updates',
          deletes: '/deletes',
          planHash: '/planHash',
        },
        ask: 'Correct the files as `blocked` says and validate again. Show the plan to a person before it is deployed.',
        onError: [
          {
            code: 'METADATA_DRIFT',
            note: 'Somebody has deployed meanwhile: merge into what is there now.',
            goTo: 'retrieve',
          },
        ],
      },
    ],
  },
  {
    id: 'deploy-configuration',
    title: 'Apply a plan that a person has seen',
    scopes: ['setup:read', 'metadata:deploy'],
    inputs: [
      given('files', 'Files of the validation.'),
      given('package', 'Package of the validation.'),
      given('metadataVersion', 'That of the retrieve.'),
      given('planHash', 'That of the plan that was seen.'),
    ],
    steps: [
      {
        id: 'deploy',
        operationId: 'metadata.deployments.create',
        note: 'Queued, then applied in one transaction, all or nothing.',
        takes: {
          '/files': { from: 'files' },
          '/package': { from: 'package' },
          '/baseMetadataVersion': { from: 'metadataVersion' },
          '/expectedPlanHash': { from: 'planHash' },
          ...KEY,
        },
        gives: { deploymentId: '/deploymentId' },
      },
      {
        id: 'wait',
        operationId: 'metadata.deployments.get',
        note: 'It continues when the client stops waiting.',
        takes: { 'path:deploymentId': { from: 'deploymentId' } },
        gives: { status: '/status', error: '/error' },
        again: { name: 'status', in: OPEN_STATUSES, afterSeconds: 2 },
      },
    ],
  },
  {
    id: 'work-as-agent',
    title: 'Make a change as an agent that waits for approval',
    scopes: ['agent:run', 'data:read', 'data:write'],
    inputs: [
      given('agentKey', 'Name of the agent, such as `dunning`.'),
      given('goal', 'What the run is for, for people.'),
      objectApiName,
      id,
      given('changes', 'The fields to change, by apiName.'),
      given('summary', 'Summary of the work, for readers.'),
    ],
    steps: [
      {
        id: 'begin',
        operationId: 'agent.runs.create',
        note: 'The run bounds what is done and keeps it together.',
        takes: { '/agentKey': { from: 'agentKey' }, '/goal': { from: 'goal' }, ...KEY },
        gives: { runId: '/runId', budget: '/budget' },
      },
      {
        id: 'read',
        operationId: 'data.records.get',
        note: 'Every call names the run.',
        takes: { ...RECORD, 'header:X-Agent-Run-Id': { from: 'runId' } },
        gives: { record: '', etag: 'header:ETag' },
      },
      {
        id: 'update',
        operationId: 'data.records.update',
        note: 'An approval is for exactly this request, under whatever key.',
        takes: {
          ...RECORD,
          'header:X-Agent-Run-Id': { from: 'runId' },
          'header:If-Match': { from: 'etag' },
          '': { from: 'changes' },
          ...KEY,
        },
        gives: { record: '' },
        onError: [
          {
            code: 'APPROVAL_REQUIRED',
            note: 'Nothing was executed; people are asked.',
            gives: { approvalId: '/details/approvalId' },
            goTo: 'wait',
          },
          {
            code: 'APPROVAL_REJECTED',
            note: 'That holds for the rest of the run: do not try it in another form.',
            gives: { refusal: '/message' },
            goTo: 'give-up',
          },
          {
            code: 'APPROVAL_EXPIRED',
            note: 'There was no decision in time.',
            gives: { refusal: '/message' },
            goTo: 'give-up',
          },
          {
            code: 'ETAG_MISMATCH',
            note: 'The record has changed: read it again and reconcile.',
            goTo: 'read',
          },
        ],
        next: 'complete',
      },
      {
        id: 'wait',
        operationId: 'agent.approvals.get',
        note: 'Until a person has decided. Then the step "update" is sent again, unchanged: it is executed if it was approved, and otherwise says why not.',
        takes: { 'path:approvalId': { from: 'approvalId' } },
        gives: { decision: '/status' },
        again: { name: 'decision', in: ['PENDING'], afterSeconds: 30 },
        next: 'update',
      },
      {
        id: 'complete',
        operationId: 'agent.runs.complete',
        note: 'Always end a run.',
        takes: {
          'path:runId': { from: 'runId' },
          '/outcome': { value: 'succeeded' },
          '/summary': { from: 'summary' },
          ...KEY,
        },
        gives: { status: '/status' },
        next: null,
      },
      {
        id: 'give-up',
        operationId: 'agent.runs.complete',
        note: 'End the run, and report why nothing was changed.',
        takes: {
          'path:runId': { from: 'runId' },
          '/outcome': { value: 'failed' },
          '/summary': { from: 'refusal' },
          ...KEY,
        },
        gives: { status: '/status' },
      },
    ],
  },
  {
    id: 'build-dashboard',
    title: 'Make figures that people can come back to',
    scopes: ['analytics:read', 'analytics:run'],
    inputs: [
      objectApiName,
      given('name', 'Name of the dashboard.'),
      given('widgets', 'List of widgets with queries over dimensions and measures of the catalog.'),
      given('widgetKey', 'Key of the widget to look at.'),
    ],
    steps: [
      {
        id: 'catalog',
        operationId: 'analytics.catalog.get',
        note: 'What can be grouped by and measured.',
        takes: OBJECT,
        gives: { dimensions: '/dimensions', measures: '/measures' },
        ask: 'Write the queries of the widgets with these.',
      },
      {
        id: 'create',
        operationId: 'analytics.dashboards.create',
        note: 'A draft that only its owner sees.',
        takes: { '/name': { from: 'name' }, '/widgets': { from: 'widgets' }, ...KEY },
        gives: { dashboardId: '/dashboardId', revision: '/revision' },
      },
      {
        id: 'run',
        operationId: 'analytics.dashboards.widgets.run',
        note: 'Figures over the records that the caller can see; `accessNotes` says what is left out.',
        takes: {
          'path:dashboardId': { from: 'dashboardId' },
          'path:widgetKey': { from: 'widgetKey' },
          '/version': { value: 'draft' },
        },
        gives: { columns: '/columns', rows: '/rows', accessNotes: '/accessNotes' },
        ask: 'Publish it only if the figures are what was asked for.',
      },
      {
        id: 'publish',
        operationId: 'analytics.dashboards.publish',
        note: 'The draft at this revision becomes what everybody sees who may see the dashboard.',
        takes: {
          'path:dashboardId': { from: 'dashboardId' },
          '/expectedRevision': { from: 'revision' },
          ...KEY,
        },
        gives: { revision: '/revision' },
      },
    ],
  },
];
