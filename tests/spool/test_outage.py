"""PostgreSQL is stopped under load, with workers finishing and producers adding: all of it is replayed, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.spool import outage
from tests.conftest import sized

if TYPE_CHECKING:
    from pathlib import Path


@sized("seconds", 8, 30)
def test_an_outage_under_load_loses_and_doubles_nothing(tmp_path: Path, seconds: int) -> None:
    told = outage(str(tmp_path), seconds)
    assert told["spooled_adds"] > 0, "nobody has added: nothing was tried"
    assert told["spooled_endings"] > 0, "nobody has finished: nothing was tried"
    assert (told["lost"], told["doubled"], told["stale"], told["refused"]) == (0, 0, 0, 0), told
