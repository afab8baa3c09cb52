-- A changed address counts once both have confirmed it: its user at the new address (pending_confirmed_at) and at the
-- earlier one (pending_agreed_at), or when nobody has objected there for seven days (docs/reference/mail.md).
ALTER TABLE auth.credentials ADD COLUMN pending_since timestamptz, ADD COLUMN pending_confirmed_at timestamptz,
  ADD COLUMN pending_agreed_at timestamptz;
UPDATE auth.credentials SET pending_since = now() WHERE pending_email IS NOT NULL;
CREATE INDEX credentials_confirmed ON auth.credentials (pending_since) WHERE pending_confirmed_at IS NOT NULL;
