"""A task that asks for a check is done by a shell only if the yard has that check, and it passes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import taken
from tests.directory.stories import check_log
from tests.processes import tools

if TYPE_CHECKING:
    from tests.sh.shells import Shell

ODD = 'it\'s "é" \\ $HOME `x`\n*\t漢'
IS_THREE = ["sh", "-c", 'read -r task; case $task in *\'"result": 3}\') ;; *) echo "no three" >&2; exit 4;; esac']


def checks(place: str, **commands: Any) -> None:
    tools.settle(place, backoff=0.01, checks=commands)


def test_a_check_that_the_yard_does_not_know_keeps_a_task_for_others(sh: Shell, place: str) -> None:
    for known in ({}, {"other": ["true"]}):
        checks(place, **known)
        with taskyard.open(place, worker="ada") as yard:
            asks = yard.add("build", title='with "verify":"x"', verify="tests", max_attempts=1)
            asks_not = yard.add("build", {"verify": "no"}, title=',"verify":"x"')
            handle, _ = sh.claim()
            assert handle.startswith(asks_not.id)
            assert sh.run("complete_task", handle).line == ""
            assert sh.run("claim_task").code == 3
            assert sh.run("process_loop", "--once", "true").code == 3
            drained = sh.run("process_loop", "--kind", "build", "--drain", "true")
            assert drained.code == 0
            assert "1 tasks that use something, have a deadline, or ask for a check" in drained.err
            task = yard.get(asks.id)
            assert (task.state, task.attempts, task.fence) == ("todo", 0, 0)
            taken(yard.claim(asks.id)).done(verified=True)
            check_log(yard)


def test_the_loop_is_done_with_what_passes_and_fails_what_does_not(sh: Shell, place: str) -> None:
    checks(place, three=IS_THREE)
    tools.settle(place, backoff=1.5)  # the loop has to wait for it
    with taskyard.open(place, worker="ada") as yard:
        good, bad = yard.add("build", 3, verify="three"), yard.add("build", 4, verify="three", max_attempts=2)
        script = 'read -r task; echo "${task##*:}" | tr -d "}" >"$TASKYARD_WORKDIR/result.json"'
        assert sh.run("process_loop", "--drain", "sh", "-c", script).code == 1
        assert (yard.get(good.id).state, yard.get(good.id).result) == ("done", 3)
        failed = yard.get(bad.id)
        assert (failed.state, failed.attempts) == ("failed", 2)
        assert failed.error == "the check 'three' did not pass: exit 4: no three"
        check_log(yard)


def test_a_done_by_hand_is_checked_and_the_task_stays_ones_own(sh: Shell, place: str, tmp_path: Path) -> None:
    checks(place, three=IS_THREE)
    result = tmp_path / "result.json"
    with taskyard.open(place, worker="ada") as yard:
        task = yard.add("build", verify="three")
        handle, _ = sh.claim()
        result.write_text("4")
        for words in ([], [str(result)]):
            refused = sh.run("complete_task", handle, *words)
            assert refused.code == 7
            assert "the check 'three' did not pass: exit 4: no three" in refused.err
        assert sh.run("verify_ownership", handle).code == 0
        result.write_text("3")
        assert sh.run("complete_task", handle, str(result)).line == ""
        assert yard.get(task.id).result == 3
        assert sh.run("complete_task", handle, str(result)).line == "", "said again it is not checked again"


def test_a_worker_hands_its_own_check_to_the_command_that_says_done(sh: Shell, place: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        task = yard.add("build", verify="own")
        claim = taken(yard.claim())
        env = {"TASKYARD_CLAIM": claim.handle}
        assert sh.run("complete_task", env=env).code == 7
        assert sh.run("complete_task", env={**env, "TASKYARD_CHECK": '["sh", "-c", "exit 1"]'}).code == 7
        assert sh.run("complete_task", env={**env, "TASKYARD_CHECK": '["true"]'}).code == 0
        assert yard.get(task.id).state == "done"


def test_names_and_words_of_any_sort_come_through(sh: Shell, place: str, tmp_path: Path) -> None:
    said = tmp_path / "said"
    name = 'é "q" \\ it\'s/漢'
    checks(place, **{name: ["sh", "-c", 'printf %s "$1" >"$2"', "sh", ODD, str(said)]})
    with taskyard.open(place, worker="ada") as yard:
        Path(place, "todo", "order.json").write_text(json.dumps({"n": [1, {"verify": "no"}], "verify": name}))
        yard.sweep()
        yard.edit(yard.add("build", "before", verify=name).id, data="after")
        for _ in range(2):
            said.unlink(missing_ok=True)
            assert sh.run("complete_task", sh.claim()[0]).line == ""
            assert said.read_text(encoding="utf-8") == ODD
        assert yard.counts()["done"] == 2


def test_a_check_that_asks_too_long_beats_all_the_while(sh: Shell, place: str) -> None:
    checks(place, slow=["sleep", "2.5"])
    with taskyard.open(place, worker="ada") as yard:
        task = yard.add("build", verify="slow", lease=1)
        assert sh.run("process_loop", "--once", "true").code == 0
        assert (yard.get(task.id).state, yard.get(task.id).fence) == ("done", 1)


@pytest.mark.parametrize("case", ["another user's", "the group's"])
def test_commands_that_another_may_have_written_are_never_run(sh: Shell, place: str, tmp_path: Path, case: str) -> None:
    ran, file = tmp_path / "ran", Path(place, "yard.json")
    tools.settle(place, checks={"ok": ["touch", str(ran)]}, shared="group")
    with taskyard.open(place, worker="ada") as yard:
        first, second = yard.add("build", verify="ok"), yard.add("build", verify="ok")
        handle, _ = sh.claim()
        if case == "another user's":
            if os.geteuid() != 0:
                pytest.skip("only root can give a file away")
            os.chown(file, 4711, -1)
        else:
            file.chmod(0o664)
        assert sh.run("claim_task").code == 3
        assert sh.run("complete_task", handle).code == 7
        assert not ran.exists()
        assert (yard.get(first.id).state, yard.get(second.id).state) == ("processing", "todo")
        if case == "the group's":
            file.chmod(0o644)
            assert sh.run("complete_task", handle).line == ""
            assert ran.exists()
