-- What a caller who is not signed in made, by network: its number is bounded. Null: made for a user, or by a client.
ALTER TABLE auth.artifacts ADD COLUMN network text;
CREATE INDEX artifacts_network ON auth.artifacts (network, model, expires_at) WHERE network IS NOT NULL;

-- When a device asked for its tokens last, and the seconds that it must leave between two questions (RFC 8628).
ALTER TABLE auth.artifacts ADD COLUMN polled_at timestamptz, ADD COLUMN poll_seconds integer;
