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
-- {open} and {over} are the conditions that were asked for, on either table.
(SELECT task.id, kind, title, state, priority, worker, mission, assignee, fence, age
 FROM taskyard.task JOIN taskyard.body USING (project, id)
 WHERE task.project = %(project)s AND {open} ORDER BY age LIMIT %(limit)s)
UNION ALL
(SELECT id, kind, title, state, priority, worker, mission, assignee, fence, age
 FROM taskyard.ended
 WHERE project = %(project)s AND {over} ORDER BY age LIMIT %(limit)s)
ORDER BY age LIMIT %(limit)s

-- name: held
SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease, uses, followed
FROM taskyard.task WHERE project = %(project)s AND state = 'processing' AND worker = %(worker)s ORDER BY age

-- name: neighbours
SELECT wanted.id,
       EXISTS (SELECT FROM taskyard.body WHERE project = %(project)s AND id = wanted.id COLLATE "C")
       OR EXISTS (SELECT FROM taskyard.ended WHERE project = %(project)s AND id = wanted.id COLLATE "C"),
       greatest((SELECT id FROM taskyard.body WHERE project = %(project)s AND id < wanted.id COLLATE "C" ORDER BY id DESC LIMIT 1),
                (SELECT id FROM taskyard.ended WHERE project = %(project)s AND id < wanted.id COLLATE "C" ORDER BY id DESC LIMIT 1)),
       least((SELECT id FROM taskyard.body WHERE project = %(project)s AND id > wanted.id COLLATE "C" ORDER BY id LIMIT 1),
             (SELECT id FROM taskyard.ended WHERE project = %(project)s AND id > wanted.id COLLATE "C" ORDER BY id LIMIT 1))
FROM unnest(%(ids)s::text[]) AS wanted (id)

-- name: counts
SELECT kind, state, count(*) FROM taskyard.task WHERE project = %(project)s GROUP BY kind, state
UNION ALL
SELECT kind, state, count(*) FROM taskyard.ended WHERE project = %(project)s GROUP BY kind, state

-- name: latest
SELECT pg_current_snapshot()::text

-- name: log
-- A page of the log. What a cursor's snapshot could see was read; of a page that is not the last of its reading, the
-- snapshot of that reading says what belongs to it. {more} are the other conditions that were asked for.
SELECT pg_current_snapshot()::text, page.*
FROM (SELECT 1) AS always LEFT JOIN LATERAL (
    SELECT xid::text, n, at, event, task, kind, fence, worker, by, more
    FROM taskyard.event
    WHERE project = %(project)s AND {more}
    ORDER BY event.xid, n LIMIT %(limit)s
) AS page ON true
