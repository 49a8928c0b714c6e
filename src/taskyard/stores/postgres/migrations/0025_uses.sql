-- min_client: 1
-- Tasks that use something are claimed and ended nearly as cheaply as others: a done is one statement, and what is in use is looked up
-- for all names of a task at once.

-- The same as before; one that has nothing to leave out is not taken apart. A caller's query takes this in: nothing in it may be less
-- than immutable.
CREATE FUNCTION taskyard.rid_of_dots(name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN left(name, 1) = '/' THEN '/' ELSE '' END
    || array_to_string(array_remove(array_remove(string_to_array(name, '/'), ''), '.'), '/') $$;
CREATE OR REPLACE FUNCTION taskyard.path_of(name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE
    WHEN position('/' IN name) = 0 THEN name
    WHEN name = '/' OR position('//' IN name) > 0 OR position('/./' IN '/' || name || '/') > 0 THEN taskyard.rid_of_dots(name)
    ELSE rtrim(name, '/') END $$;
CREATE FUNCTION taskyard.paths_of(names text[]) RETURNS text[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    paths text[] := names;
BEGIN
    FOR place IN 1 .. cardinality(names) LOOP
        paths[place] := taskyard.path_of(names[place]);
    END LOOP;
    RETURN paths;
END $$;

-- The path of every name, also of one without '/', and one index: it finds what conflicts, and no plan can choose another. It is no
-- generated column: the server would read its expression anew for every claim, and that took a fifth of one. Who says no path gets it.
ALTER TABLE taskyard.used DROP COLUMN path, DROP CONSTRAINT used_pkey;
ALTER TABLE taskyard.used ADD COLUMN path text COLLATE "C";
UPDATE taskyard.used SET path = taskyard.path_of(resource);
ALTER TABLE taskyard.used ADD PRIMARY KEY (project, path, resource);
CREATE FUNCTION taskyard.fill_path() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.path := taskyard.path_of(NEW.resource);
    RETURN NEW;
END $$;
CREATE TRIGGER fill_path BEFORE INSERT ON taskyard.used FOR EACH ROW WHEN (NEW.path IS NULL) EXECUTE FUNCTION taskyard.fill_path();
ALTER TABLE taskyard.used SET (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- The folders that a path is in, the nearest last.
CREATE FUNCTION taskyard.folders_of(path text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    parts text[] := string_to_array(path, '/');
    up text := parts[1];
    found text[] := '{}';
BEGIN
    FOR place IN 2 .. cardinality(parts) LOOP
        IF up <> '' THEN
            found := found || up;
        END IF;
        up := up || '/' || parts[place];
    END LOOP;
    RETURN found;
END $$;

-- Whether a running task uses what conflicts with one of these: the same path, a folder that it is in, or, of a folder, something in it.
CREATE OR REPLACE FUNCTION taskyard.is_under(yard int, uses text[]) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    here text[] COLLATE "C" := taskyard.paths_of(uses);
    around text[] COLLATE "C" := '{}';
    own text COLLATE "C";
BEGIN
    FOR place IN 1 .. cardinality(uses) LOOP
        own := here[place];
        IF position('/' IN own) > 0 THEN
            around := around || taskyard.folders_of(own);
        END IF;
        IF right(uses[place], 1) = '/' AND EXISTS (
            SELECT FROM taskyard.used WHERE used.project = yard AND used.path > own || '/' AND used.path < own || '0')
        THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN EXISTS (
        SELECT FROM taskyard.used WHERE used.project = yard AND used.path = ANY (here || around)
          AND (right(used.resource, 1) = '/' OR used.path = ANY (here)));
END $$;

-- Whether nobody has what a task uses.
CREATE OR REPLACE FUNCTION taskyard.is_free(project int, uses text[]) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT NOT taskyard.is_under($1, $2) $$;

CREATE OR REPLACE FUNCTION taskyard.can_have(yard int, age text, uses text[], resources text[], ages text[]) RETURNS boolean
LANGUAGE sql STABLE AS
$$ SELECT NOT taskyard.is_under($1, $3)
      AND NOT EXISTS (SELECT FROM unnest($4, $5) AS kept (resource, age), unnest($3) AS own (resource)
                      WHERE kept.age < $2 COLLATE "C" AND taskyard.conflict(kept.resource, own.resource)) $$;

-- Whatever asks in its own query: a name without '/' conflicts with its own path only. Of others the path as it is mostly given is looked
-- up first: where many wait for one folder, that is all that is asked for each. No name has a line break.
DO $$
DECLARE
    changed regprocedure;
    asked text := '(NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = ANY (task.uses))'
        ' AND ((position(''/'' IN array_to_string(task.uses, '''')) = 0 AND NOT (SELECT EXISTS ('
        'SELECT FROM taskyard.used WHERE used.project = yard AND used.path IS NOT NULL)))'
        ' OR NOT taskyard.is_under(yard, task.uses)))';
    put text := '(CASE WHEN position(''/'' IN array_to_string(task.uses, '''')) = 0'
        ' THEN NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = yard AND used.path = ANY (task.uses))'
        ' WHEN EXISTS (SELECT FROM taskyard.used WHERE used.project = yard AND used.path = ANY (string_to_array('
        'replace(array_to_string(task.uses, E''\n'') || E''\n'', E''/\n'', E''\n''), E''\n'')))'
        ' THEN false ELSE NOT taskyard.is_under(yard, task.uses) END)';
BEGIN
    FOR changed IN
        SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = 'taskyard'::regnamespace AND position(asked IN prosrc) > 0 ORDER BY proname
    LOOP
        EXECUTE replace(pg_get_functiondef(changed), asked, put);
    END LOOP;
    SELECT oid::regprocedure INTO changed FROM pg_proc
    WHERE pronamespace = 'taskyard'::regnamespace AND prosrc ~ 'used\.resource = ANY|used\.path IS NOT NULL' LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% is not as it was made', changed;
    END IF;
END $$;

-- Let tasks that are picked have what they use to themselves; gives those that got all of it. Whoever takes a name locks its path, and
-- shares the locks of the folders around it, until its commit: so of two claims that conflict the later one sees the earlier. The locks
-- are taken in one order, so that no two claims wait for one another; a claim of very many takes the one lock that all share.
-- It works by the planner's settings of `claim`, which calls it.
CREATE OR REPLACE FUNCTION taskyard.reserve(yard int, picked text[]) RETURNS text[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    kept text[] COLLATE "C" := '{}';
    next text COLLATE "C";
    wanted text[] COLLATE "C";
    own text COLLATE "C";
    up text COLLATE "C";
    owns int[] := '{}';
    shares int[] := ARRAY[hashtext(yard || ':')];
BEGIN
    FOREACH next IN ARRAY picked LOOP
        SELECT uses INTO wanted FROM taskyard.task WHERE project = yard AND age = next;
        CONTINUE WHEN wanted IS NULL;
        FOREACH own IN ARRAY taskyard.paths_of(wanted) LOOP
            owns := owns || hashtext(yard || ':' || own);
            IF position('/' IN own) > 0 THEN
                FOREACH up IN ARRAY taskyard.folders_of(own) LOOP
                    shares := shares || hashtext(yard || ':' || up);
                END LOOP;
            END IF;
        END LOOP;
    END LOOP;
    IF cardinality(owns) + cardinality(shares) > 64 THEN
        PERFORM pg_advisory_xact_lock(747161, shares[1]);
    ELSE
        PERFORM CASE WHEN number = ANY (owns) THEN pg_advisory_xact_lock(747161, number)
                     ELSE pg_advisory_xact_lock_shared(747161, number) END
        FROM (SELECT DISTINCT number FROM unnest(owns || shares) AS each (number) ORDER BY number) AS lock;
    END IF;
    FOREACH next IN ARRAY picked LOOP
        IF cardinality(picked) > 1 THEN
            SELECT uses INTO wanted FROM taskyard.task WHERE project = yard AND age = next;
        END IF;
        IF wanted IS NOT NULL THEN
            CONTINUE WHEN taskyard.is_under(yard, wanted);
            INSERT INTO taskyard.used (project, path, resource, age)
            SELECT yard, path, resource, next FROM unnest(taskyard.paths_of(wanted), wanted) AS each (path, resource)
            ON CONFLICT DO NOTHING;
        END IF;
        kept := kept || next;
    END LOOP;
    RETURN kept;
END $$;

-- End tasks as done, each only if this claim still holds it, and free what they used; gives the ids of those that were. Left out are
-- tasks that others come after: `finish_followed` sees to those. Among several, one that is locked is left out as well: nobody waits
-- for another's sake.
CREATE OR REPLACE FUNCTION taskyard.finish(yard int, ages text[], ids text[], fences int[], nonces text[], results text[], teller text)
RETURNS SETOF text LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    free tid[];
    gone taskyard.task;
    content taskyard.body;
BEGIN
    IF cardinality(ages) = 1 THEN
        DELETE FROM taskyard.task
        WHERE project = yard AND age = ages[1] AND id = ids[1] AND state::text = 'processing' AND fence = fences[1] AND nonce = nonces[1]
          AND NOT followed
        RETURNING task.* INTO gone;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        DELETE FROM taskyard.body WHERE project = yard AND id = gone.id RETURNING body.* INTO content;
        IF gone.uses IS NOT NULL THEN
            DELETE FROM taskyard.used WHERE project = yard AND path = ANY (taskyard.paths_of(gone.uses)) AND age = gone.age;
        END IF;
        INSERT INTO taskyard.ended (
            project, age, id, state, kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, followed,
            worker, nonce, ended_at, title, mission, key, after, verify, not_before, data, error, result)
        VALUES (yard, gone.age, gone.id, 'done', gone.kind, gone.priority, gone.assignee, gone.fence, gone.errors, gone.crashes,
                gone.max_attempts, gone.own_lease, gone.uses, gone.followed, gone.worker, gone.nonce, taskyard.now(), content.title,
                content.mission, content.key, content.after, content.verify, content.not_before, content.data, content.error, results[1]);
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
              AND nonce = ending.nonce AND NOT followed
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
    freed AS (
        DELETE FROM taskyard.used USING (
            SELECT held.place FROM gone, unnest(gone.uses) AS name, LATERAL (
                SELECT ctid AS place FROM taskyard.used
                WHERE used.project = yard AND used.path = taskyard.path_of(name) AND used.resource = name AND used.age = gone.age
                OFFSET 0) AS held
        ) AS had WHERE used.ctid = had.place
    ),
    kept AS (
        INSERT INTO taskyard.ended (
            project, age, id, state, kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, followed,
            worker, nonce, ended_at, title, mission, key, after, verify, not_before, data, error, result)
        SELECT project, age, id, 'done', kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, followed,
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

-- The same without its condition that nothing follows.
DO $$
DECLARE
    text text := pg_get_functiondef('taskyard.finish(int, text[], text[], int[], text[], text[], text)'::regprocedure);
BEGIN
    EXECUTE replace(replace(text, ' AND NOT followed', ''), 'FUNCTION taskyard.finish(', 'FUNCTION taskyard.finish_any(');
END $$;
