-- What every tenant's schema holds beside the tables of its objects: the companions of a record write. Run with the
-- search_path set to that schema. Names begin with an underscore, which no apiName can.

-- The versions that every statement on records is checked against; exactly one row.
CREATE TABLE _state (
  singleton        boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  metadata_version integer NOT NULL DEFAULT 0,
  -- Rises with every change of who may do what: profile, role, permission sets, activity of a user.
  access_version   integer NOT NULL DEFAULT 0,
  -- Days that the audit trail is kept, as the tenant's settings say; two years at least. Schemas that are older than the
  -- column get it from 0015-retention.sql.
  audit_days       integer NOT NULL DEFAULT 730
);
INSERT INTO _state DEFAULT VALUES;

-- Idempotency keys with the outcome of the mutation they made. One namespace across operations.
CREATE TABLE _idempotency (
  client_id    text        NOT NULL,
  user_id      uuid        NOT NULL,
  key          text        NOT NULL,
  fingerprint  text        NOT NULL,
  state        text        NOT NULL CHECK (state IN ('RESERVED', 'COMPLETED', 'FAILED')),
  request_id   text        NOT NULL,
  status       smallint,
  headers      jsonb,
  body         text,
  created_at   timestamptz NOT NULL DEFAULT now(),
  completed_at timestamptz,
  expires_at   timestamptz NOT NULL DEFAULT now() + interval '24 hours',
  PRIMARY KEY (client_id, user_id, key)
) WITH (fillfactor = 70); -- a row is completed in place once
-- Rows come in the order in which they expire, so a block range index finds the old ones and costs a write nothing.
CREATE INDEX _idempotency_expires_at ON _idempotency USING brin (expires_at);

-- Field changes of records, for readers with audit:read.
CREATE TABLE _history (
  change_id      uuid           NOT NULL,
  at             timestamptz(3) NOT NULL DEFAULT now(),
  object         text           NOT NULL,
  record_id      uuid           NOT NULL,
  record_version integer        NOT NULL,
  operation      text           NOT NULL CHECK (operation IN ('create', 'update', 'delete', 'restore', 'transition')),
  user_id        uuid           NOT NULL,
  client_id      text           NOT NULL,
  agent_run_id   uuid,
  request_id     text           NOT NULL,
  -- {field: {from, to}}
  changes        jsonb          NOT NULL,
  PRIMARY KEY (record_id, change_id)
);

-- Every mutation and every refused one. Sealed in batches by a background job; append-only.
CREATE TABLE _audit (
  audit_id        uuid           PRIMARY KEY,
  at              timestamptz(3) NOT NULL DEFAULT now(),
  user_id         uuid,
  client_id       text,
  agent_run_id    uuid,
  channel         text           NOT NULL,
  operation_id    text           NOT NULL,
  outcome         text           NOT NULL CHECK (outcome IN ('committed', 'denied', 'failed')),
  code            text,
  request_id      text           NOT NULL,
  idempotency_key text,
  object          text,
  record_id       uuid,
  changes         jsonb,
  ip              text
);

-- Events to be told. A relay gives each committed row its gap-free sequence number.
CREATE TABLE _outbox (
  outbox_id      bigint         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
CREATE INDEX _outbox_unsequenced ON _outbox (outbox_id) WHERE sequence IS NULL;

-- Deleted records, restorable for 30 days; live tables and their indexes hold live records only.
CREATE TABLE _recycle_bin (
  object           text           NOT NULL,
  record_id        uuid           NOT NULL,
  -- The record whose deletion took this one along; itself for the root.
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

-- Manual shares of single records.
CREATE TABLE _shares (
  share_id       uuid           PRIMARY KEY,
  object         text           NOT NULL,
  record_id      uuid           NOT NULL,
  principal_type text           NOT NULL CHECK (principal_type IN ('user', 'role', 'group')),
  principal_id   text           NOT NULL,
  access         text           NOT NULL CHECK (access IN ('read', 'edit')),
  reason         text,
  created_at     timestamptz(3) NOT NULL DEFAULT now(),
  created_by_id  uuid           NOT NULL
);
CREATE INDEX _shares_record ON _shares (record_id);
CREATE INDEX _shares_principal ON _shares (principal_type, principal_id, object);
