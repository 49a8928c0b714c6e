-- min_client: 1
-- What a failed or cancelled task means to each task that comes after it, and where tasks come from.

ALTER TABLE taskyard.need ADD COLUMN on_failure text NOT NULL DEFAULT 'block';

-- Where a task comes from, and which of its needs do not block: `on_failure` is JSON, a policy by id. A table of its own, whose rows
-- stay where they are: clients of schema 9 move `body` to `ended` column by column, and would lose a column that they do not know. A task
-- that has a row here has an `after` that is not null, so that no other task is looked up.
CREATE TABLE taskyard.relation (
    project int NOT NULL,
    id text COLLATE "C" NOT NULL,
    parent text COLLATE "C",
    discovered_from text COLLATE "C",
    on_failure text,
    PRIMARY KEY (project, id)
);
CREATE INDEX relation_parent ON taskyard.relation (project, parent, id) WHERE parent IS NOT NULL;

DO $$
DECLARE
    crew text;
BEGIN
    ALTER TABLE taskyard.relation ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON taskyard.relation
        USING (EXISTS (SELECT FROM taskyard.project AS yard WHERE yard.id = relation.project OFFSET 0));
    FOR crew IN
        SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
        FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = 'taskyard.task'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.relation TO %s', crew);
    END LOOP;
    EXECUTE replace(
        pg_get_functiondef('taskyard.give_project(text, name)'::regprocedure),
        'taskyard.need, taskyard.used, taskyard.token, taskyard.heartbeat TO',
        'taskyard.need, taskyard.used, taskyard.token, taskyard.heartbeat, taskyard.relation TO');
END $$;

-- A task's row of `relation`, as a JSON array of its three columns.
CREATE FUNCTION taskyard.relation(yard int, task text) RETURNS text LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT json_build_array(parent, discovered_from, on_failure)::text FROM taskyard.relation WHERE project = yard AND id = task);
END $$;

CREATE FUNCTION taskyard.short(id text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$ SELECT coalesce(nullif(ltrim(left(id, 4), '0'), ''), '0') || '-' || right(id, 4) $$;

-- Cancel those of these tasks that are blocked and need a task that is failed or cancelled, and says so; gives their ids.
CREATE FUNCTION taskyard.cancel_doomed(yard int, ids text[], teller text) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    doomed text[] COLLATE "C";
    causes text[] COLLATE "C";
    words text[];
BEGIN
    SELECT array_agg(found.id), array_agg(found.cause), array_agg(found.word) INTO doomed, causes, words FROM (
        SELECT task.id, cause.other AS cause, cause.word
        FROM unnest(ids) AS next (id), LATERAL (
            SELECT id FROM taskyard.task
            WHERE task.project = yard AND task.age = substr(next.id, 5) AND task.id = next.id AND task.state::text = 'blocked'
            FOR UPDATE
        ) AS task, LATERAL (
            SELECT need.other, CASE over.state WHEN 'failed' THEN 'failed' ELSE 'was cancelled' END AS word
            FROM taskyard.need, LATERAL (
                SELECT state FROM taskyard.ended
                WHERE ended.project = yard AND ended.age = substr(need.other, 5) AND ended.id = need.other AND ended.state::text <> 'done'
                OFFSET 0
            ) AS over
            WHERE need.project = yard AND need.id = task.id AND need.on_failure = 'cancel'
            ORDER BY need.other LIMIT 1
        ) AS cause
    ) AS found;
    IF doomed IS NULL THEN
        RETURN '{}';
    END IF;
    WITH cause AS MATERIALIZED (
        SELECT next.id, next.other,
               to_json('task ' || taskyard.short(next.other) || ', which it comes after, ' || next.word)::text AS reason
        FROM unnest(doomed, causes, words) AS next (id, other, word)
    ),
    placed AS MATERIALIZED (
        SELECT cause.*, task.place, body.place AS body_place
        FROM cause, LATERAL (
            SELECT ctid AS place FROM taskyard.task WHERE task.project = yard AND task.age = substr(cause.id, 5) AND task.id = cause.id OFFSET 0
        ) AS task, LATERAL (
            SELECT ctid AS place FROM taskyard.body WHERE body.project = yard AND body.id = cause.id OFFSET 0
        ) AS body
    ),
    gone AS (
        DELETE FROM taskyard.task USING placed WHERE task.ctid = placed.place
        RETURNING task.*, placed.other, placed.reason, placed.body_place
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
    SELECT yard, 'cancelled', id, kind, fence + 1, NULL, teller, '{"reason":' || reason || ',"cancelled_by":"' || other || '"}'
    FROM gone ORDER BY age;
    PERFORM taskyard.ring(yard);
    RETURN doomed;
END $$;

-- Let go, or cancel, what comes after a task that is failed or cancelled, and in turn what comes after those that are cancelled. All
-- that this can reach is locked first, in the order of age, so that no two wait for one another.
CREATE FUNCTION taskyard.settle_followers(yard int, finished text, teller text) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    over text[] COLLATE "C" := ARRAY[finished];
    followers text[] COLLATE "C";
    other_id text COLLATE "C";
BEGIN
    IF NOT EXISTS (SELECT FROM taskyard.need WHERE project = yard AND other = finished AND on_failure <> 'block') THEN
        RETURN;
    END IF;
    followers := ARRAY(
        WITH RECURSIVE reach AS (
            SELECT id, on_failure FROM taskyard.need WHERE project = yard AND other = finished AND on_failure <> 'block'
            UNION
            SELECT next.id, next.on_failure FROM reach, LATERAL (
                SELECT id, on_failure FROM taskyard.need
                WHERE need.project = yard AND need.other = reach.id AND need.on_failure <> 'block' OFFSET 0
            ) AS next WHERE reach.on_failure = 'cancel'
        ) SELECT DISTINCT id FROM reach);
    PERFORM (SELECT 1 FROM taskyard.task WHERE project = yard AND age = next.age FOR NO KEY UPDATE)
    FROM (SELECT substr(id, 5) COLLATE "C" AS age FROM unnest(followers) AS each (id) ORDER BY 1) AS next;
    WHILE cardinality(over) > 0 LOOP
        FOR other_id IN
            SELECT next.id FROM unnest(over) AS next (id)
            WHERE EXISTS (SELECT FROM taskyard.need WHERE project = yard AND other = next.id AND on_failure = 'run')
        LOOP
            WITH met AS (DELETE FROM taskyard.need WHERE project = yard AND other = other_id AND on_failure = 'run' RETURNING id)
            SELECT array_agg(id ORDER BY substr(id, 5)) INTO followers FROM met;
            PERFORM taskyard.unblock(yard, followers, teller, '{"freed_by":"' || other_id || '"}');
        END LOOP;
        followers := ARRAY(
            SELECT DISTINCT waits.id FROM unnest(over) AS next (id), LATERAL (
                SELECT id FROM taskyard.need WHERE need.project = yard AND need.other = next.id AND need.on_failure = 'cancel' OFFSET 0
            ) AS waits);
        over := CASE WHEN cardinality(followers) > 0 THEN taskyard.cancel_doomed(yard, followers, teller) END;
    END LOOP;
END $$;

-- Whichever client ends a task: what comes after it is settled in the same transaction. `taskyard.settling` is on while that is done
-- for a whole graph, and while a copy writes what was settled elsewhere.
CREATE FUNCTION taskyard.settle_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('taskyard.settling', 'on', true);
    PERFORM taskyard.settle_followers(NEW.project, NEW.id, coalesce((
        SELECT by FROM taskyard.event
        WHERE project = NEW.project AND task = NEW.id AND xid = pg_current_xact_id() ORDER BY n DESC LIMIT 1), 'taskyard'));
    PERFORM set_config('taskyard.settling', '', true);
    RETURN NULL;
END $$;

CREATE TRIGGER settle AFTER INSERT ON taskyard.ended FOR EACH ROW
WHEN (NEW.followed AND NEW.state <> 'done' AND current_setting('taskyard.settling', true) IS DISTINCT FROM 'on')
EXECUTE FUNCTION taskyard.settle_ended();

-- Mark that others come after these tasks, and lock them so; gives the state of each that is open, failed or cancelled.
CREATE FUNCTION taskyard.follow(yard int, ages text[]) RETURNS TABLE (id text, state taskyard.state) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM (SELECT 1 FROM taskyard.task WHERE project = yard AND age = next.age FOR NO KEY UPDATE)
    FROM (SELECT age FROM unnest(ages) AS each (age) ORDER BY 1) AS next;
    RETURN QUERY UPDATE taskyard.task SET followed = true
    FROM unnest(ages) AS next (age) WHERE task.project = yard AND task.age = next.age RETURNING task.id, task.state;
    RETURN QUERY UPDATE taskyard.ended SET followed = true
    FROM unnest(ages) AS next (age) WHERE ended.project = yard AND ended.age = next.age AND ended.state::text <> 'done'
    RETURNING ended.id, ended.state;
END $$;

-- Whether a task would come after itself, if it came after these.
CREATE FUNCTION taskyard.comes_after(yard int, task text, after text[]) RETURNS boolean LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    own text COLLATE "C" := task;
BEGIN
    RETURN EXISTS (
        WITH RECURSIVE before AS (
            SELECT id COLLATE "C" AS id FROM unnest(after) AS each (id)
            UNION
            SELECT older.id FROM before, LATERAL (
                SELECT unnest(body.after) COLLATE "C" AS id FROM taskyard.body WHERE body.project = yard AND body.id = before.id
                UNION ALL
                SELECT unnest(ended.after) COLLATE "C" FROM taskyard.ended
                WHERE ended.project = yard AND ended.age = substr(before.id, 5) AND ended.id = before.id
            ) AS older
        ) SELECT FROM before WHERE id = own);
END $$;

-- Several dones of tasks that others come after, in one statement: a wide fan-in is worked off in batches. It is `finish` without its
-- condition that nothing follows, and then lets go what comes after.
DO $$
DECLARE
    text text := pg_get_functiondef('taskyard.finish(int, text[], text[], int[], text[], text[], text)'::regprocedure);
    asked text := 'AND NOT followed AND uses IS NULL';
BEGIN
    IF position(asked IN text) = 0 THEN
        RAISE EXCEPTION 'taskyard.finish is not as it was made';
    END IF;
    EXECUTE replace(replace(text, asked, 'AND uses IS NULL'), 'FUNCTION taskyard.finish(', 'FUNCTION taskyard.finish_any(');
END $$;

CREATE FUNCTION taskyard.finish_followed(yard int, ages text[], ids text[], fences int[], nonces text[], results text[], teller text)
RETURNS SETOF text LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    over text[] COLLATE "C";
    followers text[] COLLATE "C";
    cause text COLLATE "C";
BEGIN
    over := ARRAY(SELECT id FROM taskyard.finish_any(yard, ages, ids, fences, nonces, results, teller) AS ended (id));
    PERFORM (SELECT 1 FROM taskyard.task WHERE project = yard AND age = next.age FOR NO KEY UPDATE)
    FROM (
        SELECT DISTINCT substr(waits.id, 5) COLLATE "C" AS age FROM unnest(over) AS each (id), LATERAL (
            SELECT id FROM taskyard.need WHERE need.project = yard AND need.other = each.id OFFSET 0) AS waits
        ORDER BY 1
    ) AS next;
    FOR cause, followers IN
        WITH met AS (
            DELETE FROM taskyard.need USING unnest(over) AS each (id)
            WHERE need.project = yard AND need.other = each.id RETURNING need.id, need.other
        ), last AS (SELECT id, max(other) AS other FROM met GROUP BY id)
        SELECT other, array_agg(id ORDER BY substr(id, 5)) FROM last GROUP BY other
    LOOP
        PERFORM taskyard.unblock(yard, followers, teller, '{"freed_by":"' || cause || '"}');
    END LOOP;
    RETURN QUERY SELECT id FROM unnest(over) AS each (id);
END $$;
