"""A yard written to a file and made again of it: the same, on every store that can be copied; and files that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import taskyard
from taskyard import Conflict, Invalid
from taskyard.doors.cli import main
from taskyard.yard.export_file import ExportFile
from tests.copying import comparing

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard

    Made = Callable[..., str]
    New = Callable[[str], str]


def exported(url: str, file: Path) -> Any:
    """Export a yard to a file; the answer."""
    return comparing.say("export", str(file), "--yard", url)


@pytest.mark.parametrize(
    ("store", "other"),
    [
        ("directory", "directory"),
        ("directory", "postgresql"),
        ("postgresql", "directory"),
        ("postgresql", "postgresql"),
    ],
)
def test_a_yard_that_was_exported_and_imported_is_the_same(
    made: Made, new: New, tmp_path: Path, store: str, other: str
) -> None:
    url, file = made(store, 120), tmp_path / "yard.jsonl"
    told = exported(url, file)
    assert told["exact"] is True
    target = new(other)
    answer = comparing.say("import", "taskyard", str(file), "--yard", target)
    assert (answer["tasks"], answer["events"], answer["was_complete"]) == (told["tasks"], told["events"], False)
    comparing.assert_same(url, target, sample=40)
    assert comparing.say("fsck", "--yard", target)["verdict"] == "clean"
    assert comparing.say("import", "taskyard", str(file), "--yard", target)["was_complete"] is True


def test_an_export_of_an_import_has_the_same_lines(made: Made, new: New, tmp_path: Path) -> None:
    url, target = made("directory", 60), new("directory")
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    exported(url, one)
    comparing.say("import", "taskyard", str(one), "--yard", target)
    exported(target, two)
    lines = [[json.loads(line) for line in file.read_text().splitlines()] for file in (one, two)]
    for some in lines:
        assert some[0].pop("from")
        for line in some:
            line.get("task", {}).pop("ended_at", None)  # when a file was put there, in a directory
    assert lines[0] == lines[1]


def test_missions_settings_keys_and_pauses_come_over(paused: Callable[..., str], new: New, tmp_path: Path) -> None:
    def life(yard: Yard) -> None:
        yard.new_mission("launch", "To the moon.")
        yard.set_settings({"max_attempts": 7})
        yard.add("build", {"n": 1}, key="k", mission="launch")
        yard.pause("deploy")

    url, target, file = paused("directory", life), new("directory"), tmp_path / "yard.jsonl"
    exported(url, file)
    comparing.say("import", "taskyard", str(file), "--yard", target)
    with taskyard.open(target) as yard:
        assert yard.mission("launch")["brief"] == "To the moon."
        assert (yard.policy.max_attempts, yard.paused()) == (7, {"yard": True, "kinds": ["deploy"]})
        assert yard.add("build", {"n": 1}, key="k").created is False


def test_a_yard_that_is_not_empty_is_not_touched(made: Made, new: New, tmp_path: Path) -> None:
    file = tmp_path / "yard.jsonl"
    exported(made("directory", 10), file)
    target = new("directory")
    with taskyard.init(target) as yard:
        task = yard.add("own")
    assert main(["import", "taskyard", str(file), "--yard", target]) == 7
    with taskyard.open(target) as yard:
        assert [one.id for one in yard.find()] == [task.id]


def test_what_was_written_while_workers_worked_says_so_and_is_not_imported(
    new: New, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from taskyard.yard import export_lines

    url, file = new("directory"), tmp_path / "yard.jsonl"
    with taskyard.init(url) as yard:
        yard.add("build")
        facts = export_lines._facts

        def meanwhile(given: Any) -> Any:
            yard.add("more")
            return facts(given)

        monkeypatch.setattr(export_lines, "_facts", meanwhile)
        assert exported(url, file)["exact"] is False
    with pytest.raises(Invalid, match="workers were at work"):
        ExportFile(str(file))


def test_a_held_task_comes_over_with_its_handle(new: New, tmp_path: Path) -> None:
    url, target, file = new("directory"), new("directory"), tmp_path / "yard.jsonl"
    with taskyard.init(url, worker="ada") as yard:
        yard.add("build")
        claim = yard.claim()
        assert claim is not None
        exported(url, file)
    comparing.say("import", "taskyard", str(file), "--yard", target)
    with taskyard.open(target) as yard:
        yard.done(claim.handle, {"ok": True})
        assert yard.get(claim.task.id).result == {"ok": True}


def _sample(tmp_path: Path) -> list[dict[str, Any]]:
    url = str(tmp_path / "sample")
    with taskyard.init(url, worker="ada", durability="fast") as yard:
        first = yard.add("build", {"n": 1}, key="k", title="One")
        yard.add("test", after=[first.id])
        claim = yard.claim(first.id)
        assert claim is not None
        claim.note("half way")
        claim.done({"ok": True})
    exported(url, tmp_path / "sample.jsonl")
    return [json.loads(line) for line in (tmp_path / "sample.jsonl").read_text().splitlines()]


def _written(file: Path, lines: list[Any]) -> str:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(file)


BAD: dict[str, tuple[Callable[[list[Any]], Any], str]] = {
    "cut off": (lambda lines: lines.pop(), "ends here, before its last line"),
    "a line missing": (lambda lines: lines.pop(3), "as many lines"),
    "another file": (lambda lines: lines.insert(0, {"kind": "build"}), "line 1 column 1: this is no exported yard"),
    "another version": (lambda lines: lines[0].update(version=9), "line 1 column 1: the format has the version 9"),
    "a part": (lambda lines: lines[0].update(whole=False), "this is a part of a yard"),
    "tasks in disorder": (
        lambda lines: lines.insert(1, lines.pop(2)),
        "line 3 column 1: the tasks are not in the order",
    ),
    "an id that leaves the yard": (lambda lines: lines[1]["task"].update(id="../../etc/passwd"), "line 2 column 1"),
    "a nonce that leaves the yard": (lambda lines: lines[1]["task"].update(nonce="../../x"), "not a claim's handle"),
    "a record that leaves the yard": (
        lambda lines: lines[1]["task"]["history"][0].update(nonce="a/../../b"),
        "not a claim's handle",
    ),
    "an outcome that is a path": (lambda lines: lines[1]["task"]["history"][0].update(outcome="../x"), "a word"),
    "a kind that is none": (lambda lines: lines[1]["task"].update(kind="a b"), "kind"),
    "a state that is none": (lambda lines: lines[1]["task"].update(state="gone"), "'gone'"),
    "a worker with a line end": (lambda lines: lines[1]["task"].update(worker="a\nb"), "worker"),
    "a name with a slash": (lambda lines: lines[1]["task"].update(dropped_as="a/b"), "file's name"),
    "a field too many": (lambda lines: lines[1]["task"].update(extra=1), "extra"),
    "a field missing": (lambda lines: lines[1]["task"].pop("fence"), "fence"),
    "a number that is none": (lambda lines: lines[1]["task"].update(fence="1"), "fence must be a whole number"),
    "a need that is none": (lambda lines: lines[2]["task"].update(needs=["../x"]), "no id"),
    "a file outside": (
        lambda lines: lines.insert(-1, {"file": "attempts/../../x", "data": ""}),
        "is no file of a yard",
    ),
    "a file that is absolute": (
        lambda lines: lines.insert(-1, {"file": "/etc/passwd", "data": ""}),
        "no file of a yard",
    ),
    "a file of the yard itself": (
        lambda lines: lines.insert(-1, {"file": "yard.json", "data": ""}),
        "no file of a yard",
    ),
    "a file that is no base64": (lambda lines: lines.insert(-1, {"file": "attempts/x", "data": "%"}), "base64"),
    "an event that is none": (lambda lines: lines.insert(-1, {"event": {"at": "now"}}), "no event"),
    "something else": (lambda lines: lines.insert(-1, {"x": 1}), "neither a task"),
    "a list": (lambda lines: lines.insert(-1, [1]), "must be a JSON object"),
    "a segment beyond all": (lambda lines: lines[0]["facts"].update(highest=1 << 40), "facts"),
    "a mission that is none": (lambda lines: lines[0]["facts"].update(missions=[{}]), "facts"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_no_export_wrote_is_refused_and_no_yard_is_touched(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _sample(tmp_path)
    change, words = BAD[name]
    change(lines)
    target = tmp_path / "target"
    taskyard.init(str(target)).close()
    before = sorted(path.name for path in tmp_path.rglob("*"))
    file = _written(tmp_path / "sample.jsonl", lines)
    capsys.readouterr()
    assert main(["import", "taskyard", file, "--yard", str(target)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert f"{file}, line " in error
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_file_that_was_damaged_anywhere_is_refused_or_means_a_legal_yard(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged"
    sample = folder / "sample.jsonl"
    if not sample.exists():
        folder.mkdir()
        _sample(folder)
    content = bytearray(sample.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 8))] = data.draw(
            st.binary(max_size=4) | st.sampled_from([b"null", b'"', b"{}", b"[]", b"-1", b"\n"])
        )
    file = folder / "changed.jsonl"
    file.write_bytes(content)
    message = "line"
    try:
        source = ExportFile(str(file))
        for segment in source.segments():
            list(source.tasks(segment))
    except Invalid as error:
        message = error.message
    assert "line" in message


def test_checks_are_commands_and_come_only_from_a_file_that_is_ones_own(tmp_path: Path) -> None:
    lines = _sample(tmp_path)
    lines[0]["facts"]["settings"]["checks"] = {"tests": ["make", "test"]}
    file = Path(_written(tmp_path / "own.jsonl", lines))
    file.chmod(0o600)
    assert ExportFile(str(file)).facts().settings["checks"] == {"tests": ["make", "test"]}
    file.chmod(0o666)
    facts = ExportFile(str(file)).facts()
    assert "checks" not in facts.settings
    assert "not imported" in facts.warnings[0]


def test_a_yard_that_is_an_unfinished_import_of_another_file_is_refused(tmp_path: Path) -> None:
    lines = _sample(tmp_path)
    from taskyard import opening
    from taskyard.yard import copy_yard

    one, two = _written(tmp_path / "one.jsonl", lines), _written(tmp_path / "two.jsonl", lines)
    target = opening.endpoint(str(tmp_path / "target"), target=True)
    source = ExportFile(one)
    target.begin(source.label, source.facts())  # killed here
    with pytest.raises(Conflict, match="unfinished copy of another"):
        copy_yard.copy(ExportFile(two), target, with_claims=True)
    assert copy_yard.copy(source, target, with_claims=True).tasks == 2
    target.close()
