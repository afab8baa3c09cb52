-- From where a user has signed in with the right password: browsers (the hash of a cookie) and networks. What comes from
-- there has a count of failures of its own, so that guesses of others keep nobody out.
CREATE TABLE auth.known_origins (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  origin bytea NOT NULL,
  last_used_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, user_id, origin)
);
CREATE INDEX known_origins_used ON auth.known_origins (last_used_at);
ALTER TABLE auth.known_origins ENABLE ROW LEVEL SECURITY;
ALTER TABLE auth.known_origins FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON auth.known_origins
  USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::uuid);
CREATE POLICY directory ON auth.known_origins TO CURRENT_USER USING (true) WITH CHECK (true);
