-- Falling asleep, and waking. Each goes in one message, with what is in it put in as text: a message of several statements knows no
-- parameters. Every statement of it sees what was committed before it began.

-- name: listen
-- The settings are for `stirred`, which must not read the whole log because nobody has analyzed it yet.
SET default_transaction_isolation = 'read committed'; SET enable_seqscan = off; SET enable_bitmapscan = off;
LISTEN {channel}; LISTEN {echo}

-- name: probe
NOTIFY {echo}

-- name: mark
-- What can be seen now: other transactions' numbers, and which row the project is (a pause is no event).
SELECT pg_current_snapshot()::text, (SELECT xmin::text FROM taskyard.project WHERE id = {project})

-- name: stirred
-- Whether something has happened that could not be seen then. A number that is yet to come is of another server.
(EXISTS (SELECT FROM taskyard.event
         WHERE project = {project} AND xid >= '{next}'::xid8 AND xid < pg_snapshot_xmax(pg_current_snapshot()))
 OR EXISTS (SELECT FROM taskyard.event WHERE project = {project} AND xid = ANY ('{{{open}}}'::xid8[]))
 OR '{row}' IS DISTINCT FROM (SELECT xmin::text FROM taskyard.project WHERE id = {project}))

-- name: doze
-- Hold the lock, unless something has happened already; then look whether something has happened before the lock was held. The
-- number of a transaction of one's own, which has ended, tells which others may still be under way: a snapshot knows only of
-- those that began before the last that has ended.
BEGIN;
SELECT CASE WHEN {stirred} THEN NULL ELSE (SELECT pg_current_xact_id()::text FROM pg_advisory_lock_shared({lock}, {project})) END;
COMMIT;
SELECT {stirred}, pg_current_snapshot()::text, (SELECT xmin::text FROM taskyard.project WHERE id = {project})

-- name: check
SELECT {stirred}, pg_current_snapshot()::text

-- name: rise
SELECT pg_advisory_unlock_shared({lock}, {project});
SELECT pg_current_snapshot()::text, (SELECT xmin::text FROM taskyard.project WHERE id = {project})
