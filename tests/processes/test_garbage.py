"""Things in the yard that are no tasks: left where they are, counted by nobody, in nobody's way. And tasks that have become garbage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.core.ids import LENGTH
from tests.conftest import taken, wait_until
from tests.processes import tools

if TYPE_CHECKING:
    from taskyard import Yard

ID = "0" * LENGTH
FILES = (
    "README", "notes.txt", "notes.json", ".hidden", ".json", ".nfs0000000000a1b2c3", "~", "#0000#", "0000", "0000.json", "0000.", "0000x.bak.json",
    "0000.0.e0.c0.json", "0000a.b.c.d.json", "0000a.x.e0.c0.json", "0000-a.0.e0.c0.json", f"{ID}.json", f"{ID}.0.json",
    f"{ID}.x.e0.c0.json", f"{ID}.0.e0.json", f"{ID}.0.ex.c0.json", f"{ID}.0.e0.c0.json.tmp",
    f"{ID}.0.e0.c0.json~", f"{ID}.0.e0.c0.q7.json", f"{ID}.1.e0.c0.5-build.l1.json",
    f"{ID}.1.e0.c0.5-build.lx.ada-00000000.json", "a.b.c.d.e.f.g.h.json", "....json", "größe.json", "a b\n.json", "²",
)  # fmt: skip


def litter(folder: Path) -> None:
    """Leave in this folder what editors, file servers, backups and people leave."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if not (folder / name).exists():
            (folder / name).write_bytes(b"garbage")
    for name in ("empty", ".git", "folder.json", "zzzz.json"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "full").mkdir()
    (folder / "full" / "file").write_bytes(b"")
    for name, target in (
        ("dangling", "nowhere"),
        ("dangling.json", "nowhere"),
        ("loop", "loop"),
        ("up", ".."),
        ("file.json", "README"),
    ):
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe")


def files(root: Path) -> set[str]:
    """All that is in this folder and below it, but for folders: an empty one may be cleared away."""
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_symlink() or not path.is_dir()}


WHERE = {
    "a lane": "todo/5-build",
    "a segment": "todo/5-build/SEGMENT",
    "waiting": "waiting",
    "processing": "processing",
    "done": "done",
    "done tasks": "done/SEGMENT",
    "failed tasks": "failed/SEGMENT",
    "cancelled tasks": "cancelled/SEGMENT",
    "results": "results/SEGMENT",
    "segments": "segments",
    "turns": "turns",
    "tmp": "tmp",
    "events": "events",
    "attempts": "attempts/SEGMENT",
    "blocked": "blocked/SEGMENT",
    "the yard": ".",
}


@pytest.mark.damages("garbage is planted")
@pytest.mark.parametrize("where", WHERE)
def test_garbage_is_in_nobodys_way(place: str, where: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        ids = yard.add_many([{"kind": "build"}] * 4)
        waiting = yard.add("build", delay=3600).id
        taken(yard.claim(ids[0])).done("first")
        taken(yard.claim(ids[1])).fail("broken", retry=False)
    folder = Path(place, WHERE[where].replace("SEGMENT", ids[0][:4]))
    before = files(folder)
    litter(folder)
    left = files(folder) - before
    with taskyard.open(place, worker="ada") as yard:
        goes_on_as_ever(yard, ids, waiting)
    assert tools.taskyard(place, "stats").data["counts"]["done"] == 3
    told = tools.taskyard(place, "janitor").data
    assert {told[name] for name in ("taken", "reaped", "woken", "mended")} == {0}
    assert sorted(left - files(folder)) == [], "somebody's files were moved"


def goes_on_as_ever(yard: Yard, ids: list[str], waiting: str) -> None:
    counts = {"waiting": 1, "blocked": 0, "todo": 2, "processing": 0, "done": 1, "failed": 1, "cancelled": 0}
    assert yard.counts() == counts
    assert [task.id for task in yard.find()] == [*ids, waiting]
    assert [task.id for task in yard.ready()] == ids[2:]
    assert (yard.get(ids[0]).result, yard.get(ids[1]).error) == ("first", "broken")
    assert set(yard.sweep().as_dict().values()) == {0}
    assert [yard.get(short).id for short in yard.shorten(ids)] == ids
    second, third = taken(yard.claim()), taken(yard.claim(lease=0.1))
    assert [second.task.id, third.task.id] == ids[2:]
    assert yard.claim(lease=60, kinds=["test"]) is None
    second.note("a word")
    second.done("second")
    assert wait_until(lambda: yard.sweep().reaped) == 1
    again = taken(yard.claim())
    assert (again.task.id, again.fence, len(again.history)) == (ids[3], third.fence + 2, 1)
    again.done()
    yard.cancel(waiting)
    added = yard.add("build").id
    taken(yard.claim()).release()
    yard.cancel(added)
    assert yard.claim() is None
    assert [task.id for task in yard.find()] == [*ids, waiting, added]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"taskyard":1,"id":',
        b"\x00" * 100,
        b"\xff\xfe",
        b"[]",
        b"null\n",
        b'{"a": 1}',
        b'{"taskyard":2,"data":{}}\n',
        b"[" * 100_000,
        b'{"taskyard":1,"id":x}\n',
    ],
    ids=["empty", "brace", "cut", "zeros", "no-utf8", "list", "null", "foreign", "newer", "deep", "middle"],
)
def test_a_task_whose_file_has_become_garbage_is_failed_and_the_next_is_handed_out(place: str, content: bytes) -> None:
    with taskyard.open(place) as yard:
        broken, whole = yard.add_many([{"kind": "build"}] * 2)
        [path] = [path for _, token, path in tools.task_files(place) if token.id == broken]
        path.write_bytes(content)
        assert sorted(task.id for task in yard.find()) == sorted([broken, whole])
        claim = taken(yard.claim())
        assert claim.task.id == whole
        claim.done()
        assert yard.claim() is None
        task = yard.get(broken)
        assert (task.state, task.kind) == ("failed", "build")
        assert task.error is not None
        assert "file" in task.error
    shown = tools.taskyard(place, "show", broken).data
    assert (shown["task"]["state"], shown["history"][0]["outcome"], shown["history"][0]["reason"]) == (
        "failed",
        "error",
        task.error,
    )
    [path] = [path for _, token, path in tools.task_files(place) if token.id == broken]
    assert path.read_bytes() == content, "what is left of it is kept"


def test_a_command_line_walks_past_a_broken_task(place: str) -> None:
    ids = [tools.taskyard(place, "add", "build", "--data", '{"some": "data"}').data["task"]["id"] for _ in range(2)]
    [path] = [path for _, token, path in tools.task_files(place) if token.id == ids[0]]
    os.truncate(path, 20)
    named = tools.taskyard(place, "claim", ids[0])
    assert named.code in (3, 7), named.out
    assert tools.taskyard(place, "claim").data["task"]["id"] == ids[1]
    assert tools.taskyard(place, "claim").code == 3
    tasks: list[dict[str, Any]] = tools.taskyard(place, "list").data["tasks"]
    assert [(task["id"], task["state"]) for task in tasks] == [(ids[1], "processing"), (ids[0], "failed")]


@pytest.mark.damages("a folder is emptied")
@pytest.mark.parametrize(
    "folder",
    [
        "todo",
        "waiting",
        "processing",
        "done",
        "failed",
        "cancelled",
        "results",
        "attempts",
        "tmp/clock",
        "events",
        "turns",
    ],
)
def test_an_emptied_folder_is_no_crash(place: str, folder: str) -> None:
    """`rm` by hand loses what it removes, and nothing else."""
    import shutil

    with taskyard.open(place) as yard:
        yard.add_many([{"kind": "build"}] * 3)
        taken(yard.claim()).done("result")
        taken(yard.claim(lease=0.001)).note("a word")
    target = Path(place, folder)
    if target.is_dir():
        shutil.rmtree(target)
        target.mkdir()
    else:
        target.unlink(missing_ok=True)
    with taskyard.open(place) as yard:
        yard.sweep()
        yard.find()
        yard.counts()
        claim = yard.claim()
        assert claim is not None or folder == "todo"
        yard.add("more")
        taken(yard.claim(kinds=["more"])).done("result")
