-- The processes of metadata find the deployments that nobody works on, of all tenants: the owner and the login of the
-- service look across.
CREATE POLICY directory ON metadata.deployments TO CURRENT_USER USING (true) WITH CHECK (true);
