-- name: overdue
-- Claims whose lease is over and waiting tasks that are due; when the next will be; and whether this server was a standby and has taken
-- over since an outage was last told of. A claim that is overdue and is not taken away is locked: it is looked at again in half a second.
WITH yard AS MATERIALIZED (SELECT project AS cut FROM taskyard.project WHERE id = %(project)s)
SELECT (SELECT (cut).cut_until <= extract(epoch FROM pg_last_xact_replay_timestamp()) * 1000 AND NOT pg_is_in_recovery() FROM yard),
       alarm.at, late.*
FROM (
    SELECT least(
        (SELECT min(CASE WHEN taskyard.lease_end(lease_ends, lease, cut) < taskyard.now() THEN taskyard.now() + 500
                         ELSE taskyard.lease_end(lease_ends, lease, cut) END)
         FROM taskyard.task, yard
         WHERE project = %(project)s AND state = 'processing'),
        (SELECT due FROM taskyard.task WHERE project = %(project)s AND state = 'waiting' ORDER BY due, age LIMIT 1)) - taskyard.now() AS at
) AS alarm LEFT JOIN (
    (SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease, uses, followed
     FROM taskyard.task, yard
     WHERE project = %(project)s AND state = 'processing' AND taskyard.lease_end(lease_ends, lease, cut) < taskyard.now()
       AND taskyard.lease_end(taskyard.held_until(task), lease, cut) < taskyard.now()
     LIMIT %(limit)s)
    UNION ALL
    (SELECT id, kind, priority, assignee, state, fence, errors, crashes, max_attempts, own_lease, worker, nonce, lease, uses, followed
     FROM taskyard.task
     WHERE project = %(project)s AND state = 'waiting' AND due < (SELECT taskyard.now())
     ORDER BY due LIMIT %(limit)s)
) AS late ON true
LIMIT %(limit)s

-- name: turn
-- Whoever gets the row sweeps; whoever finds it locked has come too late.
WITH free AS MATERIALIZED (
    SELECT id FROM taskyard.project
    WHERE id = %(project)s AND (swept_at <= taskyard.now() - %(every)s OR swept_at > taskyard.now()) FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE taskyard.project SET swept_at = taskyard.now() FROM free WHERE project.id = free.id RETURNING project.id

-- name: pause_all
UPDATE taskyard.project SET paused = %(on)s WHERE id = %(project)s RETURNING taskyard.ring(%(project)s)

-- name: pause_kind
UPDATE taskyard.project
SET paused_kinds = CASE WHEN %(on)s THEN array_append(array_remove(paused_kinds, %(kind)s), %(kind)s)
                        ELSE array_remove(paused_kinds, %(kind)s) END
WHERE id = %(project)s RETURNING taskyard.ring(%(project)s)

-- name: paused
SELECT paused, paused_kinds FROM taskyard.project WHERE id = %(project)s

-- name: make_windows
SELECT taskyard.make_windows()

-- name: drop_windows
SELECT taskyard.drop_windows()

-- name: choose_doomed
-- Ended tasks that ended before then, or are more than so many.
CREATE TEMPORARY TABLE taskyard_doomed ON COMMIT DROP AS
SELECT age, id, key FROM (
    SELECT age, id, key, ended_at, row_number() OVER (ORDER BY ended_at DESC, age DESC) AS place
    FROM taskyard.ended WHERE project = %(project)s
) AS endings
WHERE place > %(count)s OR ended_at < taskyard.now() - %(age)s

-- name: spare_needed
-- A task that stays may still wait for one of them: then that one stays as well, and what it waits for.
DELETE FROM taskyard_doomed AS doomed USING taskyard.need
WHERE need.project = %(project)s AND need.other = doomed.id AND NOT EXISTS (SELECT FROM taskyard_doomed AS going WHERE going.id = need.id)
RETURNING doomed.id

-- name: count_doomed
SELECT (SELECT count(*) FROM taskyard_doomed), (SELECT min(age) FROM taskyard_doomed),
       (SELECT count(*) FROM taskyard.event WHERE project = %(project)s AND at < taskyard.now() - %(age)s)

-- name: prune_ended
DELETE FROM taskyard.ended USING taskyard_doomed AS doomed WHERE ended.project = %(project)s AND ended.age = doomed.age AND ended.id = doomed.id

-- name: prune_records
DELETE FROM taskyard.record USING taskyard_doomed AS doomed WHERE record.project = %(project)s AND record.age = doomed.age

-- name: prune_keys
DELETE FROM taskyard.key USING taskyard_doomed AS doomed WHERE key.project = %(project)s AND key.key = doomed.key

-- name: prune_needs
DELETE FROM taskyard.need USING taskyard_doomed AS doomed WHERE need.project = %(project)s AND need.id = doomed.id

-- name: prune_events
DELETE FROM taskyard.event WHERE project = %(project)s AND at < taskyard.now() - %(age)s

-- name: forget_tokens
DELETE FROM taskyard.token WHERE project = %(project)s AND until < taskyard.now()

-- name: forget_heartbeats
-- Of claims that are over, or beat in their own rows again.
DELETE FROM taskyard.heartbeat WHERE project = %(project)s AND lease_ends < taskyard.now() - 3600000
