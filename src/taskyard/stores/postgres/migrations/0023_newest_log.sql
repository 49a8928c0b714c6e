-- min_client: 1
-- The newest events of a project, whole and newest first, by walking the log's index backwards.
CREATE FUNCTION taskyard.newest_log(yard int, most int) RETURNS TABLE (
    xid xid8, n bigint, at bigint, event text, task text, kind text, fence int, worker text, by text, more text)
LANGUAGE plpgsql STABLE ROWS 1000
SET enable_sort = off SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT xid, n, at, event, task, kind, fence, worker, by, more
    FROM taskyard.event WHERE project = yard ORDER BY xid DESC, n DESC LIMIT most;
END $$;
