"""A team with two projects, and a project beside it, as the tests of teams use them: near, and through a gateway."""

from __future__ import annotations

import itertools
import os

import psycopg

import taskyard
from tests.servers import postgres
from tests.servers.gateway import Running

_serial = itertools.count(1)


class Crew:
    """A new team. `site` and `shop` are its own, `other` is nobody's."""

    def __init__(self, through_gateway: bool = False, database: str = postgres.DATABASE) -> None:
        self.name = f"team-{os.getpid()}-{next(_serial)}"
        self.urls = {name: postgres.url_in(database) for name in ("site", "shop", "other")}
        self.near = {name: taskyard.init(url, worker=name) for name, url in self.urls.items()}
        self.running = Running(dict(self.near)) if through_gateway else None
        if self.running is not None:
            self.urls = {name: f"http://127.0.0.1:{self.running.port}/{name}" for name in self.urls}
        yards = {name: taskyard.open(url, worker="ada") for name, url in self.urls.items()}
        self._yards = yards
        self.site, self.shop, self.other = yards["site"], yards["shop"], yards["other"]
        self.site.new_team(self.name)
        for name in ("site", "shop"):
            self.site.give_team(self.name, self.project(name))

    def project(self, name: str) -> str:
        """The name of one of the projects in the database."""
        return self.near[name].url.rpartition("project=")[2]

    def set(self, **quotas: int | None) -> None:
        """Change the quotas, for all of the open yards at once."""
        self.site.set_team(self.name, quotas)
        for yard in (*self.near.values(), *self._yards.values()):
            yard.tend()
            if hasattr(yard, "_store"):
                yard._store.upkeep.turn(0.0)

    def counted_at(self) -> int | None:
        """When an add that found too few places last counted the tasks of the team."""
        with psycopg.connect(self.near["site"].url.partition("&project=")[0], autocommit=True) as sql:
            row = sql.execute(
                "SELECT at FROM taskyard.team_count JOIN taskyard.team ON team.id = team_count.team WHERE name = %s",
                (self.name,),
            ).fetchone()
        return None if row is None else int(row[0])

    def close(self) -> None:
        for yard in self._yards.values():
            yard.close()
        if self.running is not None:
            self.running.stop()
        for yard in self.near.values():
            yard.close()
