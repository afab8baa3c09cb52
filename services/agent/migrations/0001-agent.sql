-- Runs of agents, the calls they made, and what people decided about them.
--
-- All moments are compared with the clock of the database, so that processes whose clocks differ agree. What has passed its
-- time is over at that moment, whatever `status` says: a job and the next statement that looks write it down.
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
  -- The grant under which it was begun; the run ends with it.
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
CREATE INDEX runs_active ON agent.runs (expires_at) WHERE status = 'RUNNING';
CREATE INDEX runs_grant ON agent.runs (grant_id) WHERE status = 'RUNNING';
CREATE INDEX runs_ended ON agent.runs (ended_at) WHERE status <> 'RUNNING';

-- Every call under a run, stored before it is executed.
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
  -- HTTP status of the answer; NULL while it is not known.
  status          smallint,
  PRIMARY KEY (tenant_id, step_id)
);
CREATE INDEX steps_run ON agent.steps (tenant_id, run_id, step_id);
CREATE INDEX steps_key ON agent.steps (tenant_id, run_id, idempotency_key) WHERE mutation;

CREATE TABLE agent.approvals (
  tenant_id           uuid           NOT NULL,
  approval_id         uuid           NOT NULL,
  run_id              uuid           NOT NULL,
  status              text           NOT NULL DEFAULT 'PENDING'
    CHECK (status IN ('PENDING', 'APPROVED', 'REJECTED', 'EXPIRED', 'CANCELED', 'CONSUMED')),
  -- In whose name the agent asks.
  user_id             uuid           NOT NULL,
  operation_id        text           NOT NULL,
  method              text           NOT NULL,
  path                text           NOT NULL,
  path_parameters     jsonb          NOT NULL,
  risk                text           NOT NULL,
  summary             text           NOT NULL,
  query               json           NOT NULL,
  headers             jsonb          NOT NULL,
  -- NULL: there is none, or it was too long to keep.
  body                json,
  body_omitted        boolean        NOT NULL,
  preview             json,
  -- SHA-256 (hex) over the request.
  fingerprint         text           NOT NULL,
  -- Of the request that asked: the same key asks for the same thing once.
  idempotency_key     text           NOT NULL,
  -- What the policy said when it was asked for; a later policy changes nothing about it.
  policy              text,
  required_approvals  smallint       NOT NULL,
  approvers           jsonb          NOT NULL,
  allow_self_approval boolean        NOT NULL,
  escalate_at         timestamptz(3),
  escalate_to         jsonb          NOT NULL,
  escalated_at        timestamptz(3),
  requested_at        timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  -- Pending: until when it can be decided. Approved: until when it can be used.
  expires_at          timestamptz(3) NOT NULL,
  consumed_at         timestamptz(3),
  consumed_request_id text,
  PRIMARY KEY (tenant_id, approval_id)
);
-- One that is open for each request of a run.
CREATE UNIQUE INDEX approvals_open ON agent.approvals (tenant_id, run_id, fingerprint)
  WHERE status IN ('PENDING', 'APPROVED');
CREATE INDEX approvals_run ON agent.approvals (tenant_id, run_id, fingerprint, approval_id);
CREATE INDEX approvals_order ON agent.approvals (tenant_id, approval_id);
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

-- The second lock against crossing tenants. The owner and the login of the service look across, to find what has passed its
-- time and the runs of a grant that ended: the policy `directory`.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['runs', 'steps', 'approvals', 'decisions'] LOOP
    EXECUTE format('ALTER TABLE agent.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE agent.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format(
      'CREATE POLICY tenant ON agent.%I USING (tenant_id = NULLIF(current_setting(''app.tenant_id'', true), '''')::uuid)', name);
    EXECUTE format('CREATE POLICY directory ON agent.%I TO CURRENT_USER USING (true) WITH CHECK (true)', name);
  END LOOP;
END $$;

-- The key that cursors are sealed with, where the deployment has no secret of its own.
CREATE TABLE agent.secrets (
  name       text        PRIMARY KEY,
  secret     bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Uses an approval up, in the transaction of the change that it allows: of any number of attempts one gets 'CONSUMED', and a
-- change that is rolled back has used nothing. The others get the code that they are refused with. For the roles of services,
-- in a transaction that is bound to the tenant (app.tenant_id).
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
      WHEN 'CANCELED' THEN RETURN 'RUN_NOT_ACTIVE';
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
REVOKE EXECUTE ON FUNCTION agent.consume_approval FROM PUBLIC;
