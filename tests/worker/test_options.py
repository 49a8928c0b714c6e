"""What a run may be asked for, and how it is shared among processes."""

from __future__ import annotations

from typing import Any

import pytest

from taskyard import Invalid
from taskyard.worker.options import Options, Tally


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"concurrency": 1001},
        {"concurrency": 1.5},
        {"concurrency": True},
        {"max_tasks": 0},
        {"max_tasks": "many"},
        {"idle_exit": -1},
        {"idle_exit": float("nan")},
        {"grace": -0.1},
        {"grace": "soon"},
        {"kinds": ["no good"]},
        {"once": True, "max_tasks": 2},
    ],
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        Options(**wrong)


def test_once_is_one_task() -> None:
    assert Options(once=True).max_tasks == 1


def test_processes_share_the_tasks_and_do_one_at_a_time() -> None:
    whole = Options(concurrency=4, processes=True, max_tasks=6, kinds="build", drain=True, grace=3)
    shares = [whole.share(number) for number in range(4)]
    assert [share.max_tasks for share in shares] == [2, 2, 1, 1]
    assert {(share.concurrency, share.processes, share.drain, share.grace) for share in shares} == {
        (1, False, True, 3.0)
    }
    assert all(share.kinds == whole.kinds for share in shares)
    assert [Options(concurrency=3, max_tasks=1).share(number).max_tasks for number in range(3)] == [1, 0, 0]


def test_a_tally_counts_endings() -> None:
    tally = Tally()
    tally.add("done")
    tally.add("done", 2)
    tally.add("error")
    assert (tally["done"], tally["error"], tally["lost"], tally.total) == (3, 1, 0, 4)
    assert tally.as_dict() == {"done": 3, "error": 1}
    assert "done" in repr(tally)
