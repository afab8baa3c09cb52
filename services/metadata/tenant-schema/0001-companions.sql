-- The schema of a tenant beside the tables of its objects: the companions of record writes. Runs as the owner of the schema with
-- the search_path set to it, before the first object exists. Names start with an underscore, which no apiName can.
--
-- Columns with fixed sets of words have no CHECK on tables that every write inserts into: PostgreSQL parses and plans the CHECKs
-- of a table in every such statement, a twelfth of the database's time for a write. The words are constants of our statements.

-- The versions that every statement on records is checked against; exactly one row.
CREATE TABLE _state (
  singleton        boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  metadata_version integer NOT NULL DEFAULT 0,
  -- Incremented by every change of access: profile, role, permission sets or activity of a user.
  access_version   integer NOT NULL DEFAULT 0,
  -- Retention of the audit trail in days, from the tenant's settings; at least two years.
  audit_days       integer NOT NULL DEFAULT 730
);
INSERT INTO _state DEFAULT VALUES;

-- Idempotency keys with the outcome of their mutation, in one namespace for all operations.
CREATE TABLE _idempotency (
  client_id    text        NOT NULL,
  user_id      uuid        NOT NULL,
  key          text        NOT NULL,
  fingerprint  text        NOT NULL,
  -- RESERVED, COMPLETED or FAILED.
  state        text        NOT NULL,
  request_id   text        NOT NULL,
  status       smallint,
  headers      jsonb,
  body         text,
  created_at   timestamptz NOT NULL DEFAULT now(),
  completed_at timestamptz,
  expires_at   timestamptz NOT NULL DEFAULT now() + interval '24 hours',
  PRIMARY KEY (client_id, user_id, key)
);
-- A B-tree on the expiry of rows, here and below: the ranges of a BRIN index widen when pages of removed rows are reused, and
-- after a day every search would read the whole table.
CREATE INDEX _idempotency_expiry ON _idempotency (expires_at);

-- Used duplicate confirmations until they would have expired: each allows one write, in whose transaction its row is
-- inserted.
CREATE TABLE _confirmations (
  confirmation_id uuid        PRIMARY KEY,
  expires_at      timestamptz NOT NULL
);
CREATE INDEX _confirmations_expiry ON _confirmations (expires_at);

-- Field changes of records, for readers with audit:read.
CREATE TABLE _history (
  change_id      uuid           NOT NULL,
  at             timestamptz(3) NOT NULL DEFAULT now(),
  object         text           NOT NULL,
  record_id      uuid           NOT NULL,
  record_version integer        NOT NULL,
  -- create, update, delete, restore or transition.
  operation      text           NOT NULL,
  user_id        uuid           NOT NULL,
  client_id      text           NOT NULL,
  agent_run_id   uuid,
  request_id     text           NOT NULL,
  -- {field: {from, to}}
  changes        jsonb          NOT NULL,
  PRIMARY KEY (record_id, change_id)
);

-- Every mutation and every denied one. Append-only, sealed in batches by a background job.
CREATE TABLE _audit (
  audit_id        uuid           PRIMARY KEY,
  at              timestamptz(3) NOT NULL DEFAULT now(),
  user_id         uuid,
  client_id       text,
  agent_run_id    uuid,
  channel         text           NOT NULL,
  operation_id    text           NOT NULL,
  -- committed, denied or failed.
  outcome         text           NOT NULL,
  code            text,
  request_id      text           NOT NULL,
  idempotency_key text,
  object          text,
  record_id       uuid,
  changes         jsonb,
  ip              text,
  -- The transaction that wrote the row. A reader that keeps its snapshot finds exactly the rows that it could not see before,
  -- in whatever order transactions commit.
  tx              xid8           NOT NULL DEFAULT pg_current_xact_id(),
  -- Only of committed changes of a record: create, update, delete, restore or transition.
  kind            text,
  record_version  integer
);
CREATE INDEX _audit_tx ON _audit (tx, object);
CREATE INDEX _audit_record ON _audit (record_id, audit_id);
CREATE INDEX _audit_user ON _audit (user_id, audit_id);
-- The changes of an agent run, and of one of its requests. Writes outside of runs do not pay for these.
CREATE INDEX _audit_run ON _audit (agent_run_id, audit_id) WHERE agent_run_id IS NOT NULL;
CREATE INDEX _audit_run_request ON _audit (agent_run_id, request_id) WHERE agent_run_id IS NOT NULL;

-- The chain that seals the audit trail: hash = SHA-256(prev_hash ‖ position ‖ digest of the row), as specified in
-- docs/reference/audit.md.
CREATE TABLE _audit_chain (
  position  bigint   PRIMARY KEY,
  audit_id  uuid     NOT NULL UNIQUE,
  prev_hash bytea    NOT NULL,
  hash      bytea    NOT NULL,
  -- Names the text that the link seals.
  form      smallint NOT NULL DEFAULT 1
);

-- The end of the chain, and its beginning after the removal of the oldest rows; exactly one row.
CREATE TABLE _audit_head (
  singleton       boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  position        bigint  NOT NULL DEFAULT 0,
  hash            bytea   NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
  anchor_position bigint  NOT NULL DEFAULT 0,
  anchor_hash     bytea   NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
  -- The chain contains every row that this snapshot can see; null: not known.
  snapshot        pg_snapshot,
  -- The epoch that the snapshot belongs to.
  server          text
);
INSERT INTO _audit_head DEFAULT VALUES;

-- Removes the oldest rows of the chain up to a position, and the history sealed with them (the columns are those of the seal).
-- The tenant's role cannot delete audit rows; this runs as the owner of the schema, and refuses rows within their retention.
-- The last removed link becomes the anchor of the rest.
DO $do$ BEGIN
  EXECUTE format($create$
    CREATE FUNCTION _remove_audit(up_to bigint) RETURNS void
      LANGUAGE plpgsql SECURITY DEFINER SET search_path = %I, pg_temp
      AS $$ BEGIN
        IF EXISTS (
          SELECT FROM _audit_chain link JOIN _audit audit ON audit.audit_id = link.audit_id
          WHERE link.position <= up_to
            AND audit.at >= now() - make_interval(days => (SELECT greatest(audit_days, 730) FROM _state)))
        THEN
          RAISE EXCEPTION 'An audit row has not reached its retention.';
        END IF;
        UPDATE _audit_head SET anchor_position = link.position, anchor_hash = link.hash
          FROM _audit_chain link WHERE link.position = up_to;
        DELETE FROM _history history USING _audit audit, _audit_chain link
          WHERE history.record_id = audit.record_id AND history.record_version = audit.record_version
            AND history.request_id = audit.request_id
            AND audit.audit_id = link.audit_id AND link.position <= up_to;
        DELETE FROM _audit audit USING _audit_chain link
          WHERE audit.audit_id = link.audit_id AND link.position <= up_to;
        DELETE FROM _audit_chain WHERE position <= up_to;
      END $$ $create$, current_schema());
END $do$;

-- Events: written in the transaction of what they tell about, and numbered by the relay of the service events once they are
-- committed. Readers of events see numbered rows only, so that no smaller number appears later, and numbers have no holes.
CREATE TABLE _outbox (
  outbox_id      bigint         GENERATED ALWAYS AS IDENTITY,
  at             timestamptz(3) NOT NULL DEFAULT now(),
  type           text           NOT NULL,
  object         text,
  record_id      uuid,
  record_version integer,
  user_id        uuid,
  client_id      text,
  agent_run_id   uuid,
  request_id     text,
  data           jsonb          NOT NULL,
  sequence       bigint
);
-- No primary key: a row is in one of these indexes at a time, so a write pays for one of them. Statements repeat the conditions.
CREATE INDEX _outbox_new ON _outbox (outbox_id) WHERE sequence IS NULL AND type NOT IN ('auth.user.sync', 'notifications.notification.requested');
CREATE UNIQUE INDEX _outbox_sequence ON _outbox (sequence) WHERE sequence IS NOT NULL;
-- After each change of a user, the events that auth has not received yet.
CREATE INDEX _outbox_user_sync ON _outbox (outbox_id) WHERE type = 'auth.user.sync';
-- Notifications that were asked for and are not made yet.
CREATE INDEX _outbox_notices ON _outbox (outbox_id) WHERE type = 'notifications.notification.requested';

-- The number of the last event; exactly one row, which the relay locks while it numbers.
CREATE TABLE _event_head (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  sequence  bigint  NOT NULL DEFAULT 0
);
INSERT INTO _event_head DEFAULT VALUES;

-- Deleted records, restorable for 30 days; tables of objects and their indexes hold only live records.
CREATE TABLE _recycle_bin (
  object           text           NOT NULL,
  record_id        uuid           NOT NULL,
  -- The record with whose deletion this one was deleted; its own id for that record.
  root_id          uuid           NOT NULL,
  record           jsonb          NOT NULL,
  record_version   integer        NOT NULL,
  deleted_at       timestamptz(3) NOT NULL DEFAULT now(),
  deleted_by_id    uuid           NOT NULL,
  restorable_until timestamptz(3) NOT NULL DEFAULT now() + interval '30 days',
  PRIMARY KEY (object, record_id)
);
CREATE INDEX _recycle_bin_root ON _recycle_bin (root_id);
CREATE INDEX _recycle_bin_until ON _recycle_bin (restorable_until);

-- Manual shares of single records. A principal has one share of a record, which sharing again replaces.
CREATE TABLE _shares (
  share_id       uuid           PRIMARY KEY,
  object         text           NOT NULL,
  record_id      uuid           NOT NULL,
  principal_type text           NOT NULL CHECK (principal_type IN ('user', 'role', 'group')),
  principal_id   text           NOT NULL,
  access         text           NOT NULL CHECK (access IN ('read', 'edit')),
  reason         text,
  created_at     timestamptz(3) NOT NULL DEFAULT now(),
  created_by_id  uuid           NOT NULL,
  -- The transaction that first granted it: the change feed reports records that became visible.
  tx             xid8           NOT NULL DEFAULT pg_current_xact_id()
);
CREATE UNIQUE INDEX _shares_once ON _shares (record_id, principal_type, principal_id, object);
CREATE INDEX _shares_principal ON _shares (principal_type, principal_id, object);
CREATE INDEX _shares_tx ON _shares (object, tx);

-- Revoked shares, retained a day longer than positions in the change feed, which reports the records that became invisible.
CREATE TABLE _revoked_shares (
  share_id       uuid           PRIMARY KEY,
  object         text           NOT NULL,
  record_id      uuid           NOT NULL,
  principal_type text           NOT NULL,
  principal_id   text           NOT NULL,
  access         text           NOT NULL,
  reason         text,
  created_at     timestamptz(3) NOT NULL,
  created_by_id  uuid           NOT NULL,
  revoked_at     timestamptz(3) NOT NULL DEFAULT now(),
  revoked_by_id  uuid           NOT NULL,
  kept_until     timestamptz(3) NOT NULL DEFAULT now() + interval '8 days',
  -- The transaction that granted it.
  granted_tx     xid8           NOT NULL,
  tx             xid8           NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX _revoked_shares_tx ON _revoked_shares (object, tx);
CREATE INDEX _revoked_shares_expiry ON _revoked_shares (kept_until);

-- Ids that provisioning clients (SCIM) give to users and groups, separate for each client. `resource_id` is the id of a user or
-- the apiName of a permission set.
CREATE TABLE _external_ids (
  client_id   text NOT NULL,
  resource    text NOT NULL CHECK (resource IN ('User', 'Group')),
  resource_id text NOT NULL,
  external_id text NOT NULL,
  PRIMARY KEY (client_id, resource, resource_id)
);
CREATE INDEX _external_ids_by_id ON _external_ids (client_id, resource, external_id);

-- Users deleted by a provisioning client: they are deactivated, and hidden from provisioning until they are active again.
CREATE TABLE _deprovisioned_users (
  user_id uuid        PRIMARY KEY,
  at      timestamptz NOT NULL DEFAULT now()
);

-- The epoch of positions in the change feed, which ends when the database turns out to be a copy of the one that the epoch was
-- made for: restored, recovered to a point in time, failed over (docs/decisions/epochs.md). Exactly one row.
CREATE TABLE _epoch (
  singleton boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
  -- Part of every cursor of changes; an opaque value.
  epoch     text        NOT NULL,
  -- The database that it was made for: server / database / this table / timeline.
  place     text        NOT NULL,
  -- Columns `tx` hold the number of a transaction plus this. A restored dump contains numbers of another server; later ones
  -- are above all of them.
  tx_offset bigint      NOT NULL DEFAULT 0,
  -- Of the first epoch: -infinity.
  begun_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO _epoch (epoch, place, begun_at)
  SELECT gen_random_uuid()::text,
    concat_ws('/', system.system_identifier, database.oid, '_epoch'::regclass::oid,
      left(pg_walfile_name(pg_current_wal_lsn()), 8)),
    '-infinity'
  FROM pg_control_system() system, pg_database database
  WHERE database.datname = current_database();

-- Starts a new epoch in `new_place`, unless another process has done so since `seen_epoch` was read. When numbers of restored
-- entries are not below the present one, later ones get an offset: a change of defaults, which waits for current writers and
-- rewrites no row. Locks the head of the chain before the tables, as sealing does.
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
        -- Another database, not only another timeline of it.
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
        -- Rows written since then may have numbers that the snapshot counts as sealed.
        IF is_copy THEN
          UPDATE _audit_head SET snapshot = NULL, server = _epoch.epoch FROM _epoch;
        END IF;
        RETURN true;
      END $$ $create$, current_schema());
END $do$;
REVOKE EXECUTE ON FUNCTION _renew_epoch FROM public;

-- Writes the trail of parents whose rollups follow a change of a child: the same rows as for a write of the parent, in the name
-- of the user who changed the child. `changed` is [{id, version, changes}], `actor` the transaction-local setting app.actor of
-- the data service. A dry run leaves no trail: it adds the parents to the transaction-local setting app.rollup_trials as
-- [{object, id, fields}]. An event names the change; its field changes are in the audit trail only.
CREATE FUNCTION _rollup_trail(object_name text, keeps_history boolean, tells_events boolean, changed jsonb, actor jsonb)
  RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  item jsonb;
  stamp text;
  -- Follows the records that the request itself changes and the parents reported before.
  position integer := coalesce(nullif(current_setting('app.rollup_events', true), '')::integer,
    coalesce((actor ->> 'transactionSize')::integer, 1));
BEGIN
  IF (actor ->> 'checkOnly')::boolean THEN
    PERFORM set_config('app.rollup_trials', (coalesce(nullif(current_setting('app.rollup_trials', true), '')::jsonb, '[]')
      || (SELECT jsonb_agg(jsonb_build_object('object', object_name, 'id', x -> 'id',
            'fields', (SELECT jsonb_agg(k) FROM jsonb_object_keys(x -> 'changes') k))) FROM jsonb_array_elements(changed) x))::text, true);
    RETURN;
  END IF;
  FOR item IN SELECT * FROM jsonb_array_elements(changed) LOOP
    -- A UUID of version 7: its first half is the time.
    stamp := lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0');
    INSERT INTO _audit (audit_id, user_id, client_id, agent_run_id, channel, operation_id, outcome, request_id,
        idempotency_key, object, record_id, kind, record_version, changes, ip)
      VALUES ((stamp || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid,
        (actor ->> 'userId')::uuid, actor ->> 'clientId', (actor ->> 'agentRunId')::uuid, actor ->> 'channel',
        actor ->> 'operationId', 'committed', actor ->> 'requestId', actor ->> 'key', object_name,
        (item ->> 'id')::uuid, 'update', (item ->> 'version')::integer, item -> 'changes', actor ->> 'ip');
    IF keeps_history THEN
      INSERT INTO _history (change_id, object, record_id, record_version, operation, user_id, client_id, agent_run_id,
          request_id, changes)
        VALUES ((stamp || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid,
          object_name, (item ->> 'id')::uuid, (item ->> 'version')::integer, 'update', (actor ->> 'userId')::uuid,
          actor ->> 'clientId', (actor ->> 'agentRunId')::uuid, actor ->> 'requestId', item -> 'changes');
    END IF;
    IF tells_events THEN
      INSERT INTO _outbox (type, object, record_id, record_version, user_id, client_id, agent_run_id, request_id, data)
        VALUES ('data.record.updated', object_name, (item ->> 'id')::uuid, (item ->> 'version')::integer,
          (actor ->> 'userId')::uuid, actor ->> 'clientId', (actor ->> 'agentRunId')::uuid, actor ->> 'requestId',
          jsonb_build_object('transactionId', actor ->> 'transactionId',
            'transactionIndex', position, 'transactionSize', (actor ->> 'transactionSize')::integer));
      position := position + 1;
    END IF;
  END LOOP;
  PERFORM set_config('app.rollup_events', position::text, true);
END $$;

-- The tenant's role reads and writes companions. Audit trail, chain and history are append-only, and the epoch changes only
-- through its function.
DO $$
DECLARE
  tenant text := current_schema();
BEGIN
  EXECUTE format('GRANT USAGE ON SCHEMA %1$I TO %1$I', tenant);
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON _state, _idempotency, _confirmations, _outbox, _recycle_bin, _shares,
    _revoked_shares, _external_ids, _deprovisioned_users TO %I', tenant);
  EXECUTE format('GRANT SELECT, INSERT ON _history, _audit, _audit_chain TO %I', tenant);
  EXECUTE format('GRANT SELECT, UPDATE ON _audit_head, _event_head TO %I', tenant);
  EXECUTE format('GRANT SELECT ON _epoch TO %I', tenant);
  EXECUTE format('GRANT EXECUTE ON FUNCTION _renew_epoch TO %I', tenant);
  EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %1$I TO %1$I', tenant);
END $$;
