"""What an editor knows: options are typed, a misspelt one is an error, and a claim in a `with` block is clean."""

from __future__ import annotations

import pytest
from mypy import api

import taskyard

STRICT = ["--config-file", "", "--strict", "--no-error-summary", "-c"]
CLEAN = """
import taskyard

with taskyard.init("memory:typing", worker="ada") as yard:
    yard.add("build", {"n": 1}, title="Docs", priority=0, after=["0-kf12"], uses="printer", delay="10m")
    yard.add_many([{"kind": "build", "data": 1, "lease": 60}])
    yard.edit("0-kf12", title=None, priority=3)
    with yard.claimed(kinds="build", wait=1) as claim:
        if claim is not None:
            claim.heartbeat(progress=0.5)
            print(claim.task.data, claim.fence)
    worker = taskyard.Worker(yard)
    worker.run(drain=True, concurrency=2)
    print(yard.show("0-kf12").history, yard.list(state="open").next, yard.log().cursor)
"""
WRONG = {
    'yard.add("build", titel="Docs")': "titel",
    'yard.add("build", priority="high")': "priority",
    'yard.add_many([{"kind": "build"}]).craeted': "craeted",
    'yard.edit("0-kf12", kinds="x")': "kinds",
    "taskyard.Worker(yard).run(dain=True)": "dain",
    "yard.claim(kind=1)": "kind",
}


def test_a_clean_program_is_clean_under_strict_types() -> None:
    told, trouble, code = api.run([*STRICT, CLEAN])
    assert (told, trouble, code) == ("", "", 0)


def test_a_misspelt_option_is_a_type_error() -> None:
    lines = ["import taskyard", 'yard = taskyard.open("memory:typing")', *WRONG]
    told, _, code = api.run([*STRICT, "\n".join(lines)])
    assert code == 1
    for number, word in enumerate(WRONG.values(), 3):
        assert any(f"<string>:{number}:" in line and word in line for line in told.splitlines()), (number, told)


def test_a_misspelt_option_is_invalid_at_run_time() -> None:
    with taskyard.init("memory:misspelt") as yard:
        with pytest.raises(taskyard.Invalid, match="titel"):
            yard.add("build", titel="Docs")  # type: ignore[call-arg]
        worker = taskyard.Worker(yard)
        worker.handles("build")(lambda job: None)
        with pytest.raises(taskyard.Invalid, match="dain"):
            worker.run(dain=True)  # type: ignore[call-arg]


def test_the_package_shows_its_public_names_alone() -> None:
    assert sorted(dir(taskyard)) == sorted([*taskyard.__all__, "__version__"])


def test_a_block_on_a_claim_runs_where_nothing_is_ready_and_ends_the_task_where_something_is() -> None:
    with taskyard.init("memory:block", worker="ada") as yard:
        with yard.claimed() as claim:
            assert claim is None
        task = yard.add("build")
        with yard.claimed() as claim:
            assert claim is not None
            assert claim.task.id == task.id
        assert yard.get(task.id).state == "done"
        task = yard.add("build", max_attempts=1)
        with pytest.raises(ValueError, match="broken"), yard.claimed():
            raise ValueError("broken")
        assert yard.get(task.id).state == "failed"
