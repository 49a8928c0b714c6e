-- min_client: 1
-- Who asked for a claim, in the log: the worker, or the one whom a door speaks for, which a client puts into the transaction's settings.
DO $$
DECLARE
    changed regprocedure := (SELECT oid::regprocedure FROM pg_proc WHERE proname = 'claim' AND pronamespace = 'taskyard'::regnamespace
                             ORDER BY pronargs DESC LIMIT 1);
    text text := pg_get_functiondef(changed);
    asker text := 'coalesce(nullif(current_setting(''taskyard.by'', true), ''''), taker)';
BEGIN
    IF cardinality(string_to_array(text, 'fence, taker, taker')) <> 3 THEN  -- it stands there twice
        RAISE EXCEPTION '% is not as it was made', changed;
    END IF;
    EXECUTE replace(text, 'fence, taker, taker', 'fence, taker, ' || asker);
END $$;
