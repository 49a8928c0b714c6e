-- min_client: 1
-- Partitions that are made beside those who work, and rights that hang on no role's name.

-- One partition of one window, if it is not there. The default partition is locked before anything is looked at: a row that others
-- had not committed yet would be found there only by the ATTACH, which then fails. A window that has begun is cut short at its
-- beginning, a minute from now: whoever waits for the lock has a row of the present, which must go on fitting where it was sent to.
-- So nothing has to be moved but rows from a clock that was ahead.
CREATE FUNCTION taskyard.make_partition(parent text, number bigint) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    prefix text := taskyard.base32(number, 2);
    part text := parent || '_' || prefix;
    axis text := CASE parent WHEN 'event' THEN 'at' ELSE 'age' END;
    start bigint := 1577836800000 + (number << 30);
    soon bigint := taskyard.now() + 60000;
    low text := quote_literal(prefix);
    high text := quote_literal(taskyard.base32(number + 1, 2));
BEGIN
    IF to_regclass('taskyard.' || part) IS NOT NULL THEN
        RETURN 0;
    END IF;
    IF number = (taskyard.now() - 1577836800000) >> 30 THEN
        IF number <> (soon - 1577836800000) >> 30 THEN
            RETURN 0;  -- as good as over
        END IF;
        start := soon;
        low := quote_literal(taskyard.base32((soon - 1577836800000) << 5, 9));
    END IF;
    IF parent = 'event' THEN
        low := start::text;
        high := (1577836800000 + ((number + 1) << 30))::text;
    END IF;
    EXECUTE format('CREATE TABLE taskyard.%I (LIKE taskyard.%I INCLUDING ALL)', part, parent);
    IF parent <> 'ended' THEN
        EXECUTE format('ALTER TABLE taskyard.%I REPLICA IDENTITY FULL', part);
    END IF;
    EXECUTE format('LOCK TABLE taskyard.%I IN ACCESS EXCLUSIVE MODE', parent || '_other');
    EXECUTE format(
        'WITH moved AS (DELETE FROM taskyard.%I WHERE %I >= %s AND %I < %s RETURNING *) '
        'INSERT INTO taskyard.%I SELECT * FROM moved',
        parent || '_other', axis, low, axis, high, part);
    EXECUTE format('ALTER TABLE taskyard.%I ATTACH PARTITION taskyard.%I FOR VALUES FROM (%s) TO (%s)', parent, part, low, high);
    RETURN 1;
END $$;

CREATE OR REPLACE FUNCTION taskyard.make_window(number bigint) RETURNS int LANGUAGE sql AS
$$ SELECT sum(taskyard.make_partition(parent, number))::int FROM unnest(ARRAY['ended', 'record', 'event']) AS parent $$;

-- Make one partition that is missing, of this window or the next; 0 if none is. One in a transaction: whoever locks two default
-- partitions waits for those who have written into the second and wait for the first.
CREATE OR REPLACE FUNCTION taskyard.make_windows() RETURNS int LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
    present bigint := (taskyard.now() - 1577836800000) >> 30;
    number bigint;
    parent text;
    busy text;
BEGIN
    IF NOT pg_try_advisory_xact_lock(747159, 0) THEN
        RETURN 0;
    END IF;
    FOR number IN present .. present + 1 LOOP
        FOREACH parent IN ARRAY ARRAY['ended', 'record', 'event'] LOOP
            BEGIN
                IF taskyard.make_partition(parent, number) = 1 THEN
                    RETURN 1;
                END IF;
            EXCEPTION WHEN lock_not_available THEN
                busy := parent;
            END;
        END LOOP;
    END LOOP;
    IF busy IS NOT NULL THEN
        RAISE lock_not_available USING MESSAGE = format('the table taskyard.%s_other is in use', busy);
    END IF;
    RETURN 0;
END $$;

-- Under a publication of all tables, PostgreSQL deletes no row that it could not name to subscribers. These tables have no key, and
-- an index for one would be paid for by every insert; the whole row is logged only for what is pruned.
DO $$
DECLARE
    part regclass;
BEGIN
    FOR part IN SELECT inhrelid FROM pg_inherits WHERE inhparent IN ('taskyard.record'::regclass, 'taskyard.event'::regclass) LOOP
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', part);
    END LOOP;
END $$;

-- Who reaches a project: whoever may use a type that stands for it. PostgreSQL keeps such a right by the role's number: it outlives a
-- new name, goes with a role that is dropped, and a dump restores it by name.
CREATE FUNCTION taskyard.make_access(project_id int, to_role name) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    place text := format('taskyard.access_%s', project_id);
    holder text;
BEGIN
    IF to_regtype(place) IS NULL THEN
        EXECUTE format('CREATE DOMAIN %s AS boolean', place);
        EXECUTE format('REVOKE ALL ON DOMAIN %s FROM PUBLIC', place);
        EXECUTE format('ALTER DOMAIN %s OWNER TO %s', place,
                       (SELECT relowner::regrole FROM pg_class WHERE oid = 'taskyard.project'::regclass));
    END IF;
    FOR holder IN
        SELECT grantee::regrole::text FROM pg_type, aclexplode(typacl) WHERE pg_type.oid = to_regtype(place) AND grantee <> typowner
    LOOP
        EXECUTE format('REVOKE ALL ON DOMAIN %s FROM %s', place, holder);
    END LOOP;
    EXECUTE format('GRANT USAGE ON DOMAIN %s TO %I', place, to_role);
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
        'taskyard.key, taskyard.need, taskyard.used TO %I', to_role);
    EXECUTE format('GRANT USAGE ON SEQUENCE taskyard.number, taskyard.record_order, taskyard.event_order TO %I', to_role);
END $$;

-- Most of it before the table is locked. A role that is gone has lost its project; nobody else has.
SELECT taskyard.make_access(id, role) FROM taskyard.project WHERE role IN (SELECT rolname FROM pg_roles);
DROP POLICY own ON taskyard.project;
SELECT taskyard.make_access(id, role) FROM taskyard.project
WHERE role IN (SELECT rolname FROM pg_roles) AND to_regtype('taskyard.access_' || id) IS NULL;
ALTER TABLE taskyard.project ADD COLUMN access regtype;
UPDATE taskyard.project SET access = to_regtype('taskyard.access_' || id) WHERE to_regtype('taskyard.access_' || id) IS NOT NULL;
ALTER TABLE taskyard.project DROP COLUMN role;
CREATE POLICY own ON taskyard.project USING (has_type_privilege(access, 'USAGE'));

-- For each row its own project is asked for. (OFFSET 0 keeps the planner from asking for all projects first: 8 ms at 2,000 of them, for
-- every statement.)
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['task', 'body', 'ended', 'record', 'event', 'key', 'need', 'used'] LOOP
        EXECUTE format(
            'ALTER POLICY own ON taskyard.%I USING (EXISTS (SELECT FROM taskyard.project AS yard WHERE yard.id = %I.project OFFSET 0))',
            name, name);
    END LOOP;
END $$;
