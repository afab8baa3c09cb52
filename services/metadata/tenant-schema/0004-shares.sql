-- A principal has one share of a record: sharing again replaces what was given. `tx` is the transaction that first gave it,
-- so that who asks for changes since a moment hears of records that became visible.
ALTER TABLE _shares ADD COLUMN tx xid8 NOT NULL DEFAULT pg_current_xact_id();
DROP INDEX _shares_record;
CREATE UNIQUE INDEX _shares_once ON _shares (record_id, principal_type, principal_id, object);
CREATE INDEX _shares_tx ON _shares (object, tx);

-- Shares that were taken back, kept as long as changes can be asked for and a day more: who lost sight of a record by it
-- is told.
CREATE TABLE _revoked_shares (
  share_id       uuid           PRIMARY KEY,
  object         text           NOT NULL,
  record_id      uuid           NOT NULL,
  principal_type text           NOT NULL,
  principal_id   text           NOT NULL,
  access         text           NOT NULL,
  reason         text,
  created_at     timestamptz(3) NOT NULL,
  created_by_id  uuid           NOT NULL,
  revoked_at     timestamptz(3) NOT NULL DEFAULT now(),
  revoked_by_id  uuid           NOT NULL,
  kept_until     timestamptz(3) NOT NULL DEFAULT now() + interval '8 days',
  -- The transaction that gave it.
  granted_tx     xid8           NOT NULL,
  tx             xid8           NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX _revoked_shares_tx ON _revoked_shares (object, tx);
CREATE INDEX _revoked_shares_until ON _revoked_shares USING brin (kept_until);

-- Written with the share that goes, removed when its time is over.
DO $$
BEGIN
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON _revoked_shares TO %I', current_schema());
END $$;
