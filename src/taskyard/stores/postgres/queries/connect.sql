-- Sent on every new connection, before anything else.

-- name: configure
-- Whether libpq knows the process that answers, and whether the settings below were made. Settings of a role or a
-- database could change the meaning of statements. So functions are searched in no schema where another user could put
-- one of the same name. All names are qualified, because the search_path is unknown until then.
SELECT pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) {pid},
       CASE WHEN {always} OR pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) {pid} THEN
           pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false) IS NOT NULL
           AND pg_catalog.set_config('standard_conforming_strings', 'on', false) IS NOT NULL
           AND pg_catalog.set_config('array_nulls', 'on', false) IS NOT NULL
           AND pg_catalog.set_config('transform_null_equals', 'off', false) IS NOT NULL
           AND pg_catalog.set_config('extra_float_digits', '1', false) IS NOT NULL  -- a float comes back as it was given
           AND pg_catalog.set_config('plpgsql.extra_errors', 'none', false) IS NOT NULL
           AND pg_catalog.set_config('jit', 'off', false) IS NOT NULL  -- compiling takes longer than any statement here
       ELSE false END
