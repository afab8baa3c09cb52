-- Whether the administrators of a tenant have manageAccess; those of tenants from before there was such a permission get it
-- at the start of a metadata process.
ALTER TABLE metadata.tenants ADD COLUMN access_managed boolean NOT NULL DEFAULT false;
