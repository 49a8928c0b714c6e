"""Two reviewers of one task: what is published is what was accepted."""

from __future__ import annotations

import taskyard
from tests.conftest import taken
from tests.directory.staging import Step, yard_on


def test_what_was_submitted_while_another_work_was_accepted_is_published_as_itself(place: str) -> None:
    with taskyard.open(place, worker="ada") as ada:
        id = ada.add("build", review=True).id
        taken(ada.claim(id, worker="eve")).done("first")

        def submit_again() -> None:
            ada.reject(id, "not yet")
            taken(ada.claim(id, worker="eve")).done("second")

        with yard_on(place, Step("before", "rename", f"/{id}.", submit_again), worker="bob") as bob:
            bob.accept(id)
        task = ada.get(id)
        assert (task.state, task.result) == ("done", "second")
