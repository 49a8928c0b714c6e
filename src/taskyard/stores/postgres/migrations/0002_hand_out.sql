-- min_client: 1
-- Claims and dones as functions: as one statement each they had a dozen steps to be set up, and were planned anew for most
-- calls. Plans are generic here, and can only be those that look up a few rows by an index: one that is made before the
-- tables were first analyzed takes them for nearly empty, and would rather read all. A plan lasts as long as its connection: it
-- may have been made when there was next to nothing. So what is joined is named by its key as well, or asked for row by row.

-- The kinds of which something is in todo for this worker, by hopping from one to the next in the index: as many steps as
-- there are kinds.
CREATE FUNCTION taskyard.ready_kinds(yard int, taker text) RETURNS SETOF text LANGUAGE plpgsql STABLE
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    last text COLLATE "C" := '';
BEGIN
    LOOP
        SELECT kind INTO last FROM taskyard.task
        WHERE project = yard AND state = 'todo' AND assignee IS NULL AND kind > last ORDER BY kind LIMIT 1;
        EXIT WHEN last IS NULL;
        RETURN NEXT last;
    END LOOP;
    last := '';
    LOOP
        SELECT kind INTO last FROM taskyard.task
        WHERE project = yard AND state = 'todo' AND assignee = taker AND kind > last ORDER BY kind LIMIT 1;
        EXIT WHEN last IS NULL;
        RETURN NEXT last;
    END LOOP;
END $$;

-- Whether nobody has what a task uses.
CREATE FUNCTION taskyard.is_free(project int, uses text[]) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = $1 AND used.resource = ANY ($2)) $$;

-- Let tasks that are picked have what they use to themselves; gives those that got all of it. Two of them may want the same,
-- and others may have taken it in this moment: whoever comes later waits for their commit, and goes without.
CREATE FUNCTION taskyard.reserve(yard int, picked text[]) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    kept text[] COLLATE "C";
BEGIN
    -- In the order of names, so that no two claims wait for one another.
    INSERT INTO taskyard.used (project, resource, age)
    SELECT DISTINCT ON (resource) yard, resource, next.age
    FROM unnest(picked) WITH ORDINALITY AS next (age, place), taskyard.task, unnest(task.uses) AS resource
    WHERE task.project = yard AND task.age = next.age AND task.age = ANY (picked)
    ORDER BY resource, next.place
    ON CONFLICT DO NOTHING;
    kept := ARRAY(
        SELECT next.age FROM unnest(picked) WITH ORDINALITY AS next (age, place), taskyard.task
        WHERE task.project = yard AND task.age = next.age AND task.age = ANY (picked) AND NOT EXISTS (
            SELECT FROM unnest(task.uses) AS resource WHERE NOT EXISTS (
                SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = resource.resource AND used.age = next.age))
        ORDER BY next.place);
    DELETE FROM taskyard.used USING taskyard.task
    WHERE task.project = yard AND task.age = ANY (picked) AND task.age <> ALL (kept)
      AND used.project = yard AND used.resource = ANY (task.uses) AND used.age = task.age;
    RETURN kept;
END $$;

-- Lock the most urgent, oldest of several kinds, or of everybody's tasks and this worker's own; null kinds are all. The heads
-- are looked at without a lock and locked in their order. More are looked at while others hold all of them: what is locked
-- for somebody else's sake must not look like "nothing ready" to a third.
CREATE FUNCTION taskyard.pick(yard int, taker text, kinds text[], number int) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    picked text[] COLLATE "C" := '{}';
    width int := greatest(8, number + number / 4);
    next text COLLATE "C";
    seen boolean;
BEGIN
    LOOP
        seen := false;
        FOR next IN
            SELECT head.age FROM (
                SELECT * FROM taskyard.head_of_all(yard, taker, width) WHERE kinds IS NULL
                UNION ALL
                SELECT * FROM taskyard.head_of_kinds(yard, taker, kinds, width) WHERE kinds IS NOT NULL
            ) AS head ORDER BY head.priority, head.age
        LOOP
            seen := true;
            PERFORM FROM taskyard.task
            WHERE project = yard AND age = next AND state::text = 'todo' AND coalesce(assignee, taker) = taker
              AND (uses IS NULL OR taskyard.is_free(project, uses))
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

-- Lock the first of everybody's tasks, of one kind or of any (null), from where a claim has just come out of a wade.
--
-- What was handed out leaves a dead entry at the head of the index, and while some transaction keeps its snapshot, nobody can remove
-- it: every claim would wade through all of them. A claim that had to wade (the pages that it read tell: time would tell more about
-- the machine) notes for a second, in its session, where it came out (taskyard.ford: for what, until when, priority, age), and the
-- next ones begin there. What is new and more urgent is found as ever; what comes back from before that point, of a release or a lease
-- that is over, is found within a second, or as soon as nothing else is left.
CREATE FUNCTION taskyard.ahead(yard int, wanted text, number int, noted text) RETURNS text[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    ford text[] COLLATE "C" := string_to_array(noted, ' ');
    fresh text COLLATE "C";
    urgency smallint;
BEGIN
    IF ford[1] <> yard || ':' || md5(coalesce(wanted, '')) OR ford[2]::bigint < taskyard.now() THEN
        RETURN NULL;
    END IF;
    urgency := ford[3]::smallint;
    fresh := taskyard.base32(taskyard.ticks() - 3000 * 32, 9);  -- younger than any that the look before may have missed
    IF wanted IS NULL THEN
        RETURN ARRAY(
            SELECT head.age FROM generate_series(0, urgency) AS level, LATERAL (
                SELECT age FROM taskyard.task
                WHERE project = yard AND state = 'todo' AND assignee IS NULL AND priority = level::smallint
                  AND age >= CASE WHEN level = urgency THEN ford[4] ELSE fresh END
                  AND (uses IS NULL OR taskyard.is_free(project, uses))
                ORDER BY priority, age LIMIT number FOR NO KEY UPDATE SKIP LOCKED
            ) AS head LIMIT number);
    END IF;
    RETURN ARRAY(
        SELECT head.age FROM generate_series(0, urgency) AS level, LATERAL (
            SELECT age FROM taskyard.task
            WHERE project = yard AND state = 'todo' AND assignee IS NULL AND kind = wanted AND priority = level::smallint
              AND age >= CASE WHEN level = urgency THEN ford[4] ELSE fresh END
              AND (uses IS NULL OR taskyard.is_free(project, uses))
            ORDER BY priority, age LIMIT number FOR NO KEY UPDATE SKIP LOCKED
        ) AS head LIMIT number);
END $$;

-- Hand out the most urgent, oldest tasks that serve, one for each nonce as far as there are any; or the one that is named, if
-- it is as expected. Wanted kinds that are null are all.
CREATE FUNCTION taskyard.claim(
    yard int, taker text, wanted text[], named text, expected int, nonces text[],
    asked double precision, usual double precision, fallback double precision)
RETURNS TABLE (
    id text, kind text, priority smallint, assignee text, state taskyard.state, fence int, errors int, crashes int, max_attempts smallint,
    own_lease double precision, worker text, nonce text, lease double precision, lease_ends bigint, progress double precision, due bigint,
    uses text[], ended_at bigint, title text, mission text, key text, after text[], verify text, not_before bigint, data text, error text,
    result text)
LANGUAGE plpgsql
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    number int := cardinality(nonces);
    kinds text[] COLLATE "C" := wanted;
    whole boolean;
    part text[] COLLATE "C";
    picked text[] COLLATE "C";
    found int;
    some_use boolean;
    pages bigint;
    taken taskyard.task;
BEGIN
    SELECT paused, paused_kinds INTO whole, part FROM taskyard.project WHERE id = yard;
    IF whole THEN
        RETURN;
    END IF;
    IF cardinality(part) > 0 AND named IS NULL THEN
        -- What is paused must not be waded through: the kinds that are left are asked for by name.
        kinds := ARRAY(
            SELECT DISTINCT kind FROM unnest(coalesce(wanted, ARRAY(SELECT taskyard.ready_kinds(yard, taker)))) AS kind
            WHERE kind <> ALL (part));
    END IF;

    LOOP
        -- Each of these locks what it picks, and passes over what is locked.
        IF named IS NOT NULL THEN
            SELECT ARRAY[age], uses IS NOT NULL INTO picked, some_use FROM taskyard.task
            WHERE project = yard AND age = named AND state::text = 'todo' AND fence = expected AND kind <> ALL (part)
              AND (uses IS NULL OR taskyard.is_free(project, uses))
            FOR NO KEY UPDATE SKIP LOCKED;
        ELSIF cardinality(kinds) <> 1
            OR EXISTS (SELECT FROM taskyard.task WHERE project = yard AND state = 'todo' AND assignee = taker) THEN
            picked := taskyard.pick(yard, taker, kinds, number);
            some_use := EXISTS (SELECT FROM taskyard.task WHERE project = yard AND age = ANY (picked) AND uses IS NOT NULL);
        ELSE
            picked := NULL;
            IF current_setting('taskyard.ford', true) <> '' THEN
                picked := taskyard.ahead(yard, kinds[1], number, current_setting('taskyard.ford'));
                some_use := EXISTS (SELECT FROM taskyard.task WHERE project = yard AND age = ANY (picked) AND uses IS NOT NULL);
            END IF;
            IF coalesce(cardinality(picked), 0) = 0 THEN
                pages := pg_stat_get_xact_blocks_fetched('taskyard.task'::regclass);
                IF kinds IS NULL THEN
                    SELECT array_agg(age), bool_or(uses IS NOT NULL) INTO picked, some_use FROM (
                        SELECT age, uses FROM taskyard.task
                        WHERE project = yard AND state = 'todo' AND assignee IS NULL AND (uses IS NULL OR taskyard.is_free(project, uses))
                        ORDER BY priority, age LIMIT number FOR NO KEY UPDATE SKIP LOCKED
                    ) AS first;
                ELSE
                    SELECT array_agg(age), bool_or(uses IS NOT NULL) INTO picked, some_use FROM (
                        SELECT age, uses FROM taskyard.task
                        WHERE project = yard AND state = 'todo' AND assignee IS NULL AND kind = kinds[1]
                          AND (uses IS NULL OR taskyard.is_free(project, uses))
                        ORDER BY priority, age LIMIT number FOR NO KEY UPDATE SKIP LOCKED
                    ) AS first;
                END IF;
                IF pg_stat_get_xact_blocks_fetched('taskyard.task'::regclass) - pages > 64 + number AND picked IS NOT NULL THEN
                    PERFORM set_config('taskyard.ford', format(
                        '%s:%s %s %s %s', yard, md5(coalesce(kinds[1], '')), taskyard.now() + 1000, priority, age), false)
                    FROM taskyard.task WHERE project = yard AND age = picked[1];
                END IF;
            END IF;
        END IF;
        found := coalesce(cardinality(picked), 0);
        IF some_use THEN
            picked := taskyard.reserve(yard, picked);
        END IF;
        EXIT WHEN found = 0 OR cardinality(picked) > 0;  -- else all that was found went to others: look again
    END LOOP;
    IF found = 0 THEN
        RETURN;
    END IF;

    -- What they say is read after they were locked: so it is what goes with their fence. One alone is quicker in plain steps.
    IF number = 1 THEN
        UPDATE taskyard.task
        SET state = 'processing', fence = task.fence + 1, worker = taker, nonce = nonces[1], progress = NULL, due = NULL,
            lease = coalesce(asked, task.own_lease, usual, fallback),
            lease_ends = taskyard.now() + (coalesce(asked, task.own_lease, usual, fallback) * 1000)::bigint
        WHERE task.project = yard AND task.age = picked[1]
        RETURNING task.* INTO taken;
        INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by)
        VALUES (yard, 'claimed', taken.id, taken.kind, taken.fence, taker, taker);
        RETURN QUERY
        SELECT taken.id, taken.kind, taken.priority, taken.assignee, taken.state, taken.fence, taken.errors, taken.crashes,
               taken.max_attempts, taken.own_lease, taken.worker, taken.nonce, taken.lease, taken.lease_ends, taken.progress, taken.due,
               taken.uses, NULL::bigint, title, mission, key, after, verify, not_before, data, error, NULL::text
        FROM taskyard.body WHERE body.project = yard AND body.id = taken.id;
        PERFORM taskyard.ring(yard);
        RETURN;
    END IF;
    RETURN QUERY
    WITH claimed AS (
        UPDATE taskyard.task
        SET state = 'processing', fence = task.fence + 1, worker = taker, nonce = handed.nonce, progress = NULL, due = NULL,
            lease = coalesce(asked, task.own_lease, usual, fallback),
            lease_ends = taskyard.now() + (coalesce(asked, task.own_lease, usual, fallback) * 1000)::bigint
        FROM unnest(picked, nonces[1:cardinality(picked)]) AS handed (age, nonce)
        WHERE task.project = yard AND task.age = handed.age AND task.age = ANY (picked)
        RETURNING task.*
    ),
    told AS (
        INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by)
        SELECT yard, 'claimed', id, kind, fence, taker, taker FROM claimed
    )
    SELECT task.id, task.kind, task.priority, task.assignee, task.state, task.fence, task.errors, task.crashes, task.max_attempts,
           task.own_lease, task.worker, task.nonce, task.lease, task.lease_ends, task.progress, task.due, task.uses, NULL::bigint,
           title, mission, key, after, verify, not_before, data, error, NULL::text
    FROM claimed AS task, LATERAL (SELECT * FROM taskyard.body WHERE body.project = yard AND body.id = task.id OFFSET 0) AS body;
    PERFORM taskyard.ring(yard);
END $$;

-- End tasks as done, each only if this claim still holds it; gives the ids of those that were. Left out are tasks that others
-- come after or that had something to themselves: those take a transaction that sees to it. Among several, one that is locked
-- is left out as well: nobody waits for another's sake.
CREATE FUNCTION taskyard.finish(yard int, ages text[], ids text[], fences int[], nonces text[], results text[], teller text)
RETURNS SETOF text LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    free tid[];
    gone taskyard.task;
    content taskyard.body;
BEGIN
    IF cardinality(ages) = 1 THEN
        DELETE FROM taskyard.task
        WHERE project = yard AND age = ages[1] AND id = ids[1] AND state::text = 'processing' AND fence = fences[1] AND nonce = nonces[1]
          AND NOT followed AND uses IS NULL
        RETURNING task.* INTO gone;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        DELETE FROM taskyard.body WHERE project = yard AND id = gone.id RETURNING body.* INTO content;
        INSERT INTO taskyard.ended (
            project, age, id, state, kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease, followed,
            worker, nonce, ended_at, title, mission, key, after, verify, not_before, data, error, result)
        VALUES (yard, gone.age, gone.id, 'done', gone.kind, gone.priority, gone.assignee, gone.fence, gone.errors, gone.crashes,
                gone.max_attempts, gone.own_lease, false, gone.worker, gone.nonce, taskyard.now(), content.title, content.mission,
                content.key, content.after, content.verify, content.not_before, content.data, content.error, results[1]);
        INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by)
        VALUES (yard, 'done', gone.id, gone.kind, gone.fence, gone.worker, teller);
        PERFORM taskyard.ring(yard);
        RETURN NEXT gone.id;
        RETURN;
    END IF;
    -- Rows are deleted by where they are, once they were looked up one by one: a join would compare all with all.
    free := ARRAY(
        SELECT (
            SELECT ctid FROM taskyard.task
            WHERE project = yard AND age = ending.age AND id = ending.id AND state::text = 'processing' AND fence = ending.fence
              AND nonce = ending.nonce AND NOT followed AND uses IS NULL
            FOR UPDATE SKIP LOCKED)
        FROM unnest(ages, ids, fences, nonces) WITH ORDINALITY AS ending (age, id, fence, nonce, place) ORDER BY place);
    RETURN QUERY
    WITH gone AS (
        DELETE FROM taskyard.task USING unnest(free, results) AS ending (place, result) WHERE task.ctid = ending.place
        RETURNING task.*, ending.result
    ),
    content AS (
        DELETE FROM taskyard.body USING (
            SELECT gone.*, said.place FROM gone, LATERAL (
                SELECT ctid AS place FROM taskyard.body WHERE body.project = yard AND body.id = gone.id OFFSET 0) AS said
        ) AS gone WHERE body.ctid = gone.place
        RETURNING gone.*, title, mission, key, after, verify, not_before, data, error
    ),
    kept AS (
        INSERT INTO taskyard.ended (
            project, age, id, state, kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease, followed,
            worker, nonce, ended_at, title, mission, key, after, verify, not_before, data, error, result)
        SELECT project, age, id, 'done', kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease, followed,
               worker, nonce, taskyard.now(), title, mission, key, after, verify, not_before, data, error, result
        FROM content
    ),
    told AS (
        INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by)
        SELECT yard, 'done', id, kind, fence, worker, teller FROM gone
    )
    SELECT id FROM gone;
    IF FOUND THEN
        PERFORM taskyard.ring(yard);
    END IF;
END $$;
