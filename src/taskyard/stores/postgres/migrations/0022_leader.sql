-- min_client: 1
-- Which orchestrator leads each project: a lease on the database's time.
CREATE TABLE taskyard.leader (
    project int PRIMARY KEY,
    worker text COLLATE "C" NOT NULL,
    incarnation text COLLATE "C" NOT NULL,
    renewed_at bigint NOT NULL,
    term bigint NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE taskyard.leader ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON taskyard.leader USING (EXISTS (SELECT FROM taskyard.project AS yard WHERE yard.id = leader.project OFFSET 0));

-- Whoever may write tasks may lead, in the same projects.
DO $$
DECLARE
    crew text;
    text text := pg_get_functiondef('taskyard.give_project(text, name)'::regprocedure);
BEGIN
    FOR crew IN
        SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
        FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = 'taskyard.task'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.leader TO %s', crew);
    END LOOP;
    IF position('taskyard.schedule' IN text) = 0 THEN
        RAISE EXCEPTION 'taskyard.give_project is not as it was made';
    END IF;
    EXECUTE replace(text, 'taskyard.schedule', 'taskyard.schedule, taskyard.leader');
END $$;
