-- The primary key serves the same.
DROP INDEX agent.approvals_order;
-- The inbox of people who oversee no agents.
CREATE INDEX approvals_user ON agent.approvals (tenant_id, user_id, approval_id);
-- Lists of active runs; how many a tenant has is counted under a lock whenever one begins.
CREATE INDEX runs_running ON agent.runs (tenant_id, run_id) WHERE status = 'RUNNING';
-- Upkeep pages over the active runs of all tenants.
CREATE INDEX runs_upkeep ON agent.runs (run_id) WHERE status = 'RUNNING';
