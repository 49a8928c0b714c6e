-- min_client: 1
-- What is ready, in the order of claims; and ageing: a level of priority is worth some seconds of age, and what an old task needs that
-- uses several things is kept for it.

-- Tasks that use several things, and that a claim has passed over because one of them was in use. A row counts while its task is in todo.
CREATE TABLE taskyard.passed_over (
    project int NOT NULL,
    age text COLLATE "C" NOT NULL,
    PRIMARY KEY (project, age)
);

DO $$
DECLARE
    crew text;
    changed regprocedure;
    text text;
    found text;
    put text;
BEGIN
    ALTER TABLE taskyard.passed_over ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON taskyard.passed_over
        USING (EXISTS (SELECT FROM taskyard.project AS yard WHERE yard.id = passed_over.project OFFSET 0));
    -- Whoever may write tasks.
    FOR crew IN
        SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
        FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = 'taskyard.task'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.passed_over TO %s', crew);
    END LOOP;
    -- Changed where they stand: what came before this may have changed them as well.
    FOR changed, found, put IN VALUES
        ('taskyard.give_project(text, name)'::regprocedure, 'taskyard.used,', 'taskyard.used, taskyard.passed_over,'),
        ((SELECT oid::regprocedure FROM pg_proc WHERE proname = 'claim' AND pronamespace = 'taskyard'::regnamespace
          ORDER BY pronargs DESC LIMIT 1),
         'ELSIF cardinality(kinds) <> 1',
         'ELSIF current_setting(''taskyard.ageing'', true) <> '''' THEN
            picked := taskyard.pick_aged(yard, taker, kinds, number, current_setting(''taskyard.ageing'')::double precision);
        ELSIF cardinality(kinds) <> 1')
    LOOP
        text := pg_get_functiondef(changed);
        IF position(found IN text) = 0 THEN
            RAISE EXCEPTION '% is not as it was made', changed;
        END IF;
        EXECUTE replace(text, found, put);
    END LOOP;
END $$;

-- The time in an age, in ticks.
CREATE FUNCTION taskyard.ticks_of(age text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$ SELECT sum((strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(age, place, 1)) - 1)::bigint << (5 * (9 - place)))::bigint
   FROM generate_series(1, 9) AS place $$;

-- Where a task comes in the order of claims: ticks, if a level of priority is worth some; among equals the older is first.
CREATE FUNCTION taskyard.place_of(age text, priority int, ageing double precision) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN ageing IS NULL THEN priority ELSE taskyard.ticks_of(age) + priority * round(ageing * 32000)::bigint END $$;

-- What is kept for old tasks that were passed over, each with the age of the oldest of them.
CREATE FUNCTION taskyard.kept(yard int, ageing double precision, OUT resources text[], OUT ages text[]) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    part text[] COLLATE "C" := (SELECT paused_kinds FROM taskyard.project WHERE id = yard);
    young text COLLATE "C" := taskyard.base32(greatest(0, taskyard.ticks() - round(ageing * 32000)::bigint), 9);
BEGIN
    SELECT array_agg(each.resource), array_agg(each.age) INTO resources, ages FROM (
        SELECT wanted.resource, min(waiting.age) AS age
        FROM taskyard.passed_over AS waiting,
             LATERAL (SELECT uses FROM taskyard.task
                      WHERE task.project = yard AND task.age = waiting.age AND task.state::text = 'todo' AND task.kind <> ALL (part)
                      OFFSET 0) AS task,
             unnest(task.uses) AS wanted (resource)
        WHERE waiting.project = yard AND waiting.age < young AND cardinality(task.uses) > 1
        GROUP BY wanted.resource
    ) AS each;
END $$;

-- The first tasks of each level of priority, of these kinds (null: of all), for anybody and for this worker. `free`: those that can have
-- what they use; else whatever they use.
CREATE FUNCTION taskyard.first_of_levels(
    yard int, taker text, kinds text[], width int, free boolean, resources text[], ages text[])
RETURNS TABLE (age text, priority smallint, uses text[]) LANGUAGE plpgsql STABLE ROWS 100
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    wanted text COLLATE "C";
    holder text COLLATE "C";
    level smallint;
BEGIN
    FOREACH holder IN ARRAY ARRAY[NULL, taker] LOOP
        FOREACH wanted IN ARRAY coalesce(kinds, ARRAY[NULL::text]) LOOP
            level := -1;
            LOOP  -- from one level that has a task to the next
                IF holder IS NULL AND wanted IS NULL THEN
                    SELECT priority INTO level FROM taskyard.task
                    WHERE project = yard AND state = 'todo' AND assignee IS NULL AND priority > level ORDER BY priority, age LIMIT 1;
                    EXIT WHEN NOT FOUND;
                    RETURN QUERY
                    SELECT age, priority, uses FROM taskyard.task
                    WHERE project = yard AND state = 'todo' AND assignee IS NULL AND priority = level
                      AND (uses IS NULL OR NOT free OR taskyard.can_have(yard, age, uses, resources, ages))
                    ORDER BY priority, age LIMIT width;
                ELSIF holder IS NULL THEN
                    SELECT priority INTO level FROM taskyard.task
                    WHERE project = yard AND state = 'todo' AND assignee IS NULL AND kind = wanted AND priority > level
                    ORDER BY priority, age LIMIT 1;
                    EXIT WHEN NOT FOUND;
                    RETURN QUERY
                    SELECT age, priority, uses FROM taskyard.task
                    WHERE project = yard AND state = 'todo' AND assignee IS NULL AND kind = wanted AND priority = level
                      AND (uses IS NULL OR NOT free OR taskyard.can_have(yard, age, uses, resources, ages))
                    ORDER BY priority, age LIMIT width;
                ELSIF wanted IS NULL THEN
                    SELECT priority INTO level FROM taskyard.task
                    WHERE project = yard AND state = 'todo' AND assignee = holder AND priority > level ORDER BY priority, age LIMIT 1;
                    EXIT WHEN NOT FOUND;
                    RETURN QUERY
                    SELECT age, priority, uses FROM taskyard.task
                    WHERE project = yard AND state = 'todo' AND assignee = holder AND priority = level
                      AND (uses IS NULL OR NOT free OR taskyard.can_have(yard, age, uses, resources, ages))
                    ORDER BY priority, age LIMIT width;
                ELSE
                    SELECT priority INTO level FROM taskyard.task
                    WHERE project = yard AND state = 'todo' AND assignee = holder AND kind = wanted AND priority > level
                    ORDER BY priority, age LIMIT 1;
                    EXIT WHEN NOT FOUND;
                    RETURN QUERY
                    SELECT age, priority, uses FROM taskyard.task
                    WHERE project = yard AND state = 'todo' AND assignee = holder AND kind = wanted AND priority = level
                      AND (uses IS NULL OR NOT free OR taskyard.can_have(yard, age, uses, resources, ages))
                    ORDER BY priority, age LIMIT width;
                END IF;
            END LOOP;
        END LOOP;
    END LOOP;
END $$;

-- Whether a task can have what it uses: nobody has it, and it is kept for none that is older.
CREATE FUNCTION taskyard.can_have(yard int, age text, uses text[], resources text[], ages text[]) RETURNS boolean
LANGUAGE sql STABLE AS
$$ SELECT NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = $1 AND used.resource = ANY ($3))
      AND NOT EXISTS (SELECT FROM unnest($4, $5) AS kept (resource, age)
                      WHERE kept.resource = ANY ($3) AND kept.age < $2 COLLATE "C") $$;

-- Lock the first tasks in the order of claims with ageing: the heads of all levels of priority, compared. What is passed over at the head
-- of a level and uses several things is noted first, so that these are kept for it once it is old.
CREATE FUNCTION taskyard.pick_aged(yard int, taker text, kinds text[], number int, ageing double precision) RETURNS text[]
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    picked text[] COLLATE "C" := '{}';
    resources text[] COLLATE "C";
    ages text[] COLLATE "C";
    width int := greatest(8, number + number / 4);
    next text COLLATE "C";
    seen boolean;
BEGIN
    DELETE FROM taskyard.passed_over AS gone
    WHERE gone.project = yard AND NOT EXISTS (
        SELECT FROM taskyard.task WHERE task.project = yard AND task.age = gone.age AND task.state::text = 'todo');
    SELECT kept.resources, kept.ages INTO resources, ages FROM taskyard.kept(yard, ageing) AS kept;
    IF EXISTS (SELECT FROM taskyard.used WHERE project = yard) THEN
        INSERT INTO taskyard.passed_over (project, age)
        SELECT yard, head.age FROM taskyard.first_of_levels(yard, taker, kinds, 8, false, NULL, NULL) AS head
        WHERE cardinality(head.uses) > 1 AND NOT taskyard.can_have(yard, head.age, head.uses, resources, ages)
          AND NOT EXISTS (SELECT FROM taskyard.passed_over AS known WHERE known.project = yard AND known.age = head.age)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            SELECT kept.resources, kept.ages INTO resources, ages FROM taskyard.kept(yard, ageing) AS kept;
        END IF;
    END IF;
    LOOP
        seen := false;
        FOR next IN
            SELECT head.age FROM taskyard.first_of_levels(yard, taker, kinds, width, true, resources, ages) AS head
            ORDER BY taskyard.place_of(head.age, head.priority, ageing), head.age
        LOOP
            seen := true;
            PERFORM FROM taskyard.task
            WHERE project = yard AND age = next AND state::text = 'todo' AND coalesce(assignee, taker) = taker
              AND (uses IS NULL OR taskyard.can_have(yard, age, uses, resources, ages))
            FOR NO KEY UPDATE SKIP LOCKED;
            IF FOUND THEN
                picked := picked || next;
                EXIT WHEN cardinality(picked) = number;
            END IF;
        END LOOP;
        EXIT WHEN NOT seen OR cardinality(picked) > 0 OR width > 4096;
        width := width * 8;
    END LOOP;
    RETURN picked;
END $$;

-- What a worker could be handed, from behind a task in the order of claims: at least the next `most`, with their places in it. Strictly by
-- priority the levels are read one after the other until there are enough; with ageing all of them, each from where its turn is.
CREATE FUNCTION taskyard.ready(
    yard int, taker text, wanted text[], in_mission text, past_priority int, past_age text, ageing double precision, most int)
RETURNS TABLE (
    id text, kind text, title text, state taskyard.state, priority smallint, worker text, mission text, assignee text, fence int,
    age text, place bigint)
LANGUAGE plpgsql STABLE ROWS 100
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    whole boolean;
    part text[] COLLATE "C";
    kinds text[] COLLATE "C" := wanted;
    resources text[] COLLATE "C";
    ages text[] COLLATE "C";
    past bigint := taskyard.place_of(past_age, past_priority, ageing);
    start text COLLATE "C";
    found int;
    enough int := 0;
BEGIN
    SELECT paused, paused_kinds INTO whole, part FROM taskyard.project WHERE project.id = yard;
    IF whole THEN
        RETURN;
    END IF;
    IF cardinality(part) > 0 THEN
        kinds := ARRAY(
            SELECT DISTINCT kind FROM unnest(coalesce(wanted, ARRAY(SELECT taskyard.ready_kinds(yard, taker)))) AS kind
            WHERE kind <> ALL (part));
    END IF;
    IF ageing IS NOT NULL THEN
        SELECT kept.resources, kept.ages INTO resources, ages FROM taskyard.kept(yard, ageing) AS kept;
    END IF;
    FOR level IN CASE WHEN ageing IS NULL THEN coalesce(past_priority, 0) ELSE 0 END .. 9 LOOP
        start := CASE
            WHEN past_age IS NULL OR (ageing IS NULL AND level > past_priority) THEN ''
            WHEN ageing IS NULL THEN past_age
            ELSE taskyard.base32(greatest(0, past - level * round(ageing * 32000)::bigint), 9) END;
        RETURN QUERY
        SELECT page.* FROM (
            SELECT task.id, task.kind, said.title, task.state, task.priority, task.worker, said.mission, task.assignee, task.fence,
                   task.age, taskyard.place_of(task.age, task.priority, ageing) AS place
            FROM (
                (SELECT * FROM taskyard.task
                 WHERE kinds IS NULL AND project = yard AND state = 'todo' AND assignee IS NULL AND priority = level::smallint
                   AND age > start AND (uses IS NULL OR taskyard.can_have(yard, age, uses, resources, ages))
                   AND (in_mission IS NULL OR EXISTS (
                       SELECT FROM taskyard.body WHERE body.project = yard AND body.id = task.id AND body.mission = in_mission))
                 ORDER BY priority, age LIMIT most)
                UNION ALL
                (SELECT * FROM taskyard.task
                 WHERE kinds IS NULL AND project = yard AND state = 'todo' AND assignee = taker AND priority = level::smallint
                   AND age > start AND (uses IS NULL OR taskyard.can_have(yard, age, uses, resources, ages))
                   AND (in_mission IS NULL OR EXISTS (
                       SELECT FROM taskyard.body WHERE body.project = yard AND body.id = task.id AND body.mission = in_mission))
                 ORDER BY priority, age LIMIT most)
                UNION ALL
                SELECT each.* FROM unnest(kinds) AS asked (kind), LATERAL (
                    SELECT * FROM taskyard.task
                    WHERE project = yard AND state = 'todo' AND assignee IS NULL AND kind = asked.kind AND priority = level::smallint
                      AND age > start AND (uses IS NULL OR taskyard.can_have(yard, age, uses, resources, ages))
                      AND (in_mission IS NULL OR EXISTS (
                          SELECT FROM taskyard.body WHERE body.project = yard AND body.id = task.id AND body.mission = in_mission))
                    ORDER BY priority, age LIMIT most) AS each
                UNION ALL
                SELECT each.* FROM unnest(kinds) AS asked (kind), LATERAL (
                    SELECT * FROM taskyard.task
                    WHERE project = yard AND state = 'todo' AND assignee = taker AND kind = asked.kind AND priority = level::smallint
                      AND age > start AND (uses IS NULL OR taskyard.can_have(yard, age, uses, resources, ages))
                      AND (in_mission IS NULL OR EXISTS (
                          SELECT FROM taskyard.body WHERE body.project = yard AND body.id = task.id AND body.mission = in_mission))
                    ORDER BY priority, age LIMIT most) AS each
            ) AS task, LATERAL (SELECT title, mission FROM taskyard.body WHERE body.project = yard AND body.id = task.id OFFSET 0) AS said
        ) AS page
        WHERE past IS NULL OR (page.place, page.age) > (past, past_age)
        ORDER BY page.age LIMIT most;
        GET DIAGNOSTICS found = ROW_COUNT;
        enough := enough + found;
        EXIT WHEN ageing IS NULL AND enough >= most;
    END LOOP;
END $$;

-- The newest events of a project.
CREATE FUNCTION taskyard.newest_events(yard int, most int) RETURNS TABLE (event text, at bigint) LANGUAGE plpgsql STABLE ROWS 1000
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT event, at FROM taskyard.event WHERE project = yard ORDER BY xid DESC, n DESC LIMIT most;
END $$;

-- The oldest task in todo, in processing and in blocked, by hopping through the indexes of what may be claimed.
CREATE FUNCTION taskyard.oldest(yard int) RETURNS TABLE (state taskyard.state, id text) LANGUAGE plpgsql STABLE ROWS 3
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    holder text COLLATE "C" := '';
    first text COLLATE "C";
    next text COLLATE "C";
BEGIN
    FOR level IN 0 .. 9 LOOP
        SELECT age INTO next FROM taskyard.task
        WHERE project = yard AND state = 'todo' AND assignee IS NULL AND priority = level::smallint ORDER BY priority, age LIMIT 1;
        first := least(first, next);
    END LOOP;
    FOR many IN 1 .. 100 LOOP
        SELECT assignee INTO holder FROM taskyard.task
        WHERE project = yard AND state = 'todo' AND assignee IS NOT NULL AND assignee > holder ORDER BY assignee LIMIT 1;
        EXIT WHEN holder IS NULL;
        FOR level IN 0 .. 9 LOOP
            SELECT age INTO next FROM taskyard.task
            WHERE project = yard AND state = 'todo' AND assignee = holder AND priority = level::smallint ORDER BY priority, age LIMIT 1;
            first := least(first, next);
        END LOOP;
    END LOOP;
    RETURN QUERY SELECT 'todo'::taskyard.state, id FROM taskyard.task WHERE project = yard AND age = first;
    RETURN QUERY SELECT 'processing'::taskyard.state, id FROM taskyard.task
                 WHERE project = yard AND state = 'processing' ORDER BY age LIMIT 1;
    RETURN QUERY SELECT 'blocked'::taskyard.state, id FROM taskyard.task
                 WHERE project = yard AND state = 'blocked' ORDER BY age LIMIT 1;
END $$;
