-- min_client: 1
-- An add or a note that is said twice is made once, the heartbeats of a claim whose row is locked count, and a fence is one project's.

-- What stands for an add, or a note, that may be said again though nobody knows what became of it, as behind a pooler: the second to come
-- fails. Kept for as long as the other may still be on its way.
CREATE TABLE taskyard.token (
    project int NOT NULL,
    token text COLLATE "C" NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (project, token)
);

-- The last heartbeat of a claim whose row a transaction had locked: a fence() or an open done. It counts as long as the claim is the same.
CREATE TABLE taskyard.heartbeat (
    project int NOT NULL,
    age text COLLATE "C" NOT NULL,
    fence int NOT NULL,
    nonce text COLLATE "C" NOT NULL,
    lease_ends bigint NOT NULL,
    PRIMARY KEY (project, age)
);

-- Until when a claim holds by its own row or by such a heartbeat.
CREATE FUNCTION taskyard.held_until(task taskyard.task) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT greatest(task.lease_ends, (
       SELECT heartbeat.lease_ends FROM taskyard.heartbeat
       WHERE heartbeat.project = task.project AND heartbeat.age = task.age AND heartbeat.fence = task.fence AND heartbeat.nonce = task.nonce)) $$;

DO $$
DECLARE
    name text;
    crew text;
BEGIN
    FOREACH name IN ARRAY ARRAY['token', 'heartbeat'] LOOP
        EXECUTE format('ALTER TABLE taskyard.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY own ON taskyard.%I USING (EXISTS (SELECT FROM taskyard.project AS yard WHERE yard.id = %I.project OFFSET 0))',
            name, name);
    END LOOP;
    -- Whoever may write tasks.
    FOR crew IN
        SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
        FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = 'taskyard.task'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.token, taskyard.heartbeat TO %s', crew);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION taskyard.give_project(project_name text, to_role name) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    given int;
BEGIN
    SELECT id INTO given FROM taskyard.project WHERE name = project_name FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no project %', project_name;
    END IF;
    PERFORM taskyard.make_access(given, to_role);
    UPDATE taskyard.project SET access = to_regtype('taskyard.access_' || id) WHERE id = given;
    EXECUTE format('GRANT USAGE ON SCHEMA taskyard TO %I', to_role);
    EXECUTE format('GRANT SELECT ON taskyard.migration, taskyard.project TO %I', to_role);
    EXECUTE format('GRANT UPDATE (paused, paused_kinds, swept_at, cut_from, cut_until, cut_grace) ON taskyard.project TO %I', to_role);
    EXECUTE format(
        'GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.task, taskyard.body, taskyard.ended, taskyard.record, taskyard.event, '
        'taskyard.key, taskyard.need, taskyard.used, taskyard.token, taskyard.heartbeat TO %I', to_role);
    EXECUTE format('GRANT USAGE ON SEQUENCE taskyard.number, taskyard.record_order, taskyard.event_order TO %I', to_role);
END $$;

-- For the user's own tables: the fence of a claim that holds its task in this project, which stays so until the transaction ends;
-- else an error. After `copy --with-claims` two projects of a database have the same handle.
CREATE FUNCTION taskyard.fence(handle text, project_name text) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET standard_conforming_strings = on AS $$
DECLARE
    parts text[] := string_to_array(handle, '.');
    yard int;
    found bigint;
BEGIN
    IF handle !~ '^[0-9a-hjkmnp-tv-z]{21}\.[1-9][0-9]{0,8}\.[0-9a-hjkmnp-tv-z]{8,24}$' THEN
        RAISE EXCEPTION 'not a claim''s handle: %', left(handle, 80)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'A handle looks like id.fence.nonce, as taskyard claim prints it.';
    END IF;
    SELECT id INTO yard FROM taskyard.project WHERE name = project_name;
    IF yard IS NULL THEN
        RAISE EXCEPTION 'there is no project %', project_name USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT task.fence INTO found FROM taskyard.task
    WHERE task.project = yard AND task.age = substr(parts[1], 5) AND task.id = parts[1]
      AND task.state::text = 'processing' AND task.fence = parts[2]::int AND task.nonce = parts[3]
    FOR SHARE;
    IF found IS NULL THEN
        RAISE EXCEPTION 'the claim % is over', handle
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Stop this work and claim again.';
    END IF;
    RETURN found;
END $$;

-- The same in the one project that has the task. Where several have it, it must be said which: a claim may be over in one and not in the other.
CREATE OR REPLACE FUNCTION taskyard.fence(handle text) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET standard_conforming_strings = on AS $$
DECLARE
    task_id text COLLATE "C" := split_part(handle, '.', 1);
    names text[];
BEGIN
    names := ARRAY(
        SELECT yard.name FROM taskyard.project AS yard
        WHERE EXISTS (SELECT FROM taskyard.task WHERE task.project = yard.id AND task.age = substr(task_id, 5) AND task.id = task_id)
           OR EXISTS (SELECT FROM taskyard.ended WHERE ended.project = yard.id AND ended.age = substr(task_id, 5) AND ended.id = task_id)
        ORDER BY yard.name);
    IF cardinality(names) > 1 THEN
        RAISE EXCEPTION 'the task % is in the projects %', task_id, array_to_string(names, ', ')
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Say which: SELECT taskyard.fence(handle, project).';
    END IF;
    RETURN taskyard.fence(handle, coalesce(names[1], (SELECT min(name) FROM taskyard.project)));
END $$;
