-- A database that was out of reach: whether it is there, what became of what was said to it, and whose leases that must not cost.

-- name: served
SELECT pid FROM pg_stat_activity WHERE pid = %(pid)s AND usename = current_user

-- name: end_lost
-- What was said on a connection that broke may be waiting to be done: it is ended before anybody looks whether it was. Not one that
-- waits for a standby: it has committed, and to end it would show that before it is safe.
SELECT pg_terminate_backend(pid, 3000) FROM pg_stat_activity
WHERE pid = ANY (%(pids)s) AND pid <> pg_backend_pid() AND usename = current_user AND wait_event IS DISTINCT FROM 'SyncRep'
