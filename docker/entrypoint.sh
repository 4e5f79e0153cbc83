#!/bin/sh
# Hand the database's password from a file to libpq, so that it is in no image, command line or inspection.
set -eu
if [ -n "${DARTBOARD_DB_PASSWORD_FILE:-}" ]; then
    PGPASSWORD="$(cat "$DARTBOARD_DB_PASSWORD_FILE")"
    export PGPASSWORD
fi
exec "$@"
