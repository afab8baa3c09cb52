-- What a request means, however it is spelled (SHA-256, hex): a rejection holds for all of its spellings. NULL: it was asked for
-- before there was this column, or is not known.
ALTER TABLE agent.approvals ADD COLUMN meaning text;
CREATE INDEX approvals_rejected ON agent.approvals (tenant_id, run_id, meaning) WHERE status = 'REJECTED';
