-- min_client: 1
-- A claim looks for what has expired by an index, however many deadlines are still to come, and waits for no other claim while all that
-- is late is being worked on. It looks once: a claim by name looks at that task's deadline, so a mission's are not looked for each time
-- that a task of it is claimed.
DO $$
DECLARE
    changed regprocedure;
    text text;
    found text;
    put text;
BEGIN
    text := pg_get_functiondef('taskyard.expire(int, text, int)'::regprocedure);
    FOR found, put IN VALUES
        -- A function that may change is no key of an index.
        ('late text[] COLLATE "C";', 'late text[] COLLATE "C";
    present bigint := taskyard.now();'),
        ('at <= taskyard.now()', 'at <= present'),
        -- A claimed task keeps its row, and is none to cancel. OFFSET 0 has each looked up by itself.
        ('IF NOT EXISTS (SELECT FROM taskyard.deadline WHERE project = yard AND at <= present) THEN',
         'IF NOT EXISTS (
        SELECT FROM taskyard.deadline AS next WHERE next.project = yard AND next.at <= present AND NOT EXISTS (
            SELECT FROM taskyard.task WHERE task.project = yard AND task.age = next.age AND task.state::text = ''processing'' OFFSET 0)) THEN'),
        ('task.age = gone.age)', 'task.age = gone.age OFFSET 0)')
    LOOP
        IF position(found IN text) = 0 THEN
            RAISE EXCEPTION 'taskyard.expire is not as it was made: %', found;
        END IF;
        text := replace(text, found, put);
    END LOOP;
    EXECUTE text;
    FOR changed, found, put IN VALUES
        ('taskyard.claim(int, text, text[], text, int, text[], double precision, double precision, double precision)'::regprocedure,
         'WHILE taskyard.expire(yard, taker, 1000) = 1000 LOOP END LOOP;',
         'IF named IS NULL OR EXISTS (SELECT FROM taskyard.deadline WHERE project = yard AND age = named AND at <= taskyard.now()) THEN
        WHILE taskyard.expire(yard, taker, 1000) = 1000 LOOP END LOOP;
    END IF;'),
        ('taskyard.claim_of_mission(int, text, text[], text, text[], double precision, double precision, double precision)'::regprocedure,
         'SELECT project.paused OR',
         'WHILE taskyard.expire(yard, taker, 1000) = 1000 LOOP END LOOP;
    SELECT project.paused OR')
    LOOP
        text := pg_get_functiondef(changed);
        IF position(found IN text) = 0 THEN
            RAISE EXCEPTION '% is not as it was made', changed;
        END IF;
        EXECUTE replace(text, found, put);
    END LOOP;
END $$;
