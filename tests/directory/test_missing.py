"""Nothing is concluded from not finding: what would be removed or let go because a task is gone waits for proof."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.core import moves
from taskyard.stores.directory.filesystem.disk import Disk
from taskyard.stores.directory.recovery import edges, missing, segments
from taskyard.stores.directory.store import DirectoryStore
from taskyard.yard import Yard
from tests.conftest import taken, wait_until
from tests.directory.staging import Step, yard_on

if TYPE_CHECKING:
    from collections.abc import Iterator

SWEEPS = 6  # more than it takes to call a task gone


def state(yard: Yard, id: str) -> str:
    return str(yard.get(id).state)


class Churn:
    """Has a task be claimed and handed back between any two listings of others, so that no pass over the yard sees it."""

    def __init__(self, url: str, id: str) -> None:
        self._yard = taskyard.open(url, worker="churner")
        self._id = id
        self._claim: Any = None
        self.moves = 0

    def cue(self, name: str, paths: str, made: bool) -> None:
        """Move the task out of the folder that is about to be listed."""
        if name != "listdir" or made:
            return
        if self._claim is None and "/todo/" in paths:
            [self._claim] = self._yard._store.claim(self._yard._want(self._id, None, None, None), [self._yard._nonce()])
        elif self._claim is not None and paths.endswith("/processing"):
            move = moves.released(self._claim.standing, 0.0, None)
            assert self._yard._store.shift([(self._claim.standing, move)], "churner") == [True]
            self._claim = None
        else:
            return
        self.moves += 1


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sweep walks through the only segment there is with edges, and nothing has to be left alone for long."""
    monkeypatch.setattr(edges, "_PER_ROUND", 1)
    monkeypatch.setattr(segments, "_PER_ROUND", 1)


@pytest.fixture
def hasty(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if ten minutes were over at once."""
    for module in (segments, edges):
        monkeypatch.setattr(module, "PATIENCE", -1)


@pytest.mark.usefixtures("quick")
def test_a_follower_waits_for_a_task_that_slips_past_every_look(url: str) -> None:
    with taskyard.open(url) as yard:
        need = yard.add("build").id
        follower = yard.add("ship", after=need).id
    churn = Churn(url, need)
    with yard_on(url, churn.cue) as yard:
        with pytest.raises(taskyard.NotFound):
            yard.get(need)  # not even all passes of one look find it
        for _ in range(SWEEPS):
            yard.sweep()
    assert churn.moves > 4 * SWEEPS
    with taskyard.open(url) as yard:
        assert state(yard, follower) == "blocked"
        assert os.listdir(f"{url}/needs/{follower[:4]}/{follower}") == [need]


@pytest.mark.usefixtures("quick")
def test_what_an_edited_task_says_outlives_looks_that_miss_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "is_left", lambda *_: True)  # it was edited long ago
    with taskyard.open(url) as yard:
        id = yard.add("build").id
        yard.edit(id, data={"n": 9})
        claim = taken(yard.claim(id))
        claim.note("half of it")
        claim.fail("it broke")
        yard.retry(id)
    churn = Churn(url, id)
    with yard_on(url, churn.cue) as yard:
        for _ in range(SWEEPS):
            yard.sweep()
    with taskyard.open(url) as yard:
        report = yard.report(id)
        assert report.task.data == {"n": 9}
        assert [note["text"] for note in report.notes] == ["half of it"]
        assert "it broke" in [entry["reason"] for entry in report.history]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("made", [True, False])
def test_what_an_edit_says_outlives_a_sweep_that_comes_while_the_editor_stands_still(url: str, made: bool) -> None:
    with taskyard.open(url, worker="bob") as bob:
        id = bob.add("build").id

        def sweep() -> None:
            bob.sweep()
            assert not list(Path(url, "edits").rglob("*.json"))
            if not made:
                bob.cancel(id)

        step = Step("before", "rename", ".c0.b", sweep)
        with yard_on(url, step) as yard:
            if made:
                yard.edit(id, data={"n": 9})
            else:
                with pytest.raises(taskyard.Conflict):
                    yard.edit(id, data={"n": 9})
            assert step.taken
        assert bool(list(Path(url, "edits").rglob("*.json"))) == made
        if made:
            assert taken(bob.claim(id)).task.data == {"n": 9}


@pytest.mark.usefixtures("hasty")
def test_a_need_of_a_task_that_is_gone_is_met_after_several_sweeps(url: str) -> None:
    with taskyard.open(url) as yard:
        need = yard.add("build").id
        follower = yard.add("ship", after=need).id
        [path] = Path(url, "todo").rglob(f"{need}*")
        path.unlink()
        wait_until(lambda: (yard.sweep(), os.path.exists(f"{url}/tmp/{need}.missing"))[1])
        assert state(yard, follower) == "blocked"
    with taskyard.open(url) as yard:  # whichever process sweeps
        wait_until(lambda: (yard.sweep(), state(yard, follower) == "todo")[1])


@pytest.mark.usefixtures("hasty")
def test_a_task_that_is_found_again_was_never_missing(url: str) -> None:
    with taskyard.open(url) as yard:
        need = yard.add("build").id
        follower = yard.add("ship", after=need).id
        [path] = Path(url, "todo").rglob(f"{need}*")
        note = f"{url}/tmp/{need}.missing"
        for _ in range(SWEEPS):
            hidden = path.rename(f"{url}/{path.name}")
            wait_until(lambda: (yard.sweep(), os.path.exists(note))[1])
            path.parent.mkdir(parents=True, exist_ok=True)
            hidden.rename(path)
            wait_until(lambda: (yard.sweep(), not os.path.exists(note))[1])
            assert state(yard, follower) == "blocked"


def test_a_note_that_nobody_needs_any_more_is_removed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with taskyard.open(url) as yard:
        id = yard.add("build").id
        note = Path(url, "tmp", f"{id[:-1]}{'0' if id[-1] != '0' else '1'}.missing")
        note.write_bytes(b"1\n")
        monkeypatch.setattr(missing, "_KEPT", 1 << 60)
        yard.sweep()
        assert note.read_bytes() == b"1\n."
        monkeypatch.undo()
        yard.sweep()
        assert not note.exists()


class Barred(Disk):
    """A disk on which one folder is another user's, who keeps it to himself."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def _check(self, path: str) -> None:
        if f"{path}/".startswith(f"{self._folder}/") and path != self._folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    def _open(self, path: str, flags: int) -> int:  # type: ignore[override]
        if path == self._folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        self._check(path)
        return os.open(path, flags)

    def _status(self, path: str) -> os.stat_result:  # type: ignore[override]
        self._check(path)
        return os.lstat(path)

    def has(self, path: str) -> bool:
        return not f"{path}/".startswith(f"{self._folder}/") and super().has(path)


def barred(url: str, folder: str) -> Iterator[Yard]:
    yield Yard(DirectoryStore(url, disk=Barred(f"{url}/{folder}")), worker="other")


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("place", ["todo/5-build", "todo/5-build/0000"])
def test_a_task_in_a_folder_that_cannot_be_read_is_not_gone(url: str, place: str) -> None:
    with taskyard.open(url) as yard:
        need = yard.add("build").id
        follower = yard.add("ship", after=need).id
    [other] = barred(url, place)
    with pytest.raises(taskyard.Unavailable):
        other.get(need)
    for _ in range(SWEEPS):
        other._store.upkeep.mend("other")
    with taskyard.open(url) as yard:
        assert state(yard, follower) == "blocked"


@pytest.mark.usefixtures("hasty")
def test_needs_that_cannot_be_read_are_not_met(url: str) -> None:
    with taskyard.open(url) as yard:
        need = yard.add("build").id
        follower = yard.add("ship", after=need).id
    [other] = barred(url, f"needs/{follower[:4]}")
    for _ in range(SWEEPS):
        other._store.upkeep.mend("other")
    with taskyard.open(url) as yard:
        assert state(yard, follower) == "blocked"
        assert os.listdir(f"{url}/followers/{need[:4]}/{need}") == [follower]
