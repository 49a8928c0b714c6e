-- Said on every new connection, before anything else.

-- name: settle
-- Whether libpq was given the number of the process that answers; and whether the settings below were made. What a role or a database may have
-- set for itself would change the meaning of statements: functions are looked for in no schema where somebody else might have put
-- one of the same name. All names are written out, because whose search_path holds until then is not known.
SELECT pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) {pid},
       CASE WHEN {always} OR pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) {pid} THEN
           pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false) IS NOT NULL
           AND pg_catalog.set_config('standard_conforming_strings', 'on', false) IS NOT NULL
           AND pg_catalog.set_config('array_nulls', 'on', false) IS NOT NULL
           AND pg_catalog.set_config('transform_null_equals', 'off', false) IS NOT NULL
           AND pg_catalog.set_config('plpgsql.extra_errors', 'none', false) IS NOT NULL
           AND pg_catalog.set_config('jit', 'off', false) IS NOT NULL  -- to compile takes longer than all that is said here
       ELSE false END
