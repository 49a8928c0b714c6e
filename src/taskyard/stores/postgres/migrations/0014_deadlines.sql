-- min_client: 1
-- Deadlines and timeouts. What a task was given stays in `relation`, which clients of earlier schemas leave alone; a row of `deadline`
-- says that the deadline applies.

ALTER TABLE taskyard.relation ADD COLUMN expires bigint, ADD COLUMN timeout double precision;

-- When open tasks are cancelled unless a worker has started them. The row goes when the task comes back from an error or a crash.
CREATE TABLE taskyard.deadline (
    project int NOT NULL,
    age text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (project, age)
);
CREATE INDEX deadline_at ON taskyard.deadline (project, at);

-- A task's row of `relation`, as a JSON array of its five columns.
CREATE FUNCTION taskyard.origin(yard int, task text) RETURNS text LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT json_build_array(parent, discovered_from, on_failure, expires, timeout)::text
            FROM taskyard.relation WHERE project = yard AND id = task);
END $$;

-- Cancel open tasks whose deadline has passed, at most so many; gives how many. One at a time: two could wait for one another's followers.
-- A claimed task stays, and so does its row: a release brings the task back, and the deadline with it.
CREATE FUNCTION taskyard.expire(yard int, teller text, most int) RETURNS int LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    late text[] COLLATE "C";
BEGIN
    IF NOT EXISTS (SELECT FROM taskyard.deadline WHERE project = yard AND at <= taskyard.now()) THEN
        RETURN 0;
    END IF;
    PERFORM pg_advisory_xact_lock(747161, yard);
    DELETE FROM taskyard.deadline AS gone
    WHERE gone.project = yard AND gone.at <= taskyard.now()
      AND NOT EXISTS (SELECT FROM taskyard.task WHERE task.project = yard AND task.age = gone.age);
    late := ARRAY(
        SELECT task.age FROM taskyard.deadline AS next, LATERAL (
            SELECT age FROM taskyard.task
            WHERE task.project = yard AND task.age = next.age AND task.state::text IN ('todo', 'waiting', 'blocked')
            FOR UPDATE SKIP LOCKED
        ) AS task
        WHERE next.project = yard AND next.at <= taskyard.now() ORDER BY next.at LIMIT most);
    IF cardinality(late) = 0 THEN
        RETURN 0;
    END IF;
    WITH placed AS MATERIALIZED (
        SELECT task.place, body.place AS body_place,
               to_json('expired: no worker had started it by ' || to_char(
                   to_timestamp(due.at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))::text AS reason
        FROM unnest(late) AS next (age), LATERAL (
            SELECT ctid AS place, id FROM taskyard.task WHERE task.project = yard AND task.age = next.age OFFSET 0
        ) AS task, LATERAL (
            SELECT ctid AS place FROM taskyard.body WHERE body.project = yard AND body.id = task.id OFFSET 0
        ) AS body, LATERAL (
            SELECT at FROM taskyard.deadline WHERE deadline.project = yard AND deadline.age = next.age OFFSET 0
        ) AS due
    ),
    gone AS (
        DELETE FROM taskyard.task USING placed WHERE task.ctid = placed.place
        RETURNING task.*, placed.reason, placed.body_place
    ),
    content AS (
        DELETE FROM taskyard.body USING gone WHERE body.ctid = gone.body_place
        RETURNING gone.*, title, mission, key, after, verify, not_before, data
    ),
    kept AS (
        INSERT INTO taskyard.ended (
            project, age, id, state, kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, followed,
            ended_at, title, mission, key, after, verify, not_before, data, error)
        SELECT yard, age, id, 'cancelled', kind, priority, assignee, fence + 1, errors, crashes, max_attempts, own_lease, uses, followed,
               taskyard.now(), title, mission, key, after, verify, not_before, data, reason
        FROM content
    )
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT yard, 'cancelled', id, kind, fence + 1, NULL, teller, '{"reason":' || reason || '}' FROM gone ORDER BY age;
    DELETE FROM taskyard.deadline WHERE project = yard AND age = ANY (late);
    PERFORM taskyard.ring(yard);
    RETURN cardinality(late);
END $$;

DO $$
DECLARE
    crew text;
    changed regprocedure;
    text text;
    found text;
    put text;
BEGIN
    ALTER TABLE taskyard.deadline ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON taskyard.deadline
        USING (EXISTS (SELECT FROM taskyard.project AS yard WHERE yard.id = deadline.project OFFSET 0));
    -- Whoever may write tasks.
    FOR crew IN
        SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
        FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = 'taskyard.task'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.deadline TO %s', crew);
    END LOOP;
    -- Changed where they stand: what came before this may have changed them as well. A claim, of any client, hands out nothing that has
    -- expired.
    FOR changed, found, put IN VALUES
        ('taskyard.give_project(text, name)'::regprocedure, 'taskyard.used,', 'taskyard.used, taskyard.deadline,'),
        ((SELECT oid::regprocedure FROM pg_proc WHERE proname = 'claim' AND pronamespace = 'taskyard'::regnamespace
          ORDER BY pronargs DESC LIMIT 1),
         'SELECT paused, paused_kinds INTO whole, part',
         'WHILE taskyard.expire(yard, taker, 1000) = 1000 LOOP END LOOP;
    SELECT paused, paused_kinds INTO whole, part')
    LOOP
        text := pg_get_functiondef(changed);
        IF position(found IN text) = 0 THEN
            RAISE EXCEPTION '% is not as it was made', changed;
        END IF;
        EXECUTE replace(text, found, put);
    END LOOP;
END $$;
