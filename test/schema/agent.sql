-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA agent;
GRANT USAGE ON SCHEMA agent TO login_agent;
GRANT USAGE ON SCHEMA agent TO svc_agent;
GRANT USAGE ON SCHEMA agent TO svc_analytics;
GRANT USAGE ON SCHEMA agent TO svc_bulk;
GRANT USAGE ON SCHEMA agent TO svc_calendar;
GRANT USAGE ON SCHEMA agent TO svc_data;
GRANT USAGE ON SCHEMA agent TO svc_events;
GRANT USAGE ON SCHEMA agent TO svc_files;
GRANT USAGE ON SCHEMA agent TO svc_metadata;
GRANT USAGE ON SCHEMA agent TO svc_notifications;

CREATE TABLE agent.approvals (
  tenant_id uuid NOT NULL,
  approval_id uuid NOT NULL,
  run_id uuid NOT NULL,
  status text DEFAULT 'PENDING'::text NOT NULL,
  user_id uuid NOT NULL,
  operation_id text NOT NULL,
  method text NOT NULL,
  path text NOT NULL,
  path_parameters jsonb NOT NULL,
  risk text NOT NULL,
  summary text NOT NULL,
  query json NOT NULL,
  headers jsonb NOT NULL,
  body json,
  body_omitted boolean NOT NULL,
  parts json,
  preview json,
  fingerprint text NOT NULL,
  idempotency_key text NOT NULL,
  policy text,
  required_approvals smallint NOT NULL,
  approvers jsonb NOT NULL,
  allow_self_approval boolean NOT NULL,
  escalate_at timestamp(3) with time zone,
  escalate_to jsonb NOT NULL,
  escalated_at timestamp(3) with time zone,
  requested_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  expires_at timestamp(3) with time zone NOT NULL,
  consumed_at timestamp(3) with time zone,
  consumed_request_id text,
  meaning text,
  basis text,
  notice text DEFAULT 'asked'::text,
  CONSTRAINT approvals_status_check CHECK ((status = ANY (ARRAY['PENDING'::text, 'APPROVED'::text, 'REJECTED'::text, 'EXPIRED'::text, 'CANCELED'::text, 'CONSUMED'::text]))),
  CONSTRAINT approvals_pkey PRIMARY KEY (tenant_id, approval_id)
);
ALTER TABLE agent.approvals ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent.approvals FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON agent.approvals TO login_agent;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent.approvals TO svc_agent;

CREATE TABLE agent.days (
  tenant_id uuid NOT NULL,
  client_id text NOT NULL,
  user_id uuid NOT NULL,
  began_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  cost integer DEFAULT 0 NOT NULL,
  mutations integer DEFAULT 0 NOT NULL,
  records integer DEFAULT 0 NOT NULL,
  max_records integer NOT NULL,
  CONSTRAINT days_pkey PRIMARY KEY (tenant_id, client_id, user_id)
);
ALTER TABLE agent.days ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent.days FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON agent.days TO login_agent;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent.days TO svc_agent;

CREATE TABLE agent.decisions (
  tenant_id uuid NOT NULL,
  approval_id uuid NOT NULL,
  user_id uuid NOT NULL,
  decision text NOT NULL,
  comment text,
  decided_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT decisions_decision_check CHECK ((decision = ANY (ARRAY['approve'::text, 'reject'::text]))),
  CONSTRAINT decisions_pkey PRIMARY KEY (tenant_id, approval_id, user_id)
);
ALTER TABLE agent.decisions ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent.decisions FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON agent.decisions TO login_agent;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent.decisions TO svc_agent;

CREATE TABLE agent.migrations (
  name text NOT NULL,
  applied_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT migrations_pkey PRIMARY KEY (name)
);
GRANT SELECT ON agent.migrations TO login_agent;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent.migrations TO svc_agent;

CREATE TABLE agent.runs (
  tenant_id uuid NOT NULL,
  run_id uuid NOT NULL,
  status text DEFAULT 'RUNNING'::text NOT NULL,
  agent_key text NOT NULL,
  agent_version text,
  goal text NOT NULL,
  dry_run boolean NOT NULL,
  user_id uuid NOT NULL,
  client_id text NOT NULL,
  grant_id text NOT NULL,
  context jsonb,
  plan json,
  max_cost integer NOT NULL,
  max_mutations integer NOT NULL,
  max_records integer NOT NULL,
  cost integer DEFAULT 0 NOT NULL,
  requests integer DEFAULT 0 NOT NULL,
  mutations integer DEFAULT 0 NOT NULL,
  records_changed integer DEFAULT 0 NOT NULL,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  expires_at timestamp(3) with time zone NOT NULL,
  ended_at timestamp(3) with time zone,
  outcome text,
  summary text,
  output json,
  model_usage jsonb,
  CONSTRAINT runs_check CHECK (((status = 'RUNNING'::text) = (ended_at IS NULL))),
  CONSTRAINT runs_outcome_check CHECK ((outcome = ANY (ARRAY['succeeded'::text, 'failed'::text, 'canceled'::text]))),
  CONSTRAINT runs_status_check CHECK ((status = ANY (ARRAY['RUNNING'::text, 'COMPLETED'::text, 'FAILED'::text, 'CANCELED'::text, 'EXPIRED'::text]))),
  CONSTRAINT runs_pkey PRIMARY KEY (tenant_id, run_id)
);
ALTER TABLE agent.runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent.runs FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON agent.runs TO login_agent;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent.runs TO svc_agent;

CREATE TABLE agent.secrets (
  name text NOT NULL,
  secret bytea NOT NULL,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT secrets_pkey PRIMARY KEY (name)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON agent.secrets TO login_agent;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent.secrets TO svc_agent;

CREATE TABLE agent.steps (
  tenant_id uuid NOT NULL,
  step_id uuid NOT NULL,
  run_id uuid NOT NULL,
  at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  operation_id text NOT NULL,
  method text NOT NULL,
  path text NOT NULL,
  mutation boolean NOT NULL,
  cost integer NOT NULL,
  request_id text NOT NULL,
  idempotency_key text,
  fingerprint text,
  approval_id uuid,
  status smallint,
  CONSTRAINT steps_pkey PRIMARY KEY (tenant_id, step_id)
);
ALTER TABLE agent.steps ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent.steps FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON agent.steps TO login_agent;
GRANT DELETE, INSERT, SELECT, UPDATE ON agent.steps TO svc_agent;

CREATE INDEX approvals_escalation ON agent.approvals USING btree (escalate_at) WHERE ((status = 'PENDING'::text) AND (escalated_at IS NULL));

CREATE INDEX approvals_expiry ON agent.approvals USING btree (expires_at) WHERE (status = ANY (ARRAY['PENDING'::text, 'APPROVED'::text]));

CREATE INDEX approvals_notice ON agent.approvals USING btree (tenant_id, approval_id) WHERE ((notice IS NOT NULL) AND (status = 'PENDING'::text));

CREATE UNIQUE INDEX approvals_open ON agent.approvals USING btree (tenant_id, run_id, fingerprint) WHERE (status = ANY (ARRAY['PENDING'::text, 'APPROVED'::text]));

CREATE INDEX approvals_pending ON agent.approvals USING btree (tenant_id, approval_id) WHERE (status = 'PENDING'::text);

CREATE INDEX approvals_rejected ON agent.approvals USING btree (tenant_id, run_id, meaning) WHERE (status = 'REJECTED'::text);

CREATE INDEX approvals_rejected_user ON agent.approvals USING btree (tenant_id, user_id, meaning) WHERE (status = 'REJECTED'::text);

CREATE INDEX approvals_run ON agent.approvals USING btree (tenant_id, run_id, fingerprint, approval_id);

CREATE INDEX approvals_user ON agent.approvals USING btree (tenant_id, user_id, approval_id);

CREATE INDEX runs_active ON agent.runs USING btree (expires_at) WHERE (status = 'RUNNING'::text);

CREATE INDEX runs_ended ON agent.runs USING btree (ended_at) WHERE (status <> 'RUNNING'::text);

CREATE INDEX runs_grant ON agent.runs USING btree (grant_id) WHERE (status = 'RUNNING'::text);

CREATE INDEX runs_running ON agent.runs USING btree (tenant_id, run_id) WHERE (status = 'RUNNING'::text);

CREATE INDEX runs_upkeep ON agent.runs USING btree (run_id) WHERE (status = 'RUNNING'::text);

CREATE INDEX runs_user ON agent.runs USING btree (tenant_id, user_id, run_id);

CREATE INDEX steps_key ON agent.steps USING btree (tenant_id, run_id, idempotency_key) WHERE mutation;

CREATE INDEX steps_run ON agent.steps USING btree (tenant_id, run_id, step_id);

CREATE INDEX steps_tried ON agent.steps USING btree (tenant_id, run_id, idempotency_key) WHERE ((NOT mutation) AND (idempotency_key IS NOT NULL) AND (status IS NULL));

CREATE POLICY directory ON agent.approvals AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON agent.approvals AS PERMISSIVE FOR ALL TO login_agent USING true WITH CHECK true;

CREATE POLICY tenant ON agent.approvals AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON agent.days AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON agent.days AS PERMISSIVE FOR ALL TO login_agent USING true WITH CHECK true;

CREATE POLICY tenant ON agent.days AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON agent.decisions AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON agent.decisions AS PERMISSIVE FOR ALL TO login_agent USING true WITH CHECK true;

CREATE POLICY tenant ON agent.decisions AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON agent.runs AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON agent.runs AS PERMISSIVE FOR ALL TO login_agent USING true WITH CHECK true;

CREATE POLICY tenant ON agent.runs AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON agent.steps AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON agent.steps AS PERMISSIVE FOR ALL TO login_agent USING true WITH CHECK true;

CREATE POLICY tenant ON agent.steps AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE FUNCTION agent.consume_approval(uuid,uuid,uuid,text,text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body 0cfa7c790873
GRANT EXECUTE ON FUNCTION agent.consume_approval(uuid,uuid,uuid,text,text) TO svc_agent;
GRANT EXECUTE ON FUNCTION agent.consume_approval(uuid,uuid,uuid,text,text) TO svc_analytics;
GRANT EXECUTE ON FUNCTION agent.consume_approval(uuid,uuid,uuid,text,text) TO svc_bulk;
GRANT EXECUTE ON FUNCTION agent.consume_approval(uuid,uuid,uuid,text,text) TO svc_calendar;
GRANT EXECUTE ON FUNCTION agent.consume_approval(uuid,uuid,uuid,text,text) TO svc_data;
GRANT EXECUTE ON FUNCTION agent.consume_approval(uuid,uuid,uuid,text,text) TO svc_events;
GRANT EXECUTE ON FUNCTION agent.consume_approval(uuid,uuid,uuid,text,text) TO svc_files;
GRANT EXECUTE ON FUNCTION agent.consume_approval(uuid,uuid,uuid,text,text) TO svc_metadata;
GRANT EXECUTE ON FUNCTION agent.consume_approval(uuid,uuid,uuid,text,text) TO svc_notifications;

CREATE FUNCTION agent.continue_run(uuid,uuid,integer) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body d14f8f9393dc
GRANT EXECUTE ON FUNCTION agent.continue_run(uuid,uuid,integer) TO svc_agent;
GRANT EXECUTE ON FUNCTION agent.continue_run(uuid,uuid,integer) TO svc_analytics;
GRANT EXECUTE ON FUNCTION agent.continue_run(uuid,uuid,integer) TO svc_bulk;
GRANT EXECUTE ON FUNCTION agent.continue_run(uuid,uuid,integer) TO svc_calendar;
GRANT EXECUTE ON FUNCTION agent.continue_run(uuid,uuid,integer) TO svc_data;
GRANT EXECUTE ON FUNCTION agent.continue_run(uuid,uuid,integer) TO svc_events;
GRANT EXECUTE ON FUNCTION agent.continue_run(uuid,uuid,integer) TO svc_files;
GRANT EXECUTE ON FUNCTION agent.continue_run(uuid,uuid,integer) TO svc_metadata;
GRANT EXECUTE ON FUNCTION agent.continue_run(uuid,uuid,integer) TO svc_notifications;

CREATE FUNCTION agent.end_stale_approval(uuid,uuid,uuid) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path=pg_catalog, pg_temp -- body a41cee3bacf1
GRANT EXECUTE ON FUNCTION agent.end_stale_approval(uuid,uuid,uuid) TO svc_agent;
GRANT EXECUTE ON FUNCTION agent.end_stale_approval(uuid,uuid,uuid) TO svc_analytics;
GRANT EXECUTE ON FUNCTION agent.end_stale_approval(uuid,uuid,uuid) TO svc_bulk;
GRANT EXECUTE ON FUNCTION agent.end_stale_approval(uuid,uuid,uuid) TO svc_calendar;
GRANT EXECUTE ON FUNCTION agent.end_stale_approval(uuid,uuid,uuid) TO svc_data;
GRANT EXECUTE ON FUNCTION agent.end_stale_approval(uuid,uuid,uuid) TO svc_events;
GRANT EXECUTE ON FUNCTION agent.end_stale_approval(uuid,uuid,uuid) TO svc_files;
GRANT EXECUTE ON FUNCTION agent.end_stale_approval(uuid,uuid,uuid) TO svc_metadata;
GRANT EXECUTE ON FUNCTION agent.end_stale_approval(uuid,uuid,uuid) TO svc_notifications;
