"""Good places and bad ones, all of them real: what each does is found out, and what is wrong with it is said."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import sampled
from tests.doctor import grounds
from tests.doctor.grounds import checks, examined, odd, remarkable
from tests.processes import tools

if TYPE_CHECKING:
    from pathlib import Path

MAKE = f"{tools.IN_SHELL} init place/yard >/dev/null\n"
TMPFS = "mount -t tmpfs -o size=256m tmpfs place\n"
EXT4 = "truncate -s 256M image; mkfs.ext4 -q image; mount -o loop image place\n"
OVERLAY = "mkdir lower upper work; mount -t tmpfs -o size=256m tmpfs upper; mkdir upper/u upper/w; mount -t overlay -o lowerdir=lower,upperdir=upper/u,workdir=upper/w overlay place\n"  # fmt: skip
DESTRUCTIVE = re.compile(r"\brm\b|rmdir|delete|remove|--force|mkfs|wipe|start afresh|init --", re.IGNORECASE)


@pytest.mark.parametrize(("kind", "setting"), [("tmpfs", TMPFS), ("ext4", EXT4), ("overlay", OVERLAY)])
@pytest.mark.parametrize("yard", [True, False], ids=["a yard", "no yard yet"])
def test_a_good_place_is_green(kind: str, setting: str, yard: bool, tmp_path: Path) -> None:
    if kind == "ext4":
        grounds.as_root()
    answer = examined(setting + (MAKE if yard else ""), tmp_path, "place/yard" if yard else "place")
    assert remarkable(answer) == {}
    found = checks(answer)
    assert found["filesystem"]["type"] == kind
    assert found["yard"]["is_yard"] is yard
    assert (found["race"]["files"], sum(found["race"]["won"]), found["race"]["won_twice"]) == (1000, 1000, 0)
    assert found["rename"]["moves"] >= (22 * 21 if yard else 3 * 2)
    assert found["locks"] | {"trusted": True, "seen": True, "freed_by_death": True} == found["locks"]


# What the quirk is, and which checks have to notice it. (That it is a FUSE filesystem is a remark by itself.)
QUIRKS: dict[str, dict[str, str]] = {
    "": {},
    "copy": {"descriptor": "refuse", "cost": "refuse", "links": "refuse"},
    "copy,bypath,nolinks": {"cost": "refuse", "links": "warn"},
    "copy,renumber": {"rename": "refuse", "descriptor": "refuse", "cost": "refuse", "links": "refuse"},
    "copy,bypath": {"cost": "refuse", "links": "refuse"},
    "keep": {"descriptor": "refuse", "cost": "refuse", "links": "refuse", "sync": "refuse", "race": "refuse"},
    "fold": {"case": "warn"},
    "lower": {"case": "refuse"},
    "composed": {"letters": "warn"},
    "short": {"length": "refuse"},
    "nolinks": {"links": "warn"},
    "nosync": {"sync": "refuse"},
    "still": {"times": "refuse"},
    "coarse": {"granularity": "warn"},
    "ahead": {"clock": "warn"},
    "full": {"space": "refuse"},
}


@sampled("quirks", QUIRKS, ("", "copy,renumber"))
def test_what_a_place_does_is_found_out_whatever_it_is_called(quirks: str, tmp_path: Path) -> None:
    answer = grounds.run(odd(quirks, tmp_path, *grounds.DOCTOR, str(tmp_path / "place")))
    assert remarkable(answer) == {"filesystem": "warn", **QUIRKS[quirks]}
    for check in checks(answer).values():
        assert not DESTRUCTIVE.search(check["hint"] or "")
    assert os.listdir(tmp_path / "backing") == []


@pytest.mark.parametrize("quirks", ["copy", "copy,renumber", "copy,bypath"])
def test_no_yard_is_made_where_a_rename_is_a_copy(quirks: str, tmp_path: Path) -> None:
    answer = grounds.run(odd(quirks, tmp_path, *tools.COMMAND, "init", "--json", str(tmp_path / "place" / "yard")))
    assert (answer.code, answer.error["code"]) == (8, "unavailable")
    assert "makes a copy" in answer.error["message"]
    assert answer.error["hint"]
    assert not (tmp_path / "backing" / "yard" / "yard.json").exists()


def test_a_yard_is_made_where_a_rename_is_one_with_a_warning_about_what_is_not_known(tmp_path: Path) -> None:
    answer = grounds.run(odd("fold", tmp_path, *tools.COMMAND, "init", "--json", str(tmp_path / "place" / "yard")))
    assert [warning.split(":")[0] for warning in answer.data["warnings"]] == [
        "this is a FUSE filesystem (fuse.oddfs of oddfs)",
        "names that differ only in case are one name here",
    ]


@sampled("kind", ["fuse.rclone", "fuse.s3fs"], ["fuse.s3fs"])
def test_a_filesystem_of_ill_repute_is_refused_however_it_behaves(kind: str, tmp_path: Path) -> None:
    answer = grounds.run(odd("", tmp_path, *grounds.DOCTOR, str(tmp_path / "place"), kind=kind))
    assert remarkable(answer) == {"filesystem": "refuse"}
    assert "copies and deletes" in checks(answer)["filesystem"]["reason"]


@pytest.mark.parametrize(
    "inner",
    ["mount -t tmpfs tmpfs place/yard/done", "mkdir other; mount --bind other place/yard/processing"],
    ids=["tmpfs", "bind"],
)
def test_a_mount_inside_the_yard_is_refused_by_name_and_by_trial(inner: str, tmp_path: Path) -> None:
    answer = examined(f"{MAKE}{inner}", tmp_path, "place/yard")
    assert remarkable(answer) == {"mounts": "refuse", "rename": "refuse"}
    found = checks(answer)
    point = str(tmp_path / "place" / "yard" / inner.rpartition("/")[2])
    assert found["mounts"]["mounted_within"] == [point]
    assert "cross-device" in found["rename"]["reason"]
    assert hidden(tmp_path) == []


def test_a_mount_beside_the_yard_to_be_is_a_warning(tmp_path: Path) -> None:
    answer = examined("mkdir place/other; mount -t tmpfs tmpfs place/other", tmp_path)
    assert remarkable(answer) == {"mounts": "warn"}


def test_a_full_disk_is_refused(tmp_path: Path) -> None:
    fill = (
        "mount -t tmpfs -o size=8m tmpfs place\n" + MAKE + "dd if=/dev/zero of=place/ballast bs=1M 2>/dev/null || true"
    )
    answer = examined(fill, tmp_path, "place/yard")
    found = remarkable(answer)
    assert (found["space"], found["writing"]) == ("refuse", "refuse")
    assert "No space left" in checks(answer)["writing"]["reason"]
    assert "make room" in checks(answer)["writing"]["hint"]


def test_little_room_is_a_warning(tmp_path: Path) -> None:
    answer = examined("mount -t tmpfs -o size=20m,nr_inodes=4000 tmpfs place\n" + MAKE, tmp_path, "place/yard")
    assert remarkable(answer) == {"space": "warn", "inodes": "warn"}


def test_no_inodes_left_is_refused(tmp_path: Path) -> None:
    fill = (
        "mount -t tmpfs -o size=256m,nr_inodes=200 tmpfs place\n"
        + MAKE
        + "i=0; while touch place/b$i 2>/dev/null; do i=$((i+1)); done"
    )
    answer = examined(fill, tmp_path, "place/yard")
    assert remarkable(answer) == {"inodes": "refuse", "writing": "refuse"}


@pytest.mark.parametrize("yard", [True, False], ids=["a yard", "no yard yet"])
def test_a_read_only_mount_is_refused(yard: bool, tmp_path: Path) -> None:
    seal = "mount --bind place place; mount -o remount,bind,ro place"
    answer = examined((MAKE if yard else "") + seal, tmp_path, "place/yard" if yard else "place")
    assert remarkable(answer) == {"permissions": "refuse", "writing": "refuse"}
    assert checks(answer)["permissions"]["read_only"] is True


def test_a_clock_that_differs_from_the_filesystems_is_a_warning(tmp_path: Path) -> None:
    answer = grounds.run([*grounds.DOCTOR, str(tmp_path)], tools.faketime("+3600s") | {"FAKE_UTIME": "1"})
    assert remarkable(answer) == {"clock": "warn"}
    clock = checks(answer)["clock"]
    assert -3700 < clock["seconds_ahead"] < -3500
    assert "behind" in clock["reason"]


def test_a_user_who_may_not_write_is_told_so(place: str) -> None:
    with taskyard.open(place) as yard:
        yard.add("build")
    words = [*tools.powerless(), *grounds.DOCTOR, place]
    folders = [folder for folder, _, _ in os.walk(place)]
    for folder in folders:
        os.chmod(folder, 0o555)
    answer = grounds.run(words)
    assert remarkable(answer) == {"permissions": "refuse", "writing": "refuse"}
    assert checks(answer)["permissions"]["folders"] == len(folders)
    for folder in folders:
        os.chmod(folder, 0o755)
    os.chmod(os.path.join(place, "keys"), 0o555)
    answer = grounds.run(words)
    assert remarkable(answer) == {"permissions": "refuse"}, "the rest can be tried all the same"
    assert checks(answer)["permissions"]["closed"] == ["keys"]
    os.chmod(os.path.join(place, "keys"), 0o755)
    assert remarkable(grounds.run(words)) == {}


def test_a_yard_that_cannot_even_be_looked_into_is_refused(place: str) -> None:
    os.chmod(place, 0)
    try:
        answer = grounds.run([*tools.powerless(), *grounds.DOCTOR, place])
    finally:
        os.chmod(place, 0o755)
    assert remarkable(answer)["permissions"] == "refuse"


MODES: dict[str, tuple[int, str, dict[str, str]]] = {
    "its owner alone": (0o755, "022", {}),
    "a group, all agrees": (0o2775, "002", {}),
    "a group, umask closes": (0o2775, "022", {"sharing": "warn"}),
    "a group, groups differ": (0o775, "002", {"sharing": "warn"}),
    "sticky": (0o3777, "000", {"sharing": "warn"}),
}


@pytest.mark.parametrize("name", MODES)
def test_modes_of_a_shared_yard_that_do_not_fit_together_are_a_warning(name: str, place: str) -> None:
    mode, umask, wanted = MODES[name]
    for folder in (place, *(entry.path for entry in os.scandir(place) if entry.is_dir())):
        os.chmod(folder, mode)
    answer = grounds.run(["sh", "-c", f'umask {umask}; exec "$@"', "sh", *grounds.DOCTOR, place])
    assert remarkable(answer) == wanted
    assert not DESTRUCTIVE.search(checks(answer)["sharing"]["hint"] or "")


def test_one_folder_that_the_group_may_not_write_in_is_a_warning(place: str) -> None:
    for folder in (place, *(entry.path for entry in os.scandir(place) if entry.is_dir())):
        os.chmod(folder, 0o2775)
    os.chmod(os.path.join(place, "done"), 0o755)
    answer = grounds.run(["sh", "-c", 'umask 002; exec "$@"', "sh", *grounds.DOCTOR, place])
    assert "done" in checks(answer)["sharing"]["reason"]


def hidden(folder: Path) -> list[str]:
    """What a doctor may have left."""
    found = subprocess.run(["find", str(folder), "-name", ".doctor*"], capture_output=True, text=True, check=True)
    return found.stdout.split()


def test_everything_measured_is_plain_json(place: str) -> None:
    found: dict[str, Any] = checks(grounds.run([*grounds.DOCTOR, place, "--processes", "2"]))
    assert found["race"]["processes"] == 2
    assert len(found["race"]["won"]) == 2
    assert found["sync"]["milliseconds"] > 0
    assert found["append"]["lost"] == 0
