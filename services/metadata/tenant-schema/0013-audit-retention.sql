-- The tenant's role cannot remove audit rows. This function removes the oldest of the chain, as the owner of the schema,
-- and refuses while one of them has not reached its retention (LIMITS.audit_retention_days). What it removes last becomes
-- the anchor of the rest.
DO $do$ BEGIN
  EXECUTE format($create$
    CREATE FUNCTION _remove_audit(up_to bigint) RETURNS void
      LANGUAGE plpgsql SECURITY DEFINER SET search_path = %I, pg_temp
      AS $$ BEGIN
        IF EXISTS (
          SELECT FROM _audit_chain link JOIN _audit audit ON audit.audit_id = link.audit_id
          WHERE link.position <= up_to AND audit.at >= now() - interval '730 days')
        THEN
          RAISE EXCEPTION 'An audit row has not reached its retention.';
        END IF;
        UPDATE _audit_head SET anchor_position = link.position, anchor_hash = link.hash
          FROM _audit_chain link WHERE link.position = up_to;
        DELETE FROM _audit audit USING _audit_chain link
          WHERE audit.audit_id = link.audit_id AND link.position <= up_to;
        DELETE FROM _audit_chain WHERE position <= up_to;
      END $$ $create$, current_schema());
END $do$;
