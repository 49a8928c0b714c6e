-- A whole project, as one end of a copy. Tasks are read and written as one wide row each, segment by segment; a segment
-- is the first four characters of an id.

-- name: snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: facts
SELECT paused, paused_kinds, settings, made_at,
       coalesce((SELECT last_value >> 10 FROM pg_sequences WHERE schemaname = 'taskyard' AND sequencename = 'number'), -1),
       EXISTS (SELECT FROM taskyard.task WHERE project = %(project)s)
       OR EXISTS (SELECT FROM taskyard.ended WHERE project = %(project)s)
       OR EXISTS (SELECT FROM taskyard.event WHERE project = %(project)s AND task <> ''),
       (SELECT oid FROM pg_database WHERE datname = current_database())
FROM taskyard.project WHERE id = %(project)s

-- name: held
SELECT id || '.' || fence || '.' || nonce FROM taskyard.task
WHERE project = %(project)s AND state = 'processing' ORDER BY age LIMIT 1000

-- name: segments
SELECT DISTINCT left(id, 4) COLLATE "C" FROM (
    SELECT id FROM taskyard.body WHERE project = %(project)s
    UNION ALL
    SELECT id FROM taskyard.ended WHERE project = %(project)s
) AS every ORDER BY 1

-- name: task_copies
SELECT found.*,
       (SELECT digest FROM taskyard.key WHERE key.project = %(project)s AND key.key = found.own_key AND key.id = found.id),
       ARRAY(SELECT other FROM taskyard.need WHERE need.project = %(project)s AND need.id = found.id ORDER BY other),
       (SELECT json_agg(json_build_array(sort, record.fence, record.nonce, record.worker, at, outcome, content, record.result) ORDER BY n)
        FROM taskyard.record WHERE record.project = %(project)s AND record.age = substr(found.id, 5)),
       CASE WHEN after IS NOT NULL THEN taskyard.origin(%(project)s, found.id) END,
       EXISTS (SELECT FROM taskyard.deadline WHERE deadline.project = %(project)s AND deadline.age = substr(found.id, 5))
FROM (
    SELECT task.id, kind, state, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, due, worker, nonce,
           lease, progress, NULL::bigint AS ended_at, title, mission, body.key AS own_key, after, verify, not_before, data,
           NULL::text AS result, NULL::text AS error
    FROM taskyard.body JOIN taskyard.task ON task.project = %(project)s AND task.age = substr(body.id, 5) AND task.id = body.id
    WHERE body.project = %(project)s AND body.id >= %(segment)s COLLATE "C" AND body.id < %(segment)s || '{' COLLATE "C"
    UNION ALL
    SELECT id, kind, state, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, NULL, worker, nonce,
           NULL, NULL, ended_at, title, mission, key, after, verify, not_before, data, result, error
    FROM taskyard.ended
    WHERE project = %(project)s AND id >= %(segment)s COLLATE "C" AND id < %(segment)s || '{' COLLATE "C"
) AS found
ORDER BY found.id

-- name: log
SELECT at, event, task, kind, fence, worker, by, more FROM taskyard.event WHERE project = %(project)s ORDER BY n

-- name: mark
-- Other clients see the project as unfinished from here on.
UPDATE taskyard.project SET settings = %(settings)s, paused = true, paused_kinds = %(kinds)s::text[]
WHERE id = %(project)s

-- name: lock
SELECT id FROM taskyard.project WHERE id = %(project)s FOR UPDATE

-- name: renew
UPDATE taskyard.task SET lease_ends = taskyard.now() + (lease * 1000)::bigint
WHERE project = %(project)s AND state = 'processing'

-- name: number
-- New segments come after all that were copied. Without the right to set the sequence it stays: ids are unique anyway.
SELECT setval('taskyard.number', %(next)s::bigint)
WHERE has_sequence_privilege('taskyard.number', 'UPDATE')
  AND coalesce((SELECT last_value FROM pg_sequences WHERE schemaname = 'taskyard' AND sequencename = 'number'), 0) < %(next)s::bigint

-- name: numbering
-- No project has this number: sleeping clients of a project hold locks of the same class.
SELECT pg_advisory_xact_lock(747159, -2)

-- name: analyze
-- So many rows are new that plans without new statistics would be bad. Without the right, the server only warns.
ANALYZE taskyard.task, taskyard.body, taskyard.ended, taskyard.record, taskyard.event, taskyard.key, taskyard.need

-- name: clear_records
DELETE FROM taskyard.record WHERE project = %(project)s AND age IN (
    SELECT substr(id, 5) FROM taskyard.body WHERE project = %(project)s AND id >= %(segment)s COLLATE "C" AND id < %(segment)s || '{' COLLATE "C"
    UNION ALL
    SELECT substr(id, 5) FROM taskyard.ended WHERE project = %(project)s AND id >= %(segment)s COLLATE "C" AND id < %(segment)s || '{' COLLATE "C")

-- name: clear_used
DELETE FROM taskyard.used WHERE project = %(project)s AND age IN (
    SELECT substr(id, 5) FROM taskyard.body WHERE project = %(project)s AND id >= %(segment)s COLLATE "C" AND id < %(segment)s || '{' COLLATE "C")

-- name: clear_tasks
DELETE FROM taskyard.task WHERE project = %(project)s AND age IN (
    SELECT substr(id, 5) FROM taskyard.body WHERE project = %(project)s AND id >= %(segment)s COLLATE "C" AND id < %(segment)s || '{' COLLATE "C")

-- name: clear_bodies
DELETE FROM taskyard.body WHERE project = %(project)s AND id >= %(segment)s COLLATE "C" AND id < %(segment)s || '{' COLLATE "C"

-- name: clear_ended
DELETE FROM taskyard.ended WHERE project = %(project)s AND id >= %(segment)s COLLATE "C" AND id < %(segment)s || '{' COLLATE "C"

-- name: clear_needs
DELETE FROM taskyard.need WHERE project = %(project)s AND id >= %(segment)s COLLATE "C" AND id < %(segment)s || '{' COLLATE "C"

-- name: clear_relations
DELETE FROM taskyard.relation WHERE project = %(project)s AND id >= %(segment)s COLLATE "C" AND id < %(segment)s || '{' COLLATE "C"

-- name: clear_deadlines
DELETE FROM taskyard.deadline WHERE project = %(project)s AND age IN (
    SELECT substr(id, 5) FROM taskyard.body WHERE project = %(project)s AND id >= %(segment)s COLLATE "C" AND id < %(segment)s || '{' COLLATE "C")

-- name: clear_keys
DELETE FROM taskyard.key WHERE project = %(project)s AND id >= %(segment)s COLLATE "C" AND id < %(segment)s || '{' COLLATE "C"

-- name: settled
-- What is copied was settled where it comes from.
SELECT set_config('taskyard.settling', 'on', true)

-- name: make_task_copies
CREATE TEMPORARY TABLE task_copy (
    id text COLLATE "C", kind text, state text, priority smallint, assignee text, fence int, errors int, crashes int,
    max_attempts smallint, own_lease float8, uses text, due bigint, worker text, nonce text, lease float8, progress float8,
    ended_at bigint, title text, mission text, key text, after text, verify text, not_before bigint, data text, result text,
    error text, digest text, needs text, records text, policies text, on_failure text, parent text, discovered_from text,
    expires bigint, timeout float8, bound boolean
) ON COMMIT DROP

-- name: copy_task_copies
COPY pg_temp.task_copy FROM STDIN

-- name: put_tasks
INSERT INTO taskyard.task (
    project, age, id, state, kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, followed, due,
    worker, nonce, lease, lease_ends, progress, of_mission)
SELECT %(project)s, substr(id, 5), id, state::taskyard.state, kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease,
       CASE WHEN uses IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(uses::json)) END,
       EXISTS (SELECT FROM taskyard.need WHERE need.project = %(project)s AND need.other = task_copy.id), due, worker, nonce,
       lease, taskyard.now() + (lease * 1000)::bigint, progress, mission
FROM pg_temp.task_copy WHERE ended_at IS NULL

-- name: put_bodies
INSERT INTO taskyard.body (project, id, title, mission, key, after, verify, not_before, data, error)
SELECT %(project)s, id, title, mission, key,
       CASE WHEN after IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(after::json)) END, verify, not_before, data, error
FROM pg_temp.task_copy WHERE ended_at IS NULL

-- name: put_ended
INSERT INTO taskyard.ended (
    project, age, id, state, kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, followed, worker,
    nonce, ended_at, title, mission, key, after, verify, not_before, data, error, result)
SELECT %(project)s, substr(id, 5), id, state::taskyard.state, kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease,
       CASE WHEN uses IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(uses::json)) END,
       EXISTS (SELECT FROM taskyard.need WHERE need.project = %(project)s AND need.other = task_copy.id), worker, nonce, ended_at,
       title, mission, key, CASE WHEN after IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(after::json)) END,
       verify, not_before, data, error, result
FROM pg_temp.task_copy WHERE ended_at IS NOT NULL

-- name: put_records
INSERT INTO taskyard.record (project, age, sort, fence, nonce, worker, at, outcome, content, result)
SELECT %(project)s, substr(id, 5), entry ->> 0, (entry ->> 1)::int, entry ->> 2, entry ->> 3, (entry ->> 4)::bigint, entry ->> 5,
       entry ->> 6, entry ->> 7
FROM pg_temp.task_copy, json_array_elements(records::json) WITH ORDINALITY AS entries (entry, place)
WHERE records IS NOT NULL ORDER BY id, place

-- name: put_needs
INSERT INTO taskyard.need (project, id, other, on_failure)
SELECT %(project)s, id, edge.other, coalesce(edge.policy, 'block')
FROM pg_temp.task_copy, ROWS FROM (json_array_elements_text(needs::json), json_array_elements_text(policies::json)) AS edge (other, policy)
WHERE needs IS NOT NULL

-- name: put_relations
INSERT INTO taskyard.relation (project, id, parent, discovered_from, on_failure, expires, timeout)
SELECT %(project)s, id, parent, discovered_from, on_failure, expires, timeout
FROM pg_temp.task_copy
WHERE on_failure IS NOT NULL OR parent IS NOT NULL OR discovered_from IS NOT NULL OR expires IS NOT NULL OR timeout IS NOT NULL

-- name: put_deadlines
INSERT INTO taskyard.deadline (project, age, at) SELECT %(project)s, substr(id, 5), expires FROM pg_temp.task_copy WHERE bound

-- name: put_followed
UPDATE taskyard.task SET followed = true
WHERE project = %(project)s AND NOT followed AND (age, id) IN (
    SELECT substr(other, 5) COLLATE "C", other COLLATE "C"
    FROM pg_temp.task_copy, json_array_elements_text(needs::json) AS other WHERE needs IS NOT NULL)

-- name: put_followed_ended
UPDATE taskyard.ended SET followed = true
WHERE project = %(project)s AND NOT followed AND (age, id) IN (
    SELECT substr(other, 5) COLLATE "C", other COLLATE "C"
    FROM pg_temp.task_copy, json_array_elements_text(needs::json) AS other WHERE needs IS NOT NULL)

-- name: put_keys
INSERT INTO taskyard.key (project, key, id, kind, digest)
SELECT %(project)s, key, id, kind, digest FROM pg_temp.task_copy WHERE digest IS NOT NULL

-- name: put_used
INSERT INTO taskyard.used (project, resource, age)
SELECT %(project)s, json_array_elements_text(uses::json), substr(id, 5) FROM pg_temp.task_copy
WHERE state = 'processing' AND uses IS NOT NULL
ON CONFLICT DO NOTHING

-- name: make_event_copies
CREATE TEMPORARY TABLE event_copy (
    place int, at bigint, event text, task text, kind text, fence int, worker text, by text, more text
) ON COMMIT DROP

-- name: copy_event_copies
COPY pg_temp.event_copy FROM STDIN

-- name: append_events
INSERT INTO taskyard.event (project, at, event, task, kind, fence, worker, by, more)
SELECT %(project)s, at, event, task, kind, fence, worker, by, more FROM pg_temp.event_copy ORDER BY place

-- name: clear_events
DELETE FROM taskyard.event WHERE project = %(project)s AND task <> ''

-- name: missions
SELECT name, brief, owner, created_at, cancelled_at, reason, done, failed
FROM taskyard.mission WHERE project = %(project)s ORDER BY name

-- name: put_mission
INSERT INTO taskyard.mission (project, name, brief, owner, created_at, cancelled_at, reason, done, failed)
VALUES (%(project)s, %(name)s, %(brief)s, %(owner)s, %(created_at)s, %(cancelled_at)s, %(reason)s, %(done)s, %(failed)s)
ON CONFLICT (project, name) DO UPDATE
SET brief = excluded.brief, owner = excluded.owner, created_at = excluded.created_at, cancelled_at = excluded.cancelled_at,
    reason = excluded.reason, done = excluded.done, failed = excluded.failed

-- name: schedules
SELECT name, identity, said, due, created_at, number, paused, last_at, last_task
FROM taskyard.schedule WHERE project = %(project)s ORDER BY name

-- name: put_schedule
INSERT INTO taskyard.schedule (project, name, identity, said, due, created_at, number, paused, last_at, last_task)
VALUES (%(project)s, %(name)s, %(identity)s, %(said)s, %(due)s, %(created_at)s, %(number)s, %(paused)s, %(last_at)s, %(last_task)s)
ON CONFLICT (project, name) DO UPDATE
SET identity = excluded.identity, said = excluded.said, due = excluded.due, created_at = excluded.created_at,
    number = excluded.number, paused = excluded.paused, last_at = excluded.last_at, last_task = excluded.last_task
