-- The audit trail becomes a log that can be read on from any moment, and a chain that nobody can change unseen.

ALTER TABLE _audit
  -- The transaction that wrote the row. A reader who kept its snapshot finds exactly what it could not see yet, in
  -- whatever order transactions committed.
  ADD COLUMN tx             xid8 NOT NULL DEFAULT pg_current_xact_id(),
  -- Set on committed changes of a record, and on nothing else.
  ADD COLUMN kind           text CHECK (kind IN ('create', 'update', 'delete', 'restore', 'transition')),
  ADD COLUMN record_version integer;
CREATE INDEX _audit_tx ON _audit (tx, object);
CREATE INDEX _audit_record ON _audit (record_id, audit_id);
CREATE INDEX _audit_user ON _audit (user_id, audit_id);

-- hash = SHA-256(prev_hash ‖ position ‖ digest of the row); docs/reference/audit.md says it in full.
CREATE TABLE _audit_chain (
  position  bigint PRIMARY KEY,
  audit_id  uuid   NOT NULL UNIQUE,
  prev_hash bytea  NOT NULL,
  hash      bytea  NOT NULL
);

-- Where the chain ends, and where it begins since the oldest rows were removed; exactly one row.
CREATE TABLE _audit_head (
  singleton       boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  position        bigint  NOT NULL DEFAULT 0,
  hash            bytea   NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
  anchor_position bigint  NOT NULL DEFAULT 0,
  anchor_hash     bytea   NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
  -- Every row that this snapshot can see is in the chain; null: none is known to be.
  snapshot        pg_snapshot,
  -- The database server that the snapshot belongs to.
  server          text
);
INSERT INTO _audit_head DEFAULT VALUES;

-- The chain grows and never changes under the tenant's role, as the rows it is about.
DO $$
BEGIN
  EXECUTE format('GRANT SELECT, INSERT ON _audit_chain TO %I', current_schema());
  EXECUTE format('GRANT SELECT, UPDATE ON _audit_head TO %I', current_schema());
END $$;
