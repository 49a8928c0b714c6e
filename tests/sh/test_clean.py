"""The client is one clean file, joined from parts, that needs nothing but a shell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import taskyard
from tests.processes import tools
from tests.sh import shells


def test_each_part_is_short_and_says_what_it_is_for() -> None:
    parts = sorted((Path(taskyard.__file__).parent / "doors" / "sh" / "parts").iterdir())
    assert parts[0].read_text(encoding="utf-8").startswith("#!/bin/sh\n")
    for part in parts:
        lines = part.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 250, part.name
        assert part == parts[0] or lines[0].startswith("# ---- "), part.name


def test_shellcheck_has_nothing_to_say() -> None:
    said = subprocess.run(
        [str(Path(sys.executable).parent / "shellcheck"), "--severity=style", str(shells.CLIENT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stdout) == (0, "")


@pytest.mark.parametrize("words", [["dash"], ["busybox", "sh"]], ids=["dash", "busybox"])
def test_it_parses(words: list[str]) -> None:
    said = subprocess.run(
        [shells.found(words[0]), *words[1:], "-n", str(shells.CLIENT)], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stderr) == (0, "")


def test_taskyard_sh_prints_it_byte_by_byte() -> None:
    said = subprocess.run([*tools.COMMAND, "sh"], capture_output=True, env=tools.environment(), check=True)
    assert said.stdout == shells.CLIENT.read_bytes()
    assert tools.taskyard(None, "sh").data["script"] == shells.CLIENT.read_text(encoding="utf-8")


def test_its_help_names_every_verb(sh: shells.Shell) -> None:
    text = sh.run("--help").line
    for verb in ("add_task", "claim_task", "heartbeat", "verify_ownership", "complete_task", "fail_task"):
        assert f"taskyard.sh {verb} " in text
    for verb in ("release_task", "note_task", "process_loop", "reap_stale", "resume"):
        assert f"taskyard.sh {verb} " in text
    assert "Exit codes: 0 ok" in text


def test_sourcing_it_leaves_the_script_as_it_was(sh: shells.Shell, tmp_path: Path) -> None:
    said = sh.script(
        "set -euf; IFS=:; add_task build >/dev/null; claim_task >/dev/null; claim_task 2>/dev/null || echo none $?\n"
        'heartbeat "$TASK_HANDLE"; complete_task "$TASK_HANDLE"; [ -f "$TASK_FILE" ] || echo gone\n'
        'printf %s: "$-" "$IFS" *; trap'
    )
    lines = said.line.split("\n")
    assert lines[:2] == ["none 3", "gone"]
    assert {"e", "u", "f"} <= set(lines[2].split(":")[0])
    assert lines[2].endswith(":::*:")


def test_a_claim_in_a_subshell_is_never_taken_for_anothers(sh: shells.Shell, place: str) -> None:
    """Subshells share their parent's memory: a nonce that went on from it would come twice."""
    said = sh.script(
        "for n in 1 2 3 4 5 6; do add_task build >/dev/null; done\n"
        "for n in 1 2 3 4 5 6 7 8; do claim_task 2>/dev/null & done; wait"
    )
    handles = [line.split("\t")[0] for line in said.line.split("\n")]
    assert len({handle.split(".")[0] for handle in handles}) == len(handles) == 6
    assert len({handle.split(".")[2] for handle in handles}) == 6


def test_it_runs_under_any_name_and_is_sourced_by_any_script(sh: shells.Shell, tmp_path: Path, place: str) -> None:
    renamed = tmp_path / "ty"
    renamed.write_bytes(shells.CLIENT.read_bytes())
    script = tmp_path / "script.sh"
    script.write_text(f'#!/bin/sh\n. "{renamed}"\necho sourced "$1"\n')
    for words, said in (
        ((str(renamed), "add_task"), (2, "")),
        ((str(renamed), "no_such_verb"), (2, "")),
        ((str(script), "add_task"), (0, "sourced add_task\n")),
    ):
        ran = subprocess.run([*sh.words, *words], capture_output=True, text=True, env=sh.environment(), check=False)
        assert (ran.returncode, ran.stdout) == said
    subprocess.run(
        [*sh.words, str(renamed), "add_task", "build"], env=sh.environment(), check=True, capture_output=True
    )
    assert tools.taskyard(place, "stats").data["counts"]["todo"] == 1
