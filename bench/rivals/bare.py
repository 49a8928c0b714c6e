"""The least that a queue on PostgreSQL can do: one guarded row, SKIP LOCKED, two commits for a task. No log, no history."""

from __future__ import annotations

import psycopg

from bench.rivals.load import PAYLOAD, Tally

TABLE = """
    CREATE TABLE bare (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        priority smallint NOT NULL DEFAULT 5,
        state smallint NOT NULL DEFAULT 0,
        fence integer NOT NULL DEFAULT 0,
        payload jsonb NOT NULL
    ) WITH (fillfactor = 70);
    CREATE INDEX bare_ready ON bare (priority, id) WHERE state = 0;
"""
CLAIM = """
    WITH chosen AS MATERIALIZED (
        SELECT id FROM bare WHERE state = 0 ORDER BY priority, id LIMIT %s FOR UPDATE SKIP LOCKED
    )
    UPDATE bare SET state = 1, fence = fence + 1 FROM chosen WHERE bare.id = chosen.id
    RETURNING bare.id, bare.fence, bare.payload
"""
DONE = """
    UPDATE bare SET state = 2
    FROM unnest(%s::bigint[], %s::integer[]) AS ended (id, fence)
    WHERE bare.id = ended.id AND bare.fence = ended.fence AND bare.state = 1
"""


def fill(dsn: str, count: int) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(TABLE)
        with connection.cursor().copy("COPY bare (payload) FROM STDIN") as copy:
            for _ in range(count):
                copy.write_row((PAYLOAD,))


def drain(dsn: str, tally: Tally, batch: int = 1) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        while claims := connection.execute(CLAIM, (batch,)).fetchall():
            connection.execute(DONE, ([id for id, _, _ in claims], [fence for _, fence, _ in claims]))
            tally.count(len(claims))
