"""Workers that wait for hints of a Valkey server that is hurt every second: the history is legal, and all is done."""

from __future__ import annotations

from tests.conftest import sampled, sized
from tests.valkey import faults


# With 10,000 tasks each ('python -m tests.valkey.faults') they take a sixth of the time of all proofs.
@sized("tasks", 120, 2_000)
@sampled("fault", faults.FAULTS, ("frozen",))
def test_whatever_happens_to_valkey_nothing_is_lost_or_done_twice(fault: str, tasks: int) -> None:
    told = faults.run(fault, tasks, 4.0 if tasks < 1000 else 6.0)
    assert told["wrong"] == []
    assert told["tasks"] == tasks
