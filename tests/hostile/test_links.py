"""Links that somebody planted in the yard are not followed: nothing outside it is read, changed, made or removed."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.stores.directory.layout import FOLDERS
from tests.conftest import sampled
from tests.hostile import verbs

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "told to nobody"


def everything(root: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """All that is there, with its times: whatever is done to it shows."""
    found = {}
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(root))] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, content)
    return found


PLACES = (
    "todo/5-lint", "todo/5-lint/SEG", "todo/5-lint/SEG/TASK", "todo/5-build", "waiting/BUCKET", "waiting/BUCKET/SEG", "waiting/BUCKET/SEG/TASK",
    "blocked/SEG", "blocked/SEG/TASK", "processing/TASK", "done/SEG", "done/SEG/TASK", "failed/SEG", "failed/SEG/TASK", "cancelled/SEG",
    "results/SEG", "results/SEG/TASK", "attempts/SEG", "attempts/SEG/TASK", "attempts/SEG/TASK/CLAIM", "attempts/SEG/TASK/CLAIM/notes.jsonl",
    "attempts/SEG/TASK/CLAIM/log.txt", "edits/SEG", "edits/SEG/TASK", "needs/SEG", "needs/SEG/TASK", "followers/SEG", "followers/SEG/TASK",
    "keys/KEY", "keys/KEY/TASK", "segments/SEG", "events/PAGE", "turns/0", "tmp/clock", "failed/broken.json", "failed/broken.reason",
    "paused/never",
)  # fmt: skip


def found(root: Path, place: str) -> Path:
    """The first path of this form."""
    *folders, name = place.split("/")
    candidates = [root]
    for part in [*folders, name]:
        plain = not part.isupper()
        candidates = [
            entry
            for candidate in candidates
            if candidate.is_dir()
            for entry in sorted(candidate.iterdir())
            if (
                entry.name == part
                if plain
                else not (place.startswith(("failed", "todo")) and entry.name.startswith("broken"))
            )
        ]
    assert candidates, f"the yard has no {place}"
    return candidates[0]


LINKS = [(place, target) for place in PLACES for target in ("the thing itself", "a folder of somebody's", "nothing")]


@sampled("link", LINKS, LINKS[::4])
def test_a_link_in_the_yard_leads_nowhere(tmp_path: Path, link: tuple[str, str]) -> None:
    place, target = link
    yard = verbs.Yard(tmp_path / "yard")
    path = found(yard.path, place)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "folder").mkdir()
    (outside / "folder" / "secret.json").write_text(f'{{"secret": "{SECRET}"}}\n')
    if path.is_dir():
        shutil.copytree(path, outside / "itself")
        shutil.rmtree(path)
    else:
        shutil.copy2(path, outside / "itself")
        path.unlink()
    ends = {"the thing itself": "itself", "a folder of somebody's": "folder"}
    path.symlink_to(outside / ends.get(target, "nothing"))
    before = everything(outside)
    verbs.use(yard)
    verbs.work_goes_on(yard.path)
    assert everything(outside) == before
    with taskyard.open(str(yard.path), worker="ada") as opened:
        assert SECRET not in str([opened.report(id).task.as_dict() for id in yard.ids if opened_knows(opened, id)])


def opened_knows(yard: taskyard.Yard, id: str) -> bool:
    try:
        yard.get(id)
    except taskyard.NotFound:
        return False
    return True


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_link_in_the_place_of_a_standing_folder_is_refused(tmp_path: Path, folder: str) -> None:
    yard = verbs.Yard(tmp_path / "yard")
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.move(yard.path / folder, outside / folder)
    (yard.path / folder).symlink_to(outside / folder)
    before = everything(outside)
    for argv in (["add", "build"], ["claim"], ["list"], ["janitor"], ["init", str(yard.path)]):
        said = verbs.say(yard.path, *argv)
        assert (said.code, said.envelope["error"]["code"]) == (8, "unavailable"), said
        assert folder in said.envelope["error"]["message"]
    assert everything(outside) == before


def test_a_yard_may_itself_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert verbs.say(tmp_path / "link" / "yard", "init").code == 0
    (tmp_path / "direct").symlink_to("real/yard")
    verbs.work_goes_on(tmp_path / "direct")


def test_init_does_not_follow_links_to_complete_a_yard(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "yard").mkdir()
    (tmp_path / "yard" / "tmp").symlink_to(outside)
    before = everything(outside)
    assert verbs.say(tmp_path / "yard", "init").code == 8
    assert everything(outside) == before


@pytest.mark.parametrize("make", ["link", "pipe", "folder", "huge", "deep"])
def test_settings_that_are_no_file_are_refused_at_once(tmp_path: Path, make: str) -> None:
    yard = verbs.Yard(tmp_path / "yard")
    settings = yard.path / "yard.json"
    kept = tmp_path / "kept.json"
    shutil.move(settings, kept)
    if make == "link":
        settings.symlink_to(kept)
    elif make == "pipe":
        os.mkfifo(settings)
    elif make == "folder":
        settings.mkdir()
    elif make == "huge":
        with settings.open("wb") as file:
            file.truncate(1 << 40)
    else:
        settings.write_text("[" * 100_000)
    for argv in (["add", "build"], ["init", str(yard.path)]):
        said = verbs.say(yard.path, *argv)
        assert (said.code, said.envelope["error"]["code"]) == (8, "unavailable"), said
