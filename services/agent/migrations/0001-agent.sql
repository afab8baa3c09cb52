-- Runs of agents, their calls, and the decisions of people about them.
--
-- Times are compared with the clock of the database, so that processes with different clocks agree. What has passed its
-- expiry has ended, whatever its `status`: a job, or the next statement that reads it, updates that.
CREATE TABLE agent.runs (
  tenant_id       uuid           NOT NULL,
  run_id          uuid           NOT NULL,
  status          text           NOT NULL DEFAULT 'RUNNING'
    CHECK (status IN ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELED', 'EXPIRED')),
  agent_key       text           NOT NULL,
  agent_version   text,
  goal            text           NOT NULL,
  dry_run         boolean        NOT NULL,
  user_id         uuid           NOT NULL,
  client_id       text           NOT NULL,
  -- The grant under which it started; the run ends with it.
  grant_id        text           NOT NULL,
  context         jsonb,
  plan            json,
  max_cost        integer        NOT NULL,
  max_mutations   integer        NOT NULL,
  max_records     integer        NOT NULL,
  cost            integer        NOT NULL DEFAULT 0,
  requests        integer        NOT NULL DEFAULT 0,
  mutations       integer        NOT NULL DEFAULT 0,
  records_changed integer        NOT NULL DEFAULT 0,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  expires_at      timestamptz(3) NOT NULL,
  ended_at        timestamptz(3),
  outcome         text           CHECK (outcome IN ('succeeded', 'failed', 'canceled')),
  summary         text,
  output          json,
  model_usage     jsonb,
  PRIMARY KEY (tenant_id, run_id),
  CHECK ((status = 'RUNNING') = (ended_at IS NULL))
);
CREATE INDEX runs_user ON agent.runs (tenant_id, user_id, run_id);
-- Lists of active runs, and their number per tenant, counted under a lock when one starts.
CREATE INDEX runs_running ON agent.runs (tenant_id, run_id) WHERE status = 'RUNNING';
-- Maintenance pages over the active runs of all tenants.
CREATE INDEX runs_upkeep ON agent.runs (run_id) WHERE status = 'RUNNING';
CREATE INDEX runs_active ON agent.runs (expires_at) WHERE status = 'RUNNING';
CREATE INDEX runs_grant ON agent.runs (grant_id) WHERE status = 'RUNNING';
CREATE INDEX runs_ended ON agent.runs (ended_at) WHERE status <> 'RUNNING';

-- Usage of the runs of a client on behalf of a user, in a window of 24 hours that starts with the first call, and again with
-- the first call after its end. Ending a run and starting another does not reset it.
CREATE TABLE agent.days (
  tenant_id   uuid           NOT NULL,
  client_id   text           NOT NULL,
  user_id     uuid           NOT NULL,
  began_at    timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  cost        integer        NOT NULL DEFAULT 0,
  mutations   integer        NOT NULL DEFAULT 0,
  records     integer        NOT NULL DEFAULT 0,
  -- From the policies at the last call, for changes that count their records themselves.
  max_records integer        NOT NULL,
  PRIMARY KEY (tenant_id, client_id, user_id)
);

-- Every call of a run, stored before it is executed.
CREATE TABLE agent.steps (
  tenant_id       uuid           NOT NULL,
  step_id         uuid           NOT NULL,
  run_id          uuid           NOT NULL,
  at              timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  operation_id    text           NOT NULL,
  method          text           NOT NULL,
  path            text           NOT NULL,
  mutation        boolean        NOT NULL,
  cost            integer        NOT NULL,
  request_id      text           NOT NULL,
  idempotency_key text,
  fingerprint     text,
  approval_id     uuid,
  -- HTTP status of the response; NULL while it is not known.
  status          smallint,
  PRIMARY KEY (tenant_id, step_id)
);
CREATE INDEX steps_run ON agent.steps (tenant_id, run_id, step_id);
CREATE INDEX steps_key ON agent.steps (tenant_id, run_id, idempotency_key) WHERE mutation;
-- Dry runs before an approval is requested, by their key.
CREATE INDEX steps_tried ON agent.steps (tenant_id, run_id, idempotency_key)
  WHERE NOT mutation AND idempotency_key IS NOT NULL AND status IS NULL;

CREATE TABLE agent.approvals (
  tenant_id           uuid           NOT NULL,
  approval_id         uuid           NOT NULL,
  run_id              uuid           NOT NULL,
  status              text           NOT NULL DEFAULT 'PENDING'
    CHECK (status IN ('PENDING', 'APPROVED', 'REJECTED', 'EXPIRED', 'CANCELED', 'CONSUMED')),
  -- The user on whose behalf the agent acts.
  user_id             uuid           NOT NULL,
  operation_id        text           NOT NULL,
  method              text           NOT NULL,
  path                text           NOT NULL,
  path_parameters     jsonb          NOT NULL,
  risk                text           NOT NULL,
  summary             text           NOT NULL,
  query               json           NOT NULL,
  headers             jsonb          NOT NULL,
  -- NULL: none, or too long to store.
  body                json,
  body_omitted        boolean        NOT NULL,
  -- Of a composite request: its parts or rows, each as a request of its own.
  parts               json,
  preview             json,
  -- SHA-256 (hex) over the request.
  fingerprint         text           NOT NULL,
  -- Of the request that needed it: the same key creates one approval.
  idempotency_key     text           NOT NULL,
  -- From the policy at the time of the request; later changes of the policy do not apply.
  policy              text,
  required_approvals  smallint       NOT NULL,
  approvers           jsonb          NOT NULL,
  allow_self_approval boolean        NOT NULL,
  escalate_at         timestamptz(3),
  escalate_to         jsonb          NOT NULL,
  escalated_at        timestamptz(3),
  requested_at        timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  -- Pending: end of the time to decide. Approved: end of the time to use it.
  expires_at          timestamptz(3) NOT NULL,
  consumed_at         timestamptz(3),
  consumed_request_id text,
  -- Digest of the meaning of the request (SHA-256, hex): a rejection covers every spelling of it. NULL: not known.
  meaning             text,
  -- Digest of the effects of the dry run; the approval is valid only for these. NULL: the operation does not depend on them.
  basis               text,
  -- Pending mail to the approvers: the row itself is the job. NULL: all of them have been notified.
  notice              text           DEFAULT 'asked',
  PRIMARY KEY (tenant_id, approval_id)
);
-- At most one open approval for each request of a run.
CREATE UNIQUE INDEX approvals_open ON agent.approvals (tenant_id, run_id, fingerprint)
  WHERE status IN ('PENDING', 'APPROVED');
CREATE INDEX approvals_run ON agent.approvals (tenant_id, run_id, fingerprint, approval_id);
-- The inbox of people who oversee no agents.
CREATE INDEX approvals_user ON agent.approvals (tenant_id, user_id, approval_id);
-- A rejection applies in its run, and to the user and client beyond it.
CREATE INDEX approvals_rejected ON agent.approvals (tenant_id, run_id, meaning) WHERE status = 'REJECTED';
CREATE INDEX approvals_rejected_user ON agent.approvals (tenant_id, user_id, meaning) WHERE status = 'REJECTED';
CREATE INDEX approvals_notice ON agent.approvals (tenant_id, approval_id) WHERE notice IS NOT NULL AND status = 'PENDING';
CREATE INDEX approvals_pending ON agent.approvals (tenant_id, approval_id) WHERE status = 'PENDING';
CREATE INDEX approvals_expiry ON agent.approvals (expires_at) WHERE status IN ('PENDING', 'APPROVED');
CREATE INDEX approvals_escalation ON agent.approvals (escalate_at) WHERE status = 'PENDING' AND escalated_at IS NULL;

CREATE TABLE agent.decisions (
  tenant_id   uuid           NOT NULL,
  approval_id uuid           NOT NULL,
  user_id     uuid           NOT NULL,
  decision    text           NOT NULL CHECK (decision IN ('approve', 'reject')),
  comment     text,
  decided_at  timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, approval_id, user_id)
);

-- Isolates tenants a second time. With the policy `directory` the owner and the login of the service see across, to find what
-- has expired and the runs of a grant that ended.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['runs', 'days', 'steps', 'approvals', 'decisions'] LOOP
    EXECUTE format('ALTER TABLE agent.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE agent.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format(
      'CREATE POLICY tenant ON agent.%I USING (tenant_id = NULLIF(current_setting(''app.tenant_id'', true), '''')::uuid)', name);
    EXECUTE format('CREATE POLICY directory ON agent.%I TO CURRENT_USER USING (true) WITH CHECK (true)', name);
  END LOOP;
END $$;

-- The key that seals cursors, unless the deployment sets its own.
CREATE TABLE agent.secrets (
  name       text        PRIMARY KEY,
  secret     bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- The following functions are for the roles of services, in transactions bound to the tenant (app.tenant_id).

-- Consumes an approval in the transaction of the change that it allows: one attempt of any number gets 'CONSUMED', and a
-- rolled-back change consumes nothing. The others get the error code. An approval that was canceled while its run is active
-- has been found stale.
CREATE FUNCTION agent.consume_approval(tenant uuid, approval uuid, run uuid, request_fingerprint text, request text)
  RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    asked agent.approvals%ROWTYPE;
  BEGIN
    IF tenant IS DISTINCT FROM NULLIF(current_setting('app.tenant_id', true), '')::uuid THEN
      RAISE EXCEPTION 'The transaction is bound to another tenant.' USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT * INTO asked FROM agent.approvals a
      WHERE a.tenant_id = tenant AND a.approval_id = approval AND a.run_id = run FOR UPDATE;
    IF NOT FOUND THEN RETURN 'APPROVAL_REQUIRED'; END IF;
    IF asked.fingerprint <> request_fingerprint THEN RETURN 'APPROVAL_FINGERPRINT_MISMATCH'; END IF;
    CASE asked.status
      WHEN 'PENDING' THEN RETURN 'APPROVAL_PENDING';
      WHEN 'REJECTED' THEN RETURN 'APPROVAL_REJECTED';
      WHEN 'EXPIRED' THEN RETURN 'APPROVAL_EXPIRED';
      WHEN 'CANCELED' THEN
        IF EXISTS (SELECT FROM agent.runs r WHERE r.tenant_id = tenant AND r.run_id = run AND r.status = 'RUNNING') THEN
          RETURN 'APPROVAL_STALE';
        END IF;
        RETURN 'RUN_NOT_ACTIVE';
      WHEN 'CONSUMED' THEN RETURN 'APPROVAL_REQUIRED';
      ELSE NULL;
    END CASE;
    IF asked.expires_at <= clock_timestamp() THEN RETURN 'APPROVAL_EXPIRED'; END IF;
    IF NOT EXISTS (SELECT FROM agent.runs r WHERE r.tenant_id = tenant AND r.run_id = run
        AND r.status = 'RUNNING' AND r.expires_at > clock_timestamp()) THEN
      RETURN 'RUN_NOT_ACTIVE';
    END IF;
    UPDATE agent.approvals a SET status = 'CONSUMED', consumed_at = clock_timestamp(), consumed_request_id = request
      WHERE a.tenant_id = tenant AND a.approval_id = approval;
    RETURN 'CONSUMED';
  END $$;

-- Cancels an approval whose request would now have other effects than those that were approved.
CREATE FUNCTION agent.end_stale_approval(tenant uuid, approval uuid, run uuid)
  RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ BEGIN
    IF tenant IS DISTINCT FROM NULLIF(current_setting('app.tenant_id', true), '')::uuid THEN
      RAISE EXCEPTION 'The transaction is bound to another tenant.' USING ERRCODE = 'insufficient_privilege';
    END IF;
    UPDATE agent.approvals a SET status = 'CANCELED'
      WHERE a.tenant_id = tenant AND a.approval_id = approval AND a.run_id = run AND a.status = 'APPROVED';
  END $$;

-- Called by every change of a run in its own transaction, before the commit: counts the records that it changes, if the run
-- is active and its budgets, those of the day included, have room. Until that transaction ends, which also takes the count
-- back on a rollback, the run neither ends nor admits another change. When a budget of the day is exhausted, the code is
-- followed by a space and JSON that describes the budget.
CREATE FUNCTION agent.continue_run(tenant uuid, run uuid, records integer)
  RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    counted agent.runs%ROWTYPE;
    day agent.days%ROWTYPE;
  BEGIN
    IF tenant IS DISTINCT FROM NULLIF(current_setting('app.tenant_id', true), '')::uuid THEN
      RAISE EXCEPTION 'The transaction is bound to another tenant.' USING ERRCODE = 'insufficient_privilege';
    END IF;
    UPDATE agent.runs r SET records_changed = r.records_changed + continue_run.records
      WHERE r.tenant_id = tenant AND r.run_id = run AND r.status = 'RUNNING' AND r.expires_at > clock_timestamp()
        AND r.records_changed + continue_run.records <= r.max_records
      RETURNING r.* INTO counted;
    IF NOT FOUND THEN
      IF EXISTS (SELECT FROM agent.runs r WHERE r.tenant_id = tenant AND r.run_id = run
          AND r.status = 'RUNNING' AND r.expires_at > clock_timestamp()) THEN
        RETURN 'AGENT_BUDGET_EXCEEDED';
      END IF;
      RETURN 'RUN_NOT_ACTIVE';
    END IF;
    IF continue_run.records = 0 THEN RETURN 'RUNNING'; END IF;
    UPDATE agent.days d SET records = d.records + continue_run.records
      WHERE d.tenant_id = tenant AND d.client_id = counted.client_id AND d.user_id = counted.user_id
        AND d.records + continue_run.records <= d.max_records;
    IF FOUND THEN RETURN 'RUNNING'; END IF;
    SELECT * INTO day FROM agent.days d
      WHERE d.tenant_id = tenant AND d.client_id = counted.client_id AND d.user_id = counted.user_id;
    -- No admitted call has started a window.
    IF NOT FOUND THEN RETURN 'RUNNING'; END IF;
    RETURN 'AGENT_BUDGET_EXCEEDED ' || json_build_object('budget', 'maxRecordsPerDay', 'used', day.records,
      'max', day.max_records, 'resetsAt', to_char((day.began_at + interval '24 hours') AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"'))::text;
  END $$;

REVOKE EXECUTE ON FUNCTION agent.consume_approval, agent.end_stale_approval, agent.continue_run FROM PUBLIC;
