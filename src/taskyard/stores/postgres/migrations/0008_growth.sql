-- min_client: 1
-- What grows with a yard grows in proportion, whatever the planner knows of the tables. Pages, the log, followers and what is due are
-- functions with settings of their own, as claims and dones are: see 0002.

-- What a task uses is asked for in the claim's own query: a function with a query in it is called anew for each task that is passed over
-- (3.5 us in place of 1).
DO $$
DECLARE
    changed regprocedure;
    text text;
    called text := 'taskyard.is_free(project, uses)';
BEGIN
    FOREACH changed IN ARRAY ARRAY[
        'taskyard.ahead(int, text, int, text)',
        'taskyard.claim(int, text, text[], text, int, text[], double precision, double precision, double precision)']::regprocedure[]
    LOOP
        text := pg_get_functiondef(changed);
        IF position(called IN text) = 0 THEN
            RAISE EXCEPTION '% is not as it was made', changed;
        END IF;
        EXECUTE replace(
            text, called, 'NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = ANY (task.uses))');
    END LOOP;
END $$;

-- Tasks that were blocked, and are needed by nothing that is not done any more: they are free, or wait until they are due.
CREATE FUNCTION taskyard.unblock(yard int, ids text[], teller text, told text) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    free tid[];
BEGIN
    free := ARRAY(
        SELECT (
            SELECT task.ctid FROM taskyard.task
            WHERE task.project = yard AND task.age = substr(next.id, 5) AND task.id = next.id AND task.state::text = 'blocked'
              AND NOT EXISTS (SELECT FROM taskyard.need WHERE need.project = yard AND need.id = task.id)
            FOR NO KEY UPDATE)
        FROM unnest(ids) AS next (id));
    WITH moved AS (
        UPDATE taskyard.task
        SET state = CASE WHEN due > taskyard.now() THEN 'waiting' ELSE 'todo' END::taskyard.state, fence = fence + 1,
            due = CASE WHEN due > taskyard.now() THEN due END
        FROM unnest(free) AS next (place) WHERE task.ctid = next.place
        RETURNING task.*
    )
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT yard, 'unblocked', id, kind, fence, NULL, teller, taskyard.with_due(told, due) FROM moved ORDER BY age;
END $$;

-- Let go what comes after a task that is done. All of it is locked first, in the order of age, so that no two wait for one another; each
-- statement here sees what others have committed before it.
CREATE FUNCTION taskyard.free_followers(yard int, finished text, teller text, told text) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    followers text[] COLLATE "C" := ARRAY(SELECT id FROM taskyard.need WHERE project = yard AND other = finished ORDER BY substr(id, 5));
BEGIN
    PERFORM (SELECT 1 FROM taskyard.task WHERE project = yard AND age = substr(next.id, 5) FOR NO KEY UPDATE)
    FROM unnest(followers) AS next (id);
    DELETE FROM taskyard.need WHERE project = yard AND other = finished;
    PERFORM taskyard.unblock(yard, followers, teller, told);
END $$;

-- Put waiting tasks that are due into todo, each only if it still stands there; gives the ids of those that were. One that is locked is
-- left out: nobody waits for another's sake.
CREATE FUNCTION taskyard.wake(yard int, ages text[], ids text[], fences int[], to_fences int[], teller text)
RETURNS SETOF text LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    free tid[] := ARRAY(
        SELECT (
            SELECT ctid FROM taskyard.task
            WHERE project = yard AND age = next.age AND id = next.id AND state::text = 'waiting' AND fence = next.fence
            FOR NO KEY UPDATE SKIP LOCKED)
        FROM unnest(ages, ids, fences) WITH ORDINALITY AS next (age, id, fence, place) ORDER BY place);
BEGIN
    RETURN QUERY
    WITH moved AS (
        UPDATE taskyard.task SET state = 'todo', fence = next.to_fence, due = NULL
        FROM unnest(free, to_fences) AS next (place, to_fence) WHERE task.ctid = next.place
        RETURNING task.*
    ),
    told AS (
        INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by)
        SELECT yard, 'due', id, kind, fence, NULL, teller FROM moved ORDER BY age
    )
    SELECT id FROM moved;
    IF FOUND THEN
        PERFORM taskyard.ring(yard);
    END IF;
END $$;

-- A page of tasks, in the order of age, from behind one. Kinds, mission and worker that are null are any. With a taker, what that worker
-- could be handed. Tasks are read in their order until the page is full: without these settings the planner would rather read and
-- sort all of them, as long as nobody has told it how many there are.
CREATE FUNCTION taskyard.find(
    yard int, states taskyard.state[], kinds text[], in_mission text, of_worker text, taker text, past text, most int)
RETURNS TABLE (
    id text, kind text, title text, state taskyard.state, priority smallint, worker text, mission text, assignee text, fence int, age text)
LANGUAGE plpgsql STABLE ROWS 100
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    whole boolean;
    part text[] COLLATE "C";
    some_open boolean := states && ARRAY['waiting', 'blocked', 'todo', 'processing']::taskyard.state[];
    some_over boolean := states && ARRAY['done', 'failed', 'cancelled']::taskyard.state[];
BEGIN
    SELECT project.paused, project.paused_kinds INTO whole, part FROM taskyard.project WHERE project.id = yard;
    IF whole AND taker IS NOT NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
    (SELECT task.id, task.kind, said.title, task.state, task.priority, task.worker, said.mission, task.assignee, task.fence, task.age
     FROM taskyard.task,
          LATERAL (SELECT title, mission FROM taskyard.body WHERE body.project = yard AND body.id = task.id OFFSET 0) AS said
     WHERE some_open AND task.project = yard AND task.age > past AND task.state = ANY (states)
       AND (kinds IS NULL OR task.kind = ANY (kinds)) AND (of_worker IS NULL OR task.worker = of_worker)
       AND (in_mission IS NULL OR said.mission = in_mission)
       AND (taker IS NULL OR (
           (task.assignee IS NULL OR task.assignee = taker) AND task.kind <> ALL (part)
           AND (task.uses IS NULL OR NOT EXISTS (
               SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = ANY (task.uses)))))
     ORDER BY task.age LIMIT most)
    UNION ALL
    (SELECT ended.id, ended.kind, ended.title, ended.state, ended.priority, ended.worker, ended.mission, ended.assignee, ended.fence, ended.age
     FROM taskyard.ended
     WHERE some_over AND ended.project = yard AND ended.age > past AND ended.state = ANY (states)
       AND (kinds IS NULL OR ended.kind = ANY (kinds)) AND (of_worker IS NULL OR ended.worker = of_worker)
       AND (in_mission IS NULL OR ended.mission = in_mission)
     ORDER BY ended.age LIMIT most)
    ORDER BY age LIMIT most;
END $$;

-- A page of the log, in the order in which it is read: what `seen` could not see, and `until` could, from behind an event. Conditions
-- that are null are none.
CREATE FUNCTION taskyard.log(
    yard int, seen pg_snapshot, until pg_snapshot, from_xid xid8, from_n bigint, of_task text, of_worker text, of_kind text, since bigint,
    names text[], most int)
RETURNS TABLE (
    xid xid8, n bigint, at bigint, event text, task text, kind text, fence int, worker text, by text, more text)
LANGUAGE plpgsql STABLE ROWS 100
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    first xid8 := coalesce(from_xid, pg_snapshot_xmin(seen));
    before bigint := coalesce(from_n, 0);
    earliest bigint := coalesce(since, 0);
BEGIN
    IF of_task IS NOT NULL THEN
        RETURN QUERY
        SELECT event.xid, event.n, event.at, event.event, event.task, event.kind, event.fence, event.worker, event.by, event.more
        FROM taskyard.event
        WHERE event.project = yard AND event.task = of_task AND (event.xid, event.n) > (first, before) AND event.at >= earliest
          AND NOT pg_visible_in_snapshot(event.xid, seen) AND (until IS NULL OR pg_visible_in_snapshot(event.xid, until))
          AND (of_worker IS NULL OR event.worker = of_worker OR event.by = of_worker) AND (of_kind IS NULL OR event.kind = of_kind)
          AND (names IS NULL OR event.event = ANY (names))
        ORDER BY event.xid, event.n LIMIT most;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT event.xid, event.n, event.at, event.event, event.task, event.kind, event.fence, event.worker, event.by, event.more
    FROM taskyard.event
    WHERE event.project = yard AND (event.xid, event.n) > (first, before) AND event.at >= earliest
      AND NOT pg_visible_in_snapshot(event.xid, seen) AND (until IS NULL OR pg_visible_in_snapshot(event.xid, until))
      AND (of_worker IS NULL OR event.worker = of_worker OR event.by = of_worker) AND (of_kind IS NULL OR event.kind = of_kind)
      AND (names IS NULL OR event.event = ANY (names))
    ORDER BY event.xid, event.n LIMIT most;
END $$;

-- Until 17 a plan that the settings forbid and that is the only one costs as much as if it read a billion rows, and is compiled for that:
-- a claim took 20 to 100 times as long.
DO $$
DECLARE
    made regprocedure;
BEGIN
    FOR made IN SELECT oid FROM pg_proc WHERE pronamespace = 'taskyard'::regnamespace AND proconfig IS NOT NULL LOOP
        EXECUTE format('ALTER FUNCTION %s SET jit = off', made);
    END LOOP;
END $$;
