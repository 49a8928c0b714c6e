-- min_client: 1
-- Schedules: tasks that are added again and again. A tick adds its task and moves its row in one transaction, by whoever comes first.
CREATE TABLE taskyard.schedule (
    project int NOT NULL,
    name text COLLATE "C" NOT NULL,
    identity text COLLATE "C" NOT NULL,
    number int NOT NULL,
    said text NOT NULL,      -- JSON: the expression, its time zone, what becomes of missed ticks, and the task
    due bigint NOT NULL,
    paused boolean NOT NULL,
    last_at bigint,
    last_task text COLLATE "C",
    created_at bigint NOT NULL,
    PRIMARY KEY (project, name)
) WITH (fillfactor = 70);
ALTER TABLE taskyard.schedule ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON taskyard.schedule USING (EXISTS (SELECT FROM taskyard.project AS yard WHERE yard.id = schedule.project OFFSET 0));

-- Whoever may write tasks may write these, in the same projects.
DO $$
DECLARE
    crew text;
    text text := pg_get_functiondef('taskyard.give_project(text, name)'::regprocedure);
BEGIN
    FOR crew IN
        SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
        FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = 'taskyard.task'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.schedule TO %s', crew);
    END LOOP;
    IF position('taskyard.mission_task' IN text) = 0 THEN
        RAISE EXCEPTION 'taskyard.give_project is not as it was made';
    END IF;
    EXECUTE replace(text, 'taskyard.mission_task', 'taskyard.mission_task, taskyard.schedule');
END $$;
