-- Written by `npm run schema:dump` from what the migrations make.

CREATE SCHEMA notifications;
GRANT USAGE ON SCHEMA notifications TO login_notifications;
GRANT USAGE ON SCHEMA notifications TO svc_notifications;

CREATE TABLE notifications.items (
  tenant_id uuid NOT NULL,
  notification_id uuid NOT NULL,
  user_id uuid NOT NULL,
  type text NOT NULL,
  severity text NOT NULL,
  title text NOT NULL,
  body text NOT NULL,
  object_api_name text,
  record_id uuid,
  actor_id uuid,
  agent_run_id uuid,
  actions jsonb NOT NULL,
  dedupe_key text,
  in_app boolean NOT NULL,
  status text DEFAULT 'unread'::text NOT NULL,
  created_at timestamp(3) with time zone DEFAULT now() NOT NULL,
  read_at timestamp(3) with time zone,
  expires_at timestamp(3) with time zone NOT NULL,
  mail_at timestamp(3) with time zone,
  mail_id uuid,
  deliveries jsonb NOT NULL,
  CONSTRAINT items_severity_check CHECK ((severity = ANY (ARRAY['info'::text, 'warning'::text, 'critical'::text]))),
  CONSTRAINT items_status_check CHECK ((status = ANY (ARRAY['unread'::text, 'read'::text, 'archived'::text]))),
  CONSTRAINT items_pkey PRIMARY KEY (tenant_id, notification_id)
);
ALTER TABLE notifications.items ENABLE ROW LEVEL SECURITY;
ALTER TABLE notifications.items FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON notifications.items TO login_notifications;
GRANT DELETE, INSERT, SELECT, UPDATE ON notifications.items TO svc_notifications;

CREATE TABLE notifications.migrations (
  name text NOT NULL,
  applied_at timestamp with time zone DEFAULT now() NOT NULL,
  CONSTRAINT migrations_pkey PRIMARY KEY (name)
);
GRANT SELECT ON notifications.migrations TO login_notifications;
GRANT DELETE, INSERT, SELECT, UPDATE ON notifications.migrations TO svc_notifications;

CREATE TABLE notifications.secrets (
  name text NOT NULL,
  secret bytea NOT NULL,
  CONSTRAINT secrets_pkey PRIMARY KEY (name)
);
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON notifications.secrets TO login_notifications;
GRANT DELETE, INSERT, SELECT, UPDATE ON notifications.secrets TO svc_notifications;

CREATE TABLE notifications.settings (
  tenant_id uuid NOT NULL,
  user_id uuid NOT NULL,
  channels jsonb DEFAULT '{}'::jsonb NOT NULL,
  quiet_from text,
  quiet_to text,
  mails boolean DEFAULT true NOT NULL,
  unsubscribe_hash bytea,
  mailed_at timestamp(3) with time zone,
  critical_mailed_at timestamp(3) with time zone,
  sent integer DEFAULT 0 NOT NULL,
  sent_since timestamp(3) with time zone DEFAULT now() NOT NULL,
  CONSTRAINT settings_check CHECK (((quiet_from IS NULL) = (quiet_to IS NULL))),
  CONSTRAINT settings_pkey PRIMARY KEY (tenant_id, user_id)
);
ALTER TABLE notifications.settings ENABLE ROW LEVEL SECURITY;
ALTER TABLE notifications.settings FORCE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, TRUNCATE, UPDATE ON notifications.settings TO login_notifications;
GRANT DELETE, INSERT, SELECT, UPDATE ON notifications.settings TO svc_notifications;

CREATE INDEX items_expired ON notifications.items USING btree (tenant_id, expires_at);

CREATE INDEX items_mail ON notifications.items USING btree (mail_at) WHERE (mail_at IS NOT NULL);

CREATE INDEX items_mailed ON notifications.items USING btree (tenant_id, mail_id) WHERE (mail_id IS NOT NULL);

CREATE UNIQUE INDEX items_once ON notifications.items USING btree (tenant_id, user_id, type, dedupe_key) WHERE (dedupe_key IS NOT NULL);

CREATE INDEX items_unread ON notifications.items USING btree (tenant_id, user_id) WHERE ((status = 'unread'::text) AND in_app);

CREATE INDEX items_user ON notifications.items USING btree (tenant_id, user_id, notification_id);

CREATE INDEX settings_unsubscribe ON notifications.settings USING btree (unsubscribe_hash);

CREATE POLICY directory ON notifications.items AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON notifications.items AS PERMISSIVE FOR ALL TO login_notifications USING true WITH CHECK true;

CREATE POLICY tenant ON notifications.items AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);

CREATE POLICY directory ON notifications.settings AS PERMISSIVE FOR ALL TO postgres USING true WITH CHECK true;

CREATE POLICY directory_of_login ON notifications.settings AS PERMISSIVE FOR ALL TO login_notifications USING true WITH CHECK true;

CREATE POLICY tenant ON notifications.settings AS PERMISSIVE FOR ALL TO public USING (tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::uuid);
