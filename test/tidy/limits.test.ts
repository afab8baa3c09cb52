/** The limits of the configuration stand in the reference with their figures. */
import assert from 'node:assert/strict';
import { readConfig } from '../../config/env.ts';
import { LIMITS as CONFIGURED } from '../../lib/limits.ts';
import { IDEMPOTENCY_KEY_MAX_CHARS, IDEMPOTENCY_KEY_MIN_CHARS } from '../../lib/values/idempotency-key.ts';
import { read } from '../support/sources.ts';

const used = new Set<string>();
/** Knows which limits the tables below have. */
const LIMITS = new Proxy(CONFIGURED, {
  get: (limits, name: keyof typeof CONFIGURED) => {
    used.add(name);
    return limits[name];
  },
});

/** Internal limits that callers do not reach directly. */
const INTERNAL: readonly (keyof typeof CONFIGURED)[] = ['bus_timeout_ms', 'retries_serialization_max'];

const number = (value: number): string => value.toLocaleString('en-GB');
const bytes = (value: number): string =>
  value % (1024 * 1024) === 0 ? `${number(value / (1024 * 1024))} MiB` : `${number(value / 1024)} KiB`;
const seconds = (milliseconds: number): string => `${number(milliseconds / 1_000)} s`;

const { rateLimits } = readConfig({});

/** Expected content of each row, by its first cell; for cells with other figures, the parts. */
const ROWS: Readonly<Record<string, readonly string[]>> = {
  '`connection`': [`${number(rateLimits.connection)} units in 60 s`],
  '`tenant`': [`${number(rateLimits.tenant)} units in 60 s`],
  '`daily`': [`${number(rateLimits.daily)} units in 24 h`],
  '`anonymous`': [`${number(rateLimits.anonymous)} requests in 60 s`],
  '`calendar`': [`${LIMITS.calendar_link_reads_per_hour} requests in an hour`],
  '`documents`': [`${number(rateLimits.anonymous)} requests in 60 s`],
  'a request': [seconds(LIMITS.request_timeout_ms)],
  'a [composite request](composite.md)': [seconds(LIMITS.composite_timeout_ms)],
  'a statement of a read in the database': [seconds(LIMITS.read_statement_timeout_ms)],
  'a statement of a mutation, or `validate`': [seconds(LIMITS.statement_timeout_ms)],
  'processor time of one check of configuration': [seconds(LIMITS.planning_task_processor_ms)],
  'a large body, or a check of configuration, that waits for others': [seconds(LIMITS.turn_wait_ms)],
  'use of a token that was known, [while auth is away](authentication.md#while-auth-is-away)': [
    `${LIMITS.auth_absence_seconds / 60} min`,
  ],
  'connections of one network to a gateway': [number(LIMITS.connections_of_network_max)],
  'connections to a gateway': [number(LIMITS.connections_max)],
  'requests of a connection that wait for their answers': [number(LIMITS.pipelined_requests_max)],
  'time in which a client takes nothing of an answer': [seconds(LIMITS.answer_stall_ms)],
  'rate at which a client takes an answer, on average after 60 s': [bytes(LIMITS.answer_min_bytes_per_second)],
  'rate at which a streamed body arrives, on average after 60 s': [bytes(LIMITS.streamed_body_min_bytes_per_second)],
  'answers that a caller has not taken yet': [bytes(LIMITS.unsent_of_caller_max_bytes)],
  'those on one connection': [bytes(LIMITS.unsent_of_connection_max_bytes)],
  'those in a gateway': [bytes(LIMITS.unsent_max_bytes)],
  '`take`': [number(LIMITS.take_max)],
  'JSON of a page': [bytes(LIMITS.page_max_bytes)],
  '`skip`': [number(LIMITS.skip_max)],
  'conditions in `filters`': [number(LIMITS.filter_conditions_max)],
  'items in `sort`': [number(LIMITS.sort_max)],
  'values of `in`': [number(LIMITS.in_values_max)],
  'value of `contains`': [number(LIMITS.pattern_max_chars)],
  '`fields`': [number(LIMITS.fields_max)],
  '`expand`': [`${LIMITS.expand_max} references of ${LIMITS.expand_fields_max} fields each`],
  '`Idempotency-Key`': [
    `${IDEMPOTENCY_KEY_MIN_CHARS} to ${IDEMPOTENCY_KEY_MAX_CHARS} characters`,
    `${LIMITS.idempotency_retention_hours} hours`,
  ],
  'cursor of changes': [`${LIMITS.event_retention_days} days`],
  '[events](events.md)': [
    `${LIMITS.event_retention_days} days`,
    `${LIMITS.events_take_max} on a page`,
    `${number(LIMITS.events_scan_max)} looked at`,
  ],
  'wait for events': [`${LIMITS.events_wait_seconds_max} s`],
  'subscriptions to events': [
    `${LIMITS.subscriptions_of_user_max} of a user`,
    `${LIMITS.subscriptions_of_tenant_max} of a tenant`,
    `${number(LIMITS.webhook_pending_max)} deliveries`,
  ],
  'events sent again': [number(LIMITS.replay_events_max)],
  'streams and waits of events': [
    `${LIMITS.event_streams_of_caller_max} of a caller`,
    `${LIMITS.event_streams_of_tenant_max} of a tenant`,
    `${number(LIMITS.event_streams_max)} of a gateway`,
  ],
  'deleted records': [`${LIMITS.recycle_bin_days} days`],
  'records deleted along': [number(LIMITS.delete_cascade_max)],
  'comment of a transition': [number(LIMITS.comment_max_chars)],
  'manual shares of a record': [number(LIMITS.record_shares_max)],
  'records listed of a request': [number(LIMITS.request_records_max)],
  'active agent runs': [
    `${number(LIMITS.agent_runs_of_user_max)} of a user`,
    `${number(LIMITS.agent_runs_of_tenant_max)} of a tenant`,
  ],
  'requests of an agent run': [number(LIMITS.agent_requests_of_run_max)],
  'runs of a client and user': [
    `${number(LIMITS.agent_cost_of_day_max)} cost units`,
    `${number(LIMITS.agent_mutations_of_day_max)} mutations`,
    `${number(LIMITS.agent_records_of_day_max)} records`,
  ],
  'rejections of people': [`${LIMITS.agent_rejection_hours} h`],
  'approvals that wait': [
    `${number(LIMITS.agent_approvals_of_run_max)} of a run`,
    `${number(LIMITS.agent_approvals_of_user_max)} of a user`,
    `${number(LIMITS.agent_approvals_of_tenant_max)} of a tenant`,
  ],
  'changes of an approval': [`${LIMITS.agent_approval_changes_max} parts or rows of a composite request`],
  'mails about an approval': [`${LIMITS.agent_approval_mails_max} people`],
  'body, preview of an approval': [bytes(LIMITS.agent_request_max_bytes), bytes(LIMITS.agent_preview_max_bytes)],
  'output of an agent run': [bytes(LIMITS.agent_output_max_bytes)],
  'ended agent runs': [`${LIMITS.agent_retention_days} days`],
  'their outputs and plans': [bytes(LIMITS.agent_kept_max_bytes)],
  "ended approvals' content": [bytes(LIMITS.agent_kept_max_bytes)],
  'revert of an agent run': [`${number(LIMITS.revert_records_max)} records`, seconds(LIMITS.revert_time_ms)],
  dashboards: [
    `${number(LIMITS.dashboards_per_tenant_max)} of a tenant`,
    `${number(LIMITS.dashboards_per_user_max)} of an owner`,
  ],
  'a dashboard': [
    `${LIMITS.dashboard_widgets_max} widgets`,
    `${LIMITS.dashboard_filters_max} filters`,
    `${LIMITS.dashboard_shares_max} shares`,
    bytes(LIMITS.dashboard_max_bytes),
  ],
  'deleted dashboards': [`${LIMITS.dashboard_kept_days} days`, `newest ${LIMITS.dashboards_deleted_max}`],
  'kept answer about a dashboard': [bytes(LIMITS.dashboard_answer_kept_max_bytes)],
  'rows of a widget': [number(LIMITS.widget_rows_max)],
  'kept results of widgets': [
    `${bytes(LIMITS.widget_results_max_bytes)} of a process`,
    `${bytes(LIMITS.widget_results_tenant_max_bytes)} of a tenant`,
  ],
  'members of a metadata package': [
    number(LIMITS.metadata_members_max),
    `${number(LIMITS.metadata_files_max)} files of ${bytes(LIMITS.metadata_file_max_bytes)}`,
  ],
  'a file in one request': [bytes(LIMITS.file_body_max_bytes)],
  'a file': [bytes(LIMITS.file_max_bytes)],
  'chunks of an upload': [
    `${bytes(LIMITS.file_chunk_min_bytes)} to ${bytes(LIMITS.file_chunk_max_bytes)}`,
    `${number(LIMITS.file_chunks_max)} chunks`,
  ],
  'name, description of a file': [
    `${LIMITS.file_name_max_chars} and ${number(LIMITS.file_description_max_chars)} characters`,
  ],
  'recipients of a notification': [
    `${LIMITS.notification_recipients_max} of a request`,
    `${number(LIMITS.notification_sent_per_hour_max)} an hour`,
  ],
  'title, text, dedupe key of it': [
    `${LIMITS.notification_title_max_chars}, ${number(LIMITS.notification_body_max_chars)} and ${LIMITS.notification_dedupe_max_chars} characters`,
  ],
  'types with preferences': [`${LIMITS.notification_types_max} of a user`],
  notifications: [`${number(LIMITS.notifications_of_user_max)} of a user`, `${LIMITS.notification_days} days`],
  'open uploads': [
    `${LIMITS.file_uploads_of_user_max} of a user`,
    `${LIMITS.file_uploads_of_tenant_max} of a tenant`,
    `${LIMITS.file_upload_hours} h`,
    `| an address of the store | valid for ${LIMITS.file_url_seconds} s |`,
  ],
  'attachments without a field': [
    `${LIMITS.file_attachments_max} of a file`,
    `${number(LIMITS.record_files_max)} of a record`,
  ],
  'files and open uploads': [bytes(LIMITS.files_of_tenant_max_bytes)],
  'bodies that are received': [
    `${LIMITS.streamed_bodies_of_caller_max} of a caller`,
    `${LIMITS.streamed_bodies_of_tenant_max} of a tenant`,
    `${LIMITS.streamed_bodies_max} of a gateway`,
  ],
  'contents that are sent': [
    `${LIMITS.file_answers_of_caller_max} of a caller`,
    `${LIMITS.file_answers_of_tenant_max} of a tenant`,
    `${LIMITS.file_answers_max} of a gateway`,
  ],
  'members of a retrieve': [number(LIMITS.metadata_retrieve_members_max)],
  'all files together': [bytes(LIMITS.metadata_tenant_files_max_bytes)],
  'compiled, all together': [bytes(LIMITS.metadata_tenant_snapshot_max_bytes)],
};

/** Figures on other pages: the words around them. */
const SENTENCES: Readonly<Record<string, readonly string[]>> = {
  'calendar.md': [
    `by ${LIMITS.calendar_event_days_max} days at most`,
    `\`INTERVAL\` up to ${number(LIMITS.calendar_rule_interval_max)}, \`COUNT\` up to ${number(LIMITS.calendar_rule_count_max)}`,
    `with at most ${LIMITS.calendar_rule_values_max} values together`,
    `at most ${LIMITS.calendar_window_days_max} days, lists instances by time, ${number(LIMITS.calendar_instances_max)} at most`,
    `up to ${LIMITS.calendar_free_busy_users_max} users and ${LIMITS.calendar_free_busy_days_max} days`,
    `valid for ${LIMITS.calendar_sync_days} days`,
    `${LIMITS.calendar_export_days} days ago, with`,
    `more than ${number(LIMITS.calendar_export_events_max)} such events,`,
    `or ${bytes(LIMITS.calendar_export_max_bytes)}, is 413`,
    `${LIMITS.calendar_title_max_chars}, ${LIMITS.calendar_location_max_chars} and ${LIMITS.calendar_comment_max_chars} characters |`,
    `| description | ${number(LIMITS.calendar_description_max_chars)} characters |`,
    `| ${LIMITS.calendar_attendees_max}, ${LIMITS.calendar_reminders_max}; up to ${number(LIMITS.calendar_reminder_minutes_max)} minutes before |`,
    `| ${LIMITS.calendar_recurrence_lines_max}, of ${number(LIMITS.calendar_recurrence_line_max_chars)} characters |`,
    `| ${LIMITS.calendar_exceptions_max} of each in a series |`,
    `| ${number(LIMITS.calendar_events_of_user_max)}, ${number(LIMITS.calendar_events_of_tenant_max)} |`,
    `| ${number(LIMITS.calendar_free_busy_instances_max)} |`,
    `| ${LIMITS.calendar_link_reads_per_hour} an hour, ${LIMITS.calendar_link_concurrent_max} at a time |`,
  ],
  'bulk.md': [
    `| part | ${bytes(LIMITS.bulk_part_max_bytes)}, ${number(LIMITS.bulk_parts_max)} of a job |`,
    `| job | ${bytes(LIMITS.bulk_job_max_bytes)}, ${number(LIMITS.bulk_job_rows_max)} rows |`,
    `| row, columns | ${number(LIMITS.bulk_row_max_bytes / 1024)} KiB, ${LIMITS.bulk_columns_max} |`,
    `| chunk | ${LIMITS.rows_max} rows, ${bytes(LIMITS.bulk_chunk_max_bytes)} |`,
    `${bytes(LIMITS.bulk_user_max_bytes)} of a user, ${bytes(LIMITS.bulk_tenant_max_bytes)} of a tenant |`,
    `${LIMITS.bulk_open_jobs_of_user_max} of a user, ${LIMITS.bulk_open_jobs_of_tenant_max} of a tenant |`,
    `| jobs at work | ${LIMITS.bulk_processing_max} of a tenant |`,
    `${number(LIMITS.bulk_jobs_of_tenant_max)} of a tenant, ${LIMITS.bulk_retention_days} days |`,
    `${number(LIMITS.bulk_results_take)} rows by default, up to ${number(LIMITS.bulk_results_take_max)} |`,
    `${seconds(LIMITS.bulk_upload_ms)}, ${seconds(LIMITS.bulk_chunk_ms)} |`,
  ],
  'agents.md': [
    `| \`expiresInSeconds\` | ${number(LIMITS.agent_approval_seconds)} |`,
    `| \`APPROVED\`, within ${LIMITS.agent_approved_seconds / 60} minutes |`,
  ],
  'aggregation.md': [
    `| \`dimensions\` | up to ${LIMITS.widget_dimensions_max} \`{field, granularity?}\` |`,
    `| \`measures\` | 1 to ${LIMITS.widget_measures_max} |`,
    `| \`limit\` | 1 to ${number(LIMITS.widget_rows_max)}, default ${LIMITS.widget_rows_default} |`,
  ],
  'analytics.md': [
    `\`page\` counts from 1 to ${number(LIMITS.dashboard_page_max)}`,
    `\`pageSize\` is ${LIMITS.dashboard_page_size_default}, ${LIMITS.dashboard_page_size_max} at most`,
    `| \`maxAgeSeconds\` | ${LIMITS.widget_result_age_default_s} | how old a kept result may be, up to ${number(LIMITS.widget_result_age_max_s)};`,
  ],
  'files.md': [
    `at most ${LIMITS.file_records_shown_max} for each field`,
    `is looked at after ${LIMITS.file_unattached_days} days`,
  ],
  'audit.md': [`\`retention.auditDays\`, ${LIMITS.audit_retention_days} to`],
  'http.md': [
    `| address | ${bytes(LIMITS.uri_max_bytes)}: 400 \`URI_TOO_LONG\` |`,
    `| address and headers together | ${bytes(LIMITS.headers_max_bytes)} |`,
    `| JSON body | ${bytes(LIMITS.body_max_bytes)} after decompression: 413`,
    `| body of metadata operations | ${bytes(LIMITS.metadata_body_max_bytes)} |`,
    `| body of a transition | ${bytes(LIMITS.transition_body_max_bytes)} |`,
    `| body of a composite request | ${bytes(LIMITS.composite_body_max_bytes)} |`,
    `| body of agent operations | ${bytes(LIMITS.agent_body_max_bytes)} |`,
    `| JSON depth | ${LIMITS.json_depth_max} levels: 400`,
  ],
  'composite.md': [
    `carries out up to ${LIMITS.composite_requests_max} operations`,
    `writes up to ${LIMITS.composite_records_max} records`,
    `have ${bytes(LIMITS.composite_body_max_bytes)} at most`,
    `up to ${LIMITS.composite_references_max} references`,
  ],
  'idempotency.md': [`waits up to ${seconds(LIMITS.idempotency_wait_ms)}, then 409`],
  'limits.md': [
    `includes ${LIMITS.database_included_ms} ms of database time`,
    `1 unit for each further ${LIMITS.database_unit_ms} ms`,
    `more than ${bytes(LIMITS.answer_included_bytes)} costs ${LIMITS.answer_mib_units} units for each further MiB`,
    `${number(LIMITS.delayed_refusals_of_caller_max)} answers of one caller and ${number(LIMITS.delayed_refusals_max)} of a gateway wait at most`,
  ],
  'mcp.md': [
    `A body has ${bytes(LIMITS.mcp_body_max_bytes)} at most, an answer ${bytes(LIMITS.mcp_answer_max_bytes)}.`,
    `a message has ${LIMITS.mcp_values_max} values and ${bytes(LIMITS.mcp_text_max_chars)} of text at most`,
    `\`name\` ${LIMITS.mcp_name_max_chars} characters, a \`uri\` ${number(LIMITS.mcp_uri_max_chars)}:`,
  ],
  'metadata.md': [
    `ended more than ${LIMITS.quick_deploy_days} days ago, or its files`,
    `| \`EXPIRED\` | it ended more than ${LIMITS.rollback_days} days ago |`,
    `All of it takes ${bytes(LIMITS.metadata_kept_max_bytes)} of a tenant at most`,
  ],
  'scim.md': [
    `A body has ${bytes(LIMITS.scim_body_max_bytes)} at most`,
    `${number(LIMITS.scim_filter_max_chars)} characters, ${LIMITS.scim_filter_conditions_max} conditions and ${LIMITS.scim_filter_depth_max} levels`,
    `\`startIndex\` up to ${number(LIMITS.scim_start_index_max)}`,
    `${number(LIMITS.scim_patch_operations_max)} operations`,
    `${number(LIMITS.scim_members_max)} members are shown`,
    `${number(LIMITS.scim_members_changed_max)} members change`,
  ],
  'querying.md': [
    `integer from 1 on, default ${LIMITS.take_default} |`,
    `up to ${LIMITS.expand_max} references`,
    `each with 1 to ${LIMITS.expand_fields_max} fields`,
    `| \`search\` | ${LIMITS.search_min_chars} to ${LIMITS.search_max_chars} characters |`,
  ],
};

describe('the reference', () => {
  const cells = new Map(
    [...read('docs/reference/limits.md').matchAll(/^\| (.+?) +\|(.+)\|$/gm)].map(([, first = '', rest = '']) => [
      first.trim(),
      rest,
    ]),
  );

  it('states the configured figures in its tables', () => {
    const wrong = Object.entries(ROWS).flatMap(([row, parts]) =>
      parts
        .filter((part) => !new RegExp(`(?<![\\d,.])${part.replaceAll('.', '\\.')}(?!,?\\d)`).test(cells.get(row) ?? ''))
        .map((part) => `${row}: ${part}, not ${cells.get(row)?.trim() ?? 'a row that there is not'}`),
    );
    assert.deepEqual(wrong, []);
  });

  it('states them in its sentences', () => {
    const wrong = Object.entries(SENTENCES).flatMap(([page, sentences]) => {
      const text = read(`docs/reference/${page}`).replace(/\s+/g, ' ');
      return sentences.filter((sentence) => !text.includes(sentence)).map((sentence) => `${page}: ${sentence}`);
    });
    assert.deepEqual(wrong, []);
  });

  it('has every limit', () => {
    const names = Object.keys(CONFIGURED) as (keyof typeof CONFIGURED)[];
    assert.deepEqual(names.filter((name) => !used.has(name)).sort(), [...INTERNAL].sort());
  });
});
