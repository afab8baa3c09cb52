-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA t_tenant;
ALTER SCHEMA t_tenant OWNER TO t_tenant_owner;
GRANT USAGE ON SCHEMA t_tenant TO t_tenant;

CREATE SEQUENCE t_tenant._outbox_outbox_id_seq AS bigint INCREMENT 1 MINVALUE 1 MAXVALUE 9223372036854775807 START 1;
GRANT SELECT, USAGE ON SEQUENCE t_tenant._outbox_outbox_id_seq TO t_tenant;

CREATE TABLE t_tenant."User" (
  id uuid NOT NULL,
  "ownerId" uuid NOT NULL,
  "createdAt" timestamp(3) with time zone NOT NULL,
  "createdById" uuid NOT NULL,
  "updatedAt" timestamp(3) with time zone NOT NULL,
  "updatedById" uuid NOT NULL,
  "recordVersion" integer DEFAULT 1 NOT NULL,
  "recordTypeApiName" text,
  name text COLLATE "und-x-icu",
  active boolean,
  "avatarFileId" uuid,
  "dateFormat" text COLLATE "und-x-icu",
  "displayName" text COLLATE "und-x-icu",
  email text COLLATE "und-x-icu",
  "emailDigest" text COLLATE "und-x-icu",
  "lastSignInAt" timestamp(3) with time zone,
  locale text COLLATE "und-x-icu",
  "managerId" uuid,
  "permissionSetApiNames" text[],
  "profileApiName" text COLLATE "und-x-icu",
  "roleApiName" text COLLATE "und-x-icu",
  timezone text COLLATE "und-x-icu",
  username text COLLATE "und-x-icu",
  CONSTRAINT "_f_b512d97e_managerId" FOREIGN KEY ("managerId") REFERENCES t_tenant."User"(id) DEFERRABLE,
  CONSTRAINT "User_pkey" PRIMARY KEY (id)
) WITH (fillfactor=90);
ALTER TABLE t_tenant."User" OWNER TO t_tenant_owner;
GRANT DELETE, INSERT, SELECT, UPDATE ON t_tenant."User" TO t_tenant;

CREATE TABLE t_tenant._audit (
  audit_id uuid NOT NULL,
  at timestamp(3) with time zone DEFAULT now() NOT NULL,
  user_id uuid,
  client_id text,
  agent_run_id uuid,
  channel text NOT NULL,
  operation_id text NOT NULL,
  outcome text NOT NULL,
  code text,
  request_id text NOT NULL,
  idempotency_key text,
  object text,
  record_id uuid,
  changes jsonb,
  ip text,
  tx xid8 DEFAULT pg_current_xact_id() NOT NULL,
  kind text,
  record_version integer,
  CONSTRAINT _audit_pkey PRIMARY KEY (audit_id)
);
ALTER TABLE t_tenant._audit OWNER TO t_tenant_owner;
GRANT INSERT, SELECT ON t_tenant._audit TO t_tenant;

CREATE TABLE t_tenant._audit_chain (
  "position" bigint NOT NULL,
  audit_id uuid NOT NULL,
  prev_hash bytea NOT NULL,
  hash bytea NOT NULL,
  form smallint DEFAULT 1 NOT NULL,
  CONSTRAINT _audit_chain_pkey PRIMARY KEY ("position"),
  CONSTRAINT _audit_chain_audit_id_key UNIQUE (audit_id)
);
ALTER TABLE t_tenant._audit_chain OWNER TO t_tenant_owner;
GRANT INSERT, SELECT ON t_tenant._audit_chain TO t_tenant;

CREATE TABLE t_tenant._audit_head (
  singleton boolean DEFAULT true NOT NULL,
  "position" bigint DEFAULT 0 NOT NULL,
  hash bytea DEFAULT decode(repeat('00'::text, 32), 'hex'::text) NOT NULL,
  anchor_position bigint DEFAULT 0 NOT NULL,
  anchor_hash bytea DEFAULT decode(repeat('00'::text, 32), 'hex'::text) NOT NULL,
  snapshot pg_snapshot,
  server text,
  CONSTRAINT _audit_head_singleton_check CHECK (singleton),
  CONSTRAINT _audit_head_pkey PRIMARY KEY (singleton)
);
ALTER TABLE t_tenant._audit_head OWNER TO t_tenant_owner;
GRANT SELECT, UPDATE ON t_tenant._audit_head TO t_tenant;

CREATE TABLE t_tenant._confirmations (
  confirmation_id uuid NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT _confirmations_pkey PRIMARY KEY (confirmation_id)
);
ALTER TABLE t_tenant._confirmations OWNER TO t_tenant_owner;
GRANT DELETE, INSERT, SELECT, UPDATE ON t_tenant._confirmations TO t_tenant;

CREATE TABLE t_tenant._deprovisioned_users (
  user_id uuid NOT NULL,
  at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT _deprovisioned_users_pkey PRIMARY KEY (user_id)
);
ALTER TABLE t_tenant._deprovisioned_users OWNER TO t_tenant_owner;
GRANT DELETE, INSERT, SELECT, UPDATE ON t_tenant._deprovisioned_users TO t_tenant;

CREATE TABLE t_tenant._epoch (
  singleton boolean DEFAULT true NOT NULL,
  epoch text NOT NULL,
  place text NOT NULL,
  tx_offset bigint DEFAULT 0 NOT NULL,
  begun_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT _epoch_singleton_check CHECK (singleton),
  CONSTRAINT _epoch_pkey PRIMARY KEY (singleton)
);
ALTER TABLE t_tenant._epoch OWNER TO t_tenant_owner;
GRANT SELECT ON t_tenant._epoch TO t_tenant;

CREATE TABLE t_tenant._event_head (
  singleton boolean DEFAULT true NOT NULL,
  sequence bigint DEFAULT 0 NOT NULL,
  CONSTRAINT _event_head_singleton_check CHECK (singleton),
  CONSTRAINT _event_head_pkey PRIMARY KEY (singleton)
);
ALTER TABLE t_tenant._event_head OWNER TO t_tenant_owner;
GRANT SELECT, UPDATE ON t_tenant._event_head TO t_tenant;

CREATE TABLE t_tenant._external_ids (
  client_id text NOT NULL,
  resource text NOT NULL,
  resource_id text NOT NULL,
  external_id text NOT NULL,
  CONSTRAINT _external_ids_resource_check CHECK ((resource = ANY (ARRAY['User'::text, 'Group'::text]))),
  CONSTRAINT _external_ids_pkey PRIMARY KEY (client_id, resource, resource_id)
);
ALTER TABLE t_tenant._external_ids OWNER TO t_tenant_owner;
GRANT DELETE, INSERT, SELECT, UPDATE ON t_tenant._external_ids TO t_tenant;

CREATE TABLE t_tenant._history (
  change_id uuid NOT NULL,
  at timestamp(3) with time zone DEFAULT now() NOT NULL,
  object text NOT NULL,
  record_id uuid NOT NULL,
  record_version integer NOT NULL,
  operation text NOT NULL,
  user_id uuid NOT NULL,
  client_id text NOT NULL,
  agent_run_id uuid,
  request_id text NOT NULL,
  changes jsonb NOT NULL,
  CONSTRAINT _history_pkey PRIMARY KEY (record_id, change_id)
);
ALTER TABLE t_tenant._history OWNER TO t_tenant_owner;
GRANT INSERT, SELECT ON t_tenant._history TO t_tenant;

CREATE TABLE t_tenant._idempotency (
  client_id text NOT NULL,
  user_id uuid NOT NULL,
  key text NOT NULL,
  fingerprint text NOT NULL,
  state text NOT NULL,
  request_id text NOT NULL,
  status smallint,
  headers jsonb,
  body text,
  created_at timestamp with time zone DEFAULT now() NOT NULL,
  completed_at timestamp with time zone,
  expires_at timestamp with time zone DEFAULT (now() + 'PT24H'::interval) NOT NULL,
  CONSTRAINT _idempotency_pkey PRIMARY KEY (client_id, user_id, key)
);
ALTER TABLE t_tenant._idempotency OWNER TO t_tenant_owner;
GRANT DELETE, INSERT, SELECT, UPDATE ON t_tenant._idempotency TO t_tenant;

CREATE TABLE t_tenant._outbox (
  outbox_id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  at timestamp(3) with time zone DEFAULT now() NOT NULL,
  type text NOT NULL,
  object text,
  record_id uuid,
  record_version integer,
  user_id uuid,
  client_id text,
  agent_run_id uuid,
  request_id text,
  data jsonb NOT NULL,
  sequence bigint
);
ALTER TABLE t_tenant._outbox OWNER TO t_tenant_owner;
GRANT DELETE, INSERT, SELECT, UPDATE ON t_tenant._outbox TO t_tenant;

CREATE TABLE t_tenant._recycle_bin (
  object text NOT NULL,
  record_id uuid NOT NULL,
  root_id uuid NOT NULL,
  record jsonb NOT NULL,
  record_version integer NOT NULL,
  deleted_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  deleted_by_id uuid NOT NULL,
  restorable_until timestamp(3) with time zone DEFAULT (now() + 'P30D'::interval) NOT NULL,
  CONSTRAINT _recycle_bin_pkey PRIMARY KEY (object, record_id)
);
ALTER TABLE t_tenant._recycle_bin OWNER TO t_tenant_owner;
GRANT DELETE, INSERT, SELECT, UPDATE ON t_tenant._recycle_bin TO t_tenant;

CREATE TABLE t_tenant._revoked_shares (
  share_id uuid NOT NULL,
  object text NOT NULL,
  record_id uuid NOT NULL,
  principal_type text NOT NULL,
  principal_id text NOT NULL,
  access text NOT NULL,
  reason text,
  created_at timestamp(3) with time zone NOT NULL,
  created_by_id uuid NOT NULL,
  revoked_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  revoked_by_id uuid NOT NULL,
  kept_until timestamp(3) with time zone DEFAULT (now() + 'P8D'::interval) NOT NULL,
  granted_tx xid8 NOT NULL,
  tx xid8 DEFAULT pg_current_xact_id() NOT NULL,
  CONSTRAINT _revoked_shares_pkey PRIMARY KEY (share_id)
);
ALTER TABLE t_tenant._revoked_shares OWNER TO t_tenant_owner;
GRANT DELETE, INSERT, SELECT, UPDATE ON t_tenant._revoked_shares TO t_tenant;

CREATE TABLE t_tenant._shares (
  share_id uuid NOT NULL,
  object text NOT NULL,
  record_id uuid NOT NULL,
  principal_type text NOT NULL,
  principal_id text NOT NULL,
  access text NOT NULL,
  reason text,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  created_by_id uuid NOT NULL,
  tx xid8 DEFAULT pg_current_xact_id() NOT NULL,
  CONSTRAINT _shares_access_check CHECK ((access = ANY (ARRAY['read'::text, 'edit'::text]))),
  CONSTRAINT _shares_principal_type_check CHECK ((principal_type = ANY (ARRAY['user'::text, 'role'::text, 'group'::text]))),
  CONSTRAINT _shares_pkey PRIMARY KEY (share_id)
);
ALTER TABLE t_tenant._shares OWNER TO t_tenant_owner;
GRANT DELETE, INSERT, SELECT, UPDATE ON t_tenant._shares TO t_tenant;

CREATE TABLE t_tenant._state (
  singleton boolean DEFAULT true NOT NULL,
  metadata_version integer DEFAULT 0 NOT NULL,
  access_version integer DEFAULT 0 NOT NULL,
  audit_days integer DEFAULT 730 NOT NULL,
  CONSTRAINT _state_singleton_check CHECK (singleton),
  CONSTRAINT _state_pkey PRIMARY KEY (singleton)
);
ALTER TABLE t_tenant._state OWNER TO t_tenant_owner;
GRANT DELETE, INSERT, SELECT, UPDATE ON t_tenant._state TO t_tenant;

CREATE INDEX _audit_record ON t_tenant._audit USING btree (record_id, audit_id);

CREATE INDEX _audit_run ON t_tenant._audit USING btree (agent_run_id, audit_id) WHERE (agent_run_id IS NOT NULL);

CREATE INDEX _audit_run_request ON t_tenant._audit USING btree (agent_run_id, request_id) WHERE (agent_run_id IS NOT NULL);

CREATE INDEX _audit_tx ON t_tenant._audit USING btree (tx, object);

CREATE INDEX _audit_user ON t_tenant._audit USING btree (user_id, audit_id);

CREATE INDEX _confirmations_expiry ON t_tenant._confirmations USING btree (expires_at);

CREATE INDEX _external_ids_by_id ON t_tenant._external_ids USING btree (client_id, resource, external_id);

CREATE INDEX "_i_b512d97e_avatarFileId" ON t_tenant."User" USING btree ("avatarFileId");

CREATE INDEX "_i_b512d97e_createdAt" ON t_tenant."User" USING btree ("createdAt" DESC, id DESC);

CREATE INDEX "_i_b512d97e_managerId" ON t_tenant."User" USING btree ("managerId");

CREATE INDEX _idempotency_expiry ON t_tenant._idempotency USING btree (expires_at);

CREATE INDEX _outbox_new ON t_tenant._outbox USING btree (outbox_id) WHERE ((sequence IS NULL) AND (type <> ALL (ARRAY['auth.user.sync'::text, 'notifications.notification.requested'::text])));

CREATE INDEX _outbox_notices ON t_tenant._outbox USING btree (outbox_id) WHERE (type = 'notifications.notification.requested'::text);

CREATE UNIQUE INDEX _outbox_sequence ON t_tenant._outbox USING btree (sequence) WHERE (sequence IS NOT NULL);

CREATE INDEX _outbox_user_sync ON t_tenant._outbox USING btree (outbox_id) WHERE (type = 'auth.user.sync'::text);

CREATE INDEX _recycle_bin_root ON t_tenant._recycle_bin USING btree (root_id);

CREATE INDEX _recycle_bin_until ON t_tenant._recycle_bin USING btree (restorable_until);

CREATE INDEX _revoked_shares_expiry ON t_tenant._revoked_shares USING btree (kept_until);

CREATE INDEX _revoked_shares_tx ON t_tenant._revoked_shares USING btree (object, tx);

CREATE INDEX _s_b512d97e_email ON t_tenant."User" USING gin (erp.search_text(email) public.gin_trgm_ops);

CREATE INDEX _s_b512d97e_name ON t_tenant."User" USING gin (erp.search_text(name) public.gin_trgm_ops);

CREATE INDEX _s_b512d97e_username ON t_tenant."User" USING gin (erp.search_text(username) public.gin_trgm_ops);

CREATE UNIQUE INDEX _shares_once ON t_tenant._shares USING btree (record_id, principal_type, principal_id, object);

CREATE INDEX _shares_principal ON t_tenant._shares USING btree (principal_type, principal_id, object);

CREATE INDEX _shares_tx ON t_tenant._shares USING btree (object, tx);

CREATE UNIQUE INDEX _u_b512d97e_username ON t_tenant."User" USING btree (lower(username));

CREATE TRIGGER _user_name BEFORE INSERT OR UPDATE OF name, "displayName" ON t_tenant."User" FOR EACH ROW EXECUTE FUNCTION t_tenant._user_name();

CREATE FUNCTION t_tenant._remove_audit(bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path=t_tenant, pg_temp -- body ce1d233fc373
ALTER FUNCTION t_tenant._remove_audit(bigint) OWNER TO t_tenant_owner;

CREATE FUNCTION t_tenant._renew_epoch(text,text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path=t_tenant, pg_temp -- body 5f03d0c06569
ALTER FUNCTION t_tenant._renew_epoch(text,text) OWNER TO t_tenant_owner;
GRANT EXECUTE ON FUNCTION t_tenant._renew_epoch(text,text) TO t_tenant;

CREATE FUNCTION t_tenant._rollup_trail(text,boolean,boolean,jsonb,jsonb) RETURNS void LANGUAGE plpgsql SET search_path=t_tenant, public -- body 7ea9341bbda5
ALTER FUNCTION t_tenant._rollup_trail(text,boolean,boolean,jsonb,jsonb) OWNER TO t_tenant_owner;

CREATE FUNCTION t_tenant._user_name() RETURNS trigger LANGUAGE plpgsql -- body 7efa01b985ed
ALTER FUNCTION t_tenant._user_name() OWNER TO t_tenant_owner;
