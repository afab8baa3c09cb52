/**
 * The closed list of error codes that the API can answer with, each with its HTTP status and whether the very same
 * request may be sent again. Nothing else decides a status: code throws a `PlatformError` with a code from here. The
 * message of an error is written where it is thrown; `title` is that of the code, the same for every such error.
 * Source: docs/reference/errors.md.
 */
interface CatalogueEntry {
  readonly status: number;
  readonly title: string;
  readonly retryable?: true;
}

const e = (status: number, title: string, retryable?: true): CatalogueEntry =>
  retryable ? { status, title, retryable } : { status, title };

export const CATALOGUE = {
  // 400: the form of the request
  REQUEST_MALFORMED: e(400, 'The request is malformed'),
  BODY_REQUIRED: e(400, 'A request body is required'),
  BODY_PROPERTY_UNKNOWN: e(400, 'The body has an unknown property'),
  BODY_PROPERTY_FORBIDDEN: e(400, 'The body has a property that clients cannot set'),
  PARAMETER_UNKNOWN: e(400, 'Unknown parameter'),
  PARAMETER_INVALID: e(400, 'Invalid parameter'),
  PARAMETER_REQUIRED: e(400, 'A required parameter is missing'),
  PARAMETER_CONFLICT: e(400, 'Conflicting parameters'),
  CURSOR_WITH_SKIP: e(400, 'cursor and skip cannot be combined'),
  CURSOR_INVALID: e(400, 'Invalid cursor'),
  CURSOR_EXPIRED: e(400, 'Expired cursor'),
  CURSOR_QUERY_MISMATCH: e(400, 'The cursor was issued for another query'),
  SKIP_TOO_DEEP: e(400, 'skip exceeds its maximum; use cursor'),
  FILTER_INVALID: e(400, 'Invalid filter'),
  FILTER_TOO_MANY_CONDITIONS: e(400, 'Too many filter conditions'),
  FILTER_NESTED_GROUP: e(400, 'Filter groups cannot be nested'),
  FILTER_FIELD_UNKNOWN: e(400, 'Unknown field in a filter'),
  FILTER_FIELD_NOT_FILTERABLE: e(400, 'The field cannot be used in filters'),
  FILTER_OPERATOR_UNSUPPORTED: e(400, 'The field does not support the operator'),
  FILTER_VALUE_INVALID: e(400, 'The value is invalid for the field'),
  SORT_INVALID: e(400, 'Invalid sort'),
  SORT_TOO_MANY: e(400, 'Too many sort fields'),
  SEARCH_FIELD_INVALID: e(400, 'The field is not searchable'),
  URI_TOO_LONG: e(400, 'The request URI is too long'),
  IDEMPOTENCY_KEY_REQUIRED: e(400, 'Idempotency-Key is required'),
  IDEMPOTENCY_KEY_INVALID: e(400, 'Invalid Idempotency-Key'),
  IF_MATCH_REQUIRED: e(400, 'If-Match is required'),
  IF_MATCH_INVALID: e(400, 'Invalid If-Match'),
  EXPECTED_REVISION_REQUIRED: e(400, 'An expected revision is required'),
  CONFIRMATION_TOKEN_INVALID: e(400, 'Invalid duplicate confirmation'),
  PACKAGE_INVALID: e(400, 'Invalid metadata package'),
  FILE_PATH_INVALID: e(400, 'Invalid metadata file path'),
  YAML_INVALID: e(400, 'Invalid YAML'),
  COMPOSITE_REFERENCE_INVALID: e(400, 'Invalid composite reference'),
  SYNC_TOKEN_EXPIRED: e(400, 'Expired sync token'),
  // 401: who is calling
  TOKEN_MISSING: e(401, 'An access token is required'),
  TOKEN_INVALID: e(401, 'Invalid access token'),
  TOKEN_EXPIRED: e(401, 'Expired access token'),
  TOKEN_REVOKED: e(401, 'Revoked access token'),
  TOKEN_AUDIENCE_INVALID: e(401, 'The access token was issued for another audience'),
  AUTHENTICATION_INSUFFICIENT: e(401, 'A recent sign-in with two factors is required'),
  DPOP_PROOF_INVALID: e(401, 'Invalid DPoP proof'),
  // 403: what the caller may do
  SCOPE_INSUFFICIENT: e(403, 'Insufficient scope'),
  API_ACCESS_DISABLED: e(403, 'The user lacks the API permission'),
  CLIENT_DISABLED: e(403, 'The client is disabled'),
  TENANT_SUSPENDED: e(403, 'The tenant is suspended'),
  IP_NOT_ALLOWED: e(403, 'The IP address is not allowed for this client'),
  OBJECT_PERMISSION_DENIED: e(403, 'Missing object permission'),
  FIELD_PERMISSION_DENIED: e(403, 'Missing field permission'),
  RECORD_ACCESS_DENIED: e(403, 'The record can be read but not changed'),
  TRANSITION_NOT_ALLOWED: e(403, 'The transition is not allowed'),
  METADATA_PERMISSION_DENIED: e(403, 'Missing metadata permission'),
  APPROVAL_REQUIRED: e(403, 'Approval is required'),
  APPROVAL_PENDING: e(403, 'Approval is pending'),
  APPROVAL_REJECTED: e(403, 'Approval was rejected'),
  APPROVAL_EXPIRED: e(403, 'Approval has expired'),
  APPROVAL_SELF_NOT_ALLOWED: e(403, 'Users cannot approve their own requests'),
  APPROVAL_ACTOR_NOT_HUMAN: e(403, 'Only a human user can approve'),
  AGENT_POLICY_DENIED: e(403, 'Denied by agent policy'),
  AGENT_BUDGET_EXCEEDED: e(403, 'The budget of the agent run is exceeded'),
  // 404: absent, unpublished and unreadable look the same
  ROUTE_NOT_FOUND: e(404, 'Operation not found'),
  OBJECT_NOT_FOUND: e(404, 'Object not found'),
  RECORD_NOT_FOUND: e(404, 'Record not found'),
  TRANSITION_NOT_FOUND: e(404, 'Transition not found'),
  DASHBOARD_NOT_FOUND: e(404, 'Dashboard not found'),
  DASHBOARD_VERSION_NOT_FOUND: e(404, 'Dashboard version not found'),
  WIDGET_NOT_FOUND: e(404, 'Widget not found'),
  DEPLOYMENT_NOT_FOUND: e(404, 'Deployment not found'),
  RUN_NOT_FOUND: e(404, 'Run not found'),
  APPROVAL_NOT_FOUND: e(404, 'Approval not found'),
  JOB_NOT_FOUND: e(404, 'Job not found'),
  FILE_NOT_FOUND: e(404, 'File not found'),
  UPLOAD_NOT_FOUND: e(404, 'Upload not found'),
  SUBSCRIPTION_NOT_FOUND: e(404, 'Subscription not found'),
  NOTIFICATION_NOT_FOUND: e(404, 'Notification not found'),
  CALENDAR_NOT_FOUND: e(404, 'Calendar not found'),
  EVENT_NOT_FOUND: e(404, 'Event not found'),
  CONNECTION_NOT_FOUND: e(404, 'Connection not found'),
  DOCS_VERSION_NOT_FOUND: e(404, 'Version of the documentation not found'),
  // 405 and 415: outside operations
  METHOD_NOT_ALLOWED: e(405, 'Method not allowed'),
  MEDIA_TYPE_UNSUPPORTED: e(415, 'Unsupported media type'),
  // 409: conflicts with what is there
  IDEMPOTENCY_KEY_REUSED: e(409, 'The idempotency key was used for a different request'),
  IDEMPOTENCY_IN_PROGRESS: e(409, 'A request with this idempotency key is in progress', true),
  DUPLICATE_RULE: e(409, 'A similar record exists'),
  UNIQUE_VALUE_CONFLICT: e(409, 'The value is already in use'),
  STATE_CONFLICT: e(409, 'The current state does not allow this operation'),
  DELETE_RESTRICTED: e(409, 'Other records depend on this record'),
  DEPLOYMENT_NOT_CANCELABLE: e(409, 'The deployment cannot be canceled'),
  QUICK_DEPLOY_NOT_ELIGIBLE: e(409, 'The validation cannot be quick deployed'),
  ROLLBACK_NOT_ELIGIBLE: e(409, 'The deployment cannot be rolled back'),
  METADATA_DRIFT: e(409, 'The configuration has changed since it was retrieved'),
  PLAN_CHANGED: e(409, 'The plan differs from the reviewed plan'),
  APPROVAL_ALREADY_DECIDED: e(409, 'The approval has already been decided'),
  APPROVAL_FINGERPRINT_MISMATCH: e(409, 'The approval was given for another request'),
  RUN_NOT_ACTIVE: e(409, 'The run is not active'),
  UPLOAD_OFFSET_CONFLICT: e(409, 'Upload offset mismatch'),
  UPLOAD_CHECKSUM_MISMATCH: e(409, 'Upload checksum mismatch'),
  JOB_STATE_CONFLICT: e(409, 'The state of the job does not allow this operation'),
  WRITE_CONTENTION: e(409, 'Too many concurrent changes to the same data', true),
  // 412, 413
  ETAG_MISMATCH: e(412, 'The record has changed since it was read'),
  REVISION_MISMATCH: e(412, 'The revision is outdated'),
  REQUEST_TOO_LARGE: e(413, 'The request is too large'),
  TOO_MANY_ITEMS: e(413, 'Too many items'),
  // 422: rules about content
  VALIDATION_FAILED: e(422, 'Record validation failed'),
  TRANSITION_INPUT_INVALID: e(422, 'Invalid transition input'),
  DASHBOARD_INVALID: e(422, 'Invalid dashboard'),
  WIDGET_QUERY_INVALID: e(422, 'Invalid widget query'),
  METADATA_INVALID: e(422, 'Invalid metadata'),
  DESTRUCTIVE_CHANGES_NOT_ALLOWED: e(422, 'Destructive changes are not allowed'),
  DESTRUCTIVE_MANIFEST_REQUIRED: e(422, 'A destructive manifest is required'),
  COMPOSITE_FAILED: e(422, 'A subrequest of the composite request failed'),
  BULK_DATA_INVALID: e(422, 'Invalid bulk data'),
  FILE_TYPE_NOT_ALLOWED: e(422, 'File type not allowed'),
  FILE_QUARANTINED: e(422, 'The file is not available'),
  RECURRENCE_INVALID: e(422, 'Invalid recurrence'),
  WEBHOOK_URL_INVALID: e(422, 'Invalid webhook URL'),
  // 429
  RATE_LIMIT_EXCEEDED: e(429, 'Rate limit exceeded', true),
  CONCURRENCY_LIMIT_EXCEEDED: e(429, 'Too many concurrent requests', true),
  DAILY_LIMIT_EXCEEDED: e(429, 'Daily limit exceeded', true),
  // 500, 503
  INTERNAL_ERROR: e(500, 'Internal error', true),
  SERVICE_UNAVAILABLE: e(503, 'Service unavailable', true),
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof CATALOGUE;

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
