-- A scratch project: whether its run lives, and all that is in it. The class of the lock is no other's; a run that has connected anew
-- shares it with a connection of its own that the server has not missed yet.

-- name: live
SELECT pg_advisory_lock_shared(747160, %(project)s)

-- name: candidates
SELECT id, name, settings FROM taskyard.project WHERE name ~ '-torture-[0-9a-z]{8}$' ORDER BY id

-- name: seen
SELECT EXISTS (
           SELECT FROM pg_locks
           WHERE locktype = 'advisory' AND classid = 747160 AND objid = %(project)s AND objsubid = 2
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())),
       (SELECT n FROM taskyard.event WHERE project = %(project)s ORDER BY xid DESC, n DESC LIMIT 1)

-- name: bury
-- Whether nobody lives there: whoever wants to, waits until all of it is gone.
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

-- name: token
DELETE FROM taskyard.token WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: heartbeat
DELETE FROM taskyard.heartbeat WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: the_project
DELETE FROM taskyard.project WHERE name = %(name)s
