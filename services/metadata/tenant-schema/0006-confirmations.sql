-- Duplicate confirmations that were used, until they would have expired anyway: each is good for one stored write. The
-- row is written in the transaction of that write.
CREATE TABLE _confirmations (
  confirmation_id uuid        PRIMARY KEY,
  expires_at      timestamptz NOT NULL
);
CREATE INDEX _confirmations_expires_at ON _confirmations USING brin (expires_at);

DO $$
BEGIN
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON _confirmations TO %I', current_schema());
END $$;
