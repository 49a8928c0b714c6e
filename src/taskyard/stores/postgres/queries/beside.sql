-- A scratch project and all that is in it, in the order of the names: what refers to the project goes before it.

-- name: task
DELETE FROM taskyard.task WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: body
DELETE FROM taskyard.body WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: ended
DELETE FROM taskyard.ended WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: record
DELETE FROM taskyard.record WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: event
DELETE FROM taskyard.event WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: key
DELETE FROM taskyard.key WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: need
DELETE FROM taskyard.need WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: used
DELETE FROM taskyard.used WHERE project = (SELECT id FROM taskyard.project WHERE name = %(name)s)

-- name: the_project
DELETE FROM taskyard.project WHERE name = %(name)s
