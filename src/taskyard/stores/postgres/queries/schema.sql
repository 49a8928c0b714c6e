-- name: greet
-- What an opened yard has to know, in one look.
SELECT project.id, project.settings, project.epoch, taskyard.now(), current_setting('default_transaction_isolation'),
       newest.version, newest.min_client
FROM (SELECT max(version) AS version, max(min_client) AS min_client FROM taskyard.migration) AS newest
LEFT JOIN taskyard.project ON project.name = %(name)s

-- name: lock
SELECT pg_advisory_xact_lock(747159, 1)

-- name: make_ledger
CREATE SCHEMA IF NOT EXISTS taskyard;
CREATE TABLE IF NOT EXISTS taskyard.migration (
    version int PRIMARY KEY,
    name text NOT NULL,
    min_client int NOT NULL,  -- the oldest schema number that a client may have been written for
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)

-- name: ledger
SELECT to_regclass('taskyard.migration') IS NOT NULL

-- name: applied
SELECT version, min_client FROM taskyard.migration

-- name: applied_one
INSERT INTO taskyard.migration (version, name, min_client) VALUES (%(version)s, %(name)s, %(min_client)s)

-- name: make_project
INSERT INTO taskyard.project (name, settings) VALUES (%(name)s, %(settings)s) ON CONFLICT (name) DO NOTHING RETURNING id
