-- Outages: whether the server still works on a connection, what became of lost statements, and which leases to extend.

-- name: served
SELECT pid FROM pg_stat_activity WHERE pid = {pid} AND usename = current_user

-- name: end_lost
-- A statement of a broken connection may not be executed yet: its process is ended before the caller looks for its
-- result. One that waits for a standby is left: it has committed, and to end it would show it before it is safe.
SELECT pg_terminate_backend(pid, 3000) FROM pg_stat_activity
WHERE pid = ANY (%(pids)s) AND pid <> pg_backend_pid() AND usename = current_user AND wait_event IS DISTINCT FROM 'SyncRep'

-- name: end_sent
-- The same for an attempt of another process, `ago` milliseconds ago: a process that began later has only the number.
SELECT pg_terminate_backend(pid, 3000) FROM pg_stat_activity
WHERE pid = ANY (%(pids)s) AND pid <> pg_backend_pid() AND usename = current_user AND wait_event IS DISTINCT FROM 'SyncRep'
  AND backend_start < clock_timestamp() - %(ago)s * interval '1 millisecond'

-- name: half_committed
-- Committed transactions that wait for a standby: not visible yet, and not revocable.
SELECT pid FROM pg_stat_activity
WHERE pid = ANY (%(pids)s) AND pid <> pg_backend_pid() AND usename = current_user AND wait_event = 'SyncRep'

-- name: returned
-- A client that had no answer for `away` milliseconds has one now. If no process has swept meanwhile, none could reach
-- the database. The last quarter does not count: a repaired network delivers delayed messages at different times. Then
-- each lease that ended since the last sweep is extended, so that its holder has time to return. A longer outage gives
-- more time. A report within that time is part of the same outage if no process has swept since. Else it is ignored, so
-- that it does not cut the time short.
UPDATE taskyard.project
SET cut_from = CASE WHEN swept_at <= cut_until THEN cut_from ELSE swept_at END, cut_until = taskyard.now(),
    cut_grace = least(10000, 2 * %(away)s)
WHERE id = %(project)s AND swept_at < taskyard.now() - %(away)s / 4
  AND (swept_at <= cut_until OR cut_until < taskyard.now() - cut_grace)
RETURNING cut_from

-- name: took_over
-- The same after a failover, by the first sweep on the new primary, which may never have seen the old one. The last
-- replayed transaction shows until when the old primary worked. Recorded once: `cut_until` is made later than that time
-- even if this server's clock is behind.
UPDATE taskyard.project
SET cut_from = last.at, cut_until = greatest(taskyard.now(), last.at + 1), cut_grace = 10000
FROM (SELECT floor(extract(epoch FROM pg_last_xact_replay_timestamp()) * 1000)::bigint AS at) AS last
WHERE id = %(project)s AND cut_until <= last.at
RETURNING cut_from

-- name: now
SELECT taskyard.now()

-- name: noted
-- The lease of a note that was stored though its answer was lost; no row if the claim is over.
SELECT task.lease_ends FROM taskyard.task
WHERE project = %(project)s AND age = %(age)s AND id = %(id)s AND fence = %(fence)s AND nonce = %(nonce)s
  AND EXISTS (
    SELECT FROM taskyard.record
    WHERE record.project = %(project)s AND record.age = %(age)s AND sort = 'note' AND record.fence = %(fence)s
      AND record.nonce = %(nonce)s AND content = %(note)s AND at >= %(since)s)
