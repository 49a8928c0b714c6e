-- name: stand
-- Where a task stands. One statement sees one moment, in which the task is in one of the two tables.
SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease, uses, followed,
       (SELECT at FROM taskyard.deadline WHERE deadline.project = %(project)s AND deadline.age = %(age)s)
FROM taskyard.task WHERE project = %(project)s AND age = %(age)s AND id = %(id)s
UNION ALL
SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, NULL, uses, followed, NULL
FROM taskyard.ended WHERE project = %(project)s AND age = %(age)s AND id = %(id)s

-- name: stand_all
SELECT found.* FROM unnest(%(ages)s::text[], %(ids)s::text[]) AS next (age, id), LATERAL (
    SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease
    FROM taskyard.task WHERE task.project = %(project)s AND task.age = next.age AND task.id = next.id
    UNION ALL
    SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, NULL
    FROM taskyard.ended WHERE ended.project = %(project)s AND ended.age = next.age AND ended.id = next.id
    OFFSET 0) AS found

-- name: needs_all
SELECT found.* FROM unnest(%(ids)s::text[]) AS next (id), LATERAL (
    SELECT id, other FROM taskyard.need WHERE need.project = %(project)s AND need.id = next.id ORDER BY other OFFSET 0) AS found

-- name: get
SELECT found.*, CASE WHEN after IS NOT NULL THEN taskyard.origin(%(project)s, found.id) END,
       ARRAY(SELECT other FROM taskyard.need WHERE need.project = %(project)s AND need.id = found.id ORDER BY other),
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

-- name: find_held
-- The same for what one worker holds, by the index of that: `find` reads past all that is open.
SELECT task.id, kind, said.title, state, priority, worker, said.mission, assignee, fence
FROM taskyard.task, LATERAL (
    SELECT title, mission FROM taskyard.body WHERE body.project = task.project AND body.id = task.id OFFSET 0) AS said
WHERE task.project = %(project)s AND state = 'processing' AND worker = %(worker)s AND task.age > %(past)s
  AND (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s::text[]))
  AND (%(mission)s::text IS NULL OR said.mission = %(mission)s)
ORDER BY task.age LIMIT %(limit)s

-- name: find_of_mission
SELECT id, kind, title, state, priority, worker, mission, assignee, fence FROM taskyard.find_of_mission(
    %(project)s, %(states)s::taskyard.state[], %(kinds)s::text[], %(mission)s, %(worker)s, %(taker)s, %(past)s, %(limit)s)

-- name: ready
SELECT id, kind, title, state, priority, worker, mission, assignee, fence FROM taskyard.ready(
    %(project)s, %(taker)s, %(kinds)s::text[], %(mission)s, %(past_priority)s, %(past)s, %(ageing)s, %(limit)s)
ORDER BY place, age LIMIT %(limit)s

-- name: ready_of_mission
SELECT id, kind, title, state, priority, worker, mission, assignee, fence FROM taskyard.ready_of_mission(
    %(project)s, %(taker)s, %(kinds)s::text[], %(mission)s, %(past_priority)s, %(past)s, %(ageing)s, %(limit)s)
ORDER BY place, age LIMIT %(limit)s

-- name: assigned
-- What is ready for one worker each.
SELECT id, kind, priority, assignee FROM taskyard.task
WHERE project = %(project)s AND state = 'todo' AND assignee IS NOT NULL ORDER BY assignee, priority, age LIMIT %(limit)s

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

-- name: pages
-- The pages of the tables that counting reads.
SELECT (pg_relation_size('taskyard.task') + (SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree('taskyard.ended')))::bigint
       / current_setting('block_size')::int

-- name: counts_sampled
-- Some of the pages stand for all; the few tasks that are held are counted.
SELECT kind, state, round(count(*) * 100 / %(percent)s::numeric)::bigint FROM taskyard.task TABLESAMPLE SYSTEM (%(percent)s)
WHERE project = %(project)s AND state <> 'processing' GROUP BY kind, state
UNION ALL
SELECT kind, state, count(*) FROM taskyard.task WHERE project = %(project)s AND state = 'processing' GROUP BY kind, state
UNION ALL
SELECT kind, state, round(count(*) * 100 / %(percent)s::numeric)::bigint FROM taskyard.ended TABLESAMPLE SYSTEM (%(percent)s)
WHERE project = %(project)s GROUP BY kind, state

-- name: oldest
SELECT state, id FROM taskyard.oldest(%(project)s)

-- name: activity
-- The newest events by name and by how long ago they were: within the minute (0), the hour (1), or before (2).
SELECT taskyard.now(), event, span, count(*), min(at) FROM (
    SELECT event, at, CASE WHEN at >= taskyard.now() - 60000 THEN 0 WHEN at >= taskyard.now() - 3600000 THEN 1 ELSE 2 END AS span
    FROM taskyard.newest_events(%(project)s, %(limit)s)
) AS newest GROUP BY event, span

-- name: newest
SELECT xid::text, n, at, event, task, kind, fence, worker, by, more FROM taskyard.newest_log(%(project)s, %(limit)s)

-- name: latest
SELECT pg_current_snapshot()::text

-- name: tasks
-- Whole tasks of these ids, each looked up by itself.
SELECT found.*, CASE WHEN after IS NOT NULL THEN taskyard.origin(%(project)s, found.id) END FROM unnest(%(ids)s::text[]) AS wanted (id), LATERAL (
    SELECT task.id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease, lease_ends,
           progress, due, uses, NULL::bigint AS ended_at, title, mission, key, after, verify, not_before, data, error, NULL::text AS result
    FROM taskyard.task JOIN taskyard.body USING (project, id)
    WHERE task.project = %(project)s AND age = substr(wanted.id, 5) AND task.id = wanted.id
    UNION ALL
    SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, NULL, NULL,
           NULL, NULL, uses, ended_at, title, mission, key, after, verify, not_before, data, error, result
    FROM taskyard.ended WHERE project = %(project)s AND age = substr(wanted.id, 5) AND id = wanted.id
) AS found

-- name: by_ids
-- Whole tasks of these ids and keys.
SELECT found.*, CASE WHEN after IS NOT NULL THEN taskyard.origin(%(project)s, found.id) END FROM (
    SELECT id FROM unnest(%(ids)s::text[]) AS each (id)
    UNION
    SELECT id FROM taskyard.key WHERE project = %(project)s AND key = ANY (%(keys)s::text[])
) AS wanted, LATERAL (
    SELECT task.id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease, lease_ends,
           progress, due, uses, NULL::bigint AS ended_at, title, mission, key, after, verify, not_before, data, error, NULL::text AS result
    FROM taskyard.task JOIN taskyard.body USING (project, id)
    WHERE task.project = %(project)s AND age = substr(wanted.id, 5) AND task.id = wanted.id
    UNION ALL
    SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, NULL, NULL,
           NULL, NULL, uses, ended_at, title, mission, key, after, verify, not_before, data, error, result
    FROM taskyard.ended WHERE project = %(project)s AND age = substr(wanted.id, 5) AND id = wanted.id
) AS found

-- name: lines
-- The few fields of a list, for the tasks of these ids and keys.
SELECT found.* FROM (
    SELECT id FROM unnest(%(ids)s::text[]) AS each (id)
    UNION
    SELECT id FROM taskyard.key WHERE project = %(project)s AND key = ANY (%(keys)s::text[])
) AS wanted, LATERAL (
    SELECT task.id, kind, title, state, priority, worker, mission, assignee, fence, key
    FROM taskyard.task JOIN taskyard.body USING (project, id)
    WHERE task.project = %(project)s AND age = substr(wanted.id, 5) AND task.id = wanted.id
    UNION ALL
    SELECT id, kind, title, state, priority, worker, mission, assignee, fence, key
    FROM taskyard.ended WHERE project = %(project)s AND age = substr(wanted.id, 5) AND id = wanted.id
) AS found

-- name: to_verify
-- Of these tasks those that must be verified or reviewed: by what, and until when they wait.
SELECT found.* FROM unnest(%(ids)s::text[]) AS wanted (id), LATERAL (
    SELECT task.id, verify, due FROM taskyard.task JOIN taskyard.body USING (project, id)
    WHERE task.project = %(project)s AND age = substr(wanted.id, 5) AND task.id = wanted.id AND verify IS NOT NULL
    UNION ALL
    SELECT id, verify, NULL FROM taskyard.ended
    WHERE project = %(project)s AND age = substr(wanted.id, 5) AND id = wanted.id AND verify IS NOT NULL
) AS found

-- name: followers
SELECT id FROM taskyard.need WHERE project = %(project)s AND other = %(id)s ORDER BY substr(id, 5) LIMIT %(most)s

-- name: children
SELECT id FROM taskyard.relation WHERE project = %(project)s AND parent = %(id)s ORDER BY substr(id, 5) LIMIT %(most)s

-- name: log
-- A page of the log, without what the cursor's snapshot `seen` contains. In the middle of a reading, the snapshot `now`
-- of that reading limits what belongs to it.
SELECT pg_current_snapshot()::text, page.xid::text, n, at, event, task, kind, fence, worker, by, more
FROM (SELECT 1) AS always LEFT JOIN taskyard.log(
    %(project)s, %(seen)s::pg_snapshot, %(now)s::pg_snapshot, %(xid)s::xid8, %(n)s::bigint, %(task)s, %(worker)s, %(kind)s, %(since)s::bigint,
    %(events)s::text[], %(limit)s
) AS page ON true
