-- Ends an approval whose request would do something else by now than what people approved. For the roles of services, in a
-- transaction that is bound to the tenant.
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
REVOKE EXECUTE ON FUNCTION agent.end_stale_approval FROM PUBLIC;

COMMENT ON COLUMN agent.approvals.basis IS 'Effects of the dry run, for which alone the approval is good.';

-- An approval that was canceled while its run goes on was found stale.
CREATE OR REPLACE FUNCTION agent.consume_approval(tenant uuid, approval uuid, run uuid, request_fingerprint text, request text)
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
