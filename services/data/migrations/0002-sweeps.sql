-- Periodic work that one process at a time takes on, and when it is due again. Nothing reads it any more, for these jobs
-- are in pg-boss (mixins/jobs): it stays for processes of the previous version; the next version drops it.
CREATE TABLE data.sweeps (
  name   text        PRIMARY KEY,
  due_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO data.sweeps (name) VALUES ('tenants');
