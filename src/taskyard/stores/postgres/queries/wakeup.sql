-- Falling asleep and waking. Each goes as one message with its values as text: a message of several statements has no
-- parameters. Every statement in it sees what was committed before it began.

-- name: listen
-- The planner settings are for `changed`: before the log is analyzed, it would be read as a whole.
SET default_transaction_isolation = 'read committed'; SET enable_seqscan = off; SET enable_bitmapscan = off;
LISTEN {channel}; LISTEN {echo}

-- name: probe
NOTIFY {echo}

-- name: mark
-- What is visible now: a snapshot, and the version of the project's row (a pause is no event).
SELECT pg_current_snapshot()::text, (SELECT xmin::text FROM taskyard.project WHERE id = {project})

-- name: changed
-- Whether something changed that was not visible at the last look. A number from the future is of another server.
(EXISTS (SELECT FROM taskyard.event
         WHERE project = {project} AND xid >= '{next}'::xid8 AND xid < pg_snapshot_xmax(pg_current_snapshot()))
 OR EXISTS (SELECT FROM taskyard.event WHERE project = {project} AND xid = ANY ('{{{open}}}'::xid8[]))
 OR '{row}' IS DISTINCT FROM (SELECT xmin::text FROM taskyard.project WHERE id = {project}))

-- name: fall_asleep
-- Take the lock, unless something has changed already; then check for changes before the lock was taken. The number of
-- an own, ended transaction shows which others may still be open: a snapshot knows only those that began before the
-- last one that has ended.
BEGIN;
SELECT CASE WHEN {changed} THEN NULL ELSE (SELECT pg_current_xact_id()::text FROM pg_advisory_lock_shared({lock}, {project})) END;
COMMIT;
SELECT {changed}, pg_current_snapshot()::text, (SELECT xmin::text FROM taskyard.project WHERE id = {project}),
       '{channel}' IN (SELECT pg_listening_channels())

-- name: check
SELECT {changed}, pg_current_snapshot()::text

-- name: wake_up
SELECT pg_advisory_unlock_shared({lock}, {project});
SELECT pg_current_snapshot()::text, (SELECT xmin::text FROM taskyard.project WHERE id = {project})
