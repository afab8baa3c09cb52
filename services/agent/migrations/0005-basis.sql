-- What the dry run of an upsert has found under its key (a record in a version, or nothing), for which alone the approval is
-- good; NULL: the operation does not depend on it.
ALTER TABLE agent.approvals ADD COLUMN basis text;
