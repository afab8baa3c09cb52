#!/bin/sh -e
# What docker-entrypoint.sh of the image `postgres` does: the first time it makes the database, with the password; then the
# server runs with the arguments that it was given, as the user `postgres`.
as_postgres() { if [ "$(id -u)" = 0 ]; then exec setpriv --reuid postgres --regid postgres --init-groups "$@"; else exec "$@"; fi; }
[ "$1" = postgres ]
shift
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  mkdir -p "$PGDATA"
  [ "$(id -u)" != 0 ] || chown -R postgres "$PGDATA" "$PGDATA/.."
  printf '%s\n' "$POSTGRES_PASSWORD" > "$PGDATA/../password"
  [ "$(id -u)" != 0 ] || chown postgres "$PGDATA/../password"
  (as_postgres initdb -D "$PGDATA" --username=postgres --pwfile="$PGDATA/../password" --encoding=UTF8 --locale=C -N > /dev/null)
  rm "$PGDATA/../password"
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  echo "CREATE DATABASE $POSTGRES_DB" | (as_postgres postgres --single -D "$PGDATA" postgres > /dev/null)
fi
as_postgres postgres -D "$PGDATA" -c listen_addresses="$ADDRESS" -c unix_socket_directories= -c synchronous_commit=off "$@"
