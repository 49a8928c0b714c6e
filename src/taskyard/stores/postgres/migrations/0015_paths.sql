-- min_client: 1
-- What a task uses may be a folder ('src/auth/'), which conflicts with all that is below it. `core.resources` has the rule.

-- A name as it is compared: without empty parts and '.', and without the '/' at the end of a folder.
CREATE FUNCTION taskyard.path_of(name text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$ SELECT CASE WHEN position('/' IN name) = 0 THEN name ELSE
    CASE WHEN left(name, 1) = '/' THEN '/' ELSE '' END || array_to_string(ARRAY(
        SELECT part FROM unnest(string_to_array(name, '/')) WITH ORDINALITY AS parts (part, place)
        WHERE part <> '' AND part <> '.' ORDER BY place), '/') END $$;

-- The folders that a path is in.
CREATE FUNCTION taskyard.above(path text) RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    up text := substring(path FROM '^(.+)/[^/]*$');
BEGIN
    WHILE up IS NOT NULL LOOP
        RETURN NEXT up;
        up := substring(up FROM '^(.+)/[^/]*$');
    END LOOP;
END $$;

-- Whether two tasks that use these must not run at the same time.
CREATE FUNCTION taskyard.conflict(one text, other text) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$ SELECT one = other OR (position('/' IN one || other) > 0 AND (
    taskyard.path_of(one) = taskyard.path_of(other)
    OR (right(one, 1) = '/' AND starts_with(taskyard.path_of(other), taskyard.path_of(one) || '/'))
    OR (right(other, 1) = '/' AND starts_with(taskyard.path_of(one), taskyard.path_of(other) || '/')))) $$;

-- Whether a task that uses these may wait for ever, because something of it is always in use.
CREATE FUNCTION taskyard.may_starve(uses text[]) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$ SELECT cardinality(uses) > 1 OR right(uses[1], 1) = '/' $$;

ALTER TABLE taskyard.used ADD COLUMN path text COLLATE "C"
    GENERATED ALWAYS AS (CASE WHEN position('/' IN resource) > 0 THEN taskyard.path_of(resource) END) STORED;
CREATE INDEX used_path ON taskyard.used (project, path) WHERE path IS NOT NULL;

-- Whether a running task uses what conflicts with one of these: the same path, a folder that it is in, or, of a folder, something in it.
CREATE FUNCTION taskyard.is_under(yard int, uses text[]) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    name text COLLATE "C";
    own text COLLATE "C";
BEGIN
    FOREACH name IN ARRAY uses LOOP
        own := taskyard.path_of(name);
        IF EXISTS (SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = own)
            OR EXISTS (SELECT FROM taskyard.used WHERE used.project = yard AND used.path = own)
            OR (position('/' IN own) > 0 AND EXISTS (
                SELECT FROM taskyard.above(own) AS folder (path), LATERAL (
                    SELECT FROM taskyard.used
                    WHERE used.project = yard AND used.path = folder.path AND right(used.resource, 1) = '/' OFFSET 0) AS around))
            OR (right(name, 1) = '/' AND EXISTS (
                SELECT FROM taskyard.used WHERE used.project = yard AND used.path > own || '/' AND used.path < own || '0'))
        THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END $$;

-- Whether nobody has what a task uses.
CREATE OR REPLACE FUNCTION taskyard.is_free(project int, uses text[]) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = $1 AND used.resource = ANY ($2)) AND NOT taskyard.is_under($1, $2) $$;

CREATE OR REPLACE FUNCTION taskyard.can_have(yard int, age text, uses text[], resources text[], ages text[]) RETURNS boolean
LANGUAGE sql STABLE AS
$$ SELECT NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = $1 AND used.resource = ANY ($3))
      AND NOT taskyard.is_under($1, $3)
      AND NOT EXISTS (SELECT FROM unnest($4, $5) AS kept (resource, age), unnest($3) AS own (resource)
                      WHERE kept.age < $2 COLLATE "C" AND taskyard.conflict(kept.resource, own.resource)) $$;

-- Let tasks that are picked have what they use to themselves; gives those that got all of it. Whoever takes a name locks its path, and
-- shares the locks of the folders around it, until its commit: so of two claims that conflict the later one sees the earlier. The locks
-- are taken in one order, so that no two claims wait for one another; a claim of very many takes the one lock that all share.
CREATE OR REPLACE FUNCTION taskyard.reserve(yard int, picked text[]) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    kept text[] COLLATE "C" := '{}';
    next text COLLATE "C";
    wanted text[] COLLATE "C";
    locks int[];
    owns boolean[];
BEGIN
    SELECT array_agg(lock.number ORDER BY lock.number), array_agg(lock.own ORDER BY lock.number) INTO locks, owns FROM (
        SELECT hashtext(yard || ':' || each.path) AS number, bool_or(each.own) AS own
        FROM (
            SELECT place.path, place.own
            FROM unnest(picked) AS chosen (age),
                 LATERAL (SELECT uses FROM taskyard.task WHERE task.project = yard AND task.age = chosen.age OFFSET 0) AS found,
                 unnest(found.uses) AS name,
                 LATERAL (SELECT taskyard.path_of(name) AS path, true AS own
                          UNION ALL SELECT above, false FROM taskyard.above(taskyard.path_of(name)) AS above) AS place
            UNION ALL SELECT '', false
        ) AS each GROUP BY 1
    ) AS lock;
    IF cardinality(locks) > 64 THEN
        locks := ARRAY[hashtext(yard || ':')];
        owns := ARRAY[true];
    END IF;
    FOR place IN 1 .. cardinality(locks) LOOP
        IF owns[place] THEN
            PERFORM pg_advisory_xact_lock(747161, locks[place]);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(747161, locks[place]);
        END IF;
    END LOOP;
    FOREACH next IN ARRAY picked LOOP
        SELECT uses INTO wanted FROM taskyard.task WHERE project = yard AND age = next;
        IF wanted IS NOT NULL THEN
            CONTINUE WHEN EXISTS (SELECT FROM taskyard.used WHERE project = yard AND resource = ANY (wanted)) OR taskyard.is_under(yard, wanted);
            INSERT INTO taskyard.used (project, resource, age) SELECT DISTINCT yard, resource, next FROM unnest(wanted) AS resource
            ON CONFLICT DO NOTHING;
        END IF;
        kept := kept || next;
    END LOOP;
    RETURN kept;
END $$;

-- Whatever asks in its own query what a task uses asks for folders as well, if some are in use or the task uses one.
DO $$
DECLARE
    changed regprocedure;
    text text;
    equal text := 'NOT EXISTS \(\s*SELECT FROM taskyard\.used WHERE used\.project = yard AND used\.resource = ANY \(task\.uses\)\)';
    number int := 0;
BEGIN
    FOR changed IN
        SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = 'taskyard'::regnamespace AND prosrc ~ equal ORDER BY proname
    LOOP
        text := pg_get_functiondef(changed);
        EXECUTE regexp_replace(text, equal,
            '(NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = ANY (task.uses))'
            ' AND ((position(''/'' IN array_to_string(task.uses, '''')) = 0 AND NOT (SELECT EXISTS ('
            'SELECT FROM taskyard.used WHERE used.project = yard AND used.path IS NOT NULL)))'
            ' OR NOT taskyard.is_under(yard, task.uses)))', 'g');
        number := number + 1;
    END LOOP;
    IF number < 7 THEN
        RAISE EXCEPTION 'the functions that hand out tasks are not as they were made';
    END IF;
    FOREACH changed IN ARRAY ARRAY[
        'taskyard.kept(int, double precision)',
        'taskyard.pick_aged(int, text, text[], int, double precision)']::regprocedure[]
    LOOP
        text := pg_get_functiondef(changed);
        IF text !~ 'cardinality\((task|head)\.uses\) > 1' THEN
            RAISE EXCEPTION '% is not as it was made', changed;
        END IF;
        EXECUTE regexp_replace(text, 'cardinality\((task|head)\.uses\) > 1', 'taskyard.may_starve(\1.uses)', 'g');
    END LOOP;
END $$;
