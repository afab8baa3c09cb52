-- System permissions that the user held when the deployment was accepted: nobody gives away what they do not hold.
ALTER TABLE metadata.deployments ADD COLUMN created_by_permissions text[] NOT NULL DEFAULT '{}';
