-- Moves: each only if the task still stands exactly there (id, state, fence, nonce); else nothing changes.

-- name: passing_over
-- Added to the conditions of a janitor's move: a locked row belongs to a living worker, and is skipped.
AND age = (SELECT age FROM taskyard.task WHERE project = %(project)s AND age = %(age)s FOR UPDATE SKIP LOCKED)

-- name: over
-- Added to the conditions of a move that takes a claim away: it must still be overdue.
AND taskyard.now() > (
    SELECT taskyard.lease_end(taskyard.held_until(task), lease, yard) FROM taskyard.project AS yard WHERE yard.id = %(project)s)

-- name: back
-- From one open state to another.
WITH moved AS (
    UPDATE taskyard.task
    SET state = %(to)s::taskyard.state, fence = %(to_fence)s, errors = %(errors)s, crashes = %(crashes)s,
        worker = NULL, nonce = NULL, lease = NULL, lease_ends = NULL, progress = NULL,
        due = CASE WHEN %(to)s = 'waiting' THEN taskyard.now() + %(delay)s END
    WHERE project = %(project)s AND age = %(age)s AND id = %(id)s AND state::text = %(state)s
      AND fence = %(fence)s AND nonce IS NOT DISTINCT FROM %(nonce)s {lapsed}
    RETURNING age, id, kind, uses, due
),
freed AS (
    DELETE FROM taskyard.used USING moved
    WHERE used.project = %(project)s AND used.age = moved.age AND used.path = ANY (taskyard.paths_of(moved.uses))
),
lifted AS (
    DELETE FROM taskyard.deadline USING moved WHERE deadline.project = %(project)s AND deadline.age = moved.age AND %(lifts)s
),
recorded AS (
    INSERT INTO taskyard.record (project, age, sort, fence, nonce, worker, outcome, content, result)
    SELECT %(project)s, age, 'outcome', %(claim_fence)s, %(claim_nonce)s, %(worker)s, %(outcome)s, %(reason)s, %(submitted)s
    FROM moved WHERE %(outcome)s::text IS NOT NULL
),
blamed AS (
    UPDATE taskyard.body SET error = %(reason)s
    FROM moved WHERE body.project = %(project)s AND body.id = %(id)s AND %(outcome)s IN ('error', 'crash')
),
logged AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT %(project)s, %(event)s, id, kind, %(to_fence)s, %(worker)s, %(by)s,
           taskyard.with_due(%(more)s, CASE WHEN %(logs_due)s THEN due END)
    FROM moved
)
SELECT due, taskyard.ring(%(project)s) FROM moved

-- name: end
-- From an open state to an ending. A done that others wait for runs in a transaction that unblocks them; any other ending of such a task
-- fires a trigger.
WITH gone AS (
    DELETE FROM taskyard.task
    WHERE project = %(project)s AND age = %(age)s AND id = %(id)s AND state::text = %(state)s
      AND fence = %(fence)s AND nonce IS NOT DISTINCT FROM %(nonce)s {lapsed}
    RETURNING *
),
content AS (
    DELETE FROM taskyard.body USING gone WHERE body.project = %(project)s AND body.id = %(id)s
    RETURNING body.*
),
kept AS (
    INSERT INTO taskyard.ended (
        project, age, id, state, kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, followed,
        worker, nonce, ended_at, title, mission, key, after, verify, not_before, data, error, result)
    SELECT gone.project, age, gone.id, %(to)s::taskyard.state, kind, priority, assignee, %(to_fence)s, %(errors)s, %(crashes)s,
           max_attempts, own_lease, uses, followed,
           CASE WHEN %(keeps)s THEN %(worker)s END, CASE WHEN %(keeps)s THEN %(claim_nonce)s END, taskyard.now(),
           title, mission, key, after, verify, not_before, data,
           CASE WHEN %(outcome)s IN ('error', 'crash') THEN %(reason)s
                WHEN %(to)s = 'cancelled' THEN coalesce(%(reason)s, error) ELSE error END, %(result)s
    FROM gone, content
),
freed AS (
    DELETE FROM taskyard.used USING gone
    WHERE used.project = %(project)s AND used.age = gone.age AND used.path = ANY (taskyard.paths_of(gone.uses))
),
recorded AS (
    INSERT INTO taskyard.record (project, age, sort, fence, nonce, worker, outcome, content)
    SELECT %(project)s, age, 'outcome', fence, nonce, worker, %(outcome)s, %(reason)s
    FROM gone WHERE %(outcome)s <> 'done'
),
logged AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT %(project)s, %(event)s, id, kind, %(to_fence)s, %(worker)s, %(by)s, %(more)s FROM gone
)
SELECT id, taskyard.ring(%(project)s), followed FROM gone

-- name: done
-- Several dones in one statement, each guarded by itself, and logged with the one who asked.
SELECT * FROM taskyard.finish_each(
    %(project)s, %(ages)s::text[], %(ids)s::text[], %(fences)s::int[], %(nonces)s::text[], %(results)s::text[], %(tellers)s::text[])

-- name: done_followed
SELECT * FROM taskyard.finish_followed(
    %(project)s, %(ages)s::text[], %(ids)s::text[], %(fences)s::int[], %(nonces)s::text[], %(results)s::text[], %(by)s)

-- name: revive
-- From an ending back to todo, or to blocked. Why it was cancelled is not why an attempt of it went wrong.
WITH held AS MATERIALIZED (
    SELECT * FROM taskyard.ended
    WHERE project = %(project)s AND age = %(age)s AND id = %(id)s AND state::text = %(state)s
      AND fence = %(fence)s AND nonce IS NOT DISTINCT FROM %(nonce)s
    FOR UPDATE
),
gone AS (
    DELETE FROM taskyard.ended USING held
    WHERE ended.project = %(project)s AND ended.age = %(age)s AND ended.id = %(id)s
),
lifted AS (
    DELETE FROM taskyard.deadline USING held WHERE deadline.project = %(project)s AND deadline.age = %(age)s AND %(lifts)s
),
kept AS (
    INSERT INTO taskyard.task (
        project, age, id, state, kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, followed,
        of_mission)
    SELECT project, age, id, %(to)s::taskyard.state, kind, priority, assignee, %(to_fence)s, %(errors)s, %(crashes)s,
           max_attempts, own_lease, uses, followed, mission
    FROM held
),
content AS (
    INSERT INTO taskyard.body (project, id, title, mission, key, after, verify, not_before, data, error)
    SELECT project, id, title, mission, key, after, verify, not_before, data,
           CASE WHEN state <> 'cancelled' THEN error ELSE (
               SELECT content FROM taskyard.record
               WHERE record.project = held.project AND record.age = held.age AND sort = 'outcome' AND outcome IN ('error', 'crash')
               ORDER BY n DESC LIMIT 1) END
    FROM held
),
logged AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT %(project)s, %(event)s, id, kind, %(to_fence)s, worker, %(by)s, %(more)s FROM held
)
SELECT held.id, taskyard.ring(%(project)s) FROM held

-- name: edit
WITH held AS MATERIALIZED (
    SELECT age, id, kind FROM taskyard.task
    WHERE project = %(project)s AND age = %(age)s AND id = %(id)s AND state::text = %(state)s
      AND fence = %(fence)s AND nonce IS NOT DISTINCT FROM %(nonce)s
    FOR NO KEY UPDATE
),
due AS MATERIALIZED (
    SELECT CASE WHEN %(not_before)s::bigint IS NOT NULL THEN %(not_before)s
                WHEN %(delay)s > 0 THEN taskyard.now() + %(delay)s END AS at,
           coalesce(%(expires)s::bigint, taskyard.now() + %(expires_in)s::bigint) AS deadline
),
related AS (
    INSERT INTO taskyard.relation (project, id, expires, timeout) SELECT %(project)s, id, due.deadline, %(timeout)s FROM held, due
    WHERE due.deadline IS NOT NULL OR %(timeout)s::float8 IS NOT NULL
       OR EXISTS (SELECT FROM taskyard.relation WHERE project = %(project)s AND relation.id = held.id)
    ON CONFLICT (project, id) DO UPDATE SET expires = excluded.expires, timeout = excluded.timeout
),
unbound AS (
    DELETE FROM taskyard.deadline USING held, due
    WHERE %(expires_anew)s AND due.deadline IS NULL AND deadline.project = %(project)s AND deadline.age = held.age
),
bound AS (
    INSERT INTO taskyard.deadline (project, age, at) SELECT %(project)s, held.age, due.deadline FROM held, due
    WHERE %(expires_anew)s AND due.deadline IS NOT NULL
    ON CONFLICT (project, age) DO UPDATE SET at = excluded.at
),
moved AS (
    UPDATE taskyard.task
    SET state = %(to)s::taskyard.state, fence = %(to_fence)s, priority = %(priority)s, assignee = %(assignee)s,
        max_attempts = %(max_attempts)s,
        due = CASE WHEN %(anew)s THEN (SELECT at FROM due) WHEN %(to)s = 'todo' THEN NULL
                   WHEN %(to)s = 'waiting' THEN coalesce(due, taskyard.now()) ELSE due END
    FROM held WHERE task.project = %(project)s AND task.age = %(age)s
),
content AS (
    UPDATE taskyard.body
    SET title = %(title)s, data = %(data)s, after = CASE WHEN %(ordered)s THEN %(after)s::text[] WHEN %(has_origin)s THEN coalesce(after, '{}') ELSE after END,
        not_before = CASE WHEN %(anew)s THEN (SELECT at FROM due) ELSE not_before END
    FROM held WHERE body.project = %(project)s AND body.id = %(id)s
),
logged AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT %(project)s, %(event)s, id, kind, %(to_fence)s, NULL, %(by)s,
           CASE WHEN %(anew)s AND %(to)s = 'waiting' THEN taskyard.with_due(NULL, (SELECT at FROM due)) END
    FROM held
)
SELECT held.id, taskyard.ring(%(project)s) FROM held

-- name: one_order
-- One edit of what tasks come after at a time: two could make a cycle together.
SELECT pg_advisory_xact_lock(747160, %(project)s)

-- name: comes_after
SELECT taskyard.comes_after(%(project)s, %(id)s, %(after)s::text[])

-- name: replace_needs
WITH gone AS (
    DELETE FROM taskyard.need WHERE project = %(project)s AND id = %(id)s AND other <> ALL (%(others)s::text[])
), related AS (
    INSERT INTO taskyard.relation (project, id, on_failure) SELECT %(project)s, %(id)s, %(on_failure)s
    WHERE %(related)s OR EXISTS (SELECT FROM taskyard.relation WHERE project = %(project)s AND id = %(id)s)
    ON CONFLICT (project, id) DO UPDATE SET on_failure = excluded.on_failure
)
INSERT INTO taskyard.need (project, id, other, on_failure)
SELECT %(project)s, %(id)s, * FROM unnest(%(others)s::text[], %(policies)s::text[])
ON CONFLICT (project, id, other) DO UPDATE SET on_failure = excluded.on_failure

-- name: are_done
SELECT count(*) = cardinality(%(ages)s::text[])
FROM unnest(%(ages)s::text[]) AS next (age), LATERAL (
    SELECT id FROM taskyard.ended WHERE ended.project = %(project)s AND ended.age = next.age AND ended.state::text = 'done' OFFSET 0) AS over

-- name: log_event
INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
VALUES (%(project)s, %(event)s, %(id)s, %(kind)s, %(fence)s, %(worker)s, %(by)s, %(more)s)

-- name: was_made
-- Whether a move was made whose answer was lost: the task stands at its target, or the claim's record names it. All reviewers of what was
-- submitted have one claim and one target: so a review is known by its worker and its words.
SELECT EXISTS (
    SELECT FROM taskyard.task
    WHERE project = %(project)s AND age = %(age)s AND id = %(id)s AND state = %(to)s::taskyard.state AND fence = %(to_fence)s
      AND NOT (fence = %(fence)s AND state = %(state)s::taskyard.state) AND NOT %(reviews)s
    UNION ALL
    SELECT FROM taskyard.ended
    WHERE project = %(project)s AND age = %(age)s AND id = %(id)s AND state = %(to)s::taskyard.state AND fence = %(to_fence)s
      AND (NOT %(keeps)s OR nonce = %(claim_nonce)s) AND (NOT %(reviews)s OR worker = %(worker)s)
    UNION ALL
    SELECT FROM taskyard.record
    WHERE project = %(project)s AND age = %(age)s AND sort = 'outcome' AND fence = %(claim_fence)s AND nonce = %(claim_nonce)s
      AND outcome = %(outcome)s AND (NOT %(reviews)s OR (worker, content) = (%(worker)s, %(reason)s))
)

-- name: refuse
WITH task AS MATERIALIZED (
    SELECT kind FROM taskyard.task WHERE project = %(project)s AND age = %(age)s AND id = %(id)s
    UNION ALL
    SELECT kind FROM taskyard.ended WHERE project = %(project)s AND age = %(age)s AND id = %(id)s
),
claimer AS MATERIALIZED (
    SELECT coalesce(
        (SELECT worker FROM taskyard.record
         WHERE project = %(project)s AND age = %(age)s AND sort = 'outcome' AND fence = %(fence)s AND nonce = %(nonce)s
         ORDER BY n LIMIT 1),
        (SELECT worker FROM taskyard.ended
         WHERE project = %(project)s AND age = %(age)s AND id = %(id)s AND fence = %(fence)s AND nonce = %(nonce)s),
        %(by)s) AS worker
),
logged AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT %(project)s, 'refused', %(id)s, task.kind, %(fence)s, claimer.worker, %(by)s, %(more)s FROM task, claimer
),
kept AS (
    INSERT INTO taskyard.record (project, age, sort, fence, nonce, worker, outcome, content, result)
    SELECT %(project)s, %(age)s, 'stale', %(fence)s, %(nonce)s, claimer.worker, %(outcome)s, %(reason)s, %(result)s
    FROM task, claimer
    WHERE %(brings)s AND %(most)s > (
        SELECT count(*) FROM taskyard.record WHERE project = %(project)s AND age = %(age)s AND sort = 'stale'
    ) AND NOT EXISTS (
        SELECT FROM taskyard.record
        WHERE project = %(project)s AND age = %(age)s AND sort = 'stale' AND fence = %(fence)s AND nonce = %(nonce)s
          AND outcome IS NOT DISTINCT FROM %(outcome)s AND content IS NOT DISTINCT FROM %(reason)s
          AND result IS NOT DISTINCT FROM %(result)s)
)
SELECT task.kind, taskyard.ring(%(project)s) FROM task

-- Which task comes after which. An add marks (and so locks) the task that it comes after, before it writes the edge. A
-- done locks its own task first, and then looks for edges with a new snapshot. So one of the two sees the other.

-- name: lock
SELECT (SELECT 1 FROM taskyard.task WHERE project = %(project)s AND age = next.age FOR NO KEY UPDATE)
FROM (SELECT age FROM unnest(%(ages)s::text[]) AS each (age) ORDER BY 1) AS next

-- name: follow
SELECT * FROM taskyard.follow(%(project)s, %(ages)s::text[])

-- name: cancel_doomed
SELECT taskyard.cancel_doomed(%(project)s, %(ids)s::text[], %(by)s)

-- name: free_followers
SELECT taskyard.free_followers(%(project)s, %(id)s, %(by)s, %(more)s)

-- name: needs
SELECT other FROM taskyard.need WHERE project = %(project)s AND id = %(id)s ORDER BY other

-- name: unblock
SELECT taskyard.unblock(%(project)s, %(ids)s::text[], %(by)s, %(more)s)

-- name: wake
-- Several due tasks in one statement, each guarded by itself.
SELECT * FROM taskyard.wake(%(project)s, %(ages)s::text[], %(ids)s::text[], %(fences)s::int[], %(to_fences)s::int[], %(by)s)
