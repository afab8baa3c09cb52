-- What the runs of a client in the name of a user have used within a day: a window of 24 hours that begins with the first call
-- and, when it is over, with the next one. Ending a run and beginning another gives nothing back.
CREATE TABLE agent.days (
  tenant_id   uuid           NOT NULL,
  client_id   text           NOT NULL,
  user_id     uuid           NOT NULL,
  began_at    timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  cost        integer        NOT NULL DEFAULT 0,
  mutations   integer        NOT NULL DEFAULT 0,
  records     integer        NOT NULL DEFAULT 0,
  -- As the policies said at the last call, for the changes that count their records themselves.
  max_records integer        NOT NULL,
  PRIMARY KEY (tenant_id, client_id, user_id)
);
ALTER TABLE agent.days ENABLE ROW LEVEL SECURITY;
ALTER TABLE agent.days FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON agent.days USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::uuid);
CREATE POLICY directory ON agent.days TO CURRENT_USER USING (true) WITH CHECK (true);

-- A rejection holds for the user and client beyond the run in which it was asked for.
CREATE INDEX approvals_rejected_user ON agent.approvals (tenant_id, user_id, meaning) WHERE status = 'REJECTED';
-- Calls that are tried out before people are asked, by their key.
CREATE INDEX steps_tried ON agent.steps (tenant_id, run_id, idempotency_key)
  WHERE NOT mutation AND idempotency_key IS NOT NULL AND status IS NULL;

-- As before, and counts the records of the day as well. A day that has no room answers the code and, behind a blank, JSON of
-- which budget it is.
CREATE OR REPLACE FUNCTION agent.continue_run(tenant uuid, run uuid, records integer)
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
    -- A process of the previous version has admitted the call, which kept no day.
    IF NOT FOUND THEN RETURN 'RUNNING'; END IF;
    RETURN 'AGENT_BUDGET_EXCEEDED ' || json_build_object('budget', 'maxRecordsPerDay', 'used', day.records,
      'max', day.max_records, 'resetsAt', to_char((day.began_at + interval '24 hours') AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"'))::text;
  END $$;
