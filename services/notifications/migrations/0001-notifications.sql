-- Keys that seal cursors.
CREATE TABLE notifications.secrets (
  name   text  PRIMARY KEY,
  secret bytea NOT NULL
);

-- Notifications of a tenant's users.
CREATE TABLE notifications.items (
  tenant_id       uuid           NOT NULL,
  -- In the order of their creation.
  notification_id uuid           NOT NULL,
  user_id         uuid           NOT NULL,
  type            text           NOT NULL,
  severity        text           NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
  -- In the language of the user at the time.
  title           text           NOT NULL,
  body            text           NOT NULL,
  object_api_name text,
  record_id       uuid,
  actor_id        uuid,
  agent_run_id    uuid,
  actions         jsonb          NOT NULL,
  dedupe_key      text,
  -- false: the user wants none of this type in the feed.
  in_app          boolean        NOT NULL,
  status          text           NOT NULL DEFAULT 'unread' CHECK (status IN ('unread', 'read', 'archived')),
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  read_at         timestamptz(3),
  expires_at      timestamptz(3) NOT NULL,
  -- When a mail is due that has it; NULL: none is.
  mail_at         timestamptz(3),
  -- Of the mail that has it, until it is known what became of it.
  mail_id         uuid,
  -- {channel: {state, reason, at}}
  deliveries      jsonb          NOT NULL,
  PRIMARY KEY (tenant_id, notification_id)
);
CREATE INDEX items_user ON notifications.items (tenant_id, user_id, notification_id);
CREATE INDEX items_unread ON notifications.items (tenant_id, user_id) WHERE status = 'unread' AND in_app;
CREATE UNIQUE INDEX items_once ON notifications.items (tenant_id, user_id, type, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX items_expired ON notifications.items (tenant_id, expires_at);
CREATE INDEX items_mail ON notifications.items (mail_at) WHERE mail_at IS NOT NULL;
CREATE INDEX items_mailed ON notifications.items (tenant_id, mail_id) WHERE mail_id IS NOT NULL;

CREATE TABLE notifications.settings (
  tenant_id      uuid           NOT NULL,
  user_id        uuid           NOT NULL,
  -- {type: {channel: boolean}}, where it differs from the default.
  channels       jsonb          NOT NULL DEFAULT '{}',
  -- HH:MM in the time zone of the user.
  quiet_from     text,
  quiet_to       text,
  -- false: the user has turned off all mails by the link in one.
  mails          boolean        NOT NULL DEFAULT true,
  -- Hash of the token in these links.
  unsubscribe_hash bytea,
  -- When the last mail left that had one which is not critical, and one that is.
  mailed_at      timestamptz(3),
  critical_mailed_at timestamptz(3),
  -- Recipients of what the user has sent since sent_since.
  sent           integer        NOT NULL DEFAULT 0,
  sent_since     timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, user_id),
  CHECK ((quiet_from IS NULL) = (quiet_to IS NULL))
);

-- Copies of a tenant have it too, until the next mail.
CREATE INDEX settings_unsubscribe ON notifications.settings (unsubscribe_hash);

-- Isolates tenants a second time, behind the tenant_id in every statement.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['items', 'settings'] LOOP
    EXECUTE format('ALTER TABLE notifications.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE notifications.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON notifications.%I USING (tenant_id = nullif(current_setting(''app.tenant_id'', true), '''')::uuid)', name);
    -- Mails that are due, and links in them, are looked for before the tenant is known.
    EXECUTE format('CREATE POLICY directory ON notifications.%I TO CURRENT_USER USING (true) WITH CHECK (true)', name);
  END LOOP;
END $$;
