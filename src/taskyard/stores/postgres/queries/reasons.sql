-- name: now
SELECT taskyard.now()

-- name: note_asked
SELECT taskyard.note_asked(%(project)s, %(kinds)s::text[])

-- name: asked
SELECT kind, at FROM taskyard.asked WHERE project = %(project)s

-- name: reached
SELECT reached.kind, reached.name, reached.number, reached.due
FROM taskyard.project, taskyard.reached(project.id, project.limits) AS reached WHERE project.id = %(project)s

-- name: next_due
-- The first of all waiting tasks, or of those of these kinds, in the order of the index of what is due.
SELECT due FROM taskyard.task
WHERE project = %(project)s AND state = 'waiting' AND (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s::text[]))
ORDER BY due, age LIMIT 1

-- name: backlog
SELECT kind, count(*) FROM taskyard.task WHERE project = %(project)s AND state <> 'processing' GROUP BY kind
