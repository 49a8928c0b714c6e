-- The first schema: open tasks in narrow rows that move, ended ones in partitions that only grow, what they say apart.
--
-- Moments are milliseconds since 1970, in the database's own time (taskyard.now()).
-- An id is segment (4 characters) and age (17): ages sort by time. A window of 2^30 ms (12.4 days) has one beginning
-- of two characters, so partitions are cut by that, and an id tells which one its task is in.

CREATE FUNCTION taskyard.now() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE AS
$$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

CREATE FUNCTION taskyard.base32(number bigint, width int) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
$$ SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', ((number >> (5 * place)) & 31)::int + 1, 1), '' ORDER BY place DESC)
   FROM generate_series(0, width - 1) AS place $$;

-- Ticks of 1/32 ms since 2020, as the nine characters of time in an id.
CREATE FUNCTION taskyard.ticks() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE AS
$$ SELECT floor((extract(epoch FROM clock_timestamp()) * 1000 - 1577836800000) * 32)::bigint $$;

-- When a lease is over for others: not before its holder had one lease's time to renew it since the server was started.
CREATE FUNCTION taskyard.lease_end(ends bigint, lease double precision) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT greatest(ends, floor(extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint + (lease * 1000)::bigint) $$;

-- What an event tells, with the moment at which its task is due, if there is one; JSON as text.
CREATE FUNCTION taskyard.with_due(more text, due bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN due IS NULL THEN more ELSE
       CASE WHEN more IS NULL THEN '{' ELSE left(more, -1) || ',' END
       || to_char(to_timestamp(due / 1000.0) AT TIME ZONE 'UTC', '"\"due\":\""YYYY-MM-DD"T"HH24:MI:SS.MS"Z\"}"') END $$;

CREATE TYPE taskyard.state AS ENUM ('waiting', 'blocked', 'todo', 'processing', 'done', 'failed', 'cancelled');

CREATE TABLE taskyard.project (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    settings text NOT NULL DEFAULT '{}',
    epoch int NOT NULL DEFAULT 0,
    paused boolean NOT NULL DEFAULT false,
    paused_kinds text[] COLLATE "C" NOT NULL DEFAULT '{}',
    swept_at bigint NOT NULL DEFAULT 0,
    made_at bigint NOT NULL DEFAULT taskyard.now()
) WITH (fillfactor = 50);

-- Segments are numbered by one sequence: 1,024 numbers each.
CREATE SEQUENCE taskyard.number MINVALUE 0 START 0;

-- The order of records and events. Not identity columns: partitions are made as tables of their own, and share these.
CREATE SEQUENCE taskyard.record_order;
CREATE SEQUENCE taskyard.event_order;

-- Tasks that have not ended. A heartbeat changes lease_ends and progress, which no index has: such an update stays on
-- its page. What a task says is in body.
CREATE TABLE taskyard.task (
    project int NOT NULL REFERENCES taskyard.project,
    age text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    state taskyard.state NOT NULL,
    kind text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    assignee text COLLATE "C",
    fence int NOT NULL,
    errors int NOT NULL,
    crashes int NOT NULL,
    max_attempts smallint,
    own_lease double precision,
    uses text[] COLLATE "C",
    followed boolean NOT NULL DEFAULT false,  -- others come after it: its done has to look for them
    due bigint,                               -- of a waiting or blocked task
    worker text COLLATE "C",
    nonce text COLLATE "C",
    lease double precision,                   -- the claim's, in seconds
    lease_ends bigint,
    progress double precision,
    PRIMARY KEY (project, age)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);

-- One index for each way to ask for work: for anything, and for certain kinds; what is everybody's, and what is somebody's.
CREATE INDEX task_any ON taskyard.task (project, priority, age) WHERE state = 'todo' AND assignee IS NULL;
CREATE INDEX task_kind ON taskyard.task (project, kind, priority, age) WHERE state = 'todo' AND assignee IS NULL;
CREATE INDEX task_assigned ON taskyard.task (project, assignee, priority, age) WHERE state = 'todo' AND assignee IS NOT NULL;
CREATE INDEX task_assigned_kind ON taskyard.task (project, assignee, kind, priority, age)
    WHERE state = 'todo' AND assignee IS NOT NULL;
CREATE INDEX task_held ON taskyard.task (project, worker, age) WHERE state = 'processing';
CREATE INDEX task_waiting ON taskyard.task (project, due, age) WHERE state = 'waiting';
CREATE INDEX task_blocked ON taskyard.task (project, age) WHERE state = 'blocked';

-- What an open task says. JSON is kept as text: it comes back to the letter, and jsonb knows no NUL.
CREATE TABLE taskyard.body (
    project int NOT NULL,
    id text COLLATE "C" NOT NULL,
    title text,
    mission text COLLATE "C",
    key text COLLATE "C",
    after text[] COLLATE "C",
    verify text,
    not_before bigint,
    data text NOT NULL,
    error text,  -- JSON
    PRIMARY KEY (project, id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Tasks that have ended: all of task and body that still counts, with the result.
CREATE TABLE taskyard.ended (
    project int NOT NULL,
    age text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    state taskyard.state NOT NULL,
    kind text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    assignee text COLLATE "C",
    fence int NOT NULL,
    errors int NOT NULL,
    crashes int NOT NULL,
    max_attempts smallint,
    own_lease double precision,
    uses text[] COLLATE "C",
    followed boolean NOT NULL,
    worker text COLLATE "C",
    nonce text COLLATE "C",
    ended_at bigint NOT NULL,
    title text,
    mission text COLLATE "C",
    key text COLLATE "C",
    after text[] COLLATE "C",
    verify text,
    not_before bigint,
    data text NOT NULL,
    error text,
    result text,
    PRIMARY KEY (project, age, id)
) PARTITION BY RANGE (age);
CREATE INDEX ended_id ON taskyard.ended (project, id);
CREATE TABLE taskyard.ended_other PARTITION OF taskyard.ended DEFAULT;

-- How claims ended (a done is told by its row in ended), their notes, and what they brought too late.
CREATE TABLE taskyard.record (
    project int NOT NULL,
    age text COLLATE "C" NOT NULL,
    n bigint NOT NULL DEFAULT nextval('taskyard.record_order'),
    sort text NOT NULL CHECK (sort IN ('outcome', 'note', 'stale')),
    fence int NOT NULL,
    nonce text COLLATE "C" NOT NULL,
    worker text COLLATE "C",
    at bigint NOT NULL DEFAULT taskyard.now(),
    outcome text,
    content text,  -- JSON: the reason of an outcome, the text of a note, the reason of what came too late
    result text
) PARTITION BY RANGE (age);
CREATE INDEX record_task ON taskyard.record (project, age);
CREATE TABLE taskyard.record_other PARTITION OF taskyard.record DEFAULT;

-- The log. Read by snapshots (xid), so that whoever follows misses no transaction that commits late.
CREATE TABLE taskyard.event (
    project int NOT NULL,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    n bigint NOT NULL DEFAULT nextval('taskyard.event_order'),
    at bigint NOT NULL DEFAULT taskyard.now(),
    event text NOT NULL,
    task text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    fence int NOT NULL,
    worker text COLLATE "C",
    by text COLLATE "C" NOT NULL,
    more text  -- JSON
) PARTITION BY RANGE (at);
CREATE INDEX event_log ON taskyard.event (project, xid, n);
CREATE INDEX event_task ON taskyard.event (project, task, xid, n);
CREATE TABLE taskyard.event_other PARTITION OF taskyard.event DEFAULT;

CREATE TABLE taskyard.key (
    project int NOT NULL,
    key text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    digest text NOT NULL,  -- of the data as it was added: an edit changes the task, not what the key means
    PRIMARY KEY (project, key)
);

-- A task that is not done, and one that comes after it.
CREATE TABLE taskyard.need (
    project int NOT NULL,
    id text COLLATE "C" NOT NULL,
    other text COLLATE "C" NOT NULL,
    PRIMARY KEY (project, id, other)
);
CREATE INDEX need_other ON taskyard.need (project, other);

-- What running tasks have to themselves.
CREATE TABLE taskyard.used (
    project int NOT NULL,
    resource text COLLATE "C" NOT NULL,
    age text COLLATE "C" NOT NULL,
    PRIMARY KEY (project, resource)
);

-- What may be handed out next, in the order of urgency and age. Functions with settings of their own, because a plan that is
-- made before the table was first analyzed takes it for nearly empty, and sorts all of it for every claim (measured: 98 ms
-- in place of 0.9 at 20,000 tasks). What another task has to itself is passed over. They see what the statement sees that
-- calls them (STABLE): a claim is guarded by the fence that goes with the body that it reads.
CREATE FUNCTION taskyard.head_of_all(yard int, by_worker text, width int)
RETURNS TABLE (age text, priority smallint, fence int) LANGUAGE plpgsql STABLE ROWS 8
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    RETURN QUERY
    SELECT task.age, task.priority, task.fence FROM taskyard.task
    WHERE task.project = yard AND task.state = 'todo' AND task.assignee IS NULL
      AND (task.uses IS NULL OR NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = ANY (task.uses)))
    ORDER BY task.priority, task.age LIMIT width;
    RETURN QUERY
    SELECT task.age, task.priority, task.fence FROM taskyard.task
    WHERE task.project = yard AND task.state = 'todo' AND task.assignee = by_worker
      AND (task.uses IS NULL OR NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = ANY (task.uses)))
    ORDER BY task.priority, task.age LIMIT width;
END $$;

CREATE FUNCTION taskyard.head_of_kinds(yard int, by_worker text, kinds text[], width int)
RETURNS TABLE (age text, priority smallint, fence int) LANGUAGE plpgsql STABLE ROWS 8
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    wanted text COLLATE "C";
BEGIN
    FOREACH wanted IN ARRAY kinds LOOP
        RETURN QUERY
        SELECT task.age, task.priority, task.fence FROM taskyard.task
        WHERE task.project = yard AND task.state = 'todo' AND task.assignee IS NULL AND task.kind = wanted
          AND (task.uses IS NULL OR NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = ANY (task.uses)))
        ORDER BY task.priority, task.age LIMIT width;
        RETURN QUERY
        SELECT task.age, task.priority, task.fence FROM taskyard.task
        WHERE task.project = yard AND task.state = 'todo' AND task.assignee = by_worker AND task.kind = wanted
          AND (task.uses IS NULL OR NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = yard AND used.resource = ANY (task.uses)))
        ORDER BY task.priority, task.age LIMIT width;
    END LOOP;
END $$;

-- Whether somebody may be listening on the project's channel: listeners hold the lock shared. Asked before a NOTIFY,
-- because every NOTIFY takes one lock for the whole server until its transaction is flushed.
CREATE FUNCTION taskyard.ring(project int) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF pg_try_advisory_lock(747159, project) THEN
        PERFORM pg_advisory_unlock(747159, project);
    ELSE
        PERFORM pg_notify('taskyard_' || project, '');
    END IF;
END $$;

-- The partitions of one window, if they are not there; rows that came before them are moved in.
CREATE FUNCTION taskyard.make_window(number bigint) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    prefix text := taskyard.base32(number, 2);
    parent text;
    part text;
    low text;
    high text;
    axis text;
    made int := 0;
BEGIN
    FOREACH parent IN ARRAY ARRAY['ended', 'record', 'event'] LOOP
        part := parent || '_' || prefix;
        CONTINUE WHEN to_regclass('taskyard.' || part) IS NOT NULL;
        IF parent = 'event' THEN
            axis := 'at';
            low := (1577836800000 + (number << 30))::text;
            high := (1577836800000 + ((number + 1) << 30))::text;
        ELSE
            axis := 'age';
            low := quote_literal(prefix);
            high := quote_literal(taskyard.base32(number + 1, 2));
        END IF;
        EXECUTE format('CREATE TABLE taskyard.%I (LIKE taskyard.%I INCLUDING ALL)', part, parent);
        EXECUTE format(
            'WITH moved AS (DELETE FROM taskyard.%I WHERE %I >= %s AND %I < %s RETURNING *) '
            'INSERT INTO taskyard.%I SELECT * FROM moved',
            parent || '_other', axis, low, axis, high, part);
        EXECUTE format('ALTER TABLE taskyard.%I ATTACH PARTITION taskyard.%I FOR VALUES FROM (%s) TO (%s)', parent, part, low, high);
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;

-- Windows are made ahead, and dropped when they are past and empty, by whoever sweeps; the tables' owner does it.
-- Neither waits long for a lock: whoever queues behind it would wait as well.
CREATE FUNCTION taskyard.make_windows() RETURNS int LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    present bigint := (taskyard.now() - 1577836800000) >> 30;
BEGIN
    IF NOT pg_try_advisory_xact_lock(747159, 0) THEN
        RETURN 0;
    END IF;
    RETURN taskyard.make_window(present) + taskyard.make_window(present + 1);
END $$;

CREATE FUNCTION taskyard.drop_windows() RETURNS int LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    present bigint := (taskyard.now() - 1577836800000) >> 30;
    part text;
    empty boolean;
    dropped int := 0;
BEGIN
    IF NOT pg_try_advisory_xact_lock(747159, 0) THEN
        RETURN 0;
    END IF;
    FOR part IN
        SELECT relname FROM pg_class
        WHERE relnamespace = 'taskyard'::regnamespace AND relkind = 'r'
          AND relname ~ '^(ended|record|event)_[0-9a-hjkmnp-tv-z]{2}$'
          AND right(relname, 2) COLLATE "C" < taskyard.base32(present - 1, 2) COLLATE "C"
        ORDER BY relname
    LOOP
        EXECUTE format('SELECT NOT EXISTS (SELECT FROM taskyard.%I)', part) INTO empty;
        CONTINUE WHEN NOT empty;
        EXECUTE format('LOCK TABLE taskyard.%I', part);
        EXECUTE format('SELECT NOT EXISTS (SELECT FROM taskyard.%I)', part) INTO empty;
        IF empty THEN
            EXECUTE format('DROP TABLE taskyard.%I', part);
            dropped := dropped + 1;
        END IF;
    END LOOP;
    RETURN dropped;
END $$;

SELECT taskyard.make_window((taskyard.now() - 1577836800000) >> 30);
SELECT taskyard.make_window(((taskyard.now() - 1577836800000) >> 30) + 1);

-- For the user's own tables: the fence of a claim that holds its task, which stays so until the transaction ends; else an
-- error. SELECT taskyard.fence('<handle>') first, then write: nobody else can be given the task in between.
CREATE FUNCTION taskyard.fence(handle text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    parts text[] := string_to_array(handle, '.');
    found bigint;
BEGIN
    IF handle !~ '^[0-9a-hjkmnp-tv-z]{21}\.[1-9][0-9]{0,8}\.[0-9a-hjkmnp-tv-z]{8,24}$' THEN
        RAISE EXCEPTION 'not a claim''s handle: %', left(handle, 80)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'A handle looks like id.fence.nonce, as taskyard claim prints it.';
    END IF;
    SELECT task.fence INTO found
    FROM taskyard.task JOIN taskyard.project ON project.id = task.project
    WHERE task.project IN (SELECT id FROM taskyard.project) AND task.age = substr(parts[1], 5) AND task.id = parts[1]
      AND task.state::text = 'processing' AND task.fence = parts[2]::int AND task.nonce = parts[3]
    FOR SHARE OF task;
    IF found IS NULL THEN
        RAISE EXCEPTION 'the claim % is over', handle
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Stop this work and claim again.';
    END IF;
    RETURN found;
END $$;

-- A role that is given a project reaches that project and no other; the tables' owner reaches all.
ALTER TABLE taskyard.project ADD COLUMN role name;
ALTER TABLE taskyard.project ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON taskyard.project USING (pg_has_role(role, 'MEMBER'));

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['task', 'body', 'ended', 'record', 'event', 'key', 'need', 'used'] LOOP
        EXECUTE format('ALTER TABLE taskyard.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own ON taskyard.%I USING (project IN (SELECT id FROM taskyard.project))', name);
    END LOOP;
END $$;

CREATE FUNCTION taskyard.give_project(project_name text, to_role name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE taskyard.project SET role = to_role WHERE name = project_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no project %', project_name;
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA taskyard TO %I', to_role);
    EXECUTE format('GRANT SELECT ON taskyard.migration, taskyard.project TO %I', to_role);
    EXECUTE format('GRANT UPDATE (paused, paused_kinds, swept_at) ON taskyard.project TO %I', to_role);
    EXECUTE format(
        'GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.task, taskyard.body, taskyard.ended, taskyard.record, taskyard.event, '
        'taskyard.key, taskyard.need, taskyard.used TO %I', to_role);
    EXECUTE format('GRANT USAGE ON SEQUENCE taskyard.number, taskyard.record_order, taskyard.event_order TO %I', to_role);
END $$;
