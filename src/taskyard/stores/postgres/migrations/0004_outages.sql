-- min_client: 1
-- Leases that an outage must not cost: since when nobody could reach a project, and when somebody could again.

ALTER TABLE taskyard.project
    ADD COLUMN cut_from bigint NOT NULL DEFAULT 0,
    ADD COLUMN cut_until bigint NOT NULL DEFAULT 0,
    ADD COLUMN cut_grace bigint NOT NULL DEFAULT 0;  -- milliseconds that workers may take then to find their way back

-- When the server was started.
CREATE FUNCTION taskyard.started() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT floor(extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint $$;

-- When a lease is over for others. One that was begun before the server was started, not before its holder had its whole time since,
-- and never less than workers take to come back. (Single expressions, so that the planner puts them in place of the call.)
CREATE OR REPLACE FUNCTION taskyard.lease_end(ends bigint, lease double precision) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT CASE WHEN ends - (lease * 1000)::bigint >= taskyard.started() THEN ends
               ELSE greatest(ends, taskyard.started() + greatest(lease * 1000, 10000)::bigint) END $$;

-- The same for one that held when the database was last out of reach. One that was over by then is nobody's: it is not put off again.
CREATE FUNCTION taskyard.lease_end(ends bigint, lease double precision, yard taskyard.project) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT greatest(
       taskyard.lease_end(ends, lease),
       CASE WHEN ends >= yard.cut_from AND ends - (lease * 1000)::bigint < yard.cut_until
            THEN yard.cut_until + greatest(lease * 1000, yard.cut_grace)::bigint END) $$;

CREATE OR REPLACE FUNCTION taskyard.give_project(project_name text, to_role name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE taskyard.project SET role = to_role WHERE name = project_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no project %', project_name;
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA taskyard TO %I', to_role);
    EXECUTE format('GRANT SELECT ON taskyard.migration, taskyard.project TO %I', to_role);
    EXECUTE format('GRANT UPDATE (paused, paused_kinds, swept_at, cut_from, cut_until, cut_grace) ON taskyard.project TO %I', to_role);
    EXECUTE format(
        'GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.task, taskyard.body, taskyard.ended, taskyard.record, taskyard.event, '
        'taskyard.key, taskyard.need, taskyard.used TO %I', to_role);
    EXECUTE format('GRANT USAGE ON SEQUENCE taskyard.number, taskyard.record_order, taskyard.event_order TO %I', to_role);
END $$;

DO $$
DECLARE
    known name;
BEGIN
    FOR known IN SELECT DISTINCT role FROM taskyard.project WHERE role IS NOT NULL LOOP
        EXECUTE format('GRANT UPDATE (cut_from, cut_until, cut_grace) ON taskyard.project TO %I', known);
    END LOOP;
END $$;
