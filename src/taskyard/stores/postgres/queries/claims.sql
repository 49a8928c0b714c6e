-- Claiming, renewing, taking over. Claims and dones are functions of the schema. Until the tables are analyzed, the
-- planner takes a project for nearly empty, and prefers to read all of it. So a state is compared as text where a task
-- is looked up by its age: then no partial index applies. Joined tables are named by their key as well, or read row by
-- row (LATERAL). Who asks, and ageing, the functions find in the transaction's settings.

-- name: claim
SELECT claimed.*, CASE WHEN after IS NOT NULL THEN taskyard.origin(%(project)s, id) END FROM taskyard.claim(
    %(project)s, CASE WHEN set_config('taskyard.by', %(by)s, true) IS NOT NULL THEN %(worker)s END, %(kinds)s::text[],
    %(age)s, %(fence)s, %(nonces)s::text[], %(lease)s, %(usual)s, %(default)s) AS claimed

-- name: claim_of_mission
SELECT claimed.*, CASE WHEN after IS NOT NULL THEN taskyard.origin(%(project)s, id) END FROM taskyard.claim_of_mission(
    %(project)s, CASE WHEN set_config('taskyard.by', %(by)s, true) IS NOT NULL THEN %(worker)s END, %(kinds)s::text[],
    %(mission)s, %(nonces)s::text[], %(lease)s, %(usual)s, %(default)s) AS claimed

-- name: claim_of_mission_aged
SELECT claimed.*, CASE WHEN after IS NOT NULL THEN taskyard.origin(%(project)s, id) END FROM taskyard.claim_of_mission(
    %(project)s, CASE WHEN set_config('taskyard.ageing', %(ageing)s::text, true) || set_config('taskyard.by', %(by)s, true) IS NOT NULL THEN %(worker)s END,
    %(kinds)s::text[],
    %(mission)s, %(nonces)s::text[], %(lease)s, %(usual)s, %(default)s) AS claimed

-- name: claim_aged
SELECT claimed.*, CASE WHEN after IS NOT NULL THEN taskyard.origin(%(project)s, id) END FROM taskyard.claim(
    %(project)s, CASE WHEN set_config('taskyard.ageing', %(ageing)s::text, true) || set_config('taskyard.by', %(by)s, true) IS NOT NULL THEN %(worker)s END,
    %(kinds)s::text[],
    %(age)s, %(fence)s, %(nonces)s::text[], %(lease)s, %(usual)s, %(default)s) AS claimed

-- name: holder
-- For each of these resources that is not free: the claim that is in its way, and what that uses.
SELECT DISTINCT ON (own.place) own.name, task.id, task.worker, used.resource
FROM unnest(%(uses)s::text[]) WITH ORDINALITY AS own (name, place), taskyard.used
JOIN taskyard.task ON task.project = used.project AND task.age = used.age
WHERE used.project = %(project)s AND taskyard.conflict(own.name, used.resource)
ORDER BY own.place, used.resource

-- name: mine
-- A claim that was made and whose answer was lost: no other claim has its nonce.
SELECT task.id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease,
       lease_ends, progress, due, uses, NULL::bigint AS ended_at, title, mission, key, after, verify, not_before, data, error,
       NULL::text AS result, CASE WHEN after IS NOT NULL THEN taskyard.origin(%(project)s, task.id) END
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
logged AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT %(project)s, %(event)s, id, kind, fence, worker, %(by)s, '{"resumed":true}' FROM taken
)
SELECT taken.id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease,
       lease_ends, progress, due, uses, NULL::bigint AS ended_at, title, mission, key, after, verify, not_before, data, error,
       NULL::text AS result, CASE WHEN after IS NOT NULL THEN taskyard.origin(%(project)s, taken.id) END, taskyard.ring(%(project)s)
FROM taken JOIN taskyard.body ON body.project = %(project)s AND body.id = %(id)s

-- name: renew
-- A locked row belongs to a living worker: a heartbeat does not wait for it, and reapers pass over it. The heartbeat is
-- kept in a table of its own meanwhile: the lease must not be over when the lock is released. A note has a token, so
-- that it is stored once.
WITH known AS MATERIALIZED (
    SELECT age, id, kind, fence, nonce, worker, lease FROM taskyard.task
    WHERE project = %(project)s AND age = %(age)s AND id = %(id)s
      AND state::text = 'processing' AND fence = %(fence)s AND nonce = %(nonce)s
),
held AS MATERIALIZED (
    SELECT age FROM taskyard.task
    WHERE project = %(project)s AND age = %(age)s AND id = %(id)s
      AND state::text = 'processing' AND fence = %(fence)s AND nonce = %(nonce)s
    FOR NO KEY UPDATE SKIP LOCKED
),
renewed AS (
    UPDATE taskyard.task
    SET lease_ends = taskyard.now() + (lease * 1000)::bigint, progress = coalesce(%(progress)s, progress)
    FROM held WHERE task.project = %(project)s AND task.age = %(age)s
    RETURNING task.lease_ends
),
renewed_beside AS (
    INSERT INTO taskyard.heartbeat (project, age, fence, nonce, lease_ends)
    SELECT %(project)s, age, fence, nonce, taskyard.now() + (lease * 1000)::bigint FROM known WHERE NOT EXISTS (SELECT FROM held)
    ON CONFLICT (project, age) DO UPDATE SET fence = excluded.fence, nonce = excluded.nonce, lease_ends = excluded.lease_ends
    RETURNING lease_ends
),
once AS (
    INSERT INTO taskyard.token (project, token, until)
    SELECT %(project)s, %(token)s, taskyard.now() + 600000 WHERE %(token)s::text IS NOT NULL
),
noted AS (
    INSERT INTO taskyard.record (project, age, sort, fence, nonce, worker, content)
    SELECT %(project)s, age, 'note', fence, nonce, worker, %(note)s FROM known WHERE %(note)s::text IS NOT NULL
),
logged AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT %(project)s, 'noted', id, kind, fence, worker, %(by)s, %(more)s FROM known WHERE %(note)s::text IS NOT NULL
)
SELECT coalesce((SELECT lease_ends FROM renewed), (SELECT lease_ends FROM renewed_beside)),
       CASE WHEN %(note)s::text IS NOT NULL THEN taskyard.ring(%(project)s) END
FROM known

-- name: holding
SELECT id, fence, nonce FROM taskyard.task
WHERE project = %(project)s AND age = ANY (%(ages)s::text[]) AND state::text = 'processing'
