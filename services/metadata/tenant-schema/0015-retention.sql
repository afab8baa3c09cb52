-- Expired rows are found by B-tree indexes. A block range widens when the pages of removed rows are used again and never
-- narrows: after a day every range matched, and each search read the whole table. The index of a large table is made
-- next to its writers (services/metadata/indexes.ts).
DROP INDEX _idempotency_expires_at, _confirmations_expires_at, _revoked_shares_until;
DO $$
DECLARE
  wanted record;
BEGIN
  FOR wanted IN
    SELECT * FROM (VALUES ('_idempotency', 'expires_at'), ('_confirmations', 'expires_at'), ('_revoked_shares', 'kept_until'))
      AS expiring (name, moment)
  LOOP
    IF pg_relation_size(wanted.name::regclass) < 64 * 1024 * 1024 THEN
      EXECUTE format('CREATE INDEX %I ON %I (%I)', wanted.name || '_expiry', wanted.name, wanted.moment);
    END IF;
  END LOOP;
END $$;

-- Keys are stored with their outcome by one statement: room for a second version of each row is not needed.
ALTER TABLE _idempotency RESET (fillfactor);

ALTER TABLE _state ADD COLUMN IF NOT EXISTS audit_days integer NOT NULL DEFAULT 730;

-- The history of a record goes with the audit entry of the same change.
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
            AND audit.audit_id = link.audit_id AND link.position <= up_to;
        DELETE FROM _audit audit USING _audit_chain link
          WHERE audit.audit_id = link.audit_id AND link.position <= up_to;
        DELETE FROM _audit_chain WHERE position <= up_to;
      END $$ $create$, current_schema());
END $do$;
