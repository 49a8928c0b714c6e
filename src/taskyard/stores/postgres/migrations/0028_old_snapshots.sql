-- min_client: 1
-- A done in a caller's transaction that keeps one snapshot does not see the last other need go: it is told so, where nobody else would let
-- the task go any more. In a transaction of Taskyard's own each statement sees what others have committed.
DO $$
DECLARE
    text text := pg_get_functiondef('taskyard.unblock(int, text[], text, text)'::regprocedure);
    found text := 'free := ARRAY(';
BEGIN
    IF position(found IN text) = 0 THEN
        RAISE EXCEPTION 'taskyard.unblock is not as it was made';
    END IF;
    EXECUTE replace(text, found, 'IF current_setting(''transaction_isolation'') NOT IN (''read committed'', ''read uncommitted'') THEN
        -- A row that another transaction has deleted since the snapshot fails this one.
        PERFORM FROM taskyard.need WHERE need.project = yard AND need.id = ANY (ids) FOR KEY SHARE;
    END IF;
    free := ARRAY(');
END $$;
