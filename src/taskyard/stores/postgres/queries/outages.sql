-- A database that was out of reach: whether it is there, what became of what was said to it, and whose leases that must not cost.

-- name: served
SELECT pid FROM pg_stat_activity WHERE pid = {pid} AND usename = current_user

-- name: end_lost
-- What was said on a connection that broke may be waiting to be done: it is ended before anybody looks whether it was. Not one that
-- waits for a standby: it has committed, and to end it would show that before it is safe.
SELECT pg_terminate_backend(pid, 3000) FROM pg_stat_activity
WHERE pid = ANY (%(pids)s) AND pid <> pg_backend_pid() AND usename = current_user AND wait_event IS DISTINCT FROM 'SyncRep'

-- name: half_committed
-- What has committed and waits for a standby: nobody sees it yet, and it cannot be taken back.
SELECT pid FROM pg_stat_activity
WHERE pid = ANY (%(pids)s) AND pid <> pg_backend_pid() AND usename = current_user AND wait_event = 'SyncRep'

-- name: returned
-- One who had no answer for so long has one. If nobody has swept meanwhile (but for the last quarter: a network that is mended brings
-- what was on its way at different times), nobody could: then no lease that ended since the last
-- sweep is over before its holder had time to come back as well, which takes longer after a longer outage. What is told before that
-- time is over is of the same outage if nobody has swept since; else it is left out, so that the time is not cut short.
UPDATE taskyard.project
SET cut_from = CASE WHEN swept_at <= cut_until THEN cut_from ELSE swept_at END, cut_until = taskyard.now(),
    cut_grace = least(10000, 2 * %(away)s)
WHERE id = %(project)s AND swept_at < taskyard.now() - %(away)s / 4
  AND (swept_at <= cut_until OR cut_until < taskyard.now() - cut_grace)
RETURNING cut_from

-- name: took_over
-- The same by whoever sweeps first where a standby has taken over, though it may never have been there before: the last that was
-- replayed tells until when the server before it was there. Said once: whatever this server's clock says, it is noted as later than that.
UPDATE taskyard.project
SET cut_from = last.at, cut_until = greatest(taskyard.now(), last.at + 1), cut_grace = 10000
FROM (SELECT floor(extract(epoch FROM pg_last_xact_replay_timestamp()) * 1000)::bigint AS at) AS last
WHERE id = %(project)s AND cut_until <= last.at
RETURNING cut_from

-- name: now
SELECT taskyard.now()

-- name: noted
-- Whether a note whose answer was lost was made, and until when its claim holds: none if that is over since.
SELECT task.lease_ends FROM taskyard.task
WHERE project = %(project)s AND age = %(age)s AND id = %(id)s AND fence = %(fence)s AND nonce = %(nonce)s
  AND EXISTS (
    SELECT FROM taskyard.record
    WHERE record.project = %(project)s AND record.age = %(age)s AND sort = 'note' AND record.fence = %(fence)s
      AND record.nonce = %(nonce)s AND content = %(note)s AND at >= %(since)s)
