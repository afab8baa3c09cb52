-- The chain covers the history of records, too. `form` names the text over which a link was sealed: 1, the audit row
-- alone; 2, with the history rows of the same change (docs/reference/audit.md). A data service of the version before
-- goes on with form 1 during an upgrade.
ALTER TABLE _audit_chain ADD COLUMN form smallint NOT NULL DEFAULT 1;

-- Removes the history that was sealed with an audit row, and no other: the columns are those of the seal.
DO $do$ BEGIN
  EXECUTE format($create$
    CREATE OR REPLACE FUNCTION _remove_audit(up_to bigint) RETURNS void
      LANGUAGE plpgsql SECURITY DEFINER SET search_path = %I, pg_temp
      AS $$ BEGIN
        IF EXISTS (
          SELECT FROM _audit_chain link JOIN _audit audit ON audit.audit_id = link.audit_id
          WHERE link.position <= up_to
            AND audit.at >= now() - make_interval(days => (SELECT greatest(audit_days, 730) FROM _state)))
        THEN
          RAISE EXCEPTION 'An audit row has not reached its retention.';
        END IF;
        UPDATE _audit_head SET anchor_position = link.position, anchor_hash = link.hash
          FROM _audit_chain link WHERE link.position = up_to;
        DELETE FROM _history history USING _audit audit, _audit_chain link
          WHERE history.record_id = audit.record_id AND history.record_version = audit.record_version
            AND history.request_id = audit.request_id
            AND audit.audit_id = link.audit_id AND link.position <= up_to;
        DELETE FROM _audit audit USING _audit_chain link
          WHERE audit.audit_id = link.audit_id AND link.position <= up_to;
        DELETE FROM _audit_chain WHERE position <= up_to;
      END $$ $create$, current_schema());
END $do$;
