-- Which version the schema of a tenant has: asked by processes of data that lack something in it.
CREATE FUNCTION metadata.tenant_schema_version(tenant uuid) RETURNS integer
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS 'SELECT tenant_schema_version FROM metadata.tenants WHERE id = tenant';
REVOKE EXECUTE ON FUNCTION metadata.tenant_schema_version FROM PUBLIC;
