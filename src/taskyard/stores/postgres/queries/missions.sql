-- Missions: what was said about them, and their tasks in numbers.

-- name: put
INSERT INTO taskyard.mission (project, name, brief, owner, created_at)
VALUES (%(project)s, %(name)s, %(brief)s, %(owner)s, taskyard.now())
ON CONFLICT (project, name) DO UPDATE
SET brief = excluded.brief, owner = excluded.owner, created_at = excluded.created_at
WHERE mission.created_at IS NULL
RETURNING created_at

-- name: get
SELECT name, brief, owner, created_at, cancelled_at, reason, done, failed
FROM taskyard.mission WHERE project = %(project)s AND (%(name)s::text IS NULL OR name = %(name)s) ORDER BY name

-- name: cancel
INSERT INTO taskyard.mission (project, name, cancelled_at, reason, done, failed)
VALUES (%(project)s, %(name)s, taskyard.now(), %(reason)s, %(done)s, %(failed)s)
ON CONFLICT (project, name) DO UPDATE
SET cancelled_at = excluded.cancelled_at, reason = excluded.reason, done = excluded.done, failed = excluded.failed

-- name: tally
SELECT mission, kind, state::text, count(*), min(age), max(ended_at)
FROM taskyard.mission_task WHERE project = %(project)s AND mission = %(name)s GROUP BY mission, kind, state

-- name: tally_all
SELECT mission, kind, state::text, count(*), min(age), max(ended_at)
FROM taskyard.mission_task WHERE project = %(project)s GROUP BY mission, kind, state

-- name: known
SELECT missions_known FROM taskyard.project WHERE id = %(project)s

-- name: gather
SELECT taskyard.gather_missions(%(project)s, %(past)s, %(most)s)
