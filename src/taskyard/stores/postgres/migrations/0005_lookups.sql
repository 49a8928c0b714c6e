-- min_client: 1
-- Claims look up each picked task by itself: up to PostgreSQL 16, for `age = ANY (picked)` a plan that was made while there were few
-- reads all that there are later. And texts that hang on no setting of the session.

CREATE OR REPLACE FUNCTION taskyard.reserve(yard int, picked text[]) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    kept text[] COLLATE "C";
BEGIN
    -- In the order of names, so that no two claims wait for one another.
    INSERT INTO taskyard.used (project, resource, age)
    SELECT DISTINCT ON (resource) yard, resource, next.age
    FROM unnest(picked) WITH ORDINALITY AS next (age, place),
         LATERAL (SELECT uses FROM taskyard.task WHERE task.project = yard AND task.age = next.age OFFSET 0) AS found,
         unnest(found.uses) AS resource
    ORDER BY resource, next.place
    ON CONFLICT DO NOTHING;
    kept := ARRAY(
        SELECT next.age FROM unnest(picked) WITH ORDINALITY AS next (age, place),
             LATERAL (SELECT uses FROM taskyard.task WHERE task.project = yard AND task.age = next.age OFFSET 0) AS found
        WHERE NOT EXISTS (
            SELECT FROM unnest(found.uses) AS resource WHERE NOT EXISTS (
                SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = resource.resource AND used.age = next.age))
        ORDER BY next.place);
    DELETE FROM taskyard.used USING
        unnest(picked) AS next (age),
        LATERAL (SELECT uses FROM taskyard.task WHERE task.project = yard AND task.age = next.age OFFSET 0) AS found
    WHERE next.age <> ALL (kept) AND used.project = yard AND used.resource = ANY (found.uses) AND used.age = next.age;
    RETURN kept;
END $$;

CREATE OR REPLACE FUNCTION taskyard.claim(
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
        some_use := NULL;
        -- Each of these locks what it picks, and passes over what is locked.
        IF named IS NOT NULL THEN
            SELECT ARRAY[age], uses IS NOT NULL INTO picked, some_use FROM taskyard.task
            WHERE project = yard AND age = named AND state::text = 'todo' AND fence = expected AND kind <> ALL (part)
              AND (uses IS NULL OR taskyard.is_free(project, uses))
            FOR NO KEY UPDATE SKIP LOCKED;
        ELSIF cardinality(kinds) <> 1
            OR EXISTS (SELECT FROM taskyard.task WHERE project = yard AND state = 'todo' AND assignee = taker) THEN
            picked := taskyard.pick(yard, taker, kinds, number);
        ELSE
            picked := NULL;
            IF current_setting('taskyard.ford', true) <> '' THEN
                picked := taskyard.ahead(yard, kinds[1], number, current_setting('taskyard.ford'));
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
        IF some_use IS NULL AND found > 0 THEN
            some_use := EXISTS (
                SELECT FROM unnest(picked) AS next (age),
                    LATERAL (SELECT uses FROM taskyard.task WHERE task.project = yard AND task.age = next.age OFFSET 0) AS seen
                WHERE seen.uses IS NOT NULL);
        END IF;
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
        FROM unnest(picked, nonces[1:cardinality(picked)]) AS handed (age, nonce),
             LATERAL (SELECT ctid AS place FROM taskyard.task AS locked WHERE locked.project = yard AND locked.age = handed.age OFFSET 0) AS seen
        WHERE task.ctid = seen.place
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

-- The same text whatever a session takes backslashes in strings for: some have standard_conforming_strings off.

CREATE OR REPLACE FUNCTION taskyard.with_due(more text, due bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN due IS NULL THEN more ELSE
       CASE WHEN more IS NULL THEN '{' ELSE left(more, -1) || ',' END
       || '"due":"' || to_char(to_timestamp(due / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"}' END $$;

ALTER FUNCTION taskyard.fence(text) SET standard_conforming_strings = on;
