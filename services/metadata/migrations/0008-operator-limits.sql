-- What the operator allows a tenant instead of the limits of the deployment; null: the deployment's own.
ALTER TABLE metadata.tenants
  ADD COLUMN operator_limits jsonb NOT NULL
  DEFAULT '{"connection": null, "tenant": null, "daily": null, "concurrency": null}';
