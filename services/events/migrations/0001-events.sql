-- Keys that seal cursors.
CREATE TABLE events.secrets (
  name   text  PRIMARY KEY,
  secret bytea NOT NULL
);
