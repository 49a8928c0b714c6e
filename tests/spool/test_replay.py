"""What a replay must not do: lose an entry, hold up others behind one that cannot go on, or take the yard's upkeep with it."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Away, Unavailable
from taskyard.core.draft import Draft
from taskyard.core.task import Handle
from taskyard.spool import entries
from taskyard.spool.folder import Folder
from taskyard.spool.replay import Replay
from tests.servers import postgres
from tests.spool.conftest import files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard

GONE = Handle.parse("00006a7wt1hyd7m2ax611.1.wvyxx1vy1")


@pytest.fixture
def place(folder: Path) -> str:
    """A yard that is there all the time; what an outage would have left is put into its spool."""
    url = postgres.url_in(postgres.database())
    taskyard.init(url).close()
    assert folder.is_dir()
    return url


@pytest.fixture
def yard(place: str) -> Iterator[Yard]:
    with taskyard.open(place, worker="ada") as opened:
        yield opened


def spooled(folder: Path, *tasks: dict[str, Any]) -> list[str]:
    """Put an add of these tasks into the spool; their promised ids."""
    [spool] = folder.iterdir()
    drafts = [Draft.of(fields) for fields in tasks]
    Folder(str(spool)).put(entries.added(drafts, "ada", Away()))
    return [str(draft.id) for draft in drafts]


def ended(folder: Path, handle: Handle, **brought: Any) -> None:
    """Put a done into the spool."""
    [spool] = folder.iterdir()
    Folder(str(spool)).put(entries.ended(entries.DONE, handle, "ada", "ada", **brought))


def test_an_entry_that_is_refused_while_refused_ones_are_given_back_is_kept(
    yard: Yard, place: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(folder, GONE)
    remove = Folder.remove

    def removed_late(self: Folder, name: str) -> None:
        with taskyard.open(place) as other, pytest.raises(Unavailable, match="another process"):
            other.replay_spool(failed=True)
        remove(self, name)

    monkeypatch.setattr(Folder, "remove", removed_late)
    assert yard.replay_spool()["failed"] == 1
    assert len(files(folder, "failed")) == 1


def test_an_add_that_can_never_fit_holds_up_no_other(yard: Yard, folder: Path) -> None:
    yard.set_settings({"max_todo": 2})
    spooled(folder, *[{"kind": "large"}] * 3)
    spooled(folder, {"kind": "small"})
    told = yard.replay_spool()
    assert (told["replayed"], told["failed"], told["left"]) == (1, 1, 0)
    assert told["entries"][0]["error"]["code"] == "full"
    assert [task.kind for task in yard.find()] == ["small"]


def test_a_kind_that_is_full_holds_up_no_other_kind_and_loses_nothing_that_comes_after_it(
    yard: Yard, folder: Path
) -> None:
    yard.set_settings({"kinds": {"slow": {"max_todo": 1}}})
    yard.add("slow")
    [first] = spooled(folder, {"kind": "slow"})
    spooled(folder, {"kind": "after", "after": [first]})
    spooled(folder, {"kind": "quick"})
    told = yard.replay_spool()
    assert (told["replayed"], told["failed"], told["left"]) == (1, 0, 2)
    assert sorted(task.kind for task in yard.find()) == ["quick", "slow"]
    yard.claim(kinds="slow")
    assert yard.replay_spool()["replayed"] == 2
    [follower] = yard.find(kind="after")
    assert yard.get(follower.id).after == [first]


def test_a_task_that_was_known_by_its_key_is_followed_also_if_its_replay_was_killed(yard: Yard, folder: Path) -> None:
    there = yard.add("build", key="one")
    [promised] = spooled(folder, {"kind": "build", "key": "one"})
    [file] = files(folder)
    entry = file.read_bytes()
    assert yard.replay_spool()["replayed"] == 1
    # as if it had been killed before it noted the id, and removed the entry
    (file.parent.parent / "ids" / promised).unlink()
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(entry)
    spooled(folder, {"kind": "ship", "after": [promised]})
    assert yard.replay_spool()["failed"] == 0
    [follower] = yard.find(kind="ship")
    assert yard.get(follower.id).after == [there.id]


def test_two_threads_that_replay_leave_the_upkeep_of_the_yard_on(
    yard: Yard, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spooled(folder, {"kind": "build"})
    begun = {"first": threading.Event(), "late": threading.Event()}
    ends = {"first": threading.Event(), "late": threading.Event()}
    go = Replay.go

    def held(self: Replay, *given: Any) -> None:
        name = threading.current_thread().name
        begun[name].set()
        assert ends[name].wait(50)
        go(self, *given)

    monkeypatch.setattr(Replay, "go", held)
    threads = [threading.Thread(target=yard.replay_spool, name=name) for name in begun]
    for thread in threads:
        thread.start()
        assert begun[thread.name].wait(50)
    for thread in threads:
        ends[thread.name].set()
        thread.join()
    assert yard.tends


def test_an_ending_is_kept_also_where_the_folder_or_the_reason_is_no_utf_8(
    yard: Yard, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [yard.add("build").id for _ in range(2)]
    one, other = (yard.claim(id) for id in ids)
    assert one is not None
    assert other is not None
    strange = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(strange)
    monkeypatch.chdir(strange)  # type: ignore[arg-type]

    def away(*_: object) -> list[bool]:
        raise Away

    with monkeypatch.context() as outage:
        outage.setattr(type(yard._store), "shift", away)
        one.done({"good": True})
        assert str(other.fail("bad byte \udce9")) == "processing"
    assert yard.replay_spool()["replayed"] == 2
    assert yard.get(ids[0]).result == {"good": True}
    assert yard.report(ids[1]).history[-1]["reason"] == "bad byte ?"


def test_a_spool_that_others_can_write_is_named_and_not_said_to_be_replayed(
    yard: Yard, place: str, folder: Path
) -> None:
    spooled(folder, {"kind": "build"})
    [spool] = folder.iterdir()
    spool.chmod(0o777)
    with pytest.raises(taskyard.Invalid, match="others can write"):
        yard.replay_spool()
    with taskyard.open(place) as other:
        assert other.claim() is None
        assert any("others can write" in notice for notice in other.notices)


def test_an_entry_that_is_replayed_before_its_folder_is_synced_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(str(tmp_path / "spool"))
    rename = os.rename

    def replayed_at_once(old: str, new: str) -> None:
        rename(old, new)
        folder.remove(new.rpartition("/")[2].removesuffix(".json"))
        folder.tidy()

    monkeypatch.setattr(os, "rename", replayed_at_once)
    assert folder.put({"verb": "add"})
    assert folder.names() == []
