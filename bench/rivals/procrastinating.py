"""procrastinate: its own worker, one job at a time, until nothing is left."""

from __future__ import annotations

import asyncio

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

from bench.rivals.load import DATA, Tally


def fill(dsn: str, count: int) -> None:
    app = App(connector=SyncPsycopgConnector(conninfo=dsn))
    with app.open():
        app.schema_manager.apply_schema()
        task = app.configure_task("noop")
        for start in range(0, count, 1000):
            task.batch_defer(*[{"data": DATA}] * min(1000, count - start))


def drain(dsn: str, tally: Tally) -> None:
    app = App(connector=PsycopgConnector(conninfo=dsn))

    @app.task(name="noop")
    async def noop(data: object) -> None:
        tally.count()

    async def work() -> None:
        async with app.open_async():
            await app.run_worker_async(wait=False, listen_notify=False, install_signal_handlers=False)

    asyncio.run(work())
