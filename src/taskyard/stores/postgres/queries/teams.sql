-- Teams. Row-level security shows a role the team of its own projects; the schema's owner sees and changes all of them.

-- name: make
-- A project that is called TEAM/NAME is the team's from now on, if it was nobody's.
WITH made AS (
    INSERT INTO taskyard.team (name, max_todo, max_running, rate)
    VALUES (%(name)s, %(max_todo)s, %(max_running)s, %(rate)s)
    ON CONFLICT (name) DO NOTHING
    RETURNING id
),
joined AS (
    UPDATE taskyard.project SET team = made.id
    FROM made WHERE project.team IS NULL AND starts_with(project.name, %(name)s || '/')
)
SELECT id FROM made

-- name: all
SELECT team.name, team.max_todo, team.max_running, team.rate, team.made_at,
       ARRAY(SELECT project.name FROM taskyard.project WHERE project.team = team.id ORDER BY project.name)
FROM taskyard.team ORDER BY team.name

-- name: lock
SELECT team.id, team.max_todo, team.max_running, team.rate, team.tokens FROM taskyard.team WHERE name = %(name)s FOR UPDATE

-- name: change
UPDATE taskyard.team SET max_todo = %(max_todo)s, max_running = %(max_running)s, rate = %(rate)s WHERE id = %(team)s

-- name: lock_project
SELECT project.id, team.name FROM taskyard.project LEFT JOIN taskyard.team ON team.id = project.team
WHERE project.name = %(named)s FOR NO KEY UPDATE OF project

-- name: move
-- The next add of the team counts anew: until then no other adds.
WITH alone AS MATERIALIZED (SELECT pg_advisory_xact_lock(747164, %(team)s)),
recounted AS (DELETE FROM taskyard.team_count USING alone WHERE team_count.team = %(team)s)
UPDATE taskyard.project SET team = %(to)s FROM alone WHERE project.id = %(moved)s

-- name: tell
-- In the log of the project that asks, and of all that are concerned; whoever waits there looks again.
WITH concerned AS MATERIALIZED (
    SELECT id FROM taskyard.project WHERE id = %(project)s OR id = %(moved)s::int OR team = (SELECT id FROM taskyard.team WHERE name = %(name)s)
),
told AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, by, more)
    SELECT id, %(event)s, '', '', 0, %(by)s, %(more)s FROM concerned
)
SELECT taskyard.ring(id) FROM concerned

-- name: own
SELECT team.name, team.max_todo, team.max_running, team.rate, team.made_at,
       ARRAY(SELECT other.name FROM taskyard.project AS other WHERE other.team = team.id ORDER BY other.name)
FROM taskyard.project JOIN taskyard.team ON team.id = project.team WHERE project.id = %(project)s

-- name: heeded
-- The quotas that a client has to know of, as `turn` reads them again and again.
SELECT (SELECT json_build_object('max_todo', max_todo, 'max_running', max_running)::text
        FROM taskyard.project JOIN taskyard.team ON team.id = project.team WHERE project.id = %(project)s)

-- name: fill
-- Of a team by one of its projects.
SELECT fill.todo, fill.running, fill.claimed
FROM (SELECT min(project.id) AS id FROM taskyard.team JOIN taskyard.project ON project.team = team.id WHERE team.name = %(name)s) AS one,
     LATERAL taskyard.team_fill(one.id) AS fill

-- name: shares
-- The backlog of each project of a team: what waits for a worker, and what is held.
SELECT project.name, count(*) FILTER (WHERE task.state <> 'processing'), count(*) FILTER (WHERE task.state = 'processing')
FROM taskyard.team JOIN taskyard.project ON project.team = team.id LEFT JOIN taskyard.task ON task.project = project.id
WHERE team.name = %(name)s GROUP BY project.name ORDER BY project.name

-- name: reached
SELECT '', reached.name, reached.number, reached.due, reached.team
FROM taskyard.project, LATERAL taskyard.team_reached(project.id) AS reached
WHERE project.id = %(project)s AND project.team IS NOT NULL

-- name: ring
SELECT taskyard.ring_team(%(project)s)

-- name: tokens
SELECT team.name, team.tokens FROM taskyard.project JOIN taskyard.team ON team.id = project.team WHERE project.id = %(project)s

-- name: tokens_of
SELECT tokens FROM taskyard.team WHERE name = %(name)s

-- name: change_tokens
UPDATE taskyard.team SET tokens = %(tokens)s WHERE id = %(team)s
