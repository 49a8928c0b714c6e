"""`taskyard torture`: real faults, a verdict that can be bad, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import opening
from taskyard.stores import run_lock
from taskyard.stores.directory.filesystem import safety
from tests.conftest import sampled, wait_until
from tests.processes import tools
from tests.processes.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

# Imported by every Python that is started with this file's folder in PYTHONPATH, before anything else.
SABOTAGE = """
import os, random, shutil, time

def rename_by_copy():
    from taskyard.stores.directory.filesystem.disk import Disk
    def rename(path, target):
        shutil.copyfile(path, target)
        time.sleep(0.01)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
    Disk.rename = staticmethod(rename)

def endings_by_id():
    from taskyard.core.task import State
    from taskyard.yard.claim_verbs import ClaimVerbs, handle_of
    def settle(yard, claim, verb, decide, *more):
        standing = yard._store.stand(handle_of(claim).id)
        if standing.state is State.PROCESSING:
            yard._store.shift([(standing, decide(standing))], yard.worker)
    ClaimVerbs._settle = settle

def forgetful_adds():
    from taskyard.stores.directory.store import DirectoryStore
    add = DirectoryStore.add
    def forgetful(self, drafts, by):
        tasks = add(self, drafts, by)
        if random.random() < 0.2:
            for folder, _, names in os.walk(f"{self.url}/todo"):
                for name in names:
                    if name.startswith(tasks[0].id):
                        os.unlink(f"{folder}/{name}")
        return tasks
    DirectoryStore.add = forgetful

def fences_from_nought():
    from taskyard.core import moves
    back = moves._back
    def forgotten(*args):
        move = back(*args)
        move.fence = 0
        return move
    moves._back = forgotten

def wrong_clocks():
    from taskyard.proof.torture import process
    process.faketime = lambda: os.environ["LIBRARY"]

globals()[os.environ["SABOTAGE"]]()
"""


def torture(*argv: str, cwd: Path, **env: str) -> tools.Answer:
    return tools.taskyard(None, "torture", *argv, cwd=cwd, env=env)


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.rglob("*")}


def processes(place: Path) -> list[int]:
    """Everybody who was started at this place."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/cwd") == str(place):
                found.append(int(name))
        except OSError:
            continue
    return found


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A torture that would go on for long."""
    argv = [*tools.COMMAND, "torture", "--workers", "3", "--seconds", "100", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(argv, cwd=tmp_path, env=tools.environment(), text=True, **pipes)  # type: ignore[call-overload]
    wait_until(lambda: len(list(tmp_path.glob(".taskyard-torture-*/history/*"))) > 3)
    yield process
    process.kill()
    process.communicate()


def test_a_short_torture_is_survived_and_leaves_nothing(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    taskyard.init(tmp_path / "yard", durability="fast").close()
    before = snapshot(tmp_path)
    library, folder = tools.libfaketime(), tmp_path_factory.mktemp("clocks")
    (folder / "sitecustomize.py").write_text(SABOTAGE)
    clocks = {"PYTHONPATH": str(folder), "SABOTAGE": "wrong_clocks", "LIBRARY": library} if library else {}
    told = torture("--workers", "6", "--seconds", "8", "--yard", "yard", cwd=tmp_path, **clocks).data
    assert told["skewed_clocks"] != 0
    assert (told["legal"], told["violations"], told["lost"], told["published_twice"]) == (True, [], 0, 0)
    assert told["ended_by"] == "seconds"
    assert told["kills"] >= 10
    assert told["stops"] > 0
    assert told["executions"] >= told["done"] > 0
    assert told["operations"] > told["claims"] > 0
    assert told["done"] + told["failed"] + told["cancelled"] + told["blocked"] == told["tasks"]
    assert told["kept"] is None
    assert snapshot(tmp_path) == before, "the user's own yard and what lies beside it are as they were"
    assert processes(tmp_path) == []


SABOTAGES = {
    "rename_by_copy": {"fence_repeated", "published_twice", "doubled", "handle_repeated"},
    "endings_by_id": {"unsaid", "ending_lost", "wrong_result", "unaccounted", "held_by_two"},
    "forgetful_adds": {"lost"},
    "fences_from_nought": {"fence_repeated", "fence_fell"},
}


@sampled("sabotage", SABOTAGES, ["rename_by_copy", "forgetful_adds"])
def test_a_store_that_is_broken_is_found_out(tmp_path: Path, sabotage: str) -> None:
    (tmp_path / "sabotage").mkdir()
    (tmp_path / "sabotage" / "sitecustomize.py").write_text(SABOTAGE)
    env = {"PYTHONPATH": str(tmp_path / "sabotage"), "SABOTAGE": sabotage}
    for _ in range(6):  # on a machine that is very busy little may happen in five seconds
        answer = torture("--seconds", "5", "--seed", "5", cwd=tmp_path, **env)
        told = answer.envelope["data"]
        assert (answer.code, answer.envelope["ok"]) == (0 if told["legal"] else 1, True), answer.err
        found = {violation["code"] for violation in told["violations"]}
        if found & SABOTAGES[sabotage]:
            break
    else:
        pytest.fail(f"only {found}, {told['troubles']}")
    assert told["violations_found"] >= len(told["violations"])
    assert told["seed"] == 5
    kept = Path(told["kept"])
    assert (kept.parent, (kept / "yard" / "yard.json").exists()) == (tmp_path, True)
    assert list((kept / "history").iterdir())
    assert processes(tmp_path) == []


@pytest.mark.proof
def test_somebody_who_puts_a_claimed_task_back_by_hand_is_found_out(tmp_path: Path) -> None:
    argv = [*tools.COMMAND, "torture", "--seconds", "6"]
    process = subprocess.Popen(argv, cwd=tmp_path, env=tools.environment(), stdout=subprocess.PIPE, text=True)
    copies = 0

    def meddle() -> bool:
        nonlocal copies
        for yard in tmp_path.glob(".taskyard-torture-*/yard"):
            for segment in yard.glob("todo/*/????"):
                for path in segment.iterdir():
                    try:
                        content = path.read_bytes()
                    except FileNotFoundError:
                        continue
                    wait_until(lambda path=path: not path.exists(), 30)  # type: ignore[misc]
                    segment.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                    copies += 1
                    return copies == 3
        return False

    wait_until(meddle)
    out, _ = process.communicate(timeout=tools.PATIENCE)
    assert process.returncode == 1
    assert "NOT LEGAL" in out
    assert "fence_repeated: the fence " in out or "doubled: task" in out, out
    assert "asks:" in out, "the lines of the history that show it"
    assert "kept in" in out


def test_it_ends_at_so_many_tasks(tmp_path: Path) -> None:
    told = torture("--workers", "2", "--tasks", "40", cwd=tmp_path).data
    assert (told["ended_by"], told["tasks"], told["legal"]) == ("tasks", 40, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_in_order_with_a_verdict(
    tmp_path: Path, running: subprocess.Popen[str], number: signal.Signals
) -> None:
    running.send_signal(number)
    out, err = running.communicate(timeout=tools.PATIENCE)
    told = json.loads(out)["data"]
    assert (running.returncode, told["ended_by"], told["legal"]) == (1, "interrupted", True)
    assert told["operations"] > 0
    assert err == ""
    assert processes(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_when_it_is_killed_its_workers_end_too_even_those_that_stand_still(
    tmp_path: Path, running: subprocess.Popen[str]
) -> None:

    def at_work() -> list[int]:
        files = [path for path in tmp_path.glob(".taskyard-torture-*/history/*") if path.read_text().count("\n") > 3]
        return sorted({int(path.name.split("-")[0]) for path in files} & set(processes(tmp_path)))

    os.kill(wait_until(at_work, 60)[0], signal.SIGSTOP)
    running.kill()
    running.communicate()
    wait_until(lambda: processes(tmp_path) == [])


def test_what_a_killed_one_left_is_removed_by_the_next_and_nothing_else_is(
    tmp_path: Path, running: subprocess.Popen[str]
) -> None:
    """Not one that lives, nor one that was kept, nor what a user has made under such a name."""
    [dead] = tmp_path.glob(".taskyard-torture-*")
    mine, kept = tmp_path / ".taskyard-torture-mine", tmp_path / ".taskyard-torture-0123abcd"
    mine.mkdir()
    kept.mkdir()
    (mine / "running").write_text("my own notes of what is running\n")
    (kept / "errors.txt").touch()
    answer = torture("--tasks", "5", cwd=tmp_path)
    assert (answer.data["cleared"], answer.data["left"]) == ([], [])
    assert dead.exists(), "its run lives"
    running.kill()
    running.communicate()
    (dead / "linked").symlink_to(mine)
    wait_until(lambda: processes(tmp_path) == [])
    answer = torture("--tasks", "5", cwd=tmp_path)
    assert (answer.data["cleared"], answer.data["left"]) == ([str(dead)], [])
    assert sorted(tmp_path.iterdir()) == [kept, mine]


def test_people_are_told_what_was_removed(tmp_path: Path, running: subprocess.Popen[str]) -> None:
    [dead] = tmp_path.glob(".taskyard-torture-*")
    running.kill()
    running.communicate()
    wait_until(lambda: processes(tmp_path) == [])
    words = [*tools.COMMAND, "torture", "--tasks", "5"]
    told = subprocess.run(words, cwd=tmp_path, env=tools.environment(), capture_output=True, text=True, check=True)
    assert f"removed {dead}: left by a torture that was killed" in told.stderr


def test_where_a_lock_proves_nothing_what_a_killed_one_left_is_only_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / "yard-torture-0123abcd"
    left.mkdir()
    (left / "running").write_bytes(run_lock._mark(str(left)))
    taskyard.init(tmp_path / "yard").close()
    monkeypatch.setattr(safety, "is_local", lambda _: False)
    scratch = opening.scratch(tmp_path / "yard", {})
    assert (scratch.cleared, scratch.left, (left / "running").exists()) == ([], [str(left)], True)
    scratch.keep()
    assert opening.scratch(tmp_path / "yard", {}).left == [str(left)], "what was kept is not told of"


def test_on_a_terminal_one_line_tells_how_far_it_is(tmp_path: Path) -> None:
    argv = [*tools.COMMAND, "torture", "--workers", "2", "--tasks", "20"]
    terminal = Terminal(argv, size=(200, 40), env=tools.environment(), cwd=str(tmp_path))
    try:
        text = terminal.until("legal: every answer", timeout=60)
    finally:
        terminal.close()
    assert text.count("operations, ") == 1, text
    assert "kills survived" in text
    assert "seed" in text


def test_a_yard_whose_folder_is_not_ours_is_tried_inside_of_its_own_tmp(tmp_path: Path) -> None:
    folder = tmp_path / "sealed"
    taskyard.init(folder / "yard", durability="fast").close()
    folder.chmod(0o500)
    try:
        answer = tools.taskyard(
            None, "torture", "--workers", "2", "--tasks", "10", "--yard", str(folder / "yard"), prefix=tools.powerless()
        )
        assert answer.data["legal"] is True
        with taskyard.open(folder / "yard") as yard:
            assert sum(yard.counts().values()) == 0
        assert not list((folder / "yard" / "tmp").glob("torture-*"))
    finally:
        folder.chmod(0o700)


def test_a_yard_that_is_a_volume_of_its_own_is_tried_on_that_volume(tmp_path: Path) -> None:
    script = (
        'mount -t tmpfs none "$1" && shift && "$@" init yard --json >/dev/null && '
        '"$@" torture --workers 2 --tasks 20 --yard yard >out 2>err; cat err; ls -a'
    )
    (tmp_path / "yard").mkdir()
    words = [*tools.unshared("--mount"), "sh", "-c", script, "sh", "yard", *tools.COMMAND]
    told = subprocess.run(words, cwd=tmp_path, env=tools.environment(), capture_output=True, text=True, check=False)
    assert f"workers in {tmp_path}/yard/tmp/torture-" in told.stdout, (told.stdout, told.stderr)
    assert "yard-torture" not in told.stdout


@pytest.mark.parametrize(
    ("argv", "code", "error"),
    [
        (["--workers", "0"], 2, "invalid"),
        (["--workers", "100000"], 2, "invalid"),
        (["--workers", "few"], 2, "invalid"),
        (["--tasks", "0"], 2, "invalid"),
        (["--tasks", "-5"], 2, "invalid"),
        (["--tasks", "9999999999"], 2, "invalid"),
        (["--seconds", "0"], 2, "invalid"),
        (["--seconds", "-1"], 2, "invalid"),
        (["--seconds", "1000000"], 2, "invalid"),
        (["--seconds", "nan"], 2, "invalid"),
        (["--seed", "-1"], 2, "invalid"),
        (["--seed", "x"], 2, "invalid"),
        (["word"], 2, "invalid"),
        (["--yard", "memory:"], 2, "invalid"),
        (["--yard", "ftp://host/yard"], 2, "invalid"),
        (["--yard", "nowhere"], 8, "unavailable"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_made(
    tmp_path: Path, argv: list[str], code: int, error: str
) -> None:
    answer = torture(*argv, cwd=tmp_path)
    assert (answer.code, answer.error["code"]) == (code, error)
    assert answer.error["hint"]
    assert list(tmp_path.iterdir()) == []


def test_its_figures_are_the_same_for_people_and_programs(tmp_path: Path) -> None:
    argv = [*tools.COMMAND, "torture", "--workers", "2", "--tasks", "15", "--seed", "3"]
    told = subprocess.run(argv, cwd=tmp_path, env=tools.environment(), capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    lines = [line.split(None, 1) for line in told.stdout.splitlines() if line.startswith(" ")]
    figures: dict[str, Any] = {what: number for number, what in lines}
    assert (figures["published twice"], figures["lost"]) == ("0", "0")
    assert [number for what, number in figures.items() if what.startswith("tasks: ")] == ["15"]
    assert told.stdout.endswith("as promised (seed 3)\n")
    assert "seed 3" in told.stderr
