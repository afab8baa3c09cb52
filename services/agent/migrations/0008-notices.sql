-- Whom an approval waits for hears of it by mail: the row itself is the job. Null: everybody was written to.
ALTER TABLE agent.approvals ADD COLUMN notice text;
ALTER TABLE agent.approvals ALTER COLUMN notice SET DEFAULT 'asked';
CREATE INDEX approvals_notice ON agent.approvals (tenant_id, approval_id) WHERE notice IS NOT NULL AND status = 'PENDING';
