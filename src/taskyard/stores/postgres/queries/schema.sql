-- name: read_project
-- What opening a yard needs, in one statement. An older schema, of which it tells too, has no column for the team.
SELECT project.id, project.settings, project.epoch, taskyard.now(), current_setting('default_transaction_isolation'),
       newest.version, newest.min_client,
       to_jsonb(project) ->> 'team' IS NOT NULL
FROM (SELECT max(version) AS version, max(min_client) AS min_client FROM taskyard.migration) AS newest
LEFT JOIN taskyard.project ON project.name = %(name)s

-- name: which_project
SELECT max(name) FROM taskyard.project WHERE id = %(project)s

-- name: lock
-- No project has the number -1: sleeping clients of a project hold locks of the same class.
SELECT pg_advisory_xact_lock(747159, -1)

-- name: make_migrations
CREATE SCHEMA IF NOT EXISTS taskyard;
CREATE TABLE IF NOT EXISTS taskyard.migration (
    version int PRIMARY KEY,
    name text NOT NULL,
    min_client int NOT NULL,  -- the oldest schema number that a client may have been written for
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)

-- name: has_migrations
SELECT to_regclass('taskyard.migration') IS NOT NULL

-- name: applied
SELECT version, min_client FROM taskyard.migration

-- name: applied_one
INSERT INTO taskyard.migration (version, name, min_client) VALUES (%(version)s, %(name)s, %(min_client)s)

-- name: has_project
SELECT FROM taskyard.project WHERE name = %(name)s

-- name: make_project
INSERT INTO taskyard.project (name, settings) VALUES (%(name)s, %(settings)s) ON CONFLICT (name) DO NOTHING RETURNING id

-- name: new_epoch
-- After a restore from a backup: fences are raised beyond any that was issued, so that no lost handle can hold a task
-- or be issued again. Claimed tasks return to todo, and count as no attempt.
WITH given_back AS (
    INSERT INTO taskyard.record (project, age, sort, fence, nonce, worker, outcome, content)
    SELECT project, age, 'outcome', fence, nonce, worker, 'released', '"the database was set back"'
    FROM taskyard.task WHERE state = 'processing'
),
logged AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT project, 'released', id, kind, fence + 1000000, worker, 'migrate', '{"reason":"the database was set back"}'
    FROM taskyard.task WHERE state = 'processing'
),
freed AS (DELETE FROM taskyard.used),
failed AS (UPDATE taskyard.ended SET fence = fence + 1000000, nonce = NULL, worker = NULL WHERE state <> 'done'),
open AS (
    UPDATE taskyard.task
    SET fence = fence + 1000000, state = CASE state WHEN 'processing' THEN 'todo' ELSE state END,
        worker = NULL, nonce = NULL, lease = NULL, lease_ends = NULL, progress = NULL
),
-- A dump that was restored into another server may hold transaction numbers from that server's future.
shown AS (UPDATE taskyard.event SET xid = pg_current_xact_id() WHERE xid >= pg_snapshot_xmax(pg_current_snapshot()))
UPDATE taskyard.project SET epoch = epoch + 1 RETURNING epoch
