-- name: stand
-- Where a task stands. One statement sees one moment, in which the task is in one of the two tables.
SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease, uses, followed
FROM taskyard.task WHERE project = %(project)s AND age = %(age)s AND id = %(id)s
UNION ALL
SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, NULL, uses, followed
FROM taskyard.ended WHERE project = %(project)s AND age = %(age)s AND id = %(id)s

-- name: get
SELECT found.*, ARRAY(SELECT other FROM taskyard.need WHERE need.project = %(project)s AND need.id = found.id ORDER BY other),
       (SELECT json_agg(json_build_array(sort, fence, nonce, worker, at, outcome, content, result) ORDER BY n)
        FROM taskyard.record WHERE project = %(project)s AND age = %(age)s)
FROM (
    SELECT task.id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease, lease_ends,
           progress, due, uses, NULL::bigint AS ended_at, title, mission, key, after, verify, not_before, data, error, NULL::text AS result
    FROM taskyard.task JOIN taskyard.body USING (project, id)
    WHERE task.project = %(project)s AND age = %(age)s AND task.id = %(id)s
    UNION ALL
    SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, NULL, NULL,
           NULL, NULL, uses, ended_at, title, mission, key, after, verify, not_before, data, error, result
    FROM taskyard.ended WHERE project = %(project)s AND age = %(age)s AND id = %(id)s
) AS found

-- name: find
SELECT id, kind, title, state, priority, worker, mission, assignee, fence FROM taskyard.find(
    %(project)s, %(states)s::taskyard.state[], %(kinds)s::text[], %(mission)s, %(worker)s, %(taker)s, %(past)s, %(limit)s)

-- name: held
SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease, uses, followed
FROM taskyard.task WHERE project = %(project)s AND state = 'processing' AND worker = %(worker)s ORDER BY age

-- name: alike
-- The tasks of these segments whose ids have one of these ends.
SELECT found.id
FROM unnest(%(segments)s::text[]) AS wanted (segment), LATERAL (
    SELECT id FROM taskyard.body
    WHERE project = %(project)s AND id >= wanted.segment COLLATE "C" AND id < wanted.segment || '{' COLLATE "C"
      AND right(id, %(length)s) = ANY (%(ends)s::text[])
    UNION ALL
    SELECT id FROM taskyard.ended
    WHERE project = %(project)s AND id >= wanted.segment COLLATE "C" AND id < wanted.segment || '{' COLLATE "C"
      AND right(id, %(length)s) = ANY (%(ends)s::text[])
) AS found

-- name: dropped_under
-- Tasks that were dropped under this file name, or under one that ends in `tail`; both are JSON.
SELECT found.id, record.content FROM taskyard.record, LATERAL (
    SELECT id FROM taskyard.task WHERE task.project = %(project)s AND task.age = record.age
    UNION ALL
    SELECT id FROM taskyard.ended WHERE ended.project = %(project)s AND ended.age = record.age
) AS found
WHERE record.project = %(project)s AND sort = 'name' AND (content = %(name)s OR right(content, length(%(tail)s)) = %(tail)s)
ORDER BY record.age

-- name: counts
SELECT kind, state, count(*) FROM taskyard.task WHERE project = %(project)s GROUP BY kind, state
UNION ALL
SELECT kind, state, count(*) FROM taskyard.ended WHERE project = %(project)s GROUP BY kind, state

-- name: latest
SELECT pg_current_snapshot()::text

-- name: tasks
-- Whole tasks of these ids, each looked up by itself.
SELECT found.* FROM unnest(%(ids)s::text[]) AS wanted (id), LATERAL (
    SELECT task.id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease, lease_ends,
           progress, due, uses, NULL::bigint AS ended_at, title, mission, key, after, verify, not_before, data, error, NULL::text AS result
    FROM taskyard.task JOIN taskyard.body USING (project, id)
    WHERE task.project = %(project)s AND age = substr(wanted.id, 5) AND task.id = wanted.id
    UNION ALL
    SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, NULL, NULL,
           NULL, NULL, uses, ended_at, title, mission, key, after, verify, not_before, data, error, result
    FROM taskyard.ended WHERE project = %(project)s AND age = substr(wanted.id, 5) AND id = wanted.id
) AS found

-- name: log
-- A page of the log, without what the cursor's snapshot `seen` contains. In the middle of a reading, the snapshot `now`
-- of that reading limits what belongs to it.
SELECT pg_current_snapshot()::text, page.xid::text, n, at, event, task, kind, fence, worker, by, more
FROM (SELECT 1) AS always LEFT JOIN taskyard.log(
    %(project)s, %(seen)s::pg_snapshot, %(now)s::pg_snapshot, %(xid)s::xid8, %(n)s::bigint, %(task)s, %(worker)s, %(kind)s, %(since)s::bigint,
    %(events)s::text[], %(limit)s
) AS page ON true
