"""pgqueuer: its own worker with psycopg, in its usual batches of ten, until nothing is left."""

from __future__ import annotations

import asyncio

import psycopg
from pgqueuer import PgQueuer
from pgqueuer.db import PsycopgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from bench.rivals.load import PAYLOAD, Tally


def fill(dsn: str, count: int) -> None:
    async def work() -> None:
        connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
        queries = Queries(PsycopgDriver(connection))
        await queries.install()
        for start in range(0, count, 1000):
            size = min(1000, count - start)
            await queries.enqueue(["noop"] * size, [PAYLOAD.encode()] * size, [5] * size)
        await connection.close()

    asyncio.run(work())


def drain(dsn: str, tally: Tally) -> None:
    async def work() -> None:
        connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
        queuer = PgQueuer(PsycopgDriver(connection))

        @queuer.entrypoint("noop")
        async def noop(job: Job) -> None:
            tally.count()

        await queuer.run(mode=QueueExecutionMode.drain)

    asyncio.run(work())
