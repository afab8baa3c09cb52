-- Which version of a tenant's configuration was compiled by which version of the compiler (services/metadata/compile.ts).
-- Processes of the previous version name neither, so that what they compile, which lacks what they do not know, is found and
-- compiled again. What is there lacks nothing.
ALTER TABLE metadata.tenants
  ADD COLUMN compiled_version integer NOT NULL DEFAULT 0,
  ADD COLUMN compiler         integer NOT NULL DEFAULT 0;
UPDATE metadata.tenants SET compiled_version = metadata_version, compiler = 1;
