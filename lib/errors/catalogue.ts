/**
 * The closed list of error codes that the API can answer with, each with its HTTP status and whether the very same
 * request may be sent again. Nothing else decides a status: code throws a `PlatformError` with a code from here. The
 * message of an error is written where it is thrown; `title`, `cause` and `remedy` are those of the code, the same for
 * every such error: the pages about errors and the assistant manifest are made from them. They are Markdown.
 * Source: docs/reference/errors.md.
 */
interface CatalogueEntry {
  readonly status: number;
  readonly title: string;
  /** Meaning of the code. */
  readonly cause: string;
  /** Remedy for the client or an administrator. */
  readonly remedy: string;
  readonly retryable?: true;
}

const e = (status: number, title: string, cause: string, remedy: string, retryable?: true): CatalogueEntry =>
  retryable ? { status, title, cause, remedy, retryable } : { status, title, cause, remedy };

export const CATALOGUE = {
  // 400: the form of the request
  REQUEST_MALFORMED: e(
    400,
    'The request is malformed',
    'The request is no valid HTTP message, or its body or a JSON parameter is no strict JSON: bad UTF-8, a name twice in one object, too deep, too many values.',
    'Correct the form as `message` says. Serialize with a JSON library and send UTF-8; split what exceeds `details.max`.',
  ),
  BODY_REQUIRED: e(
    400,
    'A request body is required',
    'The operation needs a body and none came.',
    'Send a JSON body with `Content-Type: application/json`, at least `{}`.',
  ),
  BODY_PROPERTY_UNKNOWN: e(
    400,
    'The body has an unknown property',
    'The body has a property that the operation does not know. Bodies are closed, so that a typing mistake is not ignored.',
    'Remove or rename the properties that `errors` names; the schema of the body is in `/openapi.json`.',
  ),
  BODY_PROPERTY_FORBIDDEN: e(
    400,
    'The body has a property that clients cannot set',
    'The body has a property that only the server sets, such as `operationOverride`, `rollbackOf`, `actor`, `actorId` or `userId`.',
    'Remove it at every depth. The actor is always that of the token; to roll back send `{"rollback": {…}}`.',
  ),
  PARAMETER_UNKNOWN: e(
    400,
    'Unknown parameter',
    'The query has a parameter that the operation does not have. An ignored filter would return every record, so it is refused.',
    'Remove or rename it; names are case-sensitive. To filter by a field use `where` or `filters`.',
  ),
  PARAMETER_INVALID: e(
    400,
    'Invalid parameter',
    'A parameter, header or property of the body has a value of the wrong type or form, or names a field that does not exist or is hidden.',
    'Correct what `errors` points to. Take names of fields from the description of the object.',
  ),
  PARAMETER_REQUIRED: e(
    400,
    'A required parameter is missing',
    'A parameter or property that the operation needs is missing, or one was given without the other that it belongs to.',
    'Add what `errors` names.',
  ),
  PARAMETER_CONFLICT: e(
    400,
    'Conflicting parameters',
    'Two things were given that exclude or contradict each other.',
    'Send one of those that `errors` names, or give them the same value.',
  ),
  CURSOR_WITH_SKIP: e(
    400,
    'cursor and skip cannot be combined',
    '`cursor` and `skip` were sent together; a cursor already says where the page begins.',
    'Leave `skip` out when you send `cursor`.',
  ),
  CURSOR_INVALID: e(
    400,
    'Invalid cursor',
    'The cursor was altered, cut off, or given to another user, client or tenant.',
    'Send `nextCursor` as it came, URL-encoded and with the same connection; otherwise begin with the first page.',
  ),
  CURSOR_EXPIRED: e(
    400,
    'Expired cursor',
    'The cursor is too old.',
    'Begin with the first page, and read pages one after the other.',
  ),
  CURSOR_QUERY_MISMATCH: e(
    400,
    'The cursor was issued for another query',
    'The query differs from the one for which the cursor was given; `details.changed` names the parameters.',
    'Repeat the first request exactly and add only `cursor`, or begin the new query without one.',
  ),
  SKIP_TOO_DEEP: e(
    400,
    'skip exceeds its maximum; use cursor',
    '`skip` is larger than `details.max`.',
    'Page with `cursor=<nextCursor>`, which has no such limit, or narrow the query.',
  ),
  FILTER_INVALID: e(
    400,
    'Invalid filter',
    'The filter group or a condition has the wrong form.',
    'Send `{"logic": "and", "conditions": [{"id": "c1", "field": …, "operator": …, "value": …}]}`; every condition has an `id` of its own.',
  ),
  FILTER_TOO_MANY_CONDITIONS: e(
    400,
    'Too many filter conditions',
    'The filter has more conditions than `details.max`, those inside `in_related` included.',
    'Use `in` or `whereIn` in place of many `eq`, or ask in several requests.',
  ),
  FILTER_NESTED_GROUP: e(
    400,
    'Filter groups cannot be nested',
    'A group, or `in_related`, stands inside another one.',
    'Write one flat list of conditions; split what needs both `and` and `or` into several requests.',
  ),
  FILTER_FIELD_UNKNOWN: e(
    400,
    'Unknown field in a filter',
    'A condition names a field that does not exist or that the user cannot read.',
    'Take the apiName, not the label, from the description of the object.',
  ),
  FILTER_FIELD_NOT_FILTERABLE: e(
    400,
    'The field cannot be used in filters',
    'The field cannot be filtered by at all.',
    'Filter by another field; `filterable` and `filterOperators` of the description say which can be.',
  ),
  FILTER_OPERATOR_UNSUPPORTED: e(
    400,
    'The field does not support the operator',
    'The operator does not exist, or not for the type of this field.',
    'Use one of `details.allowed`; `filterOperators` of the description lists them per field.',
  ),
  FILTER_VALUE_INVALID: e(
    400,
    'The value is invalid for the field',
    'The value does not have the type of the field, or is too long, or a list where one value is expected.',
    'Correct the value of the condition `details.conditionId`. To find blank fields use `is_blank`, or null in `where`.',
  ),
  SORT_INVALID: e(
    400,
    'Invalid sort',
    '`sort` or `orderBy` names a field that does not exist, is hidden or cannot be sorted by.',
    'Sort by a field whose description says `sortable`.',
  ),
  SORT_TOO_MANY: e(
    400,
    'Too many sort fields',
    'There are more sort fields than `details.max`.',
    'Keep the most important ones; ties are ordered by `id` anyway.',
  ),
  SEARCH_FIELD_INVALID: e(
    400,
    'The field is not searchable',
    '`searchFields` names a field that cannot be searched.',
    'Leave `searchFields` out, or name fields whose description says `searchable`.',
  ),
  URI_TOO_LONG: e(
    400,
    'The request URI is too long',
    'The address with its query is longer than the server takes.',
    'Use the operation that takes the query as a JSON body.',
  ),
  IDEMPOTENCY_KEY_REQUIRED: e(
    400,
    'Idempotency-Key is required',
    'A mutation came without `Idempotency-Key`.',
    'Send a new random key, such as a UUID, per intention, and the same key when you repeat the request.',
  ),
  IDEMPOTENCY_KEY_INVALID: e(
    400,
    'Invalid Idempotency-Key',
    'The key is too short, too long, or has other characters than letters, digits, `.`, `-`, `_`, `:`.',
    'Send a UUID.',
  ),
  IF_MATCH_REQUIRED: e(
    400,
    'If-Match is required',
    'A change came without the version that it was made for.',
    'Read the record and send its `ETag` as `If-Match`.',
  ),
  IF_MATCH_INVALID: e(
    400,
    'Invalid If-Match',
    '`If-Match` is `*`, a weak tag, malformed, or has too many tags.',
    'Send the `ETag` exactly as it was read, with its quotes.',
  ),
  EXPECTED_REVISION_REQUIRED: e(
    400,
    'An expected revision is required',
    'A change came without the revision that it was made for.',
    'Read the resource and send its `revision` as `expectedRevision` or `X-Expected-Revision`.',
  ),
  CONFIRMATION_TOKEN_INVALID: e(
    400,
    'Invalid duplicate confirmation',
    'The confirmation was altered, has expired, was used, or was given for another request or to another caller.',
    'Send the request without it. If it is answered with `DUPLICATE_RULE`, show the matches again and confirm with the new token.',
  ),
  PACKAGE_INVALID: e(
    400,
    'Invalid metadata package',
    'The package has the wrong form, version or member names, or differs from `manifest/package.yaml`.',
    'Send `{"version": 1, "types": [{"name": …, "members": […]}]}`; the types and their member formats are listed by the operation `metadata.types.list`.',
  ),
  FILE_PATH_INVALID: e(
    400,
    'Invalid metadata file path',
    'A path in `files` is absolute, leaves the project, or has other characters than allowed.',
    'Use the relative paths that a retrieve answers, with `/` between the segments.',
  ),
  YAML_INVALID: e(
    400,
    'Invalid YAML',
    'A file is not well-formed YAML of the form that metadata takes; `details` has path, line and column of the first mistake.',
    'Correct every place that `errors` names. Anchors, tags, duplicate keys and several documents in a file are refused.',
  ),
  COMPOSITE_REFERENCE_INVALID: e(
    400,
    'Invalid composite reference',
    'A subrequest refers to a result that does not exist or comes later.',
    'Refer only to the results of earlier subrequests, by their reference names.',
  ),
  SYNC_TOKEN_EXPIRED: e(
    400,
    'Expired sync token',
    'The cursor of the feed of changes or the sync token of a calendar is too old, or what the user can see has been redefined since.',
    'List all records into a new copy, then go on from `details.oldestCursor`.',
  ),
  // 401: who is calling
  TOKEN_MISSING: e(
    401,
    'An access token is required',
    'The request has no access token.',
    'Get a token from the authorization server that `WWW-Authenticate` leads to, and send it as `Authorization: Bearer <token>`.',
  ),
  TOKEN_INVALID: e(
    401,
    'Invalid access token',
    'The text is no access token of this platform, or its signature is wrong.',
    'Sign in again. Send the access token, not the ID token or refresh token.',
  ),
  TOKEN_EXPIRED: e(
    401,
    'Expired access token',
    'The access token has expired.',
    'Use the refresh token, or sign in again; then repeat the request with the same key.',
  ),
  TOKEN_REVOKED: e(
    401,
    'Revoked access token',
    'The authorization behind the token was ended: by the user, an administrator or a deployment, or because the user was deactivated.',
    'Stop, and ask the person to sign in again.',
  ),
  TOKEN_AUDIENCE_INVALID: e(
    401,
    'The access token was issued for another audience',
    'The token was issued for another resource.',
    'Ask for a token with the `resource` of this API, as the protected resource metadata names it.',
  ),
  AUTHENTICATION_INSUFFICIENT: e(
    401,
    'A recent sign-in with two factors is required',
    'The tenant demands a recent sign-in with two factors for this operation.',
    'Have the person sign in again with `acr_values` of `details.acrValues` and `max_age` of `details.maxAgeSeconds`, then repeat the request.',
  ),
  DPOP_PROOF_INVALID: e(
    401,
    'Invalid DPoP proof',
    'The proof of possession of the key is missing, malformed or for another request.',
    'Make a new proof for exactly this method and address.',
  ),
  // 403: what the caller may do
  SCOPE_INSUFFICIENT: e(
    403,
    'Insufficient scope',
    'The connection lacks a scope of `details.required`.',
    'Have the person authorize the application again with these scopes. Only the scopes that the work needs should be asked for.',
  ),
  API_ACCESS_DISABLED: e(
    403,
    'The user lacks the API permission',
    'The user lacks the permission to use the API.',
    "Ask an administrator to enable `apiEnabled` in the user's profile or a permission set.",
  ),
  CLIENT_DISABLED: e(
    403,
    'The client is disabled',
    'The client application was deactivated by the tenant.',
    'Ask an administrator of the tenant to activate it.',
  ),
  TENANT_SUSPENDED: e(
    403,
    'The tenant is suspended',
    'The tenant is suspended by the operator of the platform.',
    'Stop, and tell the people of the tenant; only the operator can lift it.',
  ),
  IP_NOT_ALLOWED: e(
    403,
    'The IP address is not allowed for this client',
    'The client may be used only from network addresses that the tenant lists.',
    'Send from one of these, or ask an administrator to add the address.',
  ),
  ORIGIN_NOT_ALLOWED: e(
    403,
    'The origin of the page is not allowed for this client',
    'A page in a browser has called the endpoint for assistants, and the client does not list its origin.',
    'Have an administrator add the origin to the client, or call from a program that is no page.',
  ),
  OBJECT_PERMISSION_DENIED: e(
    403,
    'Missing object permission',
    'The user lacks the permission for this operation on the object, or the system permission in `details.permission`.',
    "Ask an administrator for it. `data.access.explain` says what would have to change; another user's token is no remedy.",
  ),
  FIELD_PERMISSION_DENIED: e(
    403,
    'Missing field permission',
    'The body sets fields that the user can read but not edit; `errors` names each.',
    'Leave these fields out, or ask an administrator for the permission to edit them.',
  ),
  RECORD_ACCESS_DENIED: e(
    403,
    'The record can be read but not changed',
    'The user can see this record but may not do this to it.',
    'Ask its owner to share it or to make the change; `data.access.explain` says what denies it.',
  ),
  TRANSITION_NOT_ALLOWED: e(
    403,
    'The transition is not allowed',
    'The user lacks the permission that the transition or action names.',
    'Ask an administrator, or have a user with `details.permission` do it.',
  ),
  METADATA_PERMISSION_DENIED: e(
    403,
    'Missing metadata permission',
    'Reading configuration needs the system permission `metadataRead`, changing it `metadataManage`.',
    'Ask an administrator for the permission that `details.permission` names.',
  ),
  APPROVAL_REQUIRED: e(
    403,
    'Approval is required',
    'A policy requires approval of this call by a person. Nothing was executed; an approval was requested.',
    'Keep the request. When the approval `details.approvalId` is `APPROVED`, send exactly the same request with the same key.',
  ),
  APPROVAL_PENDING: e(
    403,
    'Approval is pending',
    'The approval of this very request is not decided yet.',
    'Go on with something else, look at the approval from time to time, then send the same request again.',
  ),
  APPROVAL_REJECTED: e(
    403,
    'Approval was rejected',
    'A person has rejected this action for this run; `details.comment` says why.',
    'Do not try it in another form. Report the comment, and go on without the action or end the run.',
  ),
  APPROVAL_EXPIRED: e(
    403,
    'Approval has expired',
    'The approval was not decided, or not used, in time.',
    'If it is still wanted, send the request with a new `Idempotency-Key`: a new approval is asked for.',
  ),
  APPROVAL_SELF_NOT_ALLOWED: e(
    403,
    'Users cannot approve their own requests',
    'The user in whose name the agent acts cannot approve its requests.',
    'Another person who may approve decides.',
  ),
  APPROVAL_ACTOR_NOT_HUMAN: e(
    403,
    'Only a human user can approve',
    'Approvals are decided, and runs reverted, by people only: not by agents, programs or calls under a run.',
    'Let a person do it, signed in through a client that is no agent.',
  ),
  AGENT_POLICY_DENIED: e(
    403,
    'Denied by agent policy',
    'A policy denies the call, the client must name a run, or the operation cannot be tried out in a dry run.',
    'Begin a run and send `X-Agent-Run-Id` if that is missing; otherwise do without the operation, or ask an administrator to change the policy.',
  ),
  AGENT_BUDGET_EXCEEDED: e(
    403,
    'The budget of the agent run is exceeded',
    'The run has used up `details.budget`, or the change is too large for what is left. No approval lifts it.',
    'Complete the run and report what was done; a new run with a larger budget is for a person to decide.',
  ),
  // 404: absent, unpublished and unreadable look the same
  ROUTE_NOT_FOUND: e(
    404,
    'Operation not found',
    'There is no operation at this path.',
    'Take method and path from `/openapi.json`; paths begin with `/api/v1` and have no slash at their end.',
  ),
  OBJECT_NOT_FOUND: e(
    404,
    'Object not found',
    'The object does not exist, or this user cannot see it: both are answered alike.',
    'Take the `apiName` from the list of objects, never the label. If it should be there, ask an administrator for the permission to read it and whether it is published in the API.',
  ),
  RECORD_NOT_FOUND: e(
    404,
    'Record not found',
    'The record does not exist, is deleted, or this user cannot see it: all are answered alike.',
    'Check the object and the id. Do not conclude that the record does not exist, and do not create it again.',
  ),
  TRANSITION_NOT_FOUND: e(
    404,
    'Transition not found',
    'The transition or action does not exist, or this user cannot see it: both are answered alike.',
    'Take the `transitionKey` from the list of transitions of this record.',
  ),
  DASHBOARD_NOT_FOUND: e(
    404,
    'Dashboard not found',
    'The dashboard does not exist, or this user cannot see it: both are answered alike.',
    'Take the id from the list of dashboards.',
  ),
  DASHBOARD_VERSION_NOT_FOUND: e(
    404,
    'Dashboard version not found',
    'The dashboard was not published, or its draft is for those only who may edit it.',
    'Ask without `version`, or have an editor publish it.',
  ),
  WIDGET_NOT_FOUND: e(
    404,
    'Widget not found',
    'This version of the dashboard has no widget of this key.',
    'Take the `widgetKey` from the dashboard, in the version that is run.',
  ),
  DEPLOYMENT_NOT_FOUND: e(
    404,
    'Deployment not found',
    'The deployment does not exist, or this user cannot see it: both are answered alike.',
    'Take the id from the answer of the deploy, or from the list of deployments.',
  ),
  RUN_NOT_FOUND: e(
    404,
    'Run not found',
    'The run does not exist, or belongs to another user or client.',
    'Send the `runId` of a run that this very connection began.',
  ),
  APPROVAL_NOT_FOUND: e(
    404,
    'Approval not found',
    'The approval does not exist, or this user cannot see it: both are answered alike.',
    'Take the id from `details.approvalId` or from the list of approvals.',
  ),
  JOB_NOT_FOUND: e(
    404,
    'Job not found',
    'The job does not exist, or this user cannot see it: both are answered alike.',
    'Take the id from the answer that created it.',
  ),
  FILE_NOT_FOUND: e(
    404,
    'File not found',
    'The file does not exist, or this user cannot see it: both are answered alike.',
    'Take the id from the record or the list of files.',
  ),
  UPLOAD_NOT_FOUND: e(
    404,
    'Upload not found',
    'The upload does not exist, has ended or has expired.',
    'Begin a new upload.',
  ),
  SUBSCRIPTION_NOT_FOUND: e(
    404,
    'Subscription not found',
    'The subscription does not exist, or this user cannot see it: both are answered alike.',
    'Take the id from the list of subscriptions.',
  ),
  NOTIFICATION_NOT_FOUND: e(
    404,
    'Notification not found',
    'The notification does not exist, or this user cannot see it: both are answered alike.',
    'Take the id from the list of notifications.',
  ),
  CALENDAR_NOT_FOUND: e(
    404,
    'Calendar not found',
    'The calendar does not exist, or this user cannot see it: both are answered alike.',
    'Take the id from the list of calendars.',
  ),
  EVENT_NOT_FOUND: e(
    404,
    'Event not found',
    'The event does not exist, or this user cannot see it: both are answered alike.',
    'Take the id from the list of events.',
  ),
  CONNECTION_NOT_FOUND: e(
    404,
    'Connection not found',
    'The connection is unknown, has ended, or belongs to another user.',
    'Take the id from the list of connections. One that has ended needs nothing more.',
  ),
  DOCS_VERSION_NOT_FOUND: e(
    404,
    'Version of the documentation not found',
    'There is no documentation of this version.',
    'Use `latest`, or a version that it leads to.',
  ),
  // 405 and 415: outside operations
  METHOD_NOT_ALLOWED: e(
    405,
    'Method not allowed',
    'The path exists, but not with this method.',
    'Use one of those in the header `Allow`.',
  ),
  MEDIA_TYPE_UNSUPPORTED: e(
    415,
    'Unsupported media type',
    'The body has a media type, charset or compression that the operation does not take.',
    'Send `Content-Type: application/json` in UTF-8, with gzip or uncompressed; `details.accepted` lists the types.',
  ),
  RANGE_NOT_SATISFIABLE: e(
    416,
    'The range is behind the end',
    'The content of a file has fewer bytes than the first one that `Range` asks for. A client that goes on with a download has all of it.',
    'Compare with `details.bytes`, and ask for the content without `Range` unless it is complete.',
  ),
  // 409: conflicts with what is there
  IDEMPOTENCY_KEY_REUSED: e(
    409,
    'The idempotency key was used for a different request',
    'The key was used for a request that differs in method, path, query, body or a header that counts.',
    'Use a new key for a new intention. To learn what became of the first one, repeat that request unchanged with its key.',
  ),
  IDEMPOTENCY_IN_PROGRESS: e(
    409,
    'A request with this idempotency key is in progress',
    'A request with this key is still being carried out.',
    'Wait for `Retry-After` seconds and send the same request with the same key: its outcome is answered.',
    true,
  ),
  DUPLICATE_RULE: e(
    409,
    'A similar record exists',
    'A rule of the tenant finds records that look like this one; `details.rules` lists them. Nothing was stored.',
    'Show the matches to a person. If they want the record all the same and `details.confirmable` is true, repeat the request with a new `Idempotency-Key` and `X-Duplicate-Confirmation: <details.confirmationToken>`. Otherwise use the record that exists.',
  ),
  UNIQUE_VALUE_CONFLICT: e(
    409,
    'The value is already in use',
    'Another record has the value of a unique field, perhaps one that this user cannot see.',
    'Choose another value, or find and update the record that has it; `errors` names the fields.',
  ),
  STATE_CONFLICT: e(
    409,
    'The current state does not allow this operation',
    'The resource is in a state, in `details.currentState`, in which this is not possible, or a guard does not hold.',
    'Read it again, and choose from what its list of transitions says is available.',
  ),
  DELETE_RESTRICTED: e(
    409,
    'Other records depend on this record',
    'Other records refer to this one and keep it from being deleted; `details.dependents` counts those that the user can read.',
    'Delete or change these first, if that is intended.',
  ),
  DEPLOYMENT_NOT_CANCELABLE: e(
    409,
    'The deployment cannot be canceled',
    'The deployment has ended.',
    'Read its `status`. What succeeded can be rolled back where it is eligible.',
  ),
  QUICK_DEPLOY_NOT_ELIGIBLE: e(
    409,
    'The validation cannot be quick deployed',
    'The recorded validation is too old, failed, was used, or the configuration has changed; `details.reason` says which.',
    'Validate again with `checkOnly: true`, or deploy the project itself.',
  ),
  ROLLBACK_NOT_ELIGIBLE: e(
    409,
    'The deployment cannot be rolled back',
    'The deployment cannot be reverted; `details.blockers` names what stands against it.',
    'Resolve the blockers, or deploy the earlier configuration as a project.',
  ),
  METADATA_DRIFT: e(
    409,
    'The configuration has changed since it was retrieved',
    'Components of the package were changed after `baseMetadataVersion`; `details.components` names them.',
    'Retrieve again, merge your changes into it, and send the new `metadataVersion` as `baseMetadataVersion`.',
  ),
  PLAN_CHANGED: e(
    409,
    'The plan differs from the reviewed plan',
    'The plan is no longer the one whose `planHash` was reviewed.',
    'Validate again, have the new plan reviewed, and send its `planHash`.',
  ),
  APPROVAL_ALREADY_DECIDED: e(
    409,
    'The approval has already been decided',
    'The approval is decided, or this person has decided already.',
    'Nothing is left to do; read the approval for its `status`.',
  ),
  APPROVAL_STALE: e(
    409,
    'The approval is stale',
    'Something has changed since people approved the request, and it would do something else than they were shown.',
    '`details.changed` says what has changed. Send the same request again: people are asked anew, with a new preview.',
  ),
  APPROVAL_FINGERPRINT_MISMATCH: e(
    409,
    'The approval was given for another request',
    'The `fingerprint` is not that of the request that waits.',
    'Read the approval again, show it to the person, and send its `fingerprint`.',
  ),
  RUN_NOT_ACTIVE: e(
    409,
    'The run is not active',
    'The run has ended; `details.status` says how. Nothing of this call was committed.',
    'Begin a new run if there is still something to do.',
  ),
  UPLOAD_OFFSET_CONFLICT: e(
    409,
    'Upload offset mismatch',
    'The part does not begin where the upload ends.',
    'Go on from `details.offset`.',
  ),
  UPLOAD_CHECKSUM_MISMATCH: e(
    409,
    'Upload checksum mismatch',
    'What arrived is not what the checksum stands for.',
    'Send it again, from the beginning.',
  ),
  JOB_STATE_CONFLICT: e(
    409,
    'The state of the job does not allow this operation',
    'The job is in a state in which this is not possible.',
    'Read the job, and wait or begin a new one.',
  ),
  WRITE_CONTENTION: e(
    409,
    'Too many concurrent changes to the same data',
    'Other requests kept changing the same data, so that the server gave up after several attempts. Nothing was committed.',
    'Wait for `Retry-After`, or a second, and send the same request with the same key.',
    true,
  ),
  // 412, 413
  ETAG_MISMATCH: e(
    412,
    'The record has changed since it was read',
    'The record was changed after it was read.',
    'Read the record again, compare, reconcile your change with it, and send it with the new `ETag` and a new `Idempotency-Key`. Never leave `If-Match` out.',
  ),
  REVISION_MISMATCH: e(
    412,
    'The revision is outdated',
    'The resource was changed after it was read; `details.currentRevision` is its current revision.',
    'Read it again, reconcile, and send the change with the new revision and a new `Idempotency-Key`.',
  ),
  APPROVAL_TOO_LARGE: e(
    413,
    'The request is too large to be approved',
    'An approval shows the complete request, and the request or its preview exceeds the limit. No approval was requested.',
    'Split the request into smaller ones, within `details.maxBytes`.',
  ),
  REQUEST_TOO_LARGE: e(
    413,
    'The request is too large',
    'The body is larger than `details.maxBytes`, or expands too far.',
    'Split the work into smaller requests.',
  ),
  TOO_MANY_ITEMS: e(
    413,
    'Too many items',
    'The request contains or concerns more than `details.max`, or takes more than `details.maxSeconds` or `details.maxMb` to check.',
    'Do it in smaller parts.',
  ),
  // 422: rules about content
  VALIDATION_FAILED: e(
    422,
    'Record validation failed',
    'The content breaks rules of the object or of the tenant; `errors` lists all violations with pointers.',
    'Correct every violation and send the request with a new `Idempotency-Key`. Do not invent values to satisfy a rule: ask.',
  ),
  TRANSITION_INPUT_INVALID: e(
    422,
    'Invalid transition input',
    'The `input` or comment is not what the transition asks for.',
    'Send an `input` that fits the JSON Schema in the list of transitions, and a comment where `requiresComment` is true.',
  ),
  DASHBOARD_INVALID: e(
    422,
    'Invalid dashboard',
    'The content of the dashboard is wrong; `errors` lists everything.',
    'Correct each place. The catalog of the object lists fields, aggregations and operators.',
  ),
  WIDGET_QUERY_INVALID: e(
    422,
    'Invalid widget query',
    'A widget asks for what does not exist, is hidden from the caller, or cannot be computed.',
    'Correct what `errors` points to, with the fields and aggregations of the catalog of the object.',
  ),
  METADATA_INVALID: e(
    422,
    'Invalid metadata',
    'The plan has problems; `details.blocked` lists them with file, line and remedy.',
    'Correct the files and validate again until `valid` is true.',
  ),
  DESTRUCTIVE_CHANGES_NOT_ALLOWED: e(
    422,
    'Destructive changes are not allowed',
    'The destructive manifest names something, and `allowDestructiveChanges` is not true.',
    'If nothing was to be deleted, empty the destructive manifest. Set the flag only when a person intends the loss, never to get rid of this error.',
  ),
  DESTRUCTIVE_MANIFEST_REQUIRED: e(
    422,
    'A destructive manifest is required',
    'A change would lose values of records and is not listed in `manifest/destructiveChanges.yaml`.',
    'Change the files so that nothing is lost. Only when a person intends the loss, list the component under `alters` and set `allowDestructiveChanges`.',
  ),
  COMPOSITE_FAILED: e(
    422,
    'A subrequest of the composite request failed',
    'A subrequest failed, so that none was committed; `details.results` has the outcome of each.',
    'Correct the one that failed and send all of them again with a new key.',
  ),
  BULK_DATA_INVALID: e(
    422,
    'Invalid bulk data',
    'The data of the job cannot be read in the format that it declares.',
    'Correct the file as `errors` says.',
  ),
  FILE_TYPE_NOT_ALLOWED: e(
    422,
    'File type not allowed',
    'The type of the file is not allowed here.',
    'Convert it to a type that is.',
  ),
  FILE_QUARANTINED: e(
    422,
    'The file is not available',
    'The file is being checked or was found to be harmful.',
    'Wait until it is checked; a harmful file is never handed out.',
  ),
  RECURRENCE_INVALID: e(
    422,
    'Invalid recurrence',
    'The recurrence rule is malformed or never ends within the bounds.',
    'Correct the rule (RFC 5545).',
  ),
  WEBHOOK_URL_INVALID: e(
    422,
    'Invalid webhook URL',
    'The address is not https, or leads into a private network.',
    'Give a public https address.',
  ),
  // 429
  RATE_LIMIT_EXCEEDED: e(
    429,
    'Rate limit exceeded',
    'The units of `details.policy` for this window are used up.',
    'Wait for `Retry-After` seconds, then send the same request with the same key. Spread the work; larger pages cost less than many reads.',
    true,
  ),
  CONCURRENCY_LIMIT_EXCEEDED: e(
    429,
    'Too many concurrent requests',
    'Too many requests of the caller or tenant are being carried out at once.',
    'Wait for `Retry-After` seconds, and send fewer at a time.',
    true,
  ),
  DAILY_LIMIT_EXCEEDED: e(
    429,
    'Daily limit exceeded',
    'The units of the day are used up.',
    'Go on after `Retry-After` seconds. An administrator can ask the operator for more.',
    true,
  ),
  // 500, 503
  INTERNAL_ERROR: e(
    500,
    'Internal error',
    'A mistake of the platform, or the request took too long.',
    'Send the same request with the same key again: it is executed once at most. If it persists, report `requestId`.',
    true,
  ),
  SERVICE_UNAVAILABLE: e(
    503,
    'Service unavailable',
    'A part of the platform cannot be reached or is busy, or a query exceeded its time limit. Whether a mutation was carried out is not always known.',
    'Wait for `Retry-After` seconds and send the same request, a mutation with the same key: the key tells what became of it. Where `message` speaks of a time limit, make the query smaller first.',
    true,
  ),
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof CATALOGUE;

/** True for a code of the catalogue, as against one of a violation alone. */
export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(CATALOGUE, code);

/** In the order of the catalogue. */
export const ERROR_CODES: readonly ErrorCode[] = Object.keys(CATALOGUE).filter(isErrorCode);

/** True when the same request may be sent again unchanged. */
export const isRetryable = (code: ErrorCode): boolean => 'retryable' in CATALOGUE[code];

/** Temporary errors say how long to wait; the duration of a bug is unknown. */
export const saysWhenToRetry = (code: ErrorCode): boolean => isRetryable(code) && code !== 'INTERNAL_ERROR';

/** Codes of one violation inside `errors[]` of VALIDATION_FAILED (422) or FIELD_PERMISSION_DENIED (403). */
export const VIOLATION_CODES = [
  'FIELD_REQUIRED',
  'FIELD_UNKNOWN',
  'FIELD_READ_ONLY',
  'FIELD_TYPE_INVALID',
  'FIELD_TOO_LONG',
  'FIELD_OUT_OF_RANGE',
  'FIELD_FORMAT_INVALID',
  'PICKLIST_VALUE_INVALID',
  'DEPENDENT_PICKLIST_INVALID',
  'REFERENCE_NOT_FOUND',
  'REFERENCE_TYPE_INVALID',
  'VALIDATION_RULE',
] as const;

export type ViolationCode = (typeof VIOLATION_CODES)[number] | ErrorCode;

/** Codes of operations that are still to come: nothing answers them yet. */
export const RESERVED_CODES: ReadonlySet<ErrorCode> = new Set(['DPOP_PROOF_INVALID', 'FILE_TYPE_NOT_ALLOWED']);
