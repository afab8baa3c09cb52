-- Which indexes the tables of a tenant have: those that the platform of this generation gives to its configuration. 0: some
-- may be missing that this version works with; a metadata process makes them, without keeping writers out.
ALTER TABLE metadata.tenants ADD COLUMN index_generation integer NOT NULL DEFAULT 0;
