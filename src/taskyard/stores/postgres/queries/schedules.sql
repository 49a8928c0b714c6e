-- Schedules: tasks that are added again and again.

-- name: put
INSERT INTO taskyard.schedule (project, name, identity, number, said, due, paused, last_at, last_task, created_at)
VALUES (%(project)s, %(name)s, %(identity)s, %(number)s, %(said)s, %(due)s, %(paused)s, %(last_at)s, %(last_task)s, %(created_at)s)
ON CONFLICT (project, name) DO NOTHING
RETURNING name

-- name: get
SELECT name, identity, said, due, created_at, number, paused, last_at, last_task
FROM taskyard.schedule WHERE project = %(project)s AND (%(name)s::text IS NULL OR name = %(name)s) ORDER BY name

-- name: move
UPDATE taskyard.schedule
SET number = %(number)s, due = %(due)s, paused = %(paused)s, last_at = %(last_at)s, last_task = %(last_task)s
WHERE project = %(project)s AND name = %(name)s AND identity = %(identity)s AND number = %(from)s
RETURNING name

-- name: note_task
UPDATE taskyard.schedule SET last_task = %(last_task)s WHERE project = %(project)s AND name = %(name)s

-- name: remove
DELETE FROM taskyard.schedule WHERE project = %(project)s AND name = %(name)s AND identity = %(identity)s RETURNING name
