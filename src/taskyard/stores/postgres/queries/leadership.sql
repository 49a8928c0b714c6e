-- Which orchestrator leads a project. The row stays when its leader resigns, so that terms only rise.

-- name: lead
-- After a clock that was ahead is set right, a leader that lives has renewed since.
WITH taken AS (
    INSERT INTO taskyard.leader AS held (project, worker, incarnation, renewed_at, term)
    VALUES (%(project)s, %(worker)s, %(incarnation)s, taskyard.now(), 1)
    ON CONFLICT (project) DO UPDATE
    SET worker = EXCLUDED.worker, incarnation = EXCLUDED.incarnation, renewed_at = EXCLUDED.renewed_at,
        term = held.term + (held.incarnation <> EXCLUDED.incarnation)::int
    WHERE held.incarnation = EXCLUDED.incarnation OR abs(taskyard.now() - held.renewed_at) > %(lease)s
    RETURNING held.worker, held.term
)
SELECT worker, term, true FROM taken
UNION ALL
SELECT worker, term, false FROM taskyard.leader WHERE project = %(project)s AND NOT EXISTS (SELECT FROM taken)

-- name: resign
UPDATE taskyard.leader SET renewed_at = 0 
WHERE project = %(project)s AND incarnation = %(incarnation)s AND renewed_at > 0 RETURNING term
