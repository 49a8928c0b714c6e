-- min_client: 1
-- Teams: a team owns projects, and its quotas hold over all of them together. A project without a team pays for none of this: a claim
-- reads one more column of a row that it reads anyway.

CREATE TABLE taskyard.team (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    max_todo bigint,
    max_running int,
    rate int,
    tokens text,  -- JSON, by name; null if none was ever made
    made_at bigint NOT NULL DEFAULT taskyard.now()
);

ALTER TABLE taskyard.project ADD COLUMN team int;
CREATE INDEX project_team ON taskyard.project (team) WHERE team IS NOT NULL;

-- The claims of the last minute, of teams with a rate: one row for each batch, with the sum of all so far. So a count is two rows.
CREATE TABLE taskyard.team_pace (
    team int NOT NULL,
    total bigint NOT NULL,
    at bigint NOT NULL,
    claims int NOT NULL,
    PRIMARY KEY (team, total)
);
CREATE INDEX team_pace_at ON taskyard.team_pace (team, at, total);

-- How many tasks were added so far, and the last count of open ones: as taskyard.backlog and taskyard.backlog_count have it for a project.
CREATE TABLE taskyard.team_backlog (
    team int NOT NULL,
    shard bigint NOT NULL,
    added bigint NOT NULL,
    PRIMARY KEY (team, shard)
) WITH (fillfactor = 50);
CREATE TABLE taskyard.team_count (
    team int PRIMARY KEY,
    counted bigint NOT NULL,
    since bigint NOT NULL,
    at bigint NOT NULL,
    cost bigint NOT NULL
) WITH (fillfactor = 50);

-- A role sees the team of its projects. Only the schema's owner changes teams; what claims and adds have to write is written by the
-- functions below, with the owner's rights.
ALTER TABLE taskyard.team ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON taskyard.team FOR SELECT USING (EXISTS (SELECT FROM taskyard.project AS yard WHERE yard.team = team.id OFFSET 0));
GRANT SELECT ON taskyard.team TO PUBLIC;
ALTER TABLE taskyard.team_pace ENABLE ROW LEVEL SECURITY;
ALTER TABLE taskyard.team_backlog ENABLE ROW LEVEL SECURITY;
ALTER TABLE taskyard.team_count ENABLE ROW LEVEL SECURITY;

-- A project called TEAM/NAME is that team's from the start, whoever makes it.
CREATE FUNCTION taskyard.join_team() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.team := (SELECT id FROM taskyard.team WHERE name = split_part(NEW.name, '/', 1));
    RETURN NEW;
END $$;
CREATE TRIGGER join_team BEFORE INSERT ON taskyard.project
    FOR EACH ROW WHEN (position('/' IN NEW.name) > 1) EXECUTE FUNCTION taskyard.join_team();

-- The team of a project, for functions that run with the owner's rights: refuses a role that has no right to the project.
CREATE FUNCTION taskyard.team_of(yard int) RETURNS taskyard.team LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    own taskyard.team;
    asker name := CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role')::name END;
BEGIN
    SELECT team.* INTO own FROM taskyard.project, taskyard.team, pg_class
    WHERE project.id = yard AND team.id = project.team AND pg_class.oid = 'taskyard.project'::regclass
      AND (pg_has_role(asker, pg_class.relowner, 'USAGE') OR has_type_privilege(asker, project.access, 'USAGE')
           OR (SELECT rolbypassrls FROM pg_roles WHERE rolname = asker));
    RETURN own;
END $$;

-- How many tasks of a team are held, up to `most`.
CREATE FUNCTION taskyard.team_running(owner int, most int) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
BEGIN
    RETURN (SELECT count(*) FROM (
        SELECT FROM taskyard.project,
             LATERAL (SELECT FROM taskyard.task WHERE task.project = project.id AND task.state = 'processing' OFFSET 0) AS held
        WHERE project.team = owner LIMIT most) AS counted);
END $$;

-- How many tasks a team has claimed in the last minute.
CREATE FUNCTION taskyard.team_claims(owner int) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    since bigint := taskyard.now() - 60000;  -- a function that may change is no key of an index
BEGIN
    RETURN coalesce(
        (SELECT total FROM taskyard.team_pace WHERE team = owner ORDER BY total DESC LIMIT 1)
        - (SELECT total - claims FROM taskyard.team_pace WHERE team = owner AND at >= since ORDER BY at, total LIMIT 1), 0);
END $$;

-- The quotas of a project's team that hold claims back now; of a rate, when the next task can be claimed.
CREATE FUNCTION taskyard.team_reached(yard int) RETURNS TABLE (team text, name text, number int, due bigint)
LANGUAGE plpgsql VOLATILE ROWS 2 SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    own taskyard.team := taskyard.team_of(yard);
BEGIN
    IF (CASE WHEN own.max_running IS NOT NULL THEN own.max_running <= taskyard.team_running(own.id, own.max_running) END) THEN
        RETURN QUERY SELECT own.name, 'max_running', own.max_running, NULL::bigint;
    END IF;
    IF (CASE WHEN own.rate IS NOT NULL THEN own.rate <= taskyard.team_claims(own.id) END) THEN
        RETURN QUERY
        SELECT own.name, 'rate', own.rate, first.at + 60001
        FROM (SELECT total FROM taskyard.team_pace WHERE team_pace.team = own.id ORDER BY total DESC LIMIT 1) AS last,
             LATERAL (SELECT at FROM taskyard.team_pace WHERE team_pace.team = own.id AND total > last.total - own.rate
                      ORDER BY total LIMIT 1) AS first;
    END IF;
END $$;

CREATE FUNCTION taskyard.team_is_full(yard int) RETURNS boolean LANGUAGE sql VOLATILE AS
$$ SELECT EXISTS (SELECT FROM taskyard.team_reached(yard)) $$;

-- How many of `wanted` tasks the team's quotas let a project claim. The lock is held until the commit: so of two claims the later one
-- counts the earlier. It is taken before all locks of kinds.
CREATE FUNCTION taskyard.team_room(yard int, wanted int) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    own taskyard.team := taskyard.team_of(yard);
BEGIN
    IF own.max_running IS NULL AND own.rate IS NULL THEN
        RETURN wanted;
    END IF;
    PERFORM pg_advisory_xact_lock(747163, own.id);
    own := taskyard.team_of(yard);
    RETURN greatest(0, least(
        wanted,
        CASE WHEN own.max_running IS NOT NULL THEN own.max_running - taskyard.team_running(own.id, own.max_running) END,
        CASE WHEN own.rate IS NOT NULL THEN own.rate - taskyard.team_claims(own.id) END));
END $$;

-- Count claims of a team that has a rate. Times only rise, as sums do, also where the clock was set back.
CREATE FUNCTION taskyard.count_team_claims(yard int, number int) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    own taskyard.team := taskyard.team_of(yard);
    now bigint := taskyard.now();
    last taskyard.team_pace;
BEGIN
    IF own.rate IS NULL OR number < 1 THEN
        RETURN;
    END IF;
    SELECT * INTO last FROM taskyard.team_pace WHERE team = own.id ORDER BY total DESC LIMIT 1;
    DELETE FROM taskyard.team_pace WHERE team = own.id AND at < now - 60000;
    INSERT INTO taskyard.team_pace (team, total, at, claims)
    VALUES (own.id, coalesce(last.total, 0) + number, greatest(now, last.at), number);
END $$;

-- Wake those who wait for room in the other projects of the team.
CREATE FUNCTION taskyard.ring_team(yard int) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    own taskyard.team := taskyard.team_of(yard);
BEGIN
    PERFORM taskyard.ring(project.id) FROM taskyard.project WHERE project.team = own.id AND project.id <> yard;
END $$;

-- Take places for new tasks. Gives the team's count and bound if there are too few; `again` if the caller has to come alone. Nothing is
-- given if they fit.
--
-- Adders share a lock while a tenth of the places is free for what other transactions add at the same moment: none of them takes more than
-- its part of that tenth. Nearer to the bound, or for more tasks, an adder is alone, and sees all that others have added. In a transaction
-- that others may have to wait for (`brief` is false) there is no lock, and the count is not kept. A costly count, or one of many tasks, is not
-- repeated within thirty times as long as it took: an adder that is refused and asks without a pause takes 3 % of a core, and not all of it.
CREATE FUNCTION taskyard.take_team_places(yard int, number bigint, brief boolean, alone boolean)
RETURNS TABLE (team text, count bigint, most bigint, again boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    own taskyard.team := taskyard.team_of(yard);
    shared boolean := brief AND NOT alone AND number * current_setting('max_connections')::int <= own.max_todo / 10;
    bound bigint := own.max_todo - CASE WHEN shared THEN own.max_todo / 10 ELSE 0 END;
    last taskyard.team_count;
    began bigint;
    total bigint;
    open bigint;
    held bigint;
    place tid;
BEGIN
    IF own.max_todo IS NULL OR number < 1 THEN
        RETURN;
    END IF;
    IF shared THEN
        PERFORM pg_advisory_xact_lock_shared(747164, own.id);
    ELSIF brief THEN
        PERFORM pg_advisory_xact_lock(747164, own.id);
    END IF;
    IF brief AND own IS DISTINCT FROM taskyard.team_of(yard) THEN  -- changed while this waited for the lock
        RETURN QUERY SELECT own.name, 0::bigint, own.max_todo, true;
        RETURN;
    END IF;
    SELECT * INTO last FROM taskyard.team_count WHERE team_count.team = own.id;
    SELECT coalesce(sum(added), 0) INTO total FROM taskyard.team_backlog WHERE team_backlog.team = own.id;
    began := taskyard.now();
    IF last.at IS NULL OR began - last.at NOT BETWEEN 0 AND 59999 OR last.counted + total - last.since + number > bound THEN
        IF (last.cost >= 50 OR last.counted >= 10000) AND began - last.at BETWEEN 0 AND 30 * last.cost - 1 AND last.counted + total - last.since + number > bound THEN
            RETURN QUERY SELECT own.name, least(last.counted + total - last.since, own.max_todo), own.max_todo, shared;
            RETURN;
        END IF;
        -- One statement sees one moment: what was added by then is in both numbers, or in neither.
        SELECT (SELECT coalesce(sum(added), 0) FROM taskyard.team_backlog WHERE team_backlog.team = own.id),
               coalesce(sum(each.open), 0), coalesce(sum(each.held), 0)
        INTO total, open, held
        FROM taskyard.project, LATERAL (
            SELECT count(*) FILTER (WHERE state <> 'processing') AS open, count(*) FILTER (WHERE state = 'processing') AS held
            FROM taskyard.task WHERE task.project = project.id OFFSET 0) AS each
        WHERE project.team = own.id;
        IF brief THEN
            INSERT INTO taskyard.team_count (team, counted, since, at, cost)
            VALUES (own.id, open + held, total, began, taskyard.now() - began)
            ON CONFLICT ON CONSTRAINT team_count_pkey DO UPDATE
            SET counted = excluded.counted, since = excluded.since, at = excluded.at, cost = excluded.cost;
        END IF;
        IF open + number > bound THEN
            RETURN QUERY SELECT own.name, open, own.max_todo, shared;
            RETURN;
        END IF;
    END IF;
    SELECT ctid INTO place FROM taskyard.team_backlog WHERE team_backlog.team = own.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        UPDATE taskyard.team_backlog SET added = added + number WHERE ctid = place;
    ELSE
        INSERT INTO taskyard.team_backlog (team, shard, added) VALUES (own.id, floor(random() * 1e15), number);
    END IF;
END $$;

-- How full a project's team is: tasks that wait for a worker, tasks that are held, and claims of the last minute.
CREATE FUNCTION taskyard.team_fill(yard int) RETURNS TABLE (todo bigint, running bigint, claimed bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    own taskyard.team := taskyard.team_of(yard);
BEGIN
    RETURN QUERY
    SELECT coalesce(sum(each.open), 0)::bigint, coalesce(sum(each.held), 0)::bigint, taskyard.team_claims(own.id)
    FROM taskyard.project, LATERAL (
        SELECT count(*) FILTER (WHERE state <> 'processing') AS open, count(*) FILTER (WHERE state = 'processing') AS held
        FROM taskyard.task WHERE task.project = project.id OFFSET 0) AS each
    WHERE project.team = own.id HAVING own.id IS NOT NULL;
END $$;

DO $$
DECLARE
    changed regprocedure;
    text text;
    found text;
    put text;
    quota text := 'project.paused OR CASE WHEN project.team IS NULL THEN false ELSE taskyard.team_is_full(project.id) END, taskyard.held_back(';
BEGIN
    -- Whatever heeds a pause heeds the team's quotas.
    FOR changed IN
        SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = 'taskyard'::regnamespace AND prosrc ~ 'limits\)(, project\.limits)? INTO whole, part' ORDER BY proname
    LOOP
        EXECUTE regexp_replace(pg_get_functiondef(changed), '(project\.)?paused,\s+taskyard\.held_back\(', quota);
    END LOOP;
    -- Changed where it stands: what came before this may have changed it as well.
    changed := 'taskyard.claim(int, text, text[], text, int, text[], double precision, double precision, double precision)'::regprocedure;
    text := pg_get_functiondef(changed);
    FOR found, put IN VALUES
        ('bounds jsonb;', 'bounds jsonb;
    owner int;'),
        ('project.limits INTO whole, part, bounds FROM', 'project.limits, project.team INTO whole, part, bounds, owner FROM'),
        ('IF found > 0 AND bounds IS NOT NULL THEN', 'IF found > 0 AND owner IS NOT NULL THEN
            picked := picked[1:taskyard.team_room(yard, found)];
            EXIT WHEN cardinality(picked) = 0;
        END IF;
        IF found > 0 AND bounds IS NOT NULL THEN'),
        ('PERFORM taskyard.ring(yard);', 'IF owner IS NOT NULL THEN
        PERFORM taskyard.count_team_claims(yard, cardinality(picked));
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
