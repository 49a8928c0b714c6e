"""A signal in the middle of a batch: nothing of it stays, or what stays is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from taskyard import init
from tests.conftest import SOON, wait_until
from tests.directory.staging import yard_on
from tests.directory.stories import check_log, check_places

if TYPE_CHECKING:
    from pathlib import Path


class Interrupted:
    """A disk on which a Ctrl-C comes before or after one of the calls of this name."""

    def __init__(self, call: str, part: str, left: int, after: bool) -> None:
        self._call, self._part, self._left, self._after = call, part, left, after

    def __call__(self, name: str, paths: str, made: bool) -> None:
        if name == self._call and self._part in paths and made == self._after:
            self._left -= 1
            if self._left == -1:
                raise KeyboardInterrupt


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("call", "part", "left"),
    [("create", "/tmp/", 30), ("create", "/tmp/", 700), ("rename", "/5-two/", 20), ("rename", "/5-two/", 600)],
)
def test_of_a_batch_that_is_interrupted_nothing_stays(place: str, call: str, part: str, left: int, after: bool) -> None:
    batch = [{"kind": "one"}, {"kind": "two"}] * 700
    with yard_on(place, Interrupted(call, part, left, after)) as yard:
        with pytest.raises(KeyboardInterrupt, match="nothing of the batch was added"):
            yard.add_many(batch)
        assert check_places(place) == {}
        assert os.listdir(f"{place}/tmp") in ([], ["clock"])
        assert len(set(yard.add_many(batch))) == len(check_places(place)) == 1400
        check_log(yard)


def test_what_has_a_key_stays_of_an_interrupted_batch_and_is_named(place: str) -> None:
    batch = [{"kind": "one"}, {"kind": "one", "key": "k"}, {"kind": "two"}]
    with yard_on(place, Interrupted("rename", "/5-two/", 0, False)) as yard:
        with pytest.raises(KeyboardInterrupt) as told:
            yard.add_many(batch)
        (kept,) = check_places(place)
        assert str(told.value).endswith(f"under a key: {kept}")
        assert yard.add_many(batch)[1] == kept
        check_log(yard)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_any_signal_to_end_in_the_middle_of_a_batch_takes_it_back_and_says_so(
    tmp_path: Path, number: signal.Signals, code: int, again: bool
) -> None:
    place = str(tmp_path / "yard")
    init(place, durability="fast").close()
    lines = "".join(json.dumps({"kind": "build", "data": n}) + "\n" for n in range(20_000))
    (tmp_path / "lines").write_text(lines)
    with subprocess.Popen(
        [sys.executable, "-m", "taskyard", "--yard", place, "add", "--from", str(tmp_path / "lines")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        wait_until(lambda: os.path.isdir(f"{place}/todo/5-build"))
        process.send_signal(number)
        if again:  # somebody in a hurry: the batch is taken back all the same
            process.send_signal(number)
        told, errors = process.communicate(timeout=SOON)
    assert (process.returncode, told) == (code, b"")
    assert errors == b"taskyard: interrupted: nothing of the batch was added\n"
    assert check_places(place) == {}


def test_nohup_lets_a_batch_go_on_when_its_terminal_is_closed(tmp_path: Path) -> None:
    place = str(tmp_path / "yard")
    init(place, durability="fast").close()
    (tmp_path / "lines").write_text('{"kind": "build"}\n' * 5_000)
    with subprocess.Popen(
        ["nohup", sys.executable, "-m", "taskyard", "--yard", place, "add", "--from", str(tmp_path / "lines")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        wait_until(lambda: os.path.isdir(f"{place}/todo/5-build"))
        process.send_signal(signal.SIGHUP)
        told, _ = process.communicate(timeout=SOON)
    assert (process.returncode, len(told.split())) == (0, 5000)
