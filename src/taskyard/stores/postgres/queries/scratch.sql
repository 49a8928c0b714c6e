-- A scratch project: whether its run lives, and all its rows. The lock is shared: a run that has reconnected takes it
-- while the server may not have noticed yet that the old connection is gone. Nothing else uses its class.

-- name: hold
SELECT pg_advisory_lock_shared(747160, %(project)s)

-- name: candidates
SELECT id, name, settings FROM taskyard.project WHERE name ~ '-torture-[0-9a-z]{8}$' ORDER BY id

-- name: liveness
SELECT EXISTS (
           SELECT FROM pg_locks
           WHERE locktype = 'advisory' AND classid = 747160 AND objid = %(project)s AND objsubid = 2
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())),
       (SELECT n FROM taskyard.event WHERE project = %(project)s ORDER BY xid DESC, n DESC LIMIT 1)

-- name: lock_dead
-- Whether no run lives there; a run that wants the lock waits until the project is removed.
SELECT pg_try_advisory_xact_lock(747160, %(project)s)

-- name: mark
UPDATE taskyard.project SET settings = (settings::jsonb || jsonb_build_object(%(mark)s::text, name))::text WHERE id = %(project)s

-- name: unmark
UPDATE taskyard.project SET settings = (settings::jsonb - %(mark)s::text)::text WHERE id = %(project)s

-- name: task
DELETE FROM taskyard.task WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: body
DELETE FROM taskyard.body WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: ended
DELETE FROM taskyard.ended WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: record
DELETE FROM taskyard.record WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: event
DELETE FROM taskyard.event WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: key
DELETE FROM taskyard.key WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: need
DELETE FROM taskyard.need WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: used
DELETE FROM taskyard.used WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: pace
DELETE FROM taskyard.pace WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: token
DELETE FROM taskyard.token WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: heartbeat
DELETE FROM taskyard.heartbeat WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: asked
DELETE FROM taskyard.asked WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: mission
DELETE FROM taskyard.mission WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: schedule
DELETE FROM taskyard.schedule WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: the_project
DELETE FROM taskyard.project WHERE name = %(name)s
