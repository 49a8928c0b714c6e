"""Workers on a PostgreSQL that goes away: nothing is lost or published twice, and all claim again by themselves.

A small number of tasks here; `python -m tests.postgres.outages` does the same with ten thousand.
"""

from __future__ import annotations

from tests.conftest import sampled
from tests.postgres.outages.__main__ import told_of
from tests.postgres.outages.scenarios import APART, SCENARIOS, possible
from tests.processes import tools

TASKS = 200


@sampled("scenario", SCENARIOS, ("killed_server",))
def test_an_outage_costs_nothing(scenario: str) -> None:
    if scenario in APART and not possible():
        tools.lacking("a network of one's own (unshare --user --net, ip, nsenter)")
    told = told_of(scenario, TASKS)
    assert told["wrong"] == []
    assert told["tasks"] >= TASKS
