-- Handing out. Candidates are looked at without a lock and locked in their order, one by one, until there are enough:
-- a head that is locked for somebody else's sake would otherwise look like "nothing ready" to a third.
-- Before the tables were first analyzed, the planner takes a project for nearly empty, and would rather read all of it than
-- look up a few. So a state is compared as a text where a task is looked up by its age (no partial index can serve then),
-- and what is joined is named by its key as well, or asked for row by row (LATERAL).
-- The materialized steps are needed: some plans update more rows than a LIMIT inside an UPDATE allows.

-- name: any
yard AS MATERIALIZED (SELECT paused, paused_kinds FROM taskyard.project WHERE id = %(project)s),
head AS MATERIALIZED (
    SELECT first.age COLLATE "C" AS age, first.priority, first.fence
    FROM yard, LATERAL taskyard.head_of_all(%(project)s, %(worker)s, %(window)s) AS first
    WHERE NOT paused AND cardinality(paused_kinds) = 0
)

-- name: some
yard AS MATERIALIZED (SELECT paused, paused_kinds FROM taskyard.project WHERE id = %(project)s),
head AS MATERIALIZED (
    SELECT first.age COLLATE "C" AS age, first.priority, first.fence
    FROM yard, LATERAL taskyard.head_of_kinds(
        %(project)s, %(worker)s, ARRAY(SELECT kind FROM unnest(%(kinds)s::text[]) AS kind WHERE kind <> ALL (paused_kinds)), %(window)s
    ) AS first
    WHERE NOT paused
)

-- name: one
yard AS MATERIALIZED (SELECT paused, paused_kinds FROM taskyard.project WHERE id = %(project)s),
head AS MATERIALIZED (
    SELECT age, priority, fence FROM taskyard.task
    WHERE project = %(project)s AND age = %(age)s AND state::text = 'todo' AND fence = %(fence)s
      AND (SELECT NOT paused AND task.kind <> ALL (paused_kinds) FROM yard)
      AND (uses IS NULL OR NOT EXISTS (SELECT FROM taskyard.used WHERE used.project = %(project)s AND resource = ANY (uses)))
)

-- name: claim
picked AS MATERIALIZED (
    SELECT locked.age
    FROM (SELECT age, fence FROM head ORDER BY priority, age) AS next, LATERAL (
        SELECT task.age FROM taskyard.task
        WHERE task.project = %(project)s AND task.age = next.age AND task.fence = next.fence AND task.state::text = 'todo'
          AND coalesce(task.assignee, %(worker)s) = %(worker)s AND (task.uses IS NULL OR cardinality(%(nonces)s::text[]) = 1)
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS locked
    LIMIT cardinality(%(nonces)s::text[])
),
handed AS MATERIALIZED (SELECT age, (%(nonces)s::text[])[row_number() OVER ()] AS nonce FROM picked),
claimed AS (
    UPDATE taskyard.task
    SET state = 'processing', fence = task.fence + 1, worker = %(worker)s, nonce = handed.nonce, progress = NULL, due = NULL,
        lease = coalesce(%(lease)s, own_lease, %(usual)s, %(default)s),
        lease_ends = taskyard.now() + (coalesce(%(lease)s, own_lease, %(usual)s, %(default)s) * 1000)::bigint
    FROM handed
    WHERE task.project = %(project)s AND task.age = handed.age AND task.age = ANY (ARRAY(SELECT age FROM handed))
    RETURNING task.*
),
reserved AS (
    INSERT INTO taskyard.used (project, resource, age)
    SELECT project, resource, age FROM claimed, unnest(uses) AS resource ORDER BY resource
),
told AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by)
    SELECT project, 'claimed', id, kind, fence, worker, %(worker)s FROM claimed
),
rung AS MATERIALIZED (SELECT taskyard.ring(%(project)s) FROM claimed LIMIT 1)
SELECT yard.paused, yard.paused_kinds, EXISTS (SELECT FROM head), held.*, (SELECT true FROM rung)
FROM yard LEFT JOIN (
    SELECT claimed.id, claimed.kind, claimed.priority, claimed.assignee, claimed.state, claimed.fence, claimed.errors, claimed.crashes,
           claimed.max_attempts, claimed.own_lease, claimed.worker, claimed.nonce, claimed.lease, claimed.lease_ends, claimed.progress,
           claimed.due, claimed.uses, NULL::bigint AS ended_at, title, mission, key, after, verify, not_before, data, error,
           NULL::text AS result
    FROM claimed, LATERAL (SELECT * FROM taskyard.body WHERE body.project = %(project)s AND body.id = claimed.id OFFSET 0) AS body
) AS held ON true

-- name: ready_kinds
-- The kinds of which something is in todo, by hopping from one to the next in the index: as many steps as there are kinds.
WITH RECURSIVE everybodys AS (
    (SELECT kind FROM taskyard.task WHERE project = %(project)s AND state = 'todo' AND assignee IS NULL ORDER BY kind LIMIT 1)
    UNION ALL
    SELECT (SELECT kind FROM taskyard.task
            WHERE project = %(project)s AND state = 'todo' AND assignee IS NULL AND kind > everybodys.kind ORDER BY kind LIMIT 1)
    FROM everybodys WHERE everybodys.kind IS NOT NULL
),
own AS (
    (SELECT kind FROM taskyard.task WHERE project = %(project)s AND state = 'todo' AND assignee = %(worker)s ORDER BY kind LIMIT 1)
    UNION ALL
    SELECT (SELECT kind FROM taskyard.task
            WHERE project = %(project)s AND state = 'todo' AND assignee = %(worker)s AND kind > own.kind ORDER BY kind LIMIT 1)
    FROM own WHERE own.kind IS NOT NULL
)
SELECT kind FROM everybodys WHERE kind IS NOT NULL UNION SELECT kind FROM own WHERE kind IS NOT NULL

-- name: holder
-- Who has what a task uses.
SELECT used.resource, task.id, task.worker
FROM taskyard.used JOIN taskyard.task ON task.project = used.project AND task.age = used.age
WHERE used.project = %(project)s AND used.resource = ANY (%(uses)s::text[])
LIMIT 1

-- name: mine
-- A claim that was made and whose answer was lost: no other claim has its nonce.
SELECT task.id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease,
       lease_ends, progress, due, uses, NULL::bigint AS ended_at, title, mission, key, after, verify, not_before, data, error,
       NULL::text AS result
FROM taskyard.task JOIN taskyard.body USING (project, id)
WHERE task.project = %(project)s AND state = 'processing' AND worker = %(worker)s AND nonce = ANY (%(nonces)s::text[])

-- name: take_over
WITH held AS MATERIALIZED (
    SELECT age, id, kind, fence, nonce, worker FROM taskyard.task
    WHERE project = %(project)s AND age = %(age)s AND id = %(id)s
      AND state::text = 'processing' AND fence = %(fence)s AND nonce = %(nonce)s
    FOR NO KEY UPDATE
),
taken AS (
    UPDATE taskyard.task
    SET fence = %(to_fence)s, nonce = %(to_nonce)s, progress = NULL, lease_ends = taskyard.now() + (lease * 1000)::bigint
    FROM held WHERE task.project = %(project)s AND task.age = %(age)s
    RETURNING task.*
),
recorded AS (
    INSERT INTO taskyard.record (project, age, sort, fence, nonce, worker, outcome, content)
    SELECT %(project)s, age, 'outcome', fence, nonce, worker, %(outcome)s, %(reason)s FROM held
),
told AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT %(project)s, %(event)s, id, kind, fence, worker, %(by)s, '{"resumed":true}' FROM taken
)
SELECT taken.id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease,
       lease_ends, progress, due, uses, NULL::bigint AS ended_at, title, mission, key, after, verify, not_before, data, error,
       NULL::text AS result, taskyard.ring(%(project)s)
FROM taken JOIN taskyard.body ON body.project = %(project)s AND body.id = %(id)s

-- name: renew
-- A row that somebody has locked is alive: its lease is not touched, and nobody waits for it. Reapers pass over it too.
WITH known AS MATERIALIZED (
    SELECT age, id, kind, fence, nonce, worker, lease_ends FROM taskyard.task
    WHERE project = %(project)s AND age = %(age)s AND id = %(id)s
      AND state::text = 'processing' AND fence = %(fence)s AND nonce = %(nonce)s
),
held AS MATERIALIZED (
    SELECT age FROM taskyard.task
    WHERE project = %(project)s AND age = %(age)s AND id = %(id)s
      AND state::text = 'processing' AND fence = %(fence)s AND nonce = %(nonce)s
    FOR NO KEY UPDATE SKIP LOCKED
),
beat AS (
    UPDATE taskyard.task
    SET lease_ends = taskyard.now() + (lease * 1000)::bigint, progress = coalesce(%(progress)s, progress)
    FROM held WHERE task.project = %(project)s AND task.age = %(age)s
    RETURNING task.lease_ends
),
noted AS (
    INSERT INTO taskyard.record (project, age, sort, fence, nonce, worker, content)
    SELECT %(project)s, age, 'note', fence, nonce, worker, %(note)s FROM known WHERE %(note)s::text IS NOT NULL
),
told AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT %(project)s, 'noted', id, kind, fence, worker, worker, %(more)s FROM known WHERE %(note)s::text IS NOT NULL
)
SELECT coalesce((SELECT lease_ends FROM beat), known.lease_ends),
       CASE WHEN %(note)s::text IS NOT NULL THEN taskyard.ring(%(project)s) END
FROM known
