-- Asked by every change under a run in its own transaction, before it is committed: counts the records that it changes, if
-- the run is active and its budget has room. The run neither ends nor takes another change until this one has been committed
-- or rolled back, which also gives the count back. For the roles of services, in a transaction that is bound to the tenant.
CREATE FUNCTION agent.continue_run(tenant uuid, run uuid, records integer)
  RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ BEGIN
    IF tenant IS DISTINCT FROM NULLIF(current_setting('app.tenant_id', true), '')::uuid THEN
      RAISE EXCEPTION 'The transaction is bound to another tenant.' USING ERRCODE = 'insufficient_privilege';
    END IF;
    UPDATE agent.runs r SET records_changed = r.records_changed + records
      WHERE r.tenant_id = tenant AND r.run_id = run AND r.status = 'RUNNING' AND r.expires_at > clock_timestamp()
        AND r.records_changed + records <= r.max_records;
    IF FOUND THEN RETURN 'RUNNING'; END IF;
    IF EXISTS (SELECT FROM agent.runs r WHERE r.tenant_id = tenant AND r.run_id = run
        AND r.status = 'RUNNING' AND r.expires_at > clock_timestamp()) THEN
      RETURN 'AGENT_BUDGET_EXCEEDED';
    END IF;
    RETURN 'RUN_NOT_ACTIVE';
  END $$;
REVOKE EXECUTE ON FUNCTION agent.continue_run FROM PUBLIC;
