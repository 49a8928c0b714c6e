-- min_client: 1
-- A count that is carried on also has what was claimed since. An add that is refused by it says no more than there is room for.
DO $$
DECLARE
    text text := pg_get_functiondef('taskyard.take_places(int, text[], bigint[], bigint[], boolean)'::regprocedure);
    carried text := 'number := last.counted + total - last.since;';
BEGIN
    IF position(carried IN text) = 0 THEN
        RAISE EXCEPTION 'taskyard.take_places is not as it was made';
    END IF;
    EXECUTE replace(text, carried, 'number := least(last.counted + total - last.since, mosts[i]);');
END $$;
