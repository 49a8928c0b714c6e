"""The parsers under random input: they return something, or raise the one error with a place; and they agree with others."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskyard import Invalid
from taskyard.doors import importers
from taskyard.doors.importers import front_matter, markdown, plan, source
from taskyard.doors.importers.item import Options
from tests.importers.samples import FOLDER, SAMPLES

WORDS = st.text(
    st.characters(blacklist_categories=["Cs", "Cc", "Zl", "Zp"], blacklist_characters="\ufeff\x85"), max_size=30
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(10**15), 10**15), WORDS)
FIELDS = st.dictionaries(
    st.from_regex(r"[a-z][a-z_0-9]{0,12}", fullmatch=True),
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.from_regex("[a-z]{1,6}", fullmatch=True), inner, max_size=3), max_leaves=8),
    max_size=6,
)  # fmt: skip
MANY = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
FILES = {
    "beads": SAMPLES["beads"],
    "taskmaster": SAMPLES["taskmaster"],
    "claude": SAMPLES["claude"] / "2.json",
    "lab": SAMPLES["lab"],
    "backlog": FOLDER / "backlog" / "backlog" / "tasks" / "back-12 - Export-as-CSV.md",
    "mosaic": FOLDER / "mosaic" / "docs" / "TASKS.md",
    "checklist": SAMPLES["checklist"],
}


@given(FIELDS, st.booleans(), st.sampled_from([20, 80, 1000]))
@MANY
def test_front_matter_means_what_another_reader_of_yaml_takes_it_for(
    fields: dict[str, Any], flow: bool, width: int
) -> None:
    text = yaml.safe_dump(fields, default_flow_style=flow, width=width, allow_unicode=True)
    head = front_matter.read(source.Text("x.md", f"---\n{text}---\nbody".encode()))
    assert head is not None
    assert head.fields == fields
    assert head.body == ["body"]


def _is_answered(tool: str, content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The importer reads it, or raises `Invalid`; a place is in the message unless there is nothing to point to."""
    folder = tmp_path_factory.getbasetemp()
    path = folder / ("TASKS.md" if tool in ("mosaic", "backlog", "checklist") else "input.json")
    path.write_bytes(content)
    said = "line 1"
    try:
        found = importers.read(tool, str(path), Options())
        plan.rows(found, Options(), lambda _: {})
    except Invalid as error:
        said = error.message
    assert "line " in said or "no tasks" in said or "no check-boxes" in said
    assert path.read_bytes() == content


@pytest.mark.parametrize("tool", FILES)
@given(data=st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_file_that_was_damaged_anywhere_is_read_or_refused(
    tool: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(FILES[tool].read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 12))
        content[at : at + length] = data.draw(st.binary(max_size=6) | st.sampled_from([b"\n", b'"', b"{", b"]", b"  ", b": ", b"- ", b"|", b"[x]"]))  # fmt: skip
    _is_answered(tool, bytes(content), tmp_path_factory)


@pytest.mark.parametrize("tool", FILES)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "tasks", "status", "title", "dependencies", "subtasks", "claims", "milestones", "name", "blocks", "x"]), inner, max_size=5),
        max_leaves=12,
    )
)  # fmt: skip
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_json_is_read_or_refused(tool: str, value: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    _is_answered(tool, json.dumps(value).encode(), tmp_path_factory)


@given(st.lists(st.text(st.sampled_from("ab|\\ `"), max_size=6).map(str.strip), min_size=1, max_size=5))
@MANY
def test_cells_come_back_as_they_were_written(row: list[str]) -> None:
    """A backslash before a bar belongs to the bar; so one that ends a cell cannot be written."""
    row = [cell.replace("\\", "").strip() for cell in row]
    line = "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    assert markdown.cells(line) == row


@pytest.mark.parametrize(
    "line", [" " * 200_000 + "x", "a" + " " * 200_000 + "b", "- [ ] " + "(@" * 100_000, "# " + "#" * 200_000 + "x", "| " * 100_000]
)  # fmt: skip
def test_long_lines_take_no_time_that_grows_with_their_square(line: str) -> None:
    began = time.process_time()
    text = source.Text("x.md", f"---\nid: a\nx: {line}\n---\n- [ ] one\n{line}\n- [ ] {line}\n".encode())
    for read in (lambda: list(markdown.lines(text)), lambda: front_matter.read(text), lambda: markdown.cells(line)):
        try:
            read()
        except Invalid:
            pass
    assert time.process_time() - began < 60, "in a line: a few milliseconds; with the square: hours"


def test_places_are_found_in_one_pass_through_a_long_list() -> None:
    text = source.Text("x.json", b"[" + b"{}, " * 200_000 + b"{}]")
    began = time.process_time()
    places = text.json().places()
    assert (len(places), places[-1].column) == (200_001, 800_002)
    assert time.process_time() - began < 60
