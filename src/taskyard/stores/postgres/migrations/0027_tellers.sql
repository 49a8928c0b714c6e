-- min_client: 1
-- Several dones in one statement, each logged with the one who asked for it: threads that speak for many end tasks together.
DO $$
DECLARE
    text text := pg_get_functiondef('taskyard.finish(int, text[], text[], int[], text[], text[], text)'::regprocedure);
    found text;
    put text;
BEGIN
    FOR found, put IN VALUES
        ('FUNCTION taskyard.finish(', 'FUNCTION taskyard.finish_each('),
        ('teller text)', 'tellers text[])'),
        ('gone.worker, teller);', 'gone.worker, tellers[1]);'),
        ('unnest(free, results) AS ending (place, result)', 'unnest(free, results, tellers) AS ending (place, result, teller)'),
        ('RETURNING task.*, ending.result', 'RETURNING task.*, ending.result, ending.teller')
    LOOP
        IF position(found IN text) = 0 THEN
            RAISE EXCEPTION 'taskyard.finish is not as it was made: %', found;
        END IF;
        text := replace(text, found, put);
    END LOOP;
    EXECUTE text;
END $$;
