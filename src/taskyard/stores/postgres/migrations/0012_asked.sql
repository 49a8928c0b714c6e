-- min_client: 1
-- Which kinds claims ask for, and when, so that `why` can name kinds that no worker serves. The kind '' stands for any.
CREATE TABLE taskyard.asked (
    project int NOT NULL,
    kind text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (project, kind)
);
ALTER TABLE taskyard.asked ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON taskyard.asked USING (EXISTS (SELECT FROM taskyard.project AS yard WHERE yard.id = asked.project OFFSET 0));
-- Whoever reaches the schema: the policy gives each role its own projects' rows and no others.
GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.asked TO PUBLIC;

-- Note that a claim asks for these kinds. It writes once a minute and waits for no disk: a note that a crash takes is no loss.
-- Kinds that nobody has tasks of must not fill the table.
CREATE FUNCTION taskyard.note_asked(yard int, kinds text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO taskyard.asked (project, kind, at)
    SELECT yard, wanted.kind, taskyard.now() FROM unnest(kinds) AS wanted (kind)
    WHERE NOT EXISTS (
            SELECT FROM taskyard.asked
            WHERE asked.project = yard AND asked.kind = wanted.kind AND asked.at BETWEEN taskyard.now() - 60000 AND taskyard.now())
      AND ((SELECT count(*) FROM taskyard.asked WHERE asked.project = yard) < 1000
           OR EXISTS (SELECT FROM taskyard.asked WHERE asked.project = yard AND asked.kind = wanted.kind))
    ORDER BY wanted.kind
    ON CONFLICT (project, kind) DO UPDATE SET at = excluded.at;
END $$;
