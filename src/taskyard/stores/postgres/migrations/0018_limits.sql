-- min_client: 1
-- The limits of kinds: how many can be in processing at a time, and how many can be claimed in any minute. They are part of a project's
-- settings, and are kept beside them as they are needed: a claim must not read all settings.

ALTER TABLE taskyard.project ADD COLUMN limits jsonb;

-- When tasks of kinds with a rate were claimed, in the last minute.
CREATE TABLE taskyard.pace (
    project int NOT NULL,
    kind text COLLATE "C" NOT NULL,
    at bigint NOT NULL
);
CREATE INDEX pace_kind ON taskyard.pace (project, kind, at);

-- The limits in settings that claims must heed; null if there are none, or if the settings are broken.
CREATE FUNCTION taskyard.limits_of(settings text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN (
        SELECT jsonb_object_agg(each.key, each.value) FROM jsonb_each(nullif(settings::jsonb -> 'kinds', 'null'::jsonb)) AS each
        WHERE (each.value ->> 'concurrency')::numeric IS NOT NULL OR (each.value ->> 'rate')::numeric IS NOT NULL);
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

CREATE FUNCTION taskyard.keep_limits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.limits := taskyard.limits_of(NEW.settings);
    RETURN NEW;
END $$;
CREATE TRIGGER keep_limits BEFORE INSERT OR UPDATE OF settings ON taskyard.project
    FOR EACH ROW EXECUTE FUNCTION taskyard.keep_limits();
UPDATE taskyard.project SET limits = taskyard.limits_of(settings) WHERE taskyard.limits_of(settings) IS NOT NULL;

-- The limits that are reached now; of a rate, when the next task can be claimed.
CREATE FUNCTION taskyard.reached(yard int, limits jsonb) RETURNS TABLE (kind text, name text, number int, due bigint)
LANGUAGE plpgsql VOLATILE STRICT ROWS 4
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    now bigint := taskyard.now();
BEGIN
    RETURN QUERY
    SELECT each.key, 'concurrency', (each.value ->> 'concurrency')::numeric::int, NULL::bigint FROM jsonb_each(limits) AS each
    WHERE (each.value ->> 'concurrency')::numeric <= (
        SELECT count(*) FROM taskyard.task WHERE project = yard AND state = 'processing' AND task.kind = each.key);
    RETURN QUERY
    SELECT each.key, 'rate', (each.value ->> 'rate')::numeric::int, oldest.at + 60001
    FROM jsonb_each(limits) AS each, LATERAL (
        SELECT at FROM taskyard.pace WHERE project = yard AND pace.kind = each.key
        ORDER BY at DESC OFFSET greatest((each.value ->> 'rate')::numeric::int - 1, 0) LIMIT 1) AS oldest
    WHERE each.value ->> 'rate' IS NOT NULL AND oldest.at >= now - 60000;
END $$;

-- The kinds that are not handed out now: what is paused, and what has reached a limit.
CREATE FUNCTION taskyard.held_back(yard int, paused text[], limits jsonb) RETURNS text[] LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF limits IS NULL THEN
        RETURN paused;
    END IF;
    RETURN paused || ARRAY(SELECT DISTINCT reached.kind FROM taskyard.reached(yard, limits) AS reached);
END $$;

-- Those of the picked tasks that the limits allow. The locks are held until the commit: so of two claims of a kind the later one counts
-- the earlier. They are taken in one order.
CREATE FUNCTION taskyard.admit(yard int, picked text[], limits jsonb) RETURNS text[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    kept text[] COLLATE "C" := '{}';
    next text COLLATE "C";
    of_kind text COLLATE "C";
    lock int;
    room jsonb := '{}';
    free bigint;
BEGIN
    FOR lock IN
        SELECT DISTINCT hashtext(yard || ':' || found.kind) AS number
        FROM unnest(picked) AS chosen (age),
             LATERAL (SELECT kind FROM taskyard.task WHERE task.project = yard AND task.age = chosen.age OFFSET 0) AS found
        WHERE limits ? found.kind ORDER BY number
    LOOP
        PERFORM pg_advisory_xact_lock(747162, lock);
    END LOOP;
    FOREACH next IN ARRAY picked LOOP
        SELECT kind INTO of_kind FROM taskyard.task WHERE project = yard AND age = next;
        IF limits ? of_kind THEN
            IF NOT room ? of_kind THEN
                room := room || jsonb_build_object(of_kind, least(
                    (limits -> of_kind ->> 'concurrency')::numeric::bigint - (
                        SELECT count(*) FROM taskyard.task WHERE project = yard AND state = 'processing' AND kind = of_kind),
                    (limits -> of_kind ->> 'rate')::numeric::bigint - (
                        SELECT count(*) FROM taskyard.pace WHERE project = yard AND kind = of_kind AND at >= taskyard.now() - 60000)));
            END IF;
            free := (room ->> of_kind)::bigint;
            CONTINUE WHEN free <= 0;
            room := room || jsonb_build_object(of_kind, free - 1);
        END IF;
        kept := kept || next;
    END LOOP;
    RETURN kept;
END $$;

-- Count claims of kinds that have a rate, after they were logged.
CREATE FUNCTION taskyard.count_claims(yard int, picked text[], limits jsonb) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
BEGIN
    DELETE FROM taskyard.pace
    WHERE project = yard AND at < taskyard.now() - 60000 AND kind IN (
        SELECT found.kind FROM unnest(picked) AS chosen (age),
             LATERAL (SELECT kind FROM taskyard.task WHERE task.project = yard AND task.age = chosen.age OFFSET 0) AS found);
    INSERT INTO taskyard.pace (project, kind, at)
    SELECT yard, found.kind, taskyard.now()
    FROM unnest(picked) AS chosen (age),
         LATERAL (SELECT kind FROM taskyard.task WHERE task.project = yard AND task.age = chosen.age OFFSET 0) AS found
    WHERE limits -> found.kind ->> 'rate' IS NOT NULL;
END $$;

DO $$
DECLARE
    crew text;
    changed regprocedure;
    text text;
    found text;
    put text;
BEGIN
    ALTER TABLE taskyard.pace ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON taskyard.pace
        USING (EXISTS (SELECT FROM taskyard.project AS yard WHERE yard.id = pace.project OFFSET 0));
    -- Whoever may write tasks.
    FOR crew IN
        SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
        FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = 'taskyard.task'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.pace TO %s', crew);
    END LOOP;
    -- Whatever heeds a pause heeds the limits.
    FOR changed IN
        SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = 'taskyard'::regnamespace AND prosrc ~ 'paused_kinds INTO whole, part' ORDER BY proname
    LOOP
        EXECUTE regexp_replace(pg_get_functiondef(changed), '(project\.)?paused_kinds INTO whole, part',
            'taskyard.held_back(project.id, project.paused_kinds, project.limits) INTO whole, part', 'g');
    END LOOP;
    -- Changed where they stand: what came before this may have changed them as well.
    FOR changed, found, put IN VALUES
        ('taskyard.give_project(text, name)'::regprocedure, 'taskyard.used,', 'taskyard.used, taskyard.pace,'),
        ('taskyard.kept(int, double precision)'::regprocedure, '(SELECT paused_kinds FROM',
         '(SELECT taskyard.held_back(id, paused_kinds, limits) FROM')
    LOOP
        text := pg_get_functiondef(changed);
        IF position(found IN text) = 0 THEN
            RAISE EXCEPTION '% is not as it was made', changed;
        END IF;
        EXECUTE replace(text, found, put);
    END LOOP;
    SELECT oid::regprocedure INTO changed FROM pg_proc
    WHERE proname = 'claim' AND pronamespace = 'taskyard'::regnamespace ORDER BY pronargs DESC LIMIT 1;
    text := pg_get_functiondef(changed);
    FOR found, put IN VALUES
        ('taken taskyard.task;', 'taken taskyard.task;
    bounds jsonb;'),
        ('project.limits) INTO whole, part', 'project.limits), project.limits INTO whole, part, bounds'),
        ('IF some_use THEN', 'IF found > 0 AND bounds IS NOT NULL THEN
            picked := taskyard.admit(yard, picked, bounds);
            IF cardinality(picked) = 0 THEN
                EXIT WHEN named IS NOT NULL;
                SELECT taskyard.held_back(id, paused_kinds, limits) INTO part FROM taskyard.project WHERE id = yard;
                kinds := ARRAY(
                    SELECT DISTINCT kind FROM unnest(coalesce(wanted, ARRAY(SELECT taskyard.ready_kinds(yard, taker)))) AS kind
                    WHERE kind <> ALL (part));
                CONTINUE;
            END IF;
        END IF;
        IF some_use THEN'),
        ('IF found = 0 THEN', 'IF found = 0 OR cardinality(picked) = 0 THEN'),
        ('PERFORM taskyard.ring(yard);', 'IF bounds IS NOT NULL THEN
        PERFORM taskyard.count_claims(yard, picked, bounds);
    END IF;
    PERFORM taskyard.ring(yard);')
    LOOP
        IF position(found IN text) = 0 THEN
            RAISE EXCEPTION '% is not as it was made: %', changed, found;
        END IF;
        text := replace(text, found, put);
    END LOOP;
    EXECUTE text;
END $$;
