-- Violated rules. One statement sees one moment, so no move in progress is taken for damage.

-- name: audit
SELECT 'two_states' AS code, task.id, 'it is ' || task.state || ' and has ended as ' || ended.state AS what
FROM taskyard.task JOIN taskyard.ended ON ended.project = task.project AND ended.age = task.age AND ended.id = task.id
WHERE task.project = %(project)s
UNION ALL
SELECT 'body_missing', task.id, 'nothing says what it asks for'
FROM taskyard.task
WHERE task.project = %(project)s
  AND NOT EXISTS (SELECT FROM taskyard.body WHERE body.project = task.project AND body.id = task.id)
UNION ALL
SELECT 'orphan', body.id, 'something is kept of a task that is not open'
FROM taskyard.body
WHERE body.project = %(project)s AND NOT EXISTS (
    SELECT FROM taskyard.task WHERE task.project = body.project AND task.age = substr(body.id, 5) AND task.id = body.id)
UNION ALL
SELECT 'claim_illegal', id, 'it is ' || state || ', and its claim is ' || coalesce(nonce, 'nobody''s')
FROM taskyard.task
WHERE project = %(project)s
  AND (state = 'processing') <> (nonce IS NOT NULL AND worker IS NOT NULL AND lease IS NOT NULL AND lease_ends IS NOT NULL)
UNION ALL
SELECT 'state_illegal', id, 'it is open, and its state is ' || state
FROM taskyard.task WHERE project = %(project)s AND state IN ('done', 'failed', 'cancelled')
UNION ALL
SELECT 'state_illegal', id, 'it has ended, and its state is ' || state
FROM taskyard.ended WHERE project = %(project)s AND state NOT IN ('done', 'failed', 'cancelled')
UNION ALL
SELECT 'due_missing', id, 'it waits for no moment'
FROM taskyard.task WHERE project = %(project)s AND state = 'waiting' AND due IS NULL
UNION ALL
SELECT 'need_met', id, 'it is blocked by nothing'
FROM taskyard.task
WHERE project = %(project)s AND state = 'blocked'
  AND NOT EXISTS (SELECT FROM taskyard.need WHERE need.project = task.project AND need.id = task.id)
UNION ALL
SELECT 'need_open', task.id, 'it is ' || task.state || ', and it needs ' || need.other
FROM taskyard.need JOIN taskyard.task ON task.project = need.project AND task.age = substr(need.id, 5) AND task.id = need.id
WHERE need.project = %(project)s AND task.state <> 'blocked'
UNION ALL
SELECT 'need_met', need.id, 'it needs ' || need.other || ', which is done'
FROM taskyard.need JOIN taskyard.ended ON ended.project = need.project AND ended.age = substr(need.other, 5) AND ended.id = need.other
WHERE need.project = %(project)s AND ended.state = 'done'
UNION ALL
SELECT 'need_met', need.id, 'it needs ' || need.other || ', which is ' || ended.state || ', and goes on or is cancelled then'
FROM taskyard.need
JOIN taskyard.ended ON ended.project = need.project AND ended.age = substr(need.other, 5) AND ended.id = need.other
JOIN taskyard.task ON task.project = need.project AND task.age = substr(need.id, 5) AND task.id = need.id
WHERE need.project = %(project)s AND need.on_failure <> 'block' AND ended.state <> 'done' AND task.state = 'blocked'
UNION ALL
SELECT 'need_unheard', need.id, 'it needs ' || need.other || ', whose end would not reach it'
FROM taskyard.need JOIN taskyard.task ON task.project = need.project AND task.age = substr(need.other, 5) AND task.id = need.other
WHERE need.project = %(project)s AND NOT task.followed
UNION ALL
SELECT 'relation_unseen', body.id, 'where it comes from is known, and not looked up'
FROM taskyard.body JOIN taskyard.relation ON relation.project = body.project AND relation.id = body.id
WHERE body.project = %(project)s AND body.after IS NULL
UNION ALL
SELECT 'need_lost', need.id, 'it needs ' || need.other || ', which is nowhere'
FROM taskyard.need
WHERE need.project = %(project)s
  AND NOT EXISTS (SELECT FROM taskyard.task WHERE task.project = need.project AND task.age = substr(need.other, 5) AND task.id = need.other)
  AND NOT EXISTS (SELECT FROM taskyard.ended WHERE ended.project = need.project AND ended.age = substr(need.other, 5) AND ended.id = need.other)
UNION ALL
SELECT 'key_without_task', key.id, 'the key ' || key.key || ' is that of a task that is nowhere'
FROM taskyard.key
WHERE key.project = %(project)s
  AND NOT EXISTS (SELECT FROM taskyard.task WHERE task.project = key.project AND task.age = substr(key.id, 5) AND task.id = key.id)
  AND NOT EXISTS (SELECT FROM taskyard.ended WHERE ended.project = key.project AND ended.age = substr(key.id, 5) AND ended.id = key.id)
UNION ALL
SELECT 'key_missing', keyed.id, 'its key ' || keyed.key || ' does not lead to it'
FROM (
    SELECT id, key FROM taskyard.body WHERE project = %(project)s AND key IS NOT NULL
    UNION ALL
    SELECT id, key FROM taskyard.ended WHERE project = %(project)s AND key IS NOT NULL
) AS keyed
WHERE NOT EXISTS (SELECT FROM taskyard.key WHERE key.project = %(project)s AND key.key = keyed.key AND key.id = keyed.id)
UNION ALL
SELECT 'use_without_claim', NULL, used.resource || ' is held for a task that nobody works on'
FROM taskyard.used
WHERE used.project = %(project)s AND NOT EXISTS (
    SELECT FROM taskyard.task
    WHERE task.project = used.project AND task.age = used.age AND task.state = 'processing' AND used.resource = ANY (task.uses))
UNION ALL
SELECT 'use_missing', task.id, 'it works with ' || resource || ', which others could take'
FROM taskyard.task, unnest(task.uses) AS resource
WHERE task.project = %(project)s AND task.state = 'processing' AND NOT EXISTS (
    SELECT FROM taskyard.used WHERE used.project = task.project AND used.resource = resource AND used.age = task.age)
UNION ALL
SELECT 'unlogged_ending', ended.id, 'it is ' || ended.state || ', and the log knows nothing of that'
FROM taskyard.ended
WHERE ended.project = %(project)s
  AND ended.ended_at > (SELECT min(at) FROM taskyard.event WHERE event.project = %(project)s)
  AND NOT EXISTS (
    SELECT FROM taskyard.event
    WHERE event.project = ended.project AND event.task = ended.id AND event.fence = ended.fence
      AND event.event IN ('done', 'failed', 'cancelled', 'reaped'))
UNION ALL
SELECT 'state_behind', latest.task, 'the log knows of fence ' || latest.fence || ', and it stands at ' || stands.fence
FROM (
    SELECT id, fence FROM taskyard.task WHERE project = %(project)s
    UNION ALL
    SELECT id, fence FROM taskyard.ended WHERE project = %(project)s
) AS stands
JOIN (
    SELECT task, max(fence) AS fence FROM taskyard.event
    WHERE project = %(project)s AND event NOT IN ('refused', 'noted') GROUP BY task
) AS latest ON latest.task = stands.id
WHERE latest.fence > stands.fence

-- Tasks come after older ones, unless an edit or a hand said otherwise: every cycle has a step to a younger one.
-- name: ahead
WITH RECURSIVE ahead AS (
    SELECT id, other FROM taskyard.need WHERE project = %(project)s AND substr(other, 5) >= substr(id, 5)
    UNION
    SELECT need.id, need.other FROM ahead JOIN taskyard.need ON need.project = %(project)s AND need.id = ahead.other
)
SELECT id, other FROM ahead ORDER BY id, other

-- name: count
SELECT (SELECT count(*) FROM taskyard.task WHERE project = %(project)s) + (SELECT count(*) FROM taskyard.ended WHERE project = %(project)s),
       (SELECT count(*) FROM taskyard.event WHERE project = %(project)s)
