"""The size and shape of what an agent's context pays for."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from taskyard.core.task import State, Task
from taskyard.doors.mcp import refusals, tools
from taskyard.doors.mcp.replies import Refusal, claimed


@pytest.mark.parametrize("offered", [tools.OWN, tools.SHARED])
def test_all_tools_together_cost_less_than_three_thousand_tokens(offered: tools.Toolset) -> None:
    assert len(json.dumps(offered.tools, separators=(",", ":"))) / 4 < 3000


def test_there_are_at_most_ten_tools_named_as_the_verbs() -> None:
    names = [tool["name"] for tool in tools.TOOLS]
    assert sorted(names) == sorted(
        ["ready", "show", "claim", "note", "done", "fail", "release", "add", "wait", "resume"]
    )


def test_the_instructions_fit_what_clients_keep_of_them_and_hold_the_whole_loop() -> None:
    assert len(tools.INSTRUCTIONS) <= 2000
    for call in ("claim()", "done(result)", "fail(reason)", "release()", "note(text)", "resume()", "add(", "wait("):
        assert call in tools.INSTRUCTIONS


def test_who_shares_a_server_reads_that_it_must_keep_its_handle() -> None:
    assert len(tools.SHARED.instructions) <= 2000
    assert "remembers nothing between two calls: keep the handle" in tools.SHARED.instructions
    for call in (
        "claim()",
        "done(claim, result)",
        "fail(claim, reason)",
        "release(claim)",
        "note(claim, text",
        "resume()",
    ):
        assert call in tools.SHARED.instructions
    assert [tool["name"] for tool in tools.SHARED.tools] == [tool["name"] for tool in tools.TOOLS]
    for name in ("done", "fail", "release", "note"):
        assert tools.SHARED.required[name][0] == "claim"


def test_schemas_have_no_titles_and_no_null_alternatives() -> None:
    def walk(schema: Any) -> None:
        if isinstance(schema, dict):
            assert not isinstance(schema.get("title"), str)
            assert "anyOf" not in schema
            for value in schema.values():
                walk(value)

    for tool in tools.TOOLS:
        walk(tool["inputSchema"])
        assert tool["inputSchema"]["type"] == "object"


def test_each_verb_of_another_tool_leads_to_one_of_ours() -> None:
    for word, meant in tools.OTHER_WORDS.items():
        assert meant in tools.OWN.arguments
        assert word not in tools.OWN.arguments
        with pytest.raises(Refusal) as refused:
            refusals.check(word, {})
        assert f"Next: {meant}(" in str(refused.value)


def test_each_argument_of_another_tool_leads_to_one_of_ours() -> None:
    for name, known in tools.OWN.arguments.items():
        for own, words in tools.OTHER_ARGUMENTS.items():
            for word in words.split() if own in known else ():
                if word not in known:
                    with pytest.raises(Refusal, match="here that is"):
                        refusals.check(name, {word: "x"})


def test_inputs_whose_short_names_are_alike_are_both_handed_over() -> None:
    one, other = "00006a1dkn473dtgwkf12", "00006a1dkn473dtgxkf12"
    task = Task(id="00016a1dkn473dtgwegf1", kind="build", state=State.PROCESSING, after=[one, other])
    claim = SimpleNamespace(task=task, handle=f"{task.id}.1.x", fence=1, inputs={one: 1, other: 2})
    assert claimed(claim)["inputs"] == {"0-wkf12": 1, "0-xkf12": 2}  # type: ignore[arg-type]
