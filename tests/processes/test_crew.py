"""Crews as people run them: a file, a supervisor, workers that crash, hang and are stopped, and nothing left at the end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import SOON, is_listening, wait_until

from . import tools
from .terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard

# Kills the worker that it is run by: the parent of its parent, which is the guard.
CRASH = """
import os, signal
with open(f"/proc/{os.getppid()}/stat") as file:
    os.kill(int(file.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
"""
FIVE = f"""
yard = "yard"

[defaults]
grace = "0.3s"
first_pause = "0.2s"
hangs_after = "1s"

[worker.ada]
command = "sleep 0.05"
kinds = ["build"]
count = 2

[worker.crasher]
command = ["{tools.PYTHON}", "-c", '''{CRASH}''']
kinds = ["crash"]

[worker.hanger]
command = ["sh", "-c", "{tools.IN_SHELL} heartbeat --progress 0.4; exec sleep 600"]
kinds = ["hang"]

[worker.sleeper]
command = "sleep 600"
kinds = ["nap"]
"""


class Place:
    """A folder with a yard and a crew's file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.yard: Yard = taskyard.init(folder / "yard", worker="people", durability="fast")

    def write(self, text: str) -> str:
        (self.folder / "crew.toml").write_text(text)
        return str(self.folder / "crew.toml")

    def command(self, text: str, *options: str) -> list[str]:
        return [*tools.COMMAND, "crew", self.write(text), *options]

    def start(self, text: str, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(text, *options), stdout=subprocess.PIPE, text=True, env=tools.environment(AGENT_ID="boss")
        )

    def processes(self) -> list[int]:
        """Every process that has to do with this place, by what it was started with."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read()
                with open(f"/proc/{name}/environ", "rb") as file:
                    words += file.read()
                words += os.readlink(f"/proc/{name}/cwd").encode() + b"/"  # a guard has only that
            except OSError:
                continue
            if str(self.folder).encode() + b"/" in words:
                found.append(int(name))
        return found

    def worker(self, name: str) -> int:
        """The process of this worker, once it is there."""

        def found() -> int | None:
            for pid in self.processes():
                try:
                    with open(f"/proc/{pid}/cmdline", "rb") as file:
                        words = file.read().split(b"\0")
                except OSError:
                    continue
                if b"work" in words and name.encode() in words and b"--worker" in words:
                    return pid
            return None

        return wait_until(found)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    with made.yard:
        yield made
        for pid in made.processes():
            os.kill(pid, signal.SIGKILL)


def events(crew: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """All that the crew told, once it has ended."""
    out, _ = crew.communicate(timeout=SOON)
    return [json.loads(line) for line in out.splitlines()]


def until(crew: subprocess.Popen[str], event: str, worker: str | None = None) -> dict[str, Any]:
    """The next of these that the crew tells."""
    assert crew.stdout is not None
    for line in crew.stdout:
        told: dict[str, Any] = json.loads(line)
        if told["event"] == event and worker in (None, told["worker"]):
            return told
    raise AssertionError(f"no {event} came")


def test_the_screen_shows_who_crashes_hangs_and_stands_still_while_the_work_gets_done(place: Place) -> None:
    ids = place.yard.add_many([{"kind": "build", "title": f"Number {number}"} for number in range(20)])
    place.yard.add("crash", title="Takes its worker down", max_attempts=2)
    place.yard.add("hang", title="Never ends")
    place.yard.add("nap", title="Is held still")
    terminal = Terminal(place.command(FIVE), (140, 30), env=tools.environment(TERM="xterm", NO_COLOR="1"))
    try:
        terminal.until(r"sleeper +works", "Is held still")
        assert terminal.is_taken()
        assert not terminal.painted, "NO_COLOR is set"
        os.kill(place.worker("sleeper"), signal.SIGSTOP)
        screen = terminal.until(
            r"sleeper +stopped +\d+s +\d+s +0 +0 +0  \S+ nap Is held still",
            r"hanger +hangs +\d+s +\d+s +0 +0 +0  \S+ hang 40% Never ends",
            r"crasher was restarted \d times, last \d+s ago: killed by SIGKILL",
            r"todo 0 .*processing 2 .*done 20",
            r"20 /min",
        )
        assert place.yard.wait(*ids, timeout=0)
        assert sum(int(number) for number in re.findall(r"ada-\d +idle +(\d+) ", screen)) == 20
        assert all(len(line) < 140 for line in screen.splitlines())
        terminal.resize((60, 12))
        terminal.until(r"^taskyard crew", r"sleeper +stopped", r"Ctrl-C lets what runs finish")
        terminal.type("not shown\x03")
        code = terminal.end(timeout=8)  # long before anybody had to be killed
        assert code == (1 if place.yard.counts()["failed"] else 0)
        assert not terminal.is_taken()
        assert terminal.modes() == terminal.modes_before
        assert "20 done" in terminal.screen()
        assert "not shown" not in terminal.screen()
    finally:
        terminal.close()
    assert place.processes() == []
    assert place.yard.counts()["processing"] == 0


def test_a_screen_that_nobody_reads_holds_up_nobody(place: Place) -> None:
    """As after Ctrl-S, or behind a connection that hangs."""
    ids = place.yard.add_many([{"kind": "build", "title": "x" * 80} for _ in range(60)])
    terminal = Terminal(
        place.command("yard = 'yard'\n[worker.ada]\ncommand = 'true'\n"), (200, 50), env=tools.environment(TERM="xterm")
    )
    try:
        place.yard.wait(*ids, timeout=60)
        terminal.process.send_signal(signal.SIGTERM)
        wait_until(lambda: place.processes() == [terminal.process.pid] or terminal.process.poll() is not None)
        assert terminal.end() == 0
        assert terminal.modes() == terminal.modes_before
    finally:
        terminal.close()


def test_lines_tell_of_all_that_happens_and_drain_ends_it(place: Place) -> None:
    place.yard.add("build", title="Good")
    place.yard.add("bad", title="Not so good", max_attempts=1)
    crew = place.start(
        "yard = 'yard'\n[worker.ada]\ncommand = 'true'\nkinds = ['build']\n[worker.bob]\ncommand = 'false'\nkinds = ['bad']\n",
        "--drain",
    )
    out, _ = crew.communicate(timeout=SOON)
    assert crew.returncode == 1
    assert "\x1b" not in out
    for told in (
        "ada  started",
        "ada  took .* build Good",
        "ada  done .* Good",
        "bob  failed .* Not so good  for good: exit 1",
    ):
        assert re.search(told, out), out
    assert re.search(r"ada  ended +exit 0", out)
    assert out.splitlines()[-1].startswith("1 done, 1 failed attempts (1 for good), 0 restarts: 2 workers in ")


def test_every_worker_has_its_own_name_kinds_folder_environment_and_checks(place: Place) -> None:
    (place.folder / "tree").mkdir()
    tell = 'echo "{\\"who\\": \\"$AGENT_ID $TASKYARD_WORKER $MODE $LIFE\\", \\"where\\": \\"$PWD\\"}"'
    crew = place.start(
        f"""
yard = "yard"
[defaults]
environment = {{ MODE = "all", LIFE = "x${{TASKYARD_LIFELINE}}" }}
[worker.ada]
command = ["sh", "-c", '''{tell}''']
kinds = ["a"]
[worker.bob]
command = ["sh", "-c", '''LIFE=x$TASKYARD_LIFELINE; {tell}''']
kinds = ["b"]
directory = "tree"
environment = {{ MODE = "own" }}
[worker.bob.checks]
picky = ["sh", "-c", "test \\"$MODE\\" = own"]
""",
        "--drain",
        "--json",
    )
    one, two = place.yard.add("a"), place.yard.add("b", verify="picky")
    assert events(crew)[-1]["done"] == 2
    assert place.yard.get(one.id).result == {"who": "ada ada all x${TASKYARD_LIFELINE}", "where": str(place.folder)}
    assert place.yard.get(two.id).result == {"who": "bob bob own x", "where": str(place.folder / "tree")}


def test_whoever_dies_is_started_again_after_pauses_that_double_up_to_a_cap(place: Place) -> None:
    crew = place.start(
        "yard = 'yard'\n[worker.ada]\ncommand = 'true'\nfirst_pause = 0.05\nlongest_pause = 0.2\n", "--json"
    )
    pid = until(crew, "started")["pid"]
    pauses = []
    for _ in range(4):
        os.kill(pid, signal.SIGKILL)
        exited = until(crew, "exited")
        assert exited["reason"] == "killed by SIGKILL"
        pauses.append(exited["again_in"])
        pid = until(crew, "restarted")["pid"]
    crew.send_signal(signal.SIGTERM)
    assert events(crew)[-1]["restarts"] == 4
    assert pauses == [0.05, 0.1, 0.2, 0.2]
    assert crew.returncode == 0


@pytest.mark.parametrize(("policy", "again"), [("always", True), ("on-failure", False), ("never", False)])
def test_a_worker_that_ends_well_is_started_again_only_where_the_file_says_so(
    place: Place, policy: str, again: bool
) -> None:
    crew = place.start(
        f"yard = 'yard'\n[worker.ada]\ncommand = 'true'\nrestart = '{policy}'\nfirst_pause = 0.05\n", "--json"
    )
    pid = until(crew, "started")["pid"]
    wait_until(lambda: is_listening(pid))
    os.kill(pid, signal.SIGTERM)
    if again:
        assert until(crew, "restarted")["reason"] == "exit 0"
        crew.send_signal(signal.SIGTERM)
    assert events(crew)[-1]["gave_up"] == []
    assert crew.returncode == 0


def test_a_worker_that_may_never_be_started_again_gives_up_and_the_others_go_on(place: Place) -> None:
    crew = place.start(
        "yard = 'yard'\n[defaults]\ncommand = 'true'\n[worker.ada]\nrestart = 'never'\n[worker.bob]\n", "--json"
    )
    os.kill(until(crew, "started", "ada")["pid"], signal.SIGKILL)
    assert until(crew, "gave_up")["worker"] == "ada"
    task = place.yard.add("build")
    assert place.yard.wait(task.id, timeout=30)[0].worker == "bob"
    crew.send_signal(signal.SIGTERM)
    assert events(crew)[-1]["gave_up"] == ["ada"]
    assert crew.returncode == 1


def test_the_first_signal_lets_what_runs_finish_and_the_second_stops_at_once(place: Place) -> None:
    text = "yard = 'yard'\n[worker.ada]\ncommand = 'sleep {kind}'\ngrace = 30\n"
    place.yard.add("1.5")
    crew = place.start(text, "--json")
    until(crew, "took")
    crew.send_signal(signal.SIGINT)
    assert events(crew)[-1]["done"] == 1
    place.yard.add("600")
    crew = place.start(text, "--json")
    until(crew, "took")
    began = time.monotonic()
    crew.send_signal(signal.SIGTERM)
    crew.send_signal(signal.SIGINT)  # another one: two equal signals at once are one
    assert {told["event"] for told in events(crew)} - {"says"} == {"released", "ended", "over"}
    assert time.monotonic() - began < 15
    assert place.processes() == []


@pytest.mark.parametrize("stopped", [False, True])
def test_a_killed_supervisor_leaves_nobody_behind(place: Place, stopped: bool) -> None:
    place.yard.add("build")
    crew = place.start("yard = 'yard'\n[worker.ada]\ncommand = 'sleep 600'\ngrace = 0.2\ncount = 2\n", "--json")
    until(crew, "took")
    if stopped:
        for name in ("ada-1", "ada-2"):
            os.kill(place.worker(name), signal.SIGSTOP)
    crew.kill()
    crew.communicate()
    wait_until(lambda: place.processes() == [])
    place.yard.sweep()
    assert place.yard.counts()["todo"] == 1


# Takes in whoever loses its parent, in the same session: else the kernel continues a stopped process group by itself.
ADOPT = """
import os, subprocess, sys
from taskyard.worker import guard
guard.adopt_orphans()
crew = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
print(crew.pid, flush=True)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""


def test_a_killed_supervisor_leaves_no_worker_that_was_stopped_while_it_started(place: Place) -> None:
    command = place.command("yard = 'yard'\n[worker.ada]\ncommand = 'true'\n", "--json")
    with subprocess.Popen(
        [tools.PYTHON, "-c", ADOPT, *command], stdout=subprocess.PIPE, text=True, env=tools.environment()
    ) as parent:
        assert parent.stdout is not None
        crew = int(parent.stdout.readline())
        os.kill(place.worker("ada"), signal.SIGSTOP)
        os.kill(crew, signal.SIGKILL)
        try:
            wait_until(lambda: place.processes() == [])
        finally:
            parent.kill()


def test_a_reader_that_goes_away_ends_the_crew(place: Place) -> None:
    crew = place.start("yard = 'yard'\n[worker.ada]\ncommand = 'true'\n")
    assert crew.stdout is not None
    crew.stdout.readline()
    crew.stdout.close()
    place.yard.add("build")
    assert crew.wait(timeout=SOON) == 141
    assert place.processes() == []


def test_a_terminal_that_goes_away_ends_the_crew_in_order(place: Place) -> None:
    place.yard.add("build")
    terminal = Terminal(
        place.command("yard = 'yard'\n[worker.ada]\ncommand = 'sleep 1'\n"), env=tools.environment(TERM="xterm")
    )
    terminal.until("ada +works")
    terminal.hang_up()
    terminal.process.wait(timeout=SOON)
    assert place.yard.counts()["done"] == 1, "what ran was let finish"
    assert place.processes() == []


def test_ctrl_z_gives_the_terminal_back_until_it_goes_on(place: Place) -> None:
    terminal = Terminal(
        place.command("yard = 'yard'\n[worker.ada]\ncommand = 'true'\n"), env=tools.environment(TERM="xterm")
    )
    try:
        terminal.until("ada +idle")
        assert terminal.painted
        terminal.process.send_signal(signal.SIGTSTP)
        wait_until(lambda: terminal.screen() is not None and not terminal.is_taken())
        wait_until(lambda: terminal.modes() == terminal.modes_before)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.until("ada +idle")
        terminal.type("\x03")
        assert terminal.end() == 0
        assert terminal.modes() == terminal.modes_before
    finally:
        terminal.close()


def test_a_yard_that_is_away_is_told_on_the_screen_until_it_is_back(place: Place) -> None:
    terminal = Terminal(
        place.command("yard = 'yard'\n[worker.ada]\ncommand = 'true'\n"), env=tools.environment(TERM="xterm")
    )
    try:
        wait_until(lambda: is_listening(place.worker("ada")))
        (place.folder / "yard").rename(place.folder / "away")
        terminal.until("the yard is away")
        (place.folder / "away").rename(place.folder / "yard")
        terminal.until(r"todo \d")
        terminal.type("\x03")
        assert terminal.end() == 0
    finally:
        terminal.close()


def test_a_worker_that_cannot_be_meant_gives_up_and_one_that_cannot_start_yet_is_tried_again(place: Place) -> None:
    crew = place.start(
        """
yard = "yard"
[defaults]
first_pause = 0.05
[worker.typo]
command = "no-such-agent"
[worker.early]
command = "true"
directory = "not-there-yet"
""",
        "--json",
    )
    reasons = {told["worker"]: told["reason"] for told in (until(crew, "exited", "early"), until(crew, "gave_up"))}
    assert "No such file or directory" in reasons["early"]
    assert "no-such-agent" in reasons["typo"]
    (place.folder / "not-there-yet").mkdir()
    task = place.yard.add("build")
    assert place.yard.wait(task.id, timeout=30)[0].worker == "early"
    crew.send_signal(signal.SIGTERM)
    assert events(crew)[-1]["gave_up"] == ["typo"]


def test_the_second_crew_of_one_file_says_that_both_count_the_same(place: Place) -> None:
    first = place.start(FIVE, "--json")
    until(first, "started", "ada-1")
    second = subprocess.run(
        place.command(FIVE, "--drain", "--json"),
        env=tools.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "runs on this machine already" in second.stderr
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=SOON)
    alone = subprocess.run(
        place.command(FIVE, "--drain", "--json"),
        env=tools.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert alone.stderr == ""
