-- Adding tasks. The database chooses the segment and the time of an id, the caller its random end. So an add whose
-- answer was lost can be looked up before it is sent again.

-- name: given_arrays
given AS MATERIALIZED (
    SELECT * FROM unnest(
        %(place)s::int[], %(tick)s::int[], %(chance)s::text[], %(kind)s::text[], %(priority)s::smallint[], %(assignee)s::text[],
        %(max_attempts)s::smallint[], %(own_lease)s::float8[], %(uses)s::text[], %(title)s::text[], %(mission)s::text[], %(key)s::text[],
        %(digest)s::text[], %(after)s::text[], %(unmet)s::text[], %(verify)s::text[], %(not_before)s::bigint[], %(delay)s::bigint[],
        %(data)s::text[], %(minted)s::text[], %(followed)s::boolean[], %(policies)s::text[], %(on_failure)s::text[], %(parent)s::text[],
        %(discovered_from)s::text[], %(expires)s::bigint[], %(expires_in)s::bigint[], %(timeout)s::float8[]
    ) AS incoming (place, tick, chance, kind, priority, assignee, max_attempts, own_lease, uses, title, mission, key, digest, after,
                   unmet, verify, not_before, delay, data, minted, followed, policies, on_failure, parent, discovered_from, expires, expires_in, timeout)
)

-- name: make_incoming
CREATE TEMPORARY TABLE taskyard_incoming (
    place int, tick int, chance text, kind text, priority smallint, assignee text, max_attempts smallint, own_lease float8,
    uses text, title text, mission text, key text, digest text, after text, unmet text, verify text, not_before bigint,
    delay bigint, data text, minted text, followed boolean, policies text, on_failure text, parent text, discovered_from text,
    expires bigint, expires_in bigint, timeout float8
) ON COMMIT DROP

-- name: copy_incoming
COPY pg_temp.taskyard_incoming FROM STDIN

-- name: drop_incoming
DROP TABLE pg_temp.taskyard_incoming

-- name: given_table
given AS MATERIALIZED (SELECT * FROM pg_temp.taskyard_incoming)

-- name: add
-- A token is given if the add may be retried without knowing whether it was executed: the second execution fails.
once AS (
    INSERT INTO taskyard.token (project, token, until)
    SELECT %(project)s, %(token)s, taskyard.now() + %(kept)s WHERE %(token)s::text IS NOT NULL
),
moment AS MATERIALIZED (SELECT taskyard.ticks() AS ticks, taskyard.now() AS now),
ticks AS MATERIALIZED (SELECT tick, taskyard.base32(moment.ticks + tick, 9) AS text FROM moment, (SELECT DISTINCT tick FROM given) AS each),
named AS MATERIALIZED (
    SELECT given.*, coalesce(substr(minted, 5), ticks.text || chance) AS age,
           CASE WHEN given.not_before IS NOT NULL THEN CASE WHEN given.not_before > moment.now THEN given.not_before END
                WHEN delay > 0 THEN moment.now + delay END AS due,
           coalesce(expires, moment.now + expires_in) AS deadline
    FROM given JOIN ticks USING (tick), moment
),
numbered AS MATERIALIZED (
    SELECT *, coalesce(minted, taskyard.base32((nextval('taskyard.number') >> 10) & 1048575, 4) || age) AS id
    FROM (SELECT * FROM named ORDER BY place) AS sorted
),
keyed AS (
    INSERT INTO taskyard.key (project, key, id, kind, digest)
    SELECT %(project)s, key, id, kind, digest FROM numbered WHERE key IS NOT NULL ORDER BY key
    ON CONFLICT DO NOTHING
    RETURNING key
),
notified AS MATERIALIZED (SELECT taskyard.ring(%(project)s)),
fresh AS MATERIALIZED (
    SELECT *, CASE WHEN unmet IS NOT NULL THEN 'blocked' WHEN due IS NOT NULL THEN 'waiting' ELSE 'todo' END::taskyard.state AS state
    FROM numbered WHERE key IS NULL OR key IN (SELECT key FROM keyed)
),
kept AS (
    INSERT INTO taskyard.task (project, age, id, state, kind, priority, assignee, fence, errors, crashes, max_attempts, own_lease, uses, due,
                               of_mission, followed)
    SELECT %(project)s, age, id, state, kind, priority, assignee, 0, 0, 0, max_attempts, own_lease,
           CASE WHEN uses IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(uses::json)) END, due, mission, followed
    FROM fresh
),
content AS (
    INSERT INTO taskyard.body (project, id, title, mission, key, after, verify, not_before, data)
    SELECT %(project)s, id, title, mission, key,
           CASE WHEN after IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(after::json)) END,
           verify, coalesce(not_before, due), data
    FROM fresh
),
needed AS (
    INSERT INTO taskyard.need (project, id, other, on_failure)
    SELECT %(project)s, id, edge.other, coalesce(edge.policy, 'block')
    FROM fresh, ROWS FROM (json_array_elements_text(unmet::json), json_array_elements_text(policies::json)) AS edge (other, policy)
    WHERE unmet IS NOT NULL
),
related AS (
    INSERT INTO taskyard.relation (project, id, parent, discovered_from, on_failure, expires, timeout)
    SELECT %(project)s, id, parent, discovered_from, on_failure, deadline, timeout
    FROM fresh
    WHERE on_failure IS NOT NULL OR parent IS NOT NULL OR discovered_from IS NOT NULL OR deadline IS NOT NULL OR timeout IS NOT NULL
),
bound AS (
    INSERT INTO taskyard.deadline (project, age, at) SELECT %(project)s, age, deadline FROM fresh WHERE deadline IS NOT NULL
),
logged AS (
    INSERT INTO taskyard.event (project, event, task, kind, fence, worker, by, more)
    SELECT %(project)s, event, id, kind, 0, NULL, %(by)s, more
    FROM (
        SELECT place, 0 AS step, 'added' AS event, id, kind, NULL AS more FROM fresh
        UNION ALL
        SELECT place, 1, 'blocked', id, kind, '{"after":' || unmet || '}' FROM fresh WHERE unmet IS NOT NULL
    ) AS events
    ORDER BY place, step
)
SELECT place, id, state, due, deadline FROM fresh, notified ORDER BY place

-- name: take_places
SELECT kind, number FROM taskyard.take_places(
    %(project)s, %(kinds)s::text[], %(numbers)s::bigint[], %(mosts)s::bigint[], %(brief)s)

-- name: take_team_places
SELECT team, count, most, again FROM taskyard.take_team_places(%(project)s, %(number)s, %(brief)s, %(alone)s)

-- name: mint
-- What the ids of a graph are made of: its tasks name one another before they are there.
SELECT taskyard.ticks(), ARRAY(SELECT nextval('taskyard.number') FROM generate_series(1, %(number)s))

-- name: known_keys
SELECT key, id, kind, digest FROM taskyard.key WHERE project = %(project)s AND key = ANY (%(keys)s::text[])

-- name: added_before
-- Tasks of an add whose answer was lost: newer than the last time that the caller knows, with its random ends.
SELECT id FROM taskyard.task
WHERE project = %(project)s AND age >= %(since)s AND substr(age, 10) = ANY (%(chances)s::text[])
UNION ALL
SELECT id FROM taskyard.ended
WHERE project = %(project)s AND age >= %(since)s AND substr(age, 10) = ANY (%(chances)s::text[])

-- name: named
-- Tasks whose ids have this beginning and end. Without an end, six at the most: the beginning names a whole segment.
SELECT wanted.place, found.id, found.done
FROM unnest(%(begins)s::text[], %(ends)s::text[]) WITH ORDINALITY AS wanted (begins, ends, place), LATERAL (
    (SELECT id, false AS done FROM taskyard.body
     WHERE project = %(project)s AND id >= wanted.begins COLLATE "C" AND id < wanted.begins || '{' COLLATE "C"
       AND right(id, length(wanted.ends)) = wanted.ends COLLATE "C"
     ORDER BY id LIMIT CASE WHEN wanted.ends = '' THEN 6 END)
    UNION ALL
    (SELECT id, state = 'done' FROM taskyard.ended
     WHERE project = %(project)s AND id >= wanted.begins COLLATE "C" AND id < wanted.begins || '{' COLLATE "C"
       AND right(id, length(wanted.ends)) = wanted.ends COLLATE "C"
     ORDER BY id LIMIT CASE WHEN wanted.ends = '' THEN 6 END)
) AS found
ORDER BY found.id
