#!/bin/sh
# Stands in for the entry point of PostgreSQL's image, as far as compose.postgres.yaml asks for it.
set -eu
if [ "$(id -u)" = 0 ]; then
    POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    export POSTGRES_PASSWORD
    unset POSTGRES_PASSWORD_FILE
    chown postgres /var/lib/postgresql
    exec setpriv --reuid=postgres --regid=postgres --clear-groups sh "$0" "$@"
fi
data=/var/lib/postgresql/18/docker
if [ ! -s "$data/PG_VERSION" ]; then
    mkdir -p "$data"
    printf '%s' "$POSTGRES_PASSWORD" > /tmp/password
    initdb -D "$data" -U "$POSTGRES_USER" --encoding=UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=scram-sha-256 --pwfile=/tmp/password > /dev/null
    rm /tmp/password
    pg_ctl -D "$data" -w -o "-c listen_addresses='' -k /run/postgresql" start > /dev/null
    createdb -h /run/postgresql -U "$POSTGRES_USER" "$POSTGRES_DB" 2> /dev/null || true
    pg_ctl -D "$data" -w -m fast stop > /dev/null
    echo "host all all all scram-sha-256" >> "$data/pg_hba.conf"
fi
exec postgres -D "$data" -c "listen_addresses=*" -c unix_socket_directories=/run/postgresql,/tmp
