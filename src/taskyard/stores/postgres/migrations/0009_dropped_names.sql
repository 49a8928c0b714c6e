-- min_client: 1
-- A task that was dropped into a directory keeps the name of its file when it is copied here: a record of its own.
ALTER TABLE taskyard.record
    DROP CONSTRAINT record_sort_check,
    ADD CONSTRAINT record_sort_check CHECK (sort IN ('outcome', 'note', 'stale', 'name')) NOT VALID;
CREATE INDEX record_name ON taskyard.record (project, content) WHERE sort = 'name';
