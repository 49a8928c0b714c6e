"""The screen of a crew as text: whatever is known, it fits, lines up, and obeys nobody's escapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.core.ids import short
from taskyard.doors.cli import output
from taskyard.doors.cli.verbs.running.crew import config
from taskyard.doors.cli.verbs.running.crew.activity import Activity, CrewEvent, moment
from taskyard.doors.cli.verbs.running.crew.process import CrewProcess
from taskyard.doors.cli.verbs.running.crew.view import View, clock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard

NAMES = ("ada", "grace", "林纳斯", "a-name-that-is-far-too-long-for-its-column")


@pytest.fixture
def yard() -> Iterator[Yard]:
    with taskyard.init("memory:crew-view", worker="people") as opened:
        yield opened


class Crew:
    """Workers that are only pretended."""

    def __init__(self, yard: Yard, folder: Path) -> None:
        file = folder / "crew.toml"
        file.write_text("".join(f'[worker."{name}"]\ncommand = "true"\nhangs_after = 5\n' for name in NAMES))
        self.yard = yard
        self.processes = [CrewProcess(member) for member in config.read(str(file)).members]
        for number, process in enumerate(self.processes, 1):
            process.pid, process.again_at = number, None
        self.activity = Activity(yard, list(NAMES))
        self.now = 1000.0
        self.view = View("taskyard crew crew.toml", "/yards/one", self.processes, self.activity, self.now - 60)
        self.latest: list[CrewEvent] = []

    def happens(self, event: str, worker: str, task: str, **more: Any) -> None:
        fields = {"at": moment(), "event": event, "worker": worker, "task": task, "kind": "build", **more}
        crew_event = self.activity.take(fields, self.now, look=False)
        assert crew_event is not None
        self.latest.append(crew_event)
        self.view.keep(crew_event)

    def frame(self, width: int = 120, height: int = 24) -> list[str]:
        self.activity.refresh(self.now)
        self.activity.count(self.now)
        return self.view.frame(self.latest, "Ctrl-C stops", (width, height), self.now)

    def row(self, worker: str) -> str:
        return next(line for line in self.frame() if line.startswith(worker + " "))


@pytest.fixture
def crew(yard: Yard, tmp_path: Path) -> Crew:
    return Crew(yard, tmp_path)


def claimed(crew: Crew, worker: str, **options: Any) -> str:
    """The id of a new task that this worker takes."""
    id = crew.yard.add("build", **options).id
    claim = crew.yard.claim(id, worker=worker)
    assert claim is not None
    crew.happens("claimed", worker, id)
    return id


def test_a_row_tells_the_task_how_long_and_the_lease_that_is_left(crew: Crew) -> None:
    id = short(claimed(crew, "ada", title="Fix", lease=90))
    crew.now += 65
    head, row = next(line for line in crew.frame() if line.startswith("WORKER")), crew.row("ada")
    assert row.split() == ["ada", "works", "1m05", row.split()[3], "0", "0", "0", id, "build", "Fix"]
    assert row.split()[3] in ("1m29", "1m30")
    assert row.index(id) == head.index("TASK")
    for number, name in (("works", "STATE"), (id, "TASK")):
        assert row.index(number) == head.index(name)
    assert crew.row("grace").split() == ["grace", "idle", "0", "0", "0"]


def test_on_a_narrow_screen_the_task_has_a_line_of_its_own_if_there_is_room(crew: Crew) -> None:
    id = short(claimed(crew, "ada", title="Fix the importer that nobody wants to touch"))
    head, row, task, *_ = crew.frame(80, 24)[3:]
    assert head.split() == ["WORKER", "STATE", "FOR", "LEASE", "DONE", "FAIL", "/MIN"]
    assert row.split()[:3] == ["ada", "works", "0s"]
    assert task.strip() == f"Fix the importer that nobody wants to touch  build {id}", "the title before the name"
    assert task.index("Fix") == head.index("STATE")
    tight = crew.frame(80, 16)[3:]
    assert tight[0].endswith("TASK")


def test_several_tasks_of_one_worker_have_a_row_each(crew: Crew) -> None:
    ids = [claimed(crew, "ada", title=f"Number {number}") for number in range(3)]
    rows = [line for line in crew.frame(120) if "Number" in line and "works" in line]
    assert [short(id) in row for id, row in zip(ids, rows, strict=True)] == [True] * 3
    assert [row.startswith("ada") for row in rows] == [True, False, False]


def test_what_shows_no_end_and_no_progress_hangs_until_it_does(crew: Crew) -> None:
    id = claimed(crew, "ada")
    crew.now += 6
    assert [held.task for held in crew.activity.hanging("ada", 5.0, crew.now)] == [id]
    assert crew.activity.hanging("ada", 5.0, crew.now) == [], "it is told once"
    assert " hangs " in crew.row("ada")
    (claim,) = crew.yard.resume("ada")
    claim.heartbeat(progress=0.5)
    crew.now += 6
    assert " works " in crew.row("ada")
    assert " 50%" in crew.row("ada")
    assert crew.activity.hanging("ada", 7.0, crew.now) == []


def test_counts_and_the_rate_of_the_last_minute(crew: Crew) -> None:
    for number in range(3):
        crew.happens("claimed", "ada", f"t{number}")
        crew.happens("done", "ada", f"t{number}")
        crew.now += 25
    crew.happens("failed", "ada", "t4", final=False, reason="exit 1")
    crew.happens("reaped", "ada", "t5", final=False, reason="its lease ended")
    crew.now += 1
    assert crew.row("ada").split() == ["ada", "idle", "3", "2", "2"]


def test_restarts_pauses_and_ends_are_told_with_their_reasons(crew: Crew) -> None:
    ada, grace, *_ = crew.processes
    ada.restarts, ada.restarted, ada.restart_reason = 2, crew.now - 3, "killed by SIGKILL"
    grace.pid, grace.again_at, grace.reason = 0, crew.now + 4, "exit 1: no such thing"
    assert any(line == "ada was restarted 2 times, last 3s ago: killed by SIGKILL" for line in crew.frame())
    assert crew.row("grace").split()[1:2] == ["pauses"]
    assert "again in 4s: exit 1" in crew.row("grace")
    grace.again_at, grace.failed = None, True
    assert "gave up" in crew.row("grace")


def test_a_task_whose_end_was_not_heard_of_is_not_shown_for_ever(crew: Crew) -> None:
    id = claimed(crew, "ada")
    crew.yard.cancel(id)
    crew.frame()
    crew.now += 1
    assert " idle " in crew.row("ada")


def test_between_two_tasks_nothing_jumps(crew: Crew) -> None:
    one, two = claimed(crew, "ada"), claimed(crew, "ada")
    crew.happens("done", "ada", one)
    crew.now += 0.2
    assert short(one) in crew.row("ada")
    three = claimed(crew, "ada")
    rows = [line.split()[-2] for line in crew.frame() if " works " in line]
    assert rows == [short(three), short(two)], "the next takes the place of the one that ended"


@pytest.mark.parametrize("coloured", [False, True])
@pytest.mark.parametrize("size", [(20, 4), (40, 10), (60, 12), (80, 24), (120, 40), (250, 70)])
def test_it_fits_every_screen_and_obeys_no_title(
    crew: Crew, size: tuple[int, int], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "coloured", lambda: coloured)
    for number in range(12):
        claimed(crew, NAMES[number % 4], title="二" * 60 if number % 2 else "x" * 200)
    crew.happens("failed", "ada", "gone", final=True, reason="\x1b[2Jtricky\nlines\r")
    crew.processes[0].restarts, crew.processes[0].restart_reason = 1, "\x1b]0;x"
    lines = crew.frame(*size)
    assert len(lines) == size[1]
    for line in lines:
        plain = line
        for code in ("0", "1", "2", "31", "32", "33", "34", "35", "36"):
            plain = plain.replace(f"\x1b[{code}m", "")
        assert output.plain(plain) == plain
        assert "\n" not in plain
        assert output.width(plain) < size[0]


def test_lengths_of_time_take_at_most_five_characters() -> None:
    assert [clock(seconds) for seconds in (0, 59.9, 65, 3599, 3660, 86_399, 90_000)] == [
        "0s", "59s", "1m05", "59m59", "1h01", "23h59", "1d",
    ]  # fmt: skip
    assert all(len(clock(1.7**power)) <= 5 for power in range(30))


def test_where_there_is_no_room_for_all_those_in_trouble_come_first(crew: Crew) -> None:
    claimed(crew, "ada")
    crew.processes[3].stopped = True
    assert next(line.split()[0] for line in crew.frame(height=24)[4:8]) == "ada"
    small = crew.frame(height=7)
    assert "stopped" in small[4]
    assert small[4].startswith(NAMES[3][:5])


def test_a_task_that_failed_for_good_stays_on_the_screen_with_its_reason(crew: Crew) -> None:
    crew.happens("failed", "ada", "t1", final=True, reason="no such branch")
    for number in range(50):
        crew.happens("done", "grace", f"t{number + 2}")
    (told,) = [line for line in crew.frame() if "no such branch" in line]
    assert "for good" in told
    assert "t1" in told


def test_whoever_was_told_to_stop_is_ending_also_with_a_task_that_hangs(crew: Crew) -> None:
    claimed(crew, "ada")
    crew.now += 10
    crew.activity.hanging("ada", 5, crew.now)
    assert " hangs " in crew.row("ada")
    crew.processes[0].stop_requests = 1
    assert " ending " in crew.row("ada")


def test_the_screen_says_why_a_worker_is_idle_though_tasks_are_open(crew: Crew) -> None:
    first = crew.yard.add("build", max_attempts=1).id
    crew.yard.add("ship", after=first)
    claim = crew.yard.claim(first)
    assert claim is not None
    claim.fail("broken", retry=False)
    [line] = [line for line in crew.frame() if "blocked behind" in line]
    assert short(first) in line
    crew.yard.retry(first)
    crew.now += 3600
    assert not [line for line in crew.frame() if "blocked behind" in line]
