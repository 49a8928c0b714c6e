-- min_client: 1
-- The same text whatever a session takes backslashes in strings for: some have standard_conforming_strings off.

CREATE OR REPLACE FUNCTION taskyard.with_due(more text, due bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN due IS NULL THEN more ELSE
       CASE WHEN more IS NULL THEN '{' ELSE left(more, -1) || ',' END
       || '"due":"' || to_char(to_timestamp(due / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"}' END $$;

ALTER FUNCTION taskyard.fence(text) SET standard_conforming_strings = on;
