-- The stretch of time in which positions in the change feed mean the same: it ends when the database turns out to be a copy
-- of the one it was made for (restored, recovered to a point in time, failed over). Exactly one row.
CREATE TABLE _epoch (
  singleton boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
  -- Carried by every cursor of changes; nothing is read into it.
  epoch     text        NOT NULL,
  -- The database it was made for: server / database / this table / timeline.
  place     text        NOT NULL,
  -- What the columns `tx` hold is the number of a transaction plus this. In a dump that is restored elsewhere, entries have
  -- numbers of another server; those that follow are above all of them.
  tx_offset bigint      NOT NULL DEFAULT 0,
  begun_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Cursors that were issued before this table was there hold the server and its timeline.
-- When it began is not known: a database may have been restored since, before this table was there.
INSERT INTO _epoch (epoch, place, begun_at)
  SELECT system.system_identifier || '/' || checkpoint.timeline_id,
    concat_ws('/', system.system_identifier, database.oid, '_epoch'::regclass::oid,
      left(pg_walfile_name(pg_current_wal_lsn()), 8)),
    '-infinity'
  FROM pg_control_system() system, pg_control_checkpoint() checkpoint, pg_database database
  WHERE database.datname = current_database();

-- Until now a chain that was sealed on another server was told by this column.
UPDATE _audit_head SET snapshot = NULL FROM _epoch WHERE server IS DISTINCT FROM epoch;

-- Begins a new epoch in `new_place`, unless somebody else has done so since `seen_epoch` was read. Entries whose numbers are
-- not behind the present (they were restored from another server) move it ahead of them: a change of defaults, which waits
-- for writers in flight and rewrites no row. Takes the head of the chain before the tables, as sealing does.
DO $do$ BEGIN
  EXECUTE format($create$
    CREATE FUNCTION _renew_epoch(seen_epoch text, new_place text) RETURNS boolean
      LANGUAGE plpgsql SECURITY DEFINER SET search_path = %I, pg_temp
      AS $$ DECLARE
        known _epoch;
        sealed bigint;
        highest bigint;
        present bigint;
        is_copy boolean;
        changed text;
      BEGIN
        SELECT * INTO STRICT known FROM _epoch FOR UPDATE;
        IF known.epoch <> seen_epoch THEN
          RETURN false;
        END IF;
        SELECT coalesce(pg_snapshot_xmax(snapshot)::text::bigint - 1, 0) INTO STRICT sealed FROM _audit_head FOR UPDATE;
        -- Not only another timeline of the same files.
        is_copy := regexp_replace(known.place, '/[^/]*$', '') <> regexp_replace(new_place, '/[^/]*$', '');
        present := (CASE WHEN is_copy THEN pg_snapshot_xmin(pg_current_snapshot())
          ELSE pg_snapshot_xmax(pg_current_snapshot()) END)::text::bigint + known.tx_offset;
        SELECT greatest(sealed, max(tx)) INTO highest
          FROM (SELECT tx::text::bigint FROM _audit ORDER BY _audit.tx DESC LIMIT 1) last;
        IF highest >= present THEN
          is_copy := true;
          LOCK TABLE _audit, _shares, _revoked_shares IN ACCESS EXCLUSIVE MODE;
          SELECT max(tx) INTO known.tx_offset FROM (
            SELECT sealed AS tx
            UNION ALL (SELECT tx::text::bigint FROM _audit ORDER BY _audit.tx DESC LIMIT 1)
            UNION ALL SELECT max(tx::text::bigint) FROM _shares
            UNION ALL SELECT max(tx::text::bigint) FROM _revoked_shares) restored;
          FOREACH changed IN ARRAY ARRAY['_audit', '_shares', '_revoked_shares'] LOOP
            EXECUTE format(
              'ALTER TABLE %%I ALTER tx SET DEFAULT (pg_current_xact_id()::text::bigint + %%s)::text::xid8',
              changed, known.tx_offset);
          END LOOP;
        END IF;
        UPDATE _epoch SET epoch = gen_random_uuid()::text, place = new_place, tx_offset = known.tx_offset,
          begun_at = clock_timestamp();
        -- What was written before this was noticed may have numbers that the snapshot takes for sealed.
        IF is_copy THEN
          UPDATE _audit_head SET snapshot = NULL, server = _epoch.epoch FROM _epoch;
        END IF;
        RETURN true;
      END $$ $create$, current_schema());
END $do$;
REVOKE EXECUTE ON FUNCTION _renew_epoch FROM public;

-- The tenant's role reads it, and changes it by that function alone.
DO $$
BEGIN
  EXECUTE format('GRANT SELECT ON _epoch TO %I', current_schema());
  EXECUTE format('GRANT EXECUTE ON FUNCTION _renew_epoch TO %I', current_schema());
END $$;
