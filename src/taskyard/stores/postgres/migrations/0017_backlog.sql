-- min_client: 1
-- How many tasks wait for a worker, without a look at them for every add: for those projects whose settings have a bound. The kind '' stands
-- for the whole project.

-- How many tasks were added so far. Several rows, so that no add waits for another's transaction.
CREATE TABLE taskyard.backlog (
    project int NOT NULL,
    kind text COLLATE "C" NOT NULL,
    shard bigint NOT NULL,
    added bigint NOT NULL,
    PRIMARY KEY (project, kind, shard)
) WITH (fillfactor = 50);

-- The last count of open tasks, held ones too, as those may come back: at which sum of `added` it was made, when, and how long it took.
CREATE TABLE taskyard.backlog_count (
    project int NOT NULL,
    kind text COLLATE "C" NOT NULL,
    counted bigint NOT NULL,
    since bigint NOT NULL,
    at bigint NOT NULL,
    cost bigint NOT NULL,
    PRIMARY KEY (project, kind)
) WITH (fillfactor = 50);

-- Take places for new tasks of these kinds. Gives the first kind that has too few, and how many tasks it has; nothing if all fit. A count
-- is carried on for a minute by what was added, and a costly one is not repeated within thirty times as long. In a transaction that others
-- may have to wait for (`brief` is false) the count is not kept.
CREATE FUNCTION taskyard.take_places(yard int, kinds text[], numbers bigint[], mosts bigint[], brief boolean, OUT kind text, OUT number bigint)
RETURNS SETOF record LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    last taskyard.backlog_count;
    began bigint;
    total bigint;
    open bigint;
    held bigint;
    place tid;
BEGIN
    FOR i IN 1 .. cardinality(kinds) LOOP
        SELECT * INTO last FROM taskyard.backlog_count WHERE project = yard AND backlog_count.kind = kinds[i];
        SELECT coalesce(sum(added), 0) INTO total FROM taskyard.backlog WHERE project = yard AND backlog.kind = kinds[i];
        began := taskyard.now();
        CONTINUE WHEN began - last.at BETWEEN 0 AND 59999 AND last.counted + total - last.since + numbers[i] <= mosts[i];
        IF last.cost >= 50 AND began - last.at BETWEEN 0 AND 30 * last.cost - 1 THEN
            kind := kinds[i];
            number := last.counted + total - last.since;
            IF number + numbers[i] > mosts[i] THEN
                RETURN NEXT;
                RETURN;
            END IF;
        END IF;
        -- One statement sees one moment: what was added by then is in both numbers, or in neither.
        SELECT (SELECT coalesce(sum(added), 0) FROM taskyard.backlog WHERE project = yard AND backlog.kind = kinds[i]),
               count(*) FILTER (WHERE state <> 'processing'), count(*) FILTER (WHERE state = 'processing')
        INTO total, open, held
        FROM taskyard.task WHERE project = yard AND (kinds[i] = '' OR task.kind = kinds[i]);
        IF brief THEN
            INSERT INTO taskyard.backlog_count (project, kind, counted, since, at, cost)
            VALUES (yard, kinds[i], open + held, total, began, taskyard.now() - began)
            ON CONFLICT ON CONSTRAINT backlog_count_pkey DO UPDATE
            SET counted = excluded.counted, since = excluded.since, at = excluded.at, cost = excluded.cost;
        END IF;
        IF open + numbers[i] > mosts[i] THEN
            kind := kinds[i];
            number := open;
            RETURN NEXT;
            RETURN;
        END IF;
    END LOOP;
    FOR i IN 1 .. cardinality(kinds) LOOP
        SELECT ctid INTO place FROM taskyard.backlog WHERE project = yard AND backlog.kind = kinds[i] LIMIT 1 FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            UPDATE taskyard.backlog SET added = added + numbers[i] WHERE ctid = place;
        ELSE
            INSERT INTO taskyard.backlog (project, kind, shard, added) VALUES (yard, kinds[i], floor(random() * 1e15), numbers[i]);
        END IF;
    END LOOP;
END $$;

DO $$
DECLARE
    crew text;
    name text;
    text text := pg_get_functiondef('taskyard.give_project(text, name)'::regprocedure);
BEGIN
    FOREACH name IN ARRAY ARRAY['backlog', 'backlog_count'] LOOP
        EXECUTE format('ALTER TABLE taskyard.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY own ON taskyard.%I USING (EXISTS (SELECT FROM taskyard.project AS yard WHERE yard.id = %I.project OFFSET 0))',
            name, name);
    END LOOP;
    -- Whoever may write tasks.
    FOR crew IN
        SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
        FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = 'taskyard.task'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON taskyard.backlog, taskyard.backlog_count TO %s', crew);
    END LOOP;
    IF position('taskyard.used,' IN text) = 0 THEN
        RAISE EXCEPTION 'taskyard.give_project is not as it was made';
    END IF;
    EXECUTE replace(text, 'taskyard.used,', 'taskyard.used, taskyard.backlog, taskyard.backlog_count,');
END $$;
