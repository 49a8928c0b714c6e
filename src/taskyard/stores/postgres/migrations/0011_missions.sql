-- min_client: 1
-- Missions. What was said about each, and which tasks are of one, in a table of their own that triggers keep: whoever writes a task, also a
-- client that knows of none of this, and no table has to be read for it now.

CREATE TABLE taskyard.mission (
    project int NOT NULL,
    name text COLLATE "C" NOT NULL,
    brief text,
    owner text COLLATE "C",
    created_at bigint,    -- null where only a cancel has named it
    cancelled_at bigint,
    reason text,
    done int,             -- of its tasks, when it was cancelled
    failed int,
    PRIMARY KEY (project, name)
);

-- The tasks of missions: open ones as in task, others as in ended.
CREATE TABLE taskyard.mission_task (
    project int NOT NULL,
    mission text COLLATE "C" NOT NULL,
    age text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    state taskyard.state NOT NULL,
    kind text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    assignee text COLLATE "C",
    ended_at bigint,
    PRIMARY KEY (project, mission, age)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX mission_task_next ON taskyard.mission_task (project, mission, state, priority, age);

-- Whether every task of the project that is of a mission is known here: those from before are gathered when a mission is first asked for.
ALTER TABLE taskyard.project ADD COLUMN missions_known boolean NOT NULL DEFAULT false;
ALTER TABLE taskyard.project ALTER COLUMN missions_known SET DEFAULT true;
-- Not called mission: statements of clients that join task with body would not know which of the two is meant.
ALTER TABLE taskyard.task ADD COLUMN of_mission text COLLATE "C";

CREATE FUNCTION taskyard.keep_open_member() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    INSERT INTO taskyard.mission_task (project, mission, age, id, state, kind, priority, assignee)
    VALUES (NEW.project, NEW.of_mission, NEW.age, NEW.id, NEW.state, NEW.kind, NEW.priority, NEW.assignee)
    ON CONFLICT (project, mission, age) DO UPDATE
    SET id = excluded.id, state = excluded.state, priority = excluded.priority, assignee = excluded.assignee, ended_at = NULL;
    RETURN NULL;
END $$;

CREATE FUNCTION taskyard.keep_ended_member() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    INSERT INTO taskyard.mission_task (project, mission, age, id, state, kind, priority, assignee, ended_at)
    VALUES (NEW.project, NEW.mission, NEW.age, NEW.id, NEW.state, NEW.kind, NEW.priority, NEW.assignee, NEW.ended_at)
    ON CONFLICT (project, mission, age) DO UPDATE
    SET id = excluded.id, state = excluded.state, priority = excluded.priority, assignee = excluded.assignee, ended_at = excluded.ended_at;
    RETURN NULL;
END $$;

-- A task that moves from one table to the other is put into the one and taken out of the other by one statement, in either order: only
-- what is still as in the table that it left goes. A row that moves between two partitions of one table stays as it is.
CREATE FUNCTION taskyard.drop_open_member() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    DELETE FROM taskyard.mission_task
    WHERE project = OLD.project AND mission = OLD.of_mission AND age = OLD.age AND state::text NOT IN ('done', 'failed', 'cancelled');
    RETURN NULL;
END $$;

CREATE FUNCTION taskyard.drop_ended_member() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF current_setting('taskyard.moving', true) = 'on' THEN
        RETURN NULL;
    END IF;
    DELETE FROM taskyard.mission_task
    WHERE project = OLD.project AND mission = OLD.mission AND age = OLD.age AND state::text IN ('done', 'failed', 'cancelled');
    RETURN NULL;
END $$;

-- For clients that write a task's mission with its body alone.
CREATE FUNCTION taskyard.tell_mission() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
BEGIN
    UPDATE taskyard.task SET of_mission = NEW.mission
    WHERE project = NEW.project AND age = substr(NEW.id, 5) AND id = NEW.id AND of_mission IS DISTINCT FROM NEW.mission;
    RETURN NULL;
END $$;

CREATE TRIGGER member_added AFTER INSERT ON taskyard.task FOR EACH ROW
    WHEN (NEW.of_mission IS NOT NULL) EXECUTE FUNCTION taskyard.keep_open_member();
CREATE TRIGGER member_moved AFTER UPDATE ON taskyard.task FOR EACH ROW
    WHEN (NEW.of_mission IS NOT NULL AND (OLD.of_mission IS NULL OR OLD.state <> NEW.state OR OLD.priority <> NEW.priority
                                       OR OLD.assignee IS DISTINCT FROM NEW.assignee))
    EXECUTE FUNCTION taskyard.keep_open_member();
CREATE TRIGGER member_gone AFTER DELETE ON taskyard.task FOR EACH ROW
    WHEN (OLD.of_mission IS NOT NULL) EXECUTE FUNCTION taskyard.drop_open_member();
CREATE TRIGGER member_told AFTER INSERT ON taskyard.body FOR EACH ROW
    WHEN (NEW.mission IS NOT NULL) EXECUTE FUNCTION taskyard.tell_mission();
CREATE TRIGGER member_ended AFTER INSERT ON taskyard.ended FOR EACH ROW
    WHEN (NEW.mission IS NOT NULL) EXECUTE FUNCTION taskyard.keep_ended_member();
CREATE TRIGGER member_pruned AFTER DELETE ON taskyard.ended FOR EACH ROW
    WHEN (OLD.mission IS NOT NULL) EXECUTE FUNCTION taskyard.drop_ended_member();

-- Gather tasks of missions from before, some at a time, in the order of age: first the open ones ('o'), then the others ('e'). Gives
-- where to go on; null when all are known.
CREATE FUNCTION taskyard.gather_missions(yard int, past text, most int) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    before text COLLATE "C" := substr(past, 2);
    last text COLLATE "C";
BEGIN
    IF left(past, 1) = 'o' THEN
        SELECT max(batch.age) INTO last FROM (
            SELECT task.age FROM taskyard.task WHERE task.project = yard AND task.age > before ORDER BY task.age LIMIT most) AS batch;
        IF last IS NULL THEN
            RETURN 'e';
        END IF;
        UPDATE taskyard.task SET of_mission = said.mission
        FROM taskyard.task AS open,
             LATERAL (SELECT body.mission FROM taskyard.body WHERE body.project = yard AND body.id = open.id OFFSET 0) AS said
        WHERE open.project = yard AND open.age > before AND open.age <= last AND open.of_mission IS NULL AND said.mission IS NOT NULL
          AND task.project = yard AND task.age = open.age;
        RETURN 'o' || last;
    END IF;
    SELECT max(batch.age) INTO last FROM (
        SELECT ended.age FROM taskyard.ended WHERE ended.project = yard AND ended.age > before ORDER BY ended.age LIMIT most) AS batch;
    IF last IS NULL THEN
        UPDATE taskyard.project SET missions_known = true WHERE project.id = yard;
        RETURN NULL;
    END IF;
    INSERT INTO taskyard.mission_task (project, mission, age, id, state, kind, priority, assignee, ended_at)
    SELECT ended.project, ended.mission, ended.age, ended.id, ended.state, ended.kind, ended.priority, ended.assignee, ended.ended_at
    FROM taskyard.ended
    WHERE ended.project = yard AND ended.age > before AND ended.age <= last AND ended.mission IS NOT NULL
    ON CONFLICT DO NOTHING;
    RETURN 'e' || last;
END $$;

-- Hand out the most urgent, oldest tasks of a mission, one for each nonce as far as there are any. Each is claimed by name, as it is
-- expected to be: what others have locked or taken in this moment is passed over.
CREATE FUNCTION taskyard.claim_of_mission(
    yard int, taker text, wanted text[], in_mission text, nonces text[],
    asked double precision, usual double precision, fallback double precision)
RETURNS TABLE (
    id text, kind text, priority smallint, assignee text, state taskyard.state, fence int, errors int, crashes int, max_attempts smallint,
    own_lease double precision, worker text, nonce text, lease double precision, lease_ends bigint, progress double precision, due bigint,
    uses text[], ended_at bigint, title text, mission text, key text, after text[], verify text, not_before bigint, data text, error text,
    result text)
LANGUAGE plpgsql
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    whole boolean;
    part text[] COLLATE "C";
    next record;
    given int := 0;
BEGIN
    SELECT project.paused, project.paused_kinds INTO whole, part FROM taskyard.project WHERE project.id = yard;
    IF whole THEN
        RETURN;
    END IF;
    FOR next IN
        SELECT member.age, open.fence
        FROM taskyard.mission_task AS member, LATERAL (
            SELECT task.fence FROM taskyard.task
            WHERE task.project = yard AND task.age = member.age AND task.state::text = 'todo'
              AND (task.uses IS NULL OR NOT EXISTS (
                  SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = ANY (task.uses)))
            OFFSET 0) AS open
        WHERE member.project = yard AND member.mission = in_mission AND member.state = 'todo'
          AND (wanted IS NULL OR member.kind = ANY (wanted)) AND member.kind <> ALL (part)
          AND (member.assignee IS NULL OR member.assignee = taker)
        ORDER BY member.priority, member.age
    LOOP
        RETURN QUERY SELECT * FROM taskyard.claim(
            yard, taker, NULL, next.age, next.fence, nonces[given + 1:given + 1], asked, usual, fallback);
        IF FOUND THEN
            given := given + 1;
            EXIT WHEN given = cardinality(nonces);
        END IF;
    END LOOP;
END $$;

-- A page of the tasks of a mission, as taskyard.find gives it.
CREATE FUNCTION taskyard.find_of_mission(
    yard int, wanted taskyard.state[], kinds text[], in_mission text, of_worker text, taker text, past text, most int)
RETURNS TABLE (
    id text, kind text, title text, state taskyard.state, priority smallint, worker text, mission text, assignee text, fence int, age text)
LANGUAGE plpgsql STABLE ROWS 100
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    whole boolean;
    part text[] COLLATE "C";
BEGIN
    SELECT project.paused, project.paused_kinds INTO whole, part FROM taskyard.project WHERE project.id = yard;
    IF whole AND taker IS NOT NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT found.id, found.kind, found.title, found.state, found.priority, found.worker, member.mission, found.assignee, found.fence, member.age
    FROM taskyard.mission_task AS member, LATERAL (
        SELECT task.id, task.kind, said.title, task.state, task.priority, task.worker, task.assignee, task.fence
        FROM taskyard.task, LATERAL (
            SELECT body.title FROM taskyard.body WHERE body.project = yard AND body.id = task.id OFFSET 0) AS said
        WHERE task.project = yard AND task.age = member.age AND task.id = member.id
          AND (of_worker IS NULL OR task.worker = of_worker)
          AND (taker IS NULL OR (
              (task.assignee IS NULL OR task.assignee = taker) AND task.kind <> ALL (part)
              AND (task.uses IS NULL OR NOT EXISTS (
                  SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = ANY (task.uses)))))
        UNION ALL
        SELECT ended.id, ended.kind, ended.title, ended.state, ended.priority, ended.worker, ended.assignee, ended.fence
        FROM taskyard.ended
        WHERE member.state::text IN ('done', 'failed', 'cancelled') AND ended.project = yard AND ended.age = member.age
          AND ended.id = member.id AND (of_worker IS NULL OR ended.worker = of_worker)
        OFFSET 0) AS found
    WHERE member.project = yard AND member.mission = in_mission AND member.age > past AND member.state = ANY (wanted)
      AND (kinds IS NULL OR member.kind = ANY (kinds))
    ORDER BY member.age LIMIT most;
END $$;

-- Whoever may write tasks may write these, in the same projects. A window that is made keeps what is of a mission.
DO $$
DECLARE
    name text;
    crew text;
    text text := pg_get_functiondef('taskyard.give_project(text, name)'::regprocedure);
    part text := pg_get_functiondef('taskyard.make_partition(text, bigint)'::regprocedure);
BEGIN
    FOREACH name IN ARRAY ARRAY['mission', 'mission_task'] LOOP
        EXECUTE format('ALTER TABLE taskyard.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY own ON taskyard.%I USING (EXISTS (SELECT FROM taskyard.project AS yard WHERE yard.id = %I.project OFFSET 0))',
            name, name);
    END LOOP;
    FOR crew IN
        SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
        FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = 'taskyard.task'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.mission, taskyard.mission_task TO %s', crew);
    END LOOP;
    IF position('taskyard.token, taskyard.heartbeat' IN text) = 0 OR position('    EXECUTE format(''LOCK TABLE' IN part) = 0 THEN
        RAISE EXCEPTION 'taskyard.give_project or taskyard.make_partition is not as it was made';
    END IF;
    EXECUTE replace(text, 'taskyard.token, taskyard.heartbeat', 'taskyard.token, taskyard.heartbeat, taskyard.mission, taskyard.mission_task');
    EXECUTE replace(part, '    EXECUTE format(''LOCK TABLE', '    PERFORM set_config(''taskyard.moving'', ''on'', true);' || chr(10) || '    EXECUTE format(''LOCK TABLE');
END $$;
