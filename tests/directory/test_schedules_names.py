"""The eleventh schedule that breaks the obvious version: the longest names."""

from __future__ import annotations

import os

import pytest

import taskyard
from taskyard.stores.directory import names
from tests.conftest import taken, wait_until
from tests.directory.staging import yard_on
from tests.directory.stories import check_log
from tests.processes import tools

WIDE = "ü" * 10  # 60 bytes in a name
KIND = "é:" + "ß" * 8 + "a_b"  # colons count three


def test_11_the_longest_names_go_through_every_state_and_come_back(url: str) -> None:
    longest = 0

    def measure() -> None:
        nonlocal longest
        for _, folders, files in os.walk(url):
            longest = max([longest, *(len(os.fsencode(name)) for name in (*folders, *files))])

    assert len(names.Lane.of(5, KIND, WIDE).text) == 2 + 60 + 1 + 60
    for assignee, worker in ((WIDE, WIDE), (None, WIDE)):
        with yard_on(url, worker=worker) as yard:
            id = yard.add(KIND, {"ü": 1}, assignee=assignee, delay=3600, max_attempts=999, lease=30 * 86400).id
            measure()
            yard.edit(id, title="ü" * 500, delay=0)
            measure()
            for _ in range(12):
                taken(yard.claim(lease=30 * 86400)).release()
            claim = taken(yard.claim())
            claim.note("ü")
            claim.heartbeat(progress=0.5)
            assert claim.workdir is not None
            measure()
            task = yard.get(id)
            assert (task.kind, task.assignee, task.worker, task.state) == (KIND, assignee, worker, "processing")
            claim.fail("why")
            measure()
            assert (task := yard.get(id)).state == "waiting"
            assert (task.kind, task.assignee, task.attempts) == (KIND, assignee, 1)
            yard.retry(id)
            taken(yard.claim()).fail("why", retry=False)
            measure()
            assert yard.get(id).state == "failed"
            yard.retry(id)
            yard.cancel(id)
            measure()
            assert yard.get(id).state == "cancelled"
            yard.retry(id)
            last = taken(yard.claim())
            assert last.task.data == {"ü": 1}
            last.done("ü")
            with pytest.raises(taskyard.ClaimLost):
                claim.done("late")
            measure()
            assert len(last.handle) <= 160
            task = yard.get(id)
            assert (task.state, task.kind, task.worker, task.result) == ("done", KIND, worker, "ü")
            yard.sweep()
            check_log(yard)
    assert 150 < longest < 255


@pytest.mark.parametrize(
    "name", ["n" * 250, "ü" * 125, '"quoted"', "new\nline", "back\\slash", "\udcff\udcfe", "-x", "a b", "~"]
)
def test_11_a_dropped_file_of_any_name_is_set_aside_and_told(url: str, name: str) -> None:  # fmt: skip
    tools.settle(url, settle=0)
    path = os.fsencode(f"{url}/todo/") + name.encode("utf-8", "surrogateescape") + b".json"
    with open(path, "wb") as file:
        file.write(b"[]")
    with yard_on(url) as yard:
        wait_until(lambda: (yard.sweep(), yard.set_aside())[1])
        [aside] = yard.set_aside()
        assert (aside["reason"] or "").startswith("a task must be a JSON object, and this is a list: import its tasks")
        assert [event["event"] for event in yard.events()] == ["set_aside"]
        assert os.listdir(f"{url}/todo") == []
