"""What a task wants to be looked at for stands in its name, whichever way it came and wherever it goes."""

from __future__ import annotations

from pathlib import Path

import taskyard
from tests.conftest import taken
from tests.directory.stories import check_places


def test_a_task_that_asks_for_a_check_says_so_in_its_name(tmp_path: Path) -> None:
    place = str(tmp_path / "yard")
    with taskyard.init(place, worker="ada") as yard:
        plain = yard.add("build").id
        yard.checks["tests"] = ["true"]
        asks = yard.add("build", verify="tests", lease=60, max_attempts=5).id
        both = yard.add("build", verify="tests", uses=["db"], delay=3600).id
        uses = yard.add("build", uses=["db"]).id
        blocked = yard.add("build", verify="tests", after=[asks]).id
        Path(place, "todo", "order.json").write_text('{"verify": "tests"}')
        yard.sweep()
        (dropped,) = set(check_places(place)) - {plain, asks, both, uses, blocked}

        def marks() -> dict[str, tuple[bool, bool]]:
            return {id: (token.uses, token.verified) for id, (_, token) in check_places(place).items()}

        told = {plain: (False, False), asks: (False, True), both: (True, True), uses: (True, False)}
        told |= {blocked: (False, True), dropped: (False, True)}
        assert marks() == told
        yard.edit(both, title="another")
        taken(yard.claim(asks)).fail("no")
        taken(yard.claim(dropped)).release()
        yard.retry(yard.cancel(blocked).id)
        assert marks() == told
        assert yard.get(dropped).verify == "tests"
        taken(yard.claim(dropped)).done()
        assert marks() == told
