-- Users that auth has not heard of are looked for after each change of a user: among them only, not among all events.
-- The index that goes held every row, as the primary key does.
DROP INDEX _outbox_unsequenced;
CREATE INDEX _outbox_user_sync ON _outbox (outbox_id) WHERE type = 'auth.user.sync';
