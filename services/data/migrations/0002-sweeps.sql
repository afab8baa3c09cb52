-- Periodic work that one process at a time takes on, and when it is due again.
CREATE TABLE data.sweeps (
  name   text        PRIMARY KEY,
  due_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO data.sweeps (name) VALUES ('tenants');
