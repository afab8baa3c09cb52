-- What an agent run did is found by the run, and what one of its requests changed by the request. Only entries of runs
-- are in these indexes: other writes do not pay for them.
CREATE INDEX _audit_run ON _audit (agent_run_id, audit_id) WHERE agent_run_id IS NOT NULL;
CREATE INDEX _audit_run_request ON _audit (agent_run_id, request_id) WHERE agent_run_id IS NOT NULL;
