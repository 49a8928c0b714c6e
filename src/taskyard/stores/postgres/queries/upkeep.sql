-- name: overdue
-- Claims whose lease is over and waiting tasks that are due; when the next will be; and whether a standby has taken
-- over since the last recorded outage. An overdue claim that is still there is locked: it is looked at again in half a
-- second. So is a team whose tasks are all held, in five: whoever ends one wakes the other projects, if it lives to do so.
WITH yard AS MATERIALIZED (SELECT project AS cut FROM taskyard.project WHERE id = %(project)s)
SELECT (SELECT (cut).cut_until <= extract(epoch FROM pg_last_xact_replay_timestamp()) * 1000 AND NOT pg_is_in_recovery() FROM yard),
       alarm.at, late.*
FROM (
    SELECT least(
        (SELECT min(CASE WHEN taskyard.lease_end(lease_ends, lease, cut) < taskyard.now() THEN taskyard.now() + 500
                         ELSE taskyard.lease_end(lease_ends, lease, cut) END)
         FROM taskyard.task, yard
         WHERE project = %(project)s AND state = 'processing'),
        (SELECT min(slot.due) FROM yard, taskyard.reached(%(project)s, (yard.cut).limits) AS slot),
        (SELECT min(coalesce(slot.due, taskyard.now() + 5000)) FROM yard, LATERAL taskyard.team_reached((yard.cut).id) AS slot
         WHERE (yard.cut).team IS NOT NULL),
        (SELECT at FROM taskyard.deadline WHERE project = %(project)s AND at > taskyard.now() ORDER BY at LIMIT 1),
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

-- name: expire
SELECT taskyard.expire(%(project)s, %(by)s, %(limit)s)

-- name: turn
-- Whether the client may sweep, and the server's time and the settings, which somebody may have changed. A client that finds the row locked is too late. So is one whose
-- question was on its way until after `until`: a turn that a server grants when it wakes up would hide that it slept.
WITH free AS MATERIALIZED (
    SELECT id FROM taskyard.project
    WHERE id = %(project)s AND (swept_at <= taskyard.now() - %(every)s OR swept_at > taskyard.now()) AND taskyard.now() <= %(until)s
    FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
    UPDATE taskyard.project SET swept_at = taskyard.now() FROM free WHERE project.id = free.id RETURNING project.id
)
SELECT EXISTS (SELECT FROM taken), taskyard.now(), (SELECT settings FROM taskyard.project WHERE id = %(project)s),
       (SELECT json_build_object('max_todo', max_todo, 'max_running', max_running)::text
        FROM taskyard.project JOIN taskyard.team ON team.id = project.team WHERE project.id = %(project)s)

-- name: settings
SELECT settings FROM taskyard.project WHERE id = %(project)s

-- name: lock_settings
SELECT settings FROM taskyard.project WHERE id = %(project)s FOR NO KEY UPDATE

-- name: change_settings
UPDATE taskyard.project SET settings = %(settings)s WHERE id = %(project)s RETURNING taskyard.ring(%(project)s)

-- name: tell
WITH told AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, by, more)
    VALUES (%(project)s, %(event)s, '', %(kind)s, 0, %(by)s, %(more)s)
)
SELECT taskyard.ring(%(project)s)

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

-- name: choose_pruned
-- Of the tasks that match: those that ended more than `age` milliseconds ago, or are not among the last `count` that ended.
CREATE TEMPORARY TABLE taskyard_pruned ON COMMIT DROP AS
SELECT age, id, key, fence FROM (
    SELECT age, id, key, fence, ended_at, row_number() OVER (ORDER BY ended_at DESC, age DESC) AS place
    FROM taskyard.ended
    WHERE project = %(project)s AND (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s::text[]))
      AND (%(states)s::taskyard.state[] IS NULL OR state = ANY (%(states)s::taskyard.state[])) AND (%(mission)s::text IS NULL OR mission = %(mission)s)
      AND (%(worker)s::text IS NULL OR worker = %(worker)s) AND (%(ids)s::text[] IS NULL OR id = ANY (%(ids)s::text[]))
) AS endings
WHERE place > %(count)s OR ended_at < taskyard.now() - %(age)s

-- name: hold_pruned
-- Lock what was chosen, so that nobody retries it or comes to need it; what has moved since, or is locked by others, stays.
WITH held AS MATERIALIZED (
    SELECT ended.age, ended.id FROM taskyard_pruned AS chosen
    JOIN taskyard.ended ON ended.project = %(project)s AND ended.age = chosen.age AND ended.id = chosen.id AND ended.fence = chosen.fence
    FOR UPDATE OF ended SKIP LOCKED
)
DELETE FROM taskyard_pruned AS pruned WHERE NOT EXISTS (SELECT FROM held WHERE held.age = pruned.age AND held.id = pruned.id)

-- name: keep_needed
-- Keep a task that a remaining task still waits for, and so on for the tasks that this one waits for.
DELETE FROM taskyard_pruned AS pruned USING taskyard.need
WHERE need.project = %(project)s AND need.other = pruned.id AND NOT EXISTS (SELECT FROM taskyard_pruned AS going WHERE going.id = need.id)
RETURNING pruned.id

-- name: count_pruned
SELECT (SELECT count(*) FROM taskyard_pruned), (SELECT min(age) FROM taskyard_pruned),
       (SELECT count(*) FROM taskyard.event WHERE project = %(project)s AND at < taskyard.now() - %(log_age)s)

-- name: prune_ended
DELETE FROM taskyard.ended USING taskyard_pruned AS pruned WHERE ended.project = %(project)s AND ended.age = pruned.age AND ended.id = pruned.id

-- name: prune_records
DELETE FROM taskyard.record USING taskyard_pruned AS pruned WHERE record.project = %(project)s AND record.age = pruned.age

-- name: prune_keys
DELETE FROM taskyard.key USING taskyard_pruned AS pruned WHERE key.project = %(project)s AND key.key = pruned.key

-- name: prune_needs
DELETE FROM taskyard.need USING taskyard_pruned AS pruned WHERE need.project = %(project)s AND need.id = pruned.id

-- name: prune_relations
DELETE FROM taskyard.relation USING taskyard_pruned AS pruned WHERE relation.project = %(project)s AND relation.id = pruned.id

-- name: prune_events
DELETE FROM taskyard.event WHERE project = %(project)s AND at < taskyard.now() - %(age)s

-- name: forget_tokens
DELETE FROM taskyard.token WHERE project = %(project)s AND until < taskyard.now()

-- name: forget_heartbeats
-- Heartbeats of claims that are over, or that can write their own rows again.
DELETE FROM taskyard.heartbeat WHERE project = %(project)s AND lease_ends < taskyard.now() - 3600000
