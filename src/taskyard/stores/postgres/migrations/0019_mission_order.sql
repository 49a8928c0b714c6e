-- min_client: 1
-- Tasks of a mission in the order of claims: by kind without a look at the mission's other kinds, and with ageing.

-- One pass over the members of missions, during which they cannot be changed. A million of them, on a busy machine with 2 cores:
-- half a second with a tenth in todo, 2.3 s with all.
CREATE INDEX mission_task_of_kind ON taskyard.mission_task (project, mission, kind, priority, age) WHERE state = 'todo';

-- The kinds of a mission that have something in todo, without those in `part`.
CREATE FUNCTION taskyard.mission_kinds(yard int, in_mission text, part text[]) RETURNS text[] LANGUAGE plpgsql STABLE
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    kinds text[] COLLATE "C" := '{}';
    last text COLLATE "C" := '';
BEGIN
    LOOP
        SELECT kind INTO last FROM taskyard.mission_task
        WHERE project = yard AND mission = in_mission AND state = 'todo' AND kind > last
        ORDER BY project, mission, kind LIMIT 1;
        EXIT WHEN NOT FOUND;
        IF last <> ALL (part) THEN
            kinds := kinds || last;
        END IF;
    END LOOP;
    RETURN kinds;
END $$;

-- The first tasks of a mission from level to level of priority, of these kinds (null: of all): without ageing until there are `width` of
-- them, with ageing of every level. `free`: those that can have what they use; else whatever they use. What is equal is asked for as a
-- range: an equal column is none to sort by, and an index without it would do as well, which has the mission's other tasks.
CREATE FUNCTION taskyard.first_of_mission(
    yard int, taker text, kinds text[], in_mission text, ageing double precision, width int, free boolean, resources text[], ages text[])
RETURNS TABLE (age text, priority smallint, fence int, uses text[]) LANGUAGE plpgsql STABLE ROWS 100
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    wanted text COLLATE "C";
    number int;
    enough int := 0;
BEGIN
    FOR level IN 0 .. 9 LOOP
        FOREACH wanted IN ARRAY coalesce(kinds, ARRAY[NULL::text]) LOOP
            IF wanted IS NULL THEN
                RETURN QUERY
                SELECT member.age, member.priority, open.fence, open.uses
                FROM taskyard.mission_task AS member, LATERAL (
                    SELECT fence, uses FROM taskyard.task
                    WHERE task.project = yard AND task.age = member.age AND task.state::text = 'todo'
                      AND (task.uses IS NULL OR NOT free OR taskyard.can_have(yard, member.age, task.uses, resources, ages))
                    OFFSET 0) AS open
                WHERE member.project = yard AND member.mission = in_mission AND member.state = 'todo'
                  AND member.priority >= level::smallint AND member.priority <= level::smallint
                  AND (member.assignee IS NULL OR member.assignee = taker)
                ORDER BY member.priority, member.age LIMIT width;
            ELSE
                RETURN QUERY
                SELECT member.age, member.priority, open.fence, open.uses
                FROM taskyard.mission_task AS member, LATERAL (
                    SELECT fence, uses FROM taskyard.task
                    WHERE task.project = yard AND task.age = member.age AND task.state::text = 'todo'
                      AND (task.uses IS NULL OR NOT free OR taskyard.can_have(yard, member.age, task.uses, resources, ages))
                    OFFSET 0) AS open
                WHERE member.project = yard AND member.mission = in_mission AND member.state = 'todo'
                  AND (member.kind, member.priority) >= (wanted, level::smallint)
                  AND (member.kind, member.priority) <= (wanted, level::smallint)
                  AND (member.assignee IS NULL OR member.assignee = taker)
                ORDER BY member.kind, member.priority, member.age LIMIT width;
            END IF;
            GET DIAGNOSTICS number = ROW_COUNT;
            enough := enough + number;
        END LOOP;
        EXIT WHEN ageing IS NULL AND enough >= width;
    END LOOP;
END $$;

-- Hand out the first tasks of a mission in the order of claims, one for each nonce as far as there are any. Each is claimed by name, as it
-- is expected to be: what others have locked or taken in this moment is passed over. With ageing, what is passed over at the head of a level
-- because something that it uses is in use is noted, so that this is kept for it once it is old.
CREATE OR REPLACE FUNCTION taskyard.claim_of_mission(
    yard int, taker text, wanted text[], in_mission text, nonces text[],
    asked double precision, usual double precision, fallback double precision)
RETURNS TABLE (
    id text, kind text, priority smallint, assignee text, state taskyard.state, fence int, errors int, crashes int, max_attempts smallint,
    own_lease double precision, worker text, nonce text, lease double precision, lease_ends bigint, progress double precision, due bigint,
    uses text[], ended_at bigint, title text, mission text, key text, after text[], verify text, not_before bigint, data text, error text,
    result text)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    whole boolean;
    part text[] COLLATE "C";
    kinds text[] COLLATE "C" := wanted;
    ageing double precision := nullif(current_setting('taskyard.ageing', true), '')::double precision;
    resources text[] COLLATE "C";
    ages text[] COLLATE "C";
    width int := greatest(8, cardinality(nonces) + cardinality(nonces) / 4);
    next record;
    seen boolean;
    given int := 0;
BEGIN
    SELECT project.paused, taskyard.held_back(project.id, project.paused_kinds, project.limits) INTO whole, part
    FROM taskyard.project WHERE project.id = yard;
    IF whole THEN
        RETURN;
    END IF;
    IF cardinality(part) > 0 THEN
        kinds := ARRAY(
            SELECT DISTINCT kind FROM unnest(coalesce(wanted, taskyard.mission_kinds(yard, in_mission, part))) AS kind
            WHERE kind <> ALL (part));
    END IF;
    IF ageing IS NOT NULL THEN
        IF EXISTS (SELECT FROM taskyard.used WHERE used.project = yard) THEN
            INSERT INTO taskyard.passed_over (project, age)
            SELECT yard, head.age FROM taskyard.first_of_mission(yard, taker, kinds, in_mission, ageing, 8, false, NULL, NULL) AS head
            WHERE taskyard.may_starve(head.uses) AND NOT taskyard.can_have(yard, head.age, head.uses, NULL, NULL)
              AND NOT EXISTS (SELECT FROM taskyard.passed_over AS known WHERE known.project = yard AND known.age = head.age)
            ON CONFLICT DO NOTHING;
        END IF;
        SELECT kept.resources, kept.ages INTO resources, ages FROM taskyard.kept(yard, ageing) AS kept;
    END IF;
    LOOP
        seen := false;
        FOR next IN
            SELECT head.age, head.fence
            FROM taskyard.first_of_mission(yard, taker, kinds, in_mission, ageing, width, true, resources, ages) AS head
            ORDER BY taskyard.place_of(head.age, head.priority, ageing), head.age
        LOOP
            seen := true;
            RETURN QUERY SELECT * FROM taskyard.claim(
                yard, taker, NULL, next.age, next.fence, nonces[given + 1:given + 1], asked, usual, fallback);
            IF FOUND THEN
                given := given + 1;
                EXIT WHEN given = cardinality(nonces);
            END IF;
        END LOOP;
        EXIT WHEN NOT seen OR given > 0 OR width > 4096;
        width := width * 8;
    END LOOP;
END $$;

-- What a worker could be handed of a mission, as taskyard.ready gives it.
CREATE FUNCTION taskyard.ready_of_mission(
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
    SELECT project.paused, taskyard.held_back(project.id, project.paused_kinds, project.limits) INTO whole, part
    FROM taskyard.project WHERE project.id = yard;
    IF whole THEN
        RETURN;
    END IF;
    IF cardinality(part) > 0 THEN
        kinds := ARRAY(
            SELECT DISTINCT kind FROM unnest(coalesce(wanted, taskyard.mission_kinds(yard, in_mission, part))) AS kind
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
            SELECT task.id, task.kind, said.title, task.state, task.priority, task.worker, in_mission, task.assignee, task.fence,
                   task.age, taskyard.place_of(task.age, task.priority, ageing) AS place
            FROM (
                (SELECT open.* FROM taskyard.mission_task AS member, LATERAL (
                    SELECT * FROM taskyard.task
                    WHERE task.project = yard AND task.age = member.age AND task.state::text = 'todo'
                      AND (task.uses IS NULL OR taskyard.can_have(yard, member.age, task.uses, resources, ages))
                    OFFSET 0) AS open
                 WHERE kinds IS NULL AND member.project = yard AND member.mission = in_mission AND member.state = 'todo'
                   AND (member.priority, member.age) > (level::smallint, start) AND member.priority <= level::smallint
                   AND (member.assignee IS NULL OR member.assignee = taker)
                 ORDER BY member.priority, member.age LIMIT most)
                UNION ALL
                SELECT each.* FROM unnest(kinds) AS asked (kind), LATERAL (
                    SELECT open.* FROM taskyard.mission_task AS member, LATERAL (
                        SELECT * FROM taskyard.task
                        WHERE task.project = yard AND task.age = member.age AND task.state::text = 'todo'
                          AND (task.uses IS NULL OR taskyard.can_have(yard, member.age, task.uses, resources, ages))
                        OFFSET 0) AS open
                    WHERE member.project = yard AND member.mission = in_mission AND member.state = 'todo'
                      AND (member.kind, member.priority, member.age) > (asked.kind COLLATE "C", level::smallint, start)
                      AND (member.kind, member.priority) <= (asked.kind COLLATE "C", level::smallint)
                      AND (member.assignee IS NULL OR member.assignee = taker)
                    ORDER BY member.kind, member.priority, member.age LIMIT most) AS each
            ) AS task, LATERAL (SELECT title FROM taskyard.body WHERE body.project = yard AND body.id = task.id OFFSET 0) AS said
        ) AS page
        WHERE past IS NULL OR (page.place, page.age) > (past, past_age)
        ORDER BY page.age LIMIT most;
        GET DIAGNOSTICS found = ROW_COUNT;
        enough := enough + found;
        EXIT WHEN ageing IS NULL AND enough >= most;
    END LOOP;
END $$;
