-- Processes of several versions work on the same database during a roll-out. A worker of an older one does not know what
-- a newer one has accepted: cancellations, types of components, deletions. So deployments are taken and ended only by
-- workers of this generation or, after a later migration has replaced the function, of that one: an update of another is
-- skipped, and its worker finds nothing to take, or the lease lost.
ALTER TABLE metadata.deployments
  -- Who holds the lease: '<generation of the worker>:<lease_token>'.
  ADD worker text;

CREATE FUNCTION metadata.fence_workers() RETURNS trigger
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
  AS $$ DECLARE
    generation text := '1:';
  BEGIN
    -- The owner of the database mends by hand what it wants to.
    IF NOT row_security_active(TG_RELID) THEN RETURN NEW; END IF;
    -- An older worker sets a token of its own and leaves the name of who had it before.
    IF NEW.lease_token IS DISTINCT FROM OLD.lease_token AND NEW.lease_token IS NOT NULL
      AND (NEW.worker = generation || NEW.lease_token) IS NOT TRUE THEN RETURN NULL; END IF;
    IF OLD.status = 'CANCELING' AND NEW.status NOT IN ('CANCELING', 'CANCELED') THEN RETURN NULL; END IF;
    IF NEW.status <> OLD.status AND NEW.status IN ('APPLYING', 'SUCCEEDED', 'FAILED')
      AND (OLD.worker = generation || OLD.lease_token) IS NOT TRUE THEN RETURN NULL; END IF;
    RETURN NEW;
  END $$;
CREATE TRIGGER fence_workers BEFORE UPDATE OF status, lease_token ON metadata.deployments
  FOR EACH ROW EXECUTE FUNCTION metadata.fence_workers();

-- Validations whose files an older version has taken away cannot be deployed any more.
UPDATE metadata.deployments SET forgotten = true WHERE kind = 'validation' AND NOT forgotten AND files::text = '{}';
