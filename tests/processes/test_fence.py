"""The fence with real processes: `guard` stops what has lost its claim, and no late `publish` gets through."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import is_alive, lapse, taken, wait_until
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Claim, Yard

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="this system has no /proc")
# Says its own number and that of a child that leaves the session and ignores TERM.
FAMILY = """
import os, signal, sys, time
pid = os.fork()
if pid == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(sys.argv[1] + ".part", "w") as file:
        file.write(f"{os.getppid()} {os.getpid()}")
    os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
"""


@pytest.fixture
def opened(place: str) -> Iterator[Yard]:
    with taskyard.open(place, worker="ada") as yard:
        yield yard


def guard(place: str, claim: Claim, *argv: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*tools.COMMAND, "guard", *options, "--", *argv],
        env=tools.environment(TASKYARD=place, TASKYARD_CLAIM=claim.handle),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def family(path: Path) -> list[int]:
    """The numbers of the two processes that FAMILY is."""
    wait_until(path.exists)
    return [int(pid) for pid in path.read_text().split()]


def test_a_guarded_command_has_the_callers_streams_the_claim_and_its_own_exit_code(place: str, opened: Yard) -> None:
    opened.add("build")
    claim = taken(opened.claim())
    script = "read word; echo $word $TASKYARD_FENCE $TASKYARD_TASK; echo loud >&2; exit 7"
    process = guard(place, claim, "sh", "-c", script)
    out, err = process.communicate("hello\n", timeout=tools.PATIENCE)
    assert (out, err, process.returncode) == (f"hello {claim.fence} {claim.id}\n", "loud\n", 7)
    assert claim.holds()
    process = guard(place, claim, "sh", "-c", "echo loud; kill -9 $$", options=("--json",))
    out, err = process.communicate(timeout=tools.PATIENCE)
    assert (json.loads(out)["data"]["exit"], process.returncode, err) == (137, 137, "loud\n")
    process = guard(place, claim, "no-such-command-anywhere")
    assert process.wait(timeout=tools.PATIENCE) == 2
    process.communicate()


def test_a_command_never_begins_under_a_claim_that_is_over(place: str, opened: Yard, tmp_path: Path) -> None:
    opened.add("build")
    claim = taken(opened.claim())
    claim.release()
    process = guard(place, claim, "touch", str(tmp_path / "began"))
    _, err = process.communicate(timeout=tools.PATIENCE)
    assert process.returncode == 4
    assert "is over" in err
    assert not (tmp_path / "began").exists()


def test_a_lost_claim_stops_every_process_of_the_guarded_command(place: str, opened: Yard, tmp_path: Path) -> None:
    opened.add("build")
    claim = taken(opened.claim(lease=2))
    process = guard(
        place, claim, sys.executable, "-c", FAMILY, str(tmp_path / "family"), options=("--grace", "0.2", "--json")
    )
    pids = family(tmp_path / "family")
    opened.cancel(claim.id)
    out, _ = process.communicate(timeout=tools.PATIENCE)
    assert (process.returncode, json.loads(out)["error"]["code"]) == (4, "claim_lost")
    assert not any(map(is_alive, pids)), "the child that ignores TERM in a session of its own is gone too"


def test_a_guarded_command_that_ends_its_own_claim_is_left_to_finish(place: str, opened: Yard) -> None:
    opened.add("build")
    claim = taken(opened.claim(lease=0.5))
    wait_for = f"{tools.IN_SHELL} done --result 1 >/dev/null && sleep 1 && echo finished"
    process = guard(place, claim, "sh", "-c", wait_for)
    out, err = process.communicate(timeout=tools.PATIENCE)
    assert (process.returncode, out) == (0, "finished\n"), err
    assert opened.get(claim.id).result == 1


@pytest.mark.parametrize("verb", ["release", "fail --reason x"])
def test_a_guarded_command_whose_claim_was_given_up_is_stopped(
    place: str, opened: Yard, verb: str, tmp_path: Path
) -> None:
    opened.add("build")
    claim = taken(opened.claim(lease=2))
    process = guard(place, claim, sys.executable, "-c", FAMILY, str(tmp_path / "family"), options=("--grace", "0.2"))
    pids = family(tmp_path / "family")
    tools.taskyard(place, *verb.split(), claim.handle)
    process.communicate(timeout=tools.PATIENCE)
    assert process.returncode == 4
    assert not any(map(is_alive, pids))


def test_a_guarded_command_that_submits_for_review_is_left_to_finish(place: str, opened: Yard) -> None:
    opened.add("draft", review=True)
    claim = taken(opened.claim(lease=0.5))
    process = guard(place, claim, "sh", "-c", f"{tools.IN_SHELL} done >/dev/null && sleep 1 && echo finished")
    out, err = process.communicate(timeout=tools.PATIENCE)
    assert (process.returncode, out) == (0, "finished\n"), err


def test_the_guard_renews_the_lease_beside_its_command(place: str, opened: Yard, tmp_path: Path) -> None:
    opened.add("build")
    claim = taken(opened.claim(lease=1))
    process = guard(place, claim, "sh", "-c", f"while [ ! -e '{tmp_path}/go' ]; do sleep 0.05; done")
    first = opened.get(claim.id).lease_until
    wait_until(lambda: (opened.get(claim.id).lease_until or "") > (first or ""))
    assert not opened.sweep().reaped
    (tmp_path / "go").touch()
    assert process.wait(timeout=tools.PATIENCE) == 0
    process.communicate()
    assert claim.holds()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_no_command_goes_on_without_its_guard(place: str, opened: Yard, tmp_path: Path, number: int) -> None:
    opened.add("build")
    claim = taken(opened.claim(lease=2))
    process = guard(place, claim, sys.executable, "-c", FAMILY, str(tmp_path / "family"), options=("--grace", "0.2"))
    pids = family(tmp_path / "family")
    process.send_signal(number)
    wait_until(lambda: not any(map(is_alive, pids)))
    if number == signal.SIGSTOP:
        lapse(opened, claim)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=tools.PATIENCE)
        assert process.returncode == 4, err
    else:
        process.communicate()


def publisher(place: str, claim: Claim, *paths: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*tools.COMMAND, "publish", claim.handle, *map(str, paths), "--json"],
        env=tools.environment(TASKYARD=place),
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_worker_that_stood_still_publishes_nothing_when_it_goes_on(place: str, opened: Yard, tmp_path: Path) -> None:
    """The late one stands still between its start and its first look: whatever it looks at then, it is too late."""
    opened.add("build")
    late = taken(opened.claim(lease=0.5))
    (tmp_path / "old").write_text("late")
    (tmp_path / "new").write_text("current")
    process = publisher(place, late, tmp_path / "old", tmp_path / "report")
    process.send_signal(signal.SIGSTOP)
    lapse(opened, late)
    current = taken(opened.claim(wait=30))
    current.publish(tmp_path / "new", tmp_path / "report")
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=tools.PATIENCE)
    assert (process.returncode, json.loads(out)["error"]["code"]) == (4, "claim_lost")
    assert (tmp_path / "report").read_text() == "current"


_CALLS = ("open", "write", "fsync", "rename", "unlink")


def killed_publisher(place: str, handle: str, source: str, destination: str, at: int) -> None:
    """Publish, and die before the call of this number."""
    from taskyard.yard import publish

    class Mortal:
        """The module `os`, whose n-th call kills."""

        def __init__(self) -> None:
            self.left = at

        def __getattr__(self, name: str) -> Any:
            if name in _CALLS:
                self.left -= 1
                if self.left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return getattr(os, name)

    with taskyard.open(place) as yard:
        claim = yard.held(handle)
        publish.__dict__["os"] = Mortal()
        claim.publish(source, destination)


def test_a_publisher_may_be_killed_before_each_of_its_calls(place: str, opened: Yard, tmp_path: Path) -> None:
    report = tmp_path / "report"
    for at in range(100):
        opened.add("build")
        early = taken(opened.claim())
        (tmp_path / "old").write_text("old")
        early.publish(tmp_path / "old", report)
        (tmp_path / "old").write_text("killed")
        pid = os.fork()
        if pid == 0:
            try:
                killed_publisher(place, early.handle, str(tmp_path / "old"), str(report), at)
            finally:
                os._exit(0)
        ended = os.waitpid(pid, 0)[1]
        assert report.read_text() in ("old", "killed"), "a reader sees one or the other, whole"
        early.release()
        late = taken(opened.claim(early.id))
        (tmp_path / "new").write_text("new")
        late.publish(tmp_path / "new", report)
        assert report.read_text() == "new"
        assert {name for name in os.listdir(tmp_path) if "report" in name} == {"report", ".report.fence"}
        late.done()
        if ended == 0:
            assert at > 8, "every call had its turn"
            return
    raise AssertionError("it was killed every time")


def test_of_many_publishers_at_once_the_highest_fence_stays(place: str, opened: Yard, tmp_path: Path) -> None:
    """Claims of one task follow one another while all of them publish as fast as they can."""
    id = opened.add("build").id
    report = tmp_path / "report"
    crew, highest = [], 0
    for _ in range(6):
        claim = taken(opened.claim(id))
        source = tmp_path / f"from-{claim.fence}"
        source.write_text(str(claim.fence) * 50_000)
        crew.append(publisher(place, claim, source, report))
        highest = claim.fence
        if len(crew) < 6:
            claim.release()
    codes = [process.wait(timeout=tools.PATIENCE) for process in crew]
    for process in crew:
        process.communicate()
    assert codes[-1] == 0
    assert set(codes) <= {0, 4}
    assert report.read_text() == str(highest) * 50_000


def test_a_guard_that_is_killed_takes_its_own_command_alone_with_it(place: str, opened: Yard, tmp_path: Path) -> None:
    opened.add("build")
    claim = taken(opened.claim())
    environment = tools.environment(TASKYARD_CLAIM=claim.handle)
    with subprocess.Popen(["sleep", "600"], env=environment) as agent:  # whose claim it is, and who runs the guard
        killed = guard(place, claim, "sh", "-c", f"echo $$ > {tmp_path}/pid; kill -9 $PPID; sleep 600")
        _, told = killed.communicate(timeout=50)
        assert (killed.returncode, "guard of the command was killed" in told) == (2, True)
        assert not is_alive(int((tmp_path / "pid").read_text()))
        assert agent.poll() is None
        agent.kill()
