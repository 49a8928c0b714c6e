"""Random edits on both sides, saves in the middle of a sync, and syncs that are killed at any point: nothing is lost."""

from __future__ import annotations

import contextlib
import itertools
import random
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.core.errors import Conflict, TaskyardError
from taskyard.core.task import State
from taskyard.doors.tasksmd import base as bases
from taskyard.doors.tasksmd import dialects, file
from taskyard.doors.tasksmd import sync as syncing
from taskyard.doors.tasksmd.text import patched

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from taskyard.doors.tasksmd.report import Report
    from taskyard.doors.tasksmd.rows import Document, Row

START = {
    "mosaic": "# T\n\n| id | status | title | agent | notes |\n|---|---|---|---|---|\n| X1 | not-started | N1 | — | a |\n\nProse\n",
    "tasks.md": "# T\n\n## P1\n\n- [ ] N1\n  - **Details**: a\n",
    "checklist": "# T\n\nProse\n\n- [ ] N1\n",
    "board": "# T\n\n## Todo\n\n### N1\nwords\n\n## In Progress\n\n## Done\n",
}
CHANGES = ("add_many", "edit", "claim", "done_many", "done", "release", "fail", "cancel", "retry", "accept", "reject")
_serial = itertools.count()


class Killed(BaseException):
    """The process of a sync has ended here."""


class Fate:
    """Counts what a sync does, and ends it before or after one of these things."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.after = False
        self.during: Callable[[], None] | None = None
        """What happens just before the file is replaced."""

    def around(self, act: Callable[..., Any], *given: Any, **options: Any) -> Any:
        if self.left is None:
            return act(*given, **options)
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Killed
        answer = act(*given, **options)
        if self.left == 0:
            raise Killed
        return answer


class MortalYard:
    """A yard whose caller may be killed at every change."""

    def __init__(self, yard: Any, fate: Fate) -> None:
        self._yard = yard
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._yard, name)
        return (lambda *given, **options: self._fate.around(verb, *given, **options)) if name in CHANGES else verb


class Story:
    """One random run: what was edited where, and what must be true of it."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        self.yard = taskyard.init(f"memory:interleaving-{next(_serial)}", worker="ada")
        self.fate = Fate()
        self.path = folder / f"{seed}.md"
        self.dialect = self.chance.choice(sorted(START))
        self.path.write_text(START[self.dialect])
        self.left = START[self.dialect]
        """The file as the last sync left it that came to its end."""
        self.read: set[str] = set()
        """All titles that a sync has found in the file."""
        self.outdated = False
        """Whether an older buffer was saved since the last sync that came to its end."""
        self.names = itertools.count(2)
        self.known = {"N1"}
        self.last: dict[str, list[str]] = {}
        """The last edit of each task, by its name."""
        self.buffers: list[str] = []
        """What was in the file at any time: an editor may have it open still."""
        self.lossy: set[str] = set()
        """Names whose last edit was in the file alone when an older buffer was saved over it."""
        self.overwritten: set[str] = set()
        """Names that were typed, and overwritten before the yard had them."""
        self.edited: dict[str, set[str]] = {"file": {"N1"}, "yard": set()}
        """What was edited on each side since the last sync that came to its end."""
        self.may_end: set[str] = set()
        self.conflicts: set[str] = set()
        self.told: list[str] = [f"{self.dialect}, seed {seed}"]

    # What both sides do

    def document(self) -> Document:
        return dialects.parsed(self.path.read_text(), self.dialect)

    def row(self) -> Row | None:
        rows = [row for row in self.document().rows if name_of(row.title) in self.known]
        return self.chance.choice(rows) if rows else None

    def task(self, *states: State) -> Any:
        tasks = [task for task in self.yard.find(limit=1000) if task.state in states]
        return self.chance.choice(tasks) if tasks else None

    def person_adds(self) -> None:
        name = f"N{next(self.names)}"
        self.known.add(name)
        self.edited["file"].add(name)
        text = self.path.read_text()
        if self.dialect == "mosaic":
            at = text.rindex("|\n") + 2
            self.path.write_text(f"{text[:at]}| | not-started | {name} | | |\n{text[at:]}")
        elif self.dialect == "board":
            self.path.write_text(text.replace("## Todo\n", f"## Todo\n\n### {name}\n", 1))
        else:
            self.path.write_text(f"{text}- [ ] {name}\n")

    def person_edits(self) -> None:
        row = self.row()
        if row is not None:
            name = name_of(row.title)
            self._patch(row, "title", self._edit(name, "file"))

    def person_checks(self) -> None:
        row = self.row()
        if row is not None and row.id:
            self.may_end.add(name_of(row.title))
            document = self.document()
            if document.moves(row, "status", "done"):
                self.path.write_text(patched(document.text, document.move([(row, "done")])))
            else:
                self._patch(row, "status", "done")

    def person_deletes(self) -> None:
        row = self.row()
        if row is not None and row.id and len(self.document().rows) > 3:
            self.may_end.add(name_of(row.title))
            self.path.write_text(patched(self.path.read_text(), [self.document().remove(row)]))

    def person_saves_an_older_buffer(self) -> None:
        """An editor that did not see what came since saves what it had open, perhaps with an edit."""
        now = self.path.read_text()
        older = [text for text in dict.fromkeys(self.buffers) if text != now]
        if older:
            text = self.chance.choice(older[-12:])
            self._overwrite()
            self.path.write_text(text)
            self._outdate()
            self.chance.choice((lambda: None, self.person_edits, self.person_adds))()

    def _overwrite(self) -> None:
        """Note what the file alone has, and is about to lose."""
        titles = {name_of(str(task.title)): str(task.title) for task in self.yard.find(limit=1000)}
        for name, some in self.last.items():
            if titles.get(name) not in some or name in self.conflicts:
                self.lossy.add(name)
        self.overwritten |= self.known - titles.keys()

    def _outdate(self) -> None:
        """Note of which rows the yard has other words by now: to show both loses nothing. Words that no sync has read are an edit."""
        self.outdated = True
        titles = {name_of(str(task.title)): str(task.title) for task in self.yard.find(limit=1000)}
        for row in self.document().rows:
            name = name_of(row.title)
            if titles.get(name) != row.title or not row.id:
                self.edited["yard"].add(name)
                self.edited["file"].add(name)
            if row.title not in self.read:
                self.lossy.add(name)

    def yard_adds(self) -> None:
        name = f"N{next(self.names)}"
        self.known.add(name)
        self.edited["yard"].add(name)
        self.yard.add("task", title=name)

    def yard_edits(self) -> None:
        task = self.task(State.TODO)
        if task is not None:
            self.yard.edit(task.id, title=self._edit(name_of(task.title), "yard"))

    def yard_claims(self) -> None:
        self.yard.claim(worker="bob", lease=1000)

    def yard_ends(self) -> None:
        for claim in self.yard.resume("bob")[:1]:
            self.may_end.add(name_of(str(claim.task.title)))
            end = self.chance.choice(("done", "release", "fail"))
            getattr(claim, end)(*(("no", False) if end == "fail" else ()))

    def yard_cancels(self) -> None:
        task = self.task(State.TODO, State.PROCESSING)
        if task is not None:
            self.may_end.add(name_of(task.title))
            self.yard.cancel(task.id)

    def _edit(self, name: str, side: str) -> str:
        title = f"{name} plan-{name} e{next(self.names)}"
        self.last[name] = [title]
        self.lossy.discard(name)
        self.told.append(f"{title} in the {side}")
        self.edited[side].add(name)
        return title

    def _patch(self, row: Row, name: str, value: str) -> None:
        document = self.document()
        self.path.write_text(patched(document.text, document.set(row, name, value)))

    # Syncs

    def sync(self, mortal: bool = True) -> Report | None:
        """Sync once, perhaps with a save in the middle, perhaps killed."""
        kill = mortal and self.chance.random() < 0.5
        self.fate.left, self.fate.after = (
            (self.chance.randint(1, 8), self.chance.random() < 0.5) if kill else (None, False)
        )
        self.fate.during = self.chance.choice((None, None, self.person_edits, self.person_adds)) if mortal else None
        before = {side: set(names) for side, names in self.edited.items()}
        titles = {row.title for row in self.document().rows}
        try:
            report = syncing.sync(MortalYard(self.yard, self.fate), str(self.path), syncing.Options("ada"))
        except Killed:
            self.told.append("killed")
            return None
        except Conflict as error:
            self.told.append(error.message)
            if "open tasks are gone" not in error.message:
                raise
            self.fate.left = self.fate.during = None
            self._overwrite()
            self.path.write_text(self.left)  # as the message says
            return None
        finally:
            self.fate.left = self.fate.during = None
        self.left = self.path.read_text()
        self.read |= titles
        self.told += [f"  {notice['message']}" for notice in report.notices] + [f"  {one}" for one in report.conflicts]
        self._no_false_conflict(report, before)
        self.outdated = False
        held = {notice["row"] for notice in report.notices if notice["code"] == "held"}
        self.edited = {"file": {name_of(row.title) for row in self.document().rows if row.id in held}, "yard": set()}
        return report

    def _no_false_conflict(self, report: Report, before: dict[str, set[str]]) -> None:
        for one in report.conflicts:
            name = name_of(one["yard"])
            sides = ("file",) if self.outdated else ("file", "yard")
            both = all(name in self.edited[side] or name in before[side] for side in sides)
            assert both or name in self.conflicts, f"{one} is no conflict: {self.told}"
        self.conflicts = {name_of(one["yard"]) for one in report.conflicts}


def name_of(title: str) -> str:
    return title.split(" ", maxsplit=1)[0]


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> list[Fate]:
    """Have each write of the base, and each exchange of the file, be a place where the sync may be killed."""
    current: list[Fate] = []
    save, replace = bases.Base.save, file.replace

    def replaced(path: str, before: str | None, text: str) -> None:
        fate = current[0]
        if fate.during is not None:
            act, fate.during = fate.during, None
            act()
        fate.around(replace, path, before, text)

    monkeypatch.setattr(bases.Base, "save", lambda base: current[0].around(save, base))
    monkeypatch.setattr(file, "replace", replaced)
    return current


# With the proofs in four parts, so that one test is not the longest of all.
PARTS = [range(60), *(pytest.param(range(at, at + 250), marks=pytest.mark.proof) for at in range(0, 1000, 250))]


@pytest.mark.parametrize("seeds", PARTS, ids=str)
def test_no_edit_and_no_task_is_lost_whatever_happens_in_between(
    seeds: range, tmp_path: Path, mortal: list[Fate]
) -> None:
    for seed in seeds:
        story = Story(seed, tmp_path)
        mortal[:] = [story.fate]
        play(story)
        story.yard.close()


def play(story: Story) -> None:
    acts: list[tuple[Callable[[], object], int]] = [
        (story.person_adds, 3), (story.person_edits, 5), (story.person_checks, 2), (story.person_deletes, 1),
        (story.person_saves_an_older_buffer, 2),
        (story.yard_adds, 3), (story.yard_edits, 5), (story.yard_claims, 3),
        (story.yard_ends, 3), (story.yard_cancels, 1), (story.sync, 8),
    ]  # fmt: skip
    for _ in range(40):
        [act] = story.chance.choices([act for act, _ in acts], [weight for _, weight in acts])
        story.told.append(act.__name__)
        with contextlib.suppress(TaskyardError) if act is not story.sync else contextlib.nullcontext():
            act()
        story.buffers.append(story.path.read_text())
        judge(story)
    finish(story)


def judge(story: Story) -> None:
    """No task is there twice, and none has ended that was not to end."""
    tasks = list(story.yard.find(limit=1000))
    names = [name_of(str(task.title)) for task in tasks if not task.state.ended]
    assert len(names) == len(set(names)), f"{sorted(names)}: {story.told}"
    ended = {name_of(str(task.title)) for task in tasks if task.state in (State.CANCELLED, State.DONE)}
    assert ended <= story.may_end, f"{ended - story.may_end} ended by themselves: {story.told}"


def finish(story: Story) -> None:
    """Sync until both sides rest: every task is there, and the last edit of each can be seen."""
    story.fate.left = None
    for _ in range(3):
        report = story.sync(mortal=False)
    assert report is not None
    assert not report.changed, (report.as_dict(), story.told)
    text, tasks = story.path.read_text(), {name_of(str(task.title)): task for task in story.yard.find(limit=1000)}
    judge(story)
    assert story.known - set(tasks) <= story.may_end | story.overwritten, (
        f"{story.known - set(tasks)} lost: {story.told}"
    )
    names = [name_of(str(task.title)) for task in story.yard.find(limit=1000)]
    again = {name for name in names if names.count(name) > 1}  # a line that came again after its task had ended
    for name, [title] in story.last.items():
        if name in tasks and not tasks[name].state.ended and name not in story.may_end | story.lossy | again:
            assert title in (tasks[name].title, *shown(text, name)), f"{title} lost: {story.told}\n{text}"
    conflicts = {name_of(one["yard"]) for one in report.conflicts}
    held = {notice["row"] for notice in report.notices if notice["code"] == "held"}
    for row in dialects.parsed(text, story.dialect).rows:
        name = name_of(row.title)
        if name in tasks and name not in conflicts | again and row.id not in held:
            assert row.title == tasks[name].title, story.told


def shown(text: str, name: str) -> list[str]:
    """All titles of a task that can be read in the file, in remarks as well."""
    import re

    return re.findall(rf"\b{name} plan-{name} e\d+", text)
