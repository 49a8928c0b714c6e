"""How a verdict is told: the command line, its JSON, the table in docs/fsck.md, and the other stores."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import taskyard
from taskyard.stores.directory.fsck import codes, repair
from tests.fsck.proving import Yardful
from tests.processes import tools

if TYPE_CHECKING:
    from taskyard import Yard

PAGE = (Path(__file__).parent.parent.parent / "docs" / "fsck.md").read_text(encoding="utf-8")
SOURCES = Path(codes.__file__).parent.glob("*.py")


def test_the_table_in_the_docs_is_that_of_the_code() -> None:
    rows = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    told = {row[0].strip().strip("`"): [cell.strip() for cell in row[1:]] for row in rows}
    assert told == {
        code: [means.severity, means.means, means.repair, means.by_hand] for code, means in codes.CODES.items()
    }


def test_every_code_is_found_somewhere_and_none_is_unknown() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCES if path.name not in ("codes.py", "repair.py"))
    used = set(re.findall(r'"([a-z]+(?:_[a-z]+)*)"', text))
    assert set(codes.CODES) <= used


def test_every_damage_that_is_left_alone_says_what_a_person_can_do() -> None:
    for code, means in codes.CODES.items():
        if means.severity == codes.DAMAGE and "left alone" in means.repair:
            assert means.by_hand != codes.BY_HAND, code


def test_a_clean_yard_is_told_in_one_line_with_exit_0(tmp_path: Path) -> None:
    yard = Yardful(str(tmp_path / "yard"))
    answer = tools.taskyard(yard.place, "fsck")
    assert answer.data["verdict"] == "clean"
    assert answer.data["findings"] == []
    said = plain(yard.place, "fsck")
    assert said.returncode == 0
    assert said.stdout.startswith(f"clean; {len(yard.ids)} tasks in ")
    assert said.stderr == ""


def test_a_damaged_yard_is_ok_as_json_with_exit_1_and_exit_0_once_it_is_healed(tmp_path: Path) -> None:
    yard = Yardful(str(tmp_path / "yard"))
    yard.file("plain").write_bytes(b"?")
    answer = tools.taskyard(yard.place, "fsck")
    assert answer.code == 1
    assert answer.envelope["ok"] is True
    data = answer.envelope["data"]
    assert (data["verdict"], data["counts"]) == ("damaged", {"broken": 1})
    (entry,) = data["findings"]
    assert set(entry) >= {"code", "where", "task", "what", "hint", "repaired"}
    assert entry["repaired"] is False
    repaired = tools.taskyard(yard.place, "fsck", "--repair")
    assert (repaired.code, repaired.envelope["data"]["verdict"]) == (0, "repaired")
    assert repaired.envelope["data"]["findings"][0]["repaired"] is True
    assert tools.taskyard(yard.place, "fsck").code == 0


def test_people_read_a_few_findings_of_each_kind_and_how_many_there_are(tmp_path: Path) -> None:
    yard = Yardful(str(tmp_path / "yard"))
    with taskyard.open(yard.place, worker="ada") as opened:
        some = opened.add_many([{"kind": "many"}] * 30)
    for id in some:
        next(yard.root.glob(f"todo/5-many/*/{id}.*")).write_bytes(b"")
    said = plain(yard.place, "fsck", "--show", "3")
    assert said.returncode == 1
    assert "broken (damage): 30" in said.stdout
    assert said.stdout.count("its file is empty") == 3
    assert "and 27 more" in said.stdout
    said = plain(yard.place, "fsck", "--repair", "--show", "1")
    assert said.returncode == 0
    assert "repaired, 30 healed" in said.stdout


def test_what_is_left_to_a_person_comes_with_a_hint(tmp_path: Path) -> None:
    yard = Yardful(str(tmp_path / "yard"))
    yard.record("answered", "done").unlink()
    said = plain(yard.place, "fsck", "--repair")
    assert said.returncode == 1
    assert "-> restore the record from a backup" in said.stdout
    assert "1 left to a person" in said.stdout


def test_a_terminal_is_told_how_far_the_work_is(tmp_path: Path) -> None:
    yard = Yardful(str(tmp_path / "yard"))
    ours, theirs = os.openpty()
    with subprocess.Popen([*tools.COMMAND, "--yard", yard.place, "fsck"], stdout=subprocess.PIPE, stderr=theirs) as run:
        os.close(theirs)
        assert run.wait(tools.PATIENCE) == 0
        assert run.stdout is not None
        assert run.stdout.read().startswith(b"clean;")
    told = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "reading the log" in told
    assert told.endswith("\r\x1b[K"), "the line is gone at the end"


def test_every_store_says_that_it_is_clean(yard: Yard) -> None:
    task = yard.add("build", {"n": 1}, key="k")
    yard.add("test", after=[task.id])
    assert yard.audit()["verdict"] == "clean"
    assert yard.audit(repair=True)["verdict"] == "clean"
    assert yard.audit()["checked"]["tasks"] == 2


def test_every_repair_is_of_a_known_code(tmp_path: Path) -> None:
    yard = Yardful(str(tmp_path / "yard"))
    text = Path(repair.__file__).read_text(encoding="utf-8")
    repairs = set(re.findall(r'^ +"(\w+)": self\._', text, re.MULTILINE))
    assert repairs
    assert repairs <= set(codes.CODES)
    assert yard.codes() == []


def plain(place: str, *argv: str) -> subprocess.CompletedProcess[str]:
    """A command as people run it, its output not a terminal."""
    return subprocess.run(
        [*tools.COMMAND, "--yard", place, *argv],
        capture_output=True,
        text=True,
        env=tools.environment(),
        check=False,
        timeout=tools.PATIENCE,
    )
