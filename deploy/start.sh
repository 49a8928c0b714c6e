#!/bin/sh
# start.sh COMMAND...: make the yard in PostgreSQL, or bring its schema up to date, once the database answers; then become the
# command. Any number of containers may do so at once, so that none has to be started before the others.
set -eu
tries=60
until taskyard migrate > /dev/null && taskyard init > /dev/null; do
    tries=$((tries - 1))
    test "$tries" -gt 0
    sleep 1
done
exec "$@"
