"""What has no end is refused by its beginning, and not read until the machine has no memory left."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.doors.cli.values import TEXT_MOST
from tests.processes import tools

if TYPE_CHECKING:
    from pathlib import Path

MEMORY = 512 << 20  # bytes of addresses: enough for a command, and soon used up by one that reads on and on


def say(place: Path, *words: str, stdin: str = os.devnull) -> subprocess.CompletedProcess[str]:
    with open(stdin, "rb") as given:
        return subprocess.run(
            [sys.executable, "-m", "taskyard", *words],
            stdin=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=tools.PATIENCE,
            env=tools.environment(TASKYARD=str(place)),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    taskyard.init(str(tmp_path / "yard"), durability="fast").close()
    return tmp_path / "yard"


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/urandom"])
def test_data_from_a_device_without_end(place: Path, device: str) -> None:
    told = say(place, "add", "build", "--data", f"@{device}")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith(f"taskyard: {device} is longer than {TEXT_MOST} bytes")
    assert say(place, "add", "build", "--data", "-", stdin=device).returncode == 2


def test_a_result_from_a_device_without_end_leaves_the_claim_as_it_is(place: Path) -> None:
    with taskyard.open(str(place)) as yard:
        yard.add("build")
        claim = yard.claim()
        assert claim is not None
        assert say(place, "done", claim.handle, "--result", "@/dev/zero").returncode == 2
        assert yard.get(claim.task.id).state == "processing"


def test_a_line_without_end_adds_nothing(place: Path) -> None:
    told = say(place, "add", "--from", "/dev/zero")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith(f"taskyard: /dev/zero, line 1: is longer than {TEXT_MOST} bytes")


def test_lines_without_end_add_nothing_and_are_told_as_what_they_are(place: Path) -> None:
    endless = "/bin/sh", "-c", 'while :; do cat "$0"; done'
    lines = place.parent / "lines"
    lines.write_text(('{"kind": "build", "data": "' + "x" * 100_000 + '"}\n') * 100)
    with subprocess.Popen([*endless, str(lines)], stdout=subprocess.PIPE) as source:
        assert source.stdout is not None
        try:
            told = say(place, "add", "--from", "-", "--json", stdin=f"/proc/self/fd/{source.stdout.fileno()}")
        finally:
            source.stdout.close()
            source.kill()
    assert (told.returncode, told.stderr) == (1, "")
    assert json.loads(told.stdout)["error"]["message"] == "More memory is needed than there is."
    with taskyard.open(str(place)) as yard:
        assert yard.find() == []


def test_a_crew_from_a_device_without_end(place: Path) -> None:
    told = say(place, "crew", "/dev/zero")
    assert (told.returncode, told.stdout) == (2, "")
    assert "Traceback" not in told.stderr


def test_blanks_around_a_value_do_not_count_as_its_data(place: Path) -> None:
    (place.parent / "wide").write_text(" " * (TEXT_MOST - 7) + '{"a":1}')
    assert say(place, "add", "build", "--data", f"@{place.parent}/wide").returncode == 0
