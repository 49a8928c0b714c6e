"""Words of other tools are answered from a table, and never by a guess that would change something."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from taskyard.doors.cli import other_words, parser, verbs

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Answer

KNOWN = {*verbs.ALIASES, *(verb for group in verbs.GROUPS.values() for verb in group)}


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("comment", "note"),
        ("delete", "cancel"),
        ("remove", "cancel"),
        ("finish", "done"),
        ("take", "claim"),
        ("new", "add"),
        ("status", "show"),
        ("unclaim", "release"),
        ("reopen", "retry"),
        ("Mark_Done", "done"),
    ],
)
def test_a_word_of_another_tool_is_told_what_serves_here(word: str, named: str, ask: Callable[..., Any]) -> None:
    error = ask(word, code=2)
    assert error["message"].startswith("there is no verb")
    assert f"'taskyard {named} " in error["hint"]


@pytest.mark.parametrize("word", ["clam", "relase", "dnoe", "resme", "cancle", "initt"])
def test_a_word_that_only_looks_like_a_verb_is_not_guessed_at(word: str, ask: Callable[..., Any]) -> None:
    assert ask(word, code=2)["hint"] == "'taskyard help' lists the verbs"


@pytest.mark.parametrize(
    ("argv", "never"),
    [
        (("fail", "--retry"), "did you mean"),
        (("cancel", "X", "--result", "1"), "did you mean"),
        (("claim", "--keen"), "did you mean"),
    ],
)
def test_an_option_is_not_guessed_at_either(argv: tuple[str, ...], never: str, ask: Callable[..., Any]) -> None:
    hint = ask(*argv, code=2)["hint"]
    assert never not in hint
    assert f"usage: taskyard {argv[0]}" in hint


def test_an_option_of_another_tool_is_told_what_serves_here(ask: Callable[..., Any]) -> None:
    assert ask("add", "build", "--depends-on", "x", code=2)["hint"] == "here that is --after"
    assert ask("list", "--status", "todo", code=2)["hint"] == "here that is --state"


def test_every_word_of_the_table_leads_to_a_verb_with_its_options() -> None:
    assert not KNOWN & set(other_words.VERBS), "a verb of our own needs no answer"
    for hint in other_words.VERBS.values():
        for verb, rest in re.findall(r"'taskyard ([a-z]+)([^']*)'", hint):
            options = {option.name for option in (*parser.GLOBAL, *verbs.command(verb).options)}
            assert set(re.findall(r"--[a-z-]+", rest)) <= options, hint


def test_every_option_of_the_table_is_one_of_some_verbs() -> None:
    commands = [verbs.command(verb) for group in verbs.GROUPS.values() for verb in group]
    own = {option.name for command in commands for option in (*parser.GLOBAL, *command.options)}
    assert set(other_words.OPTIONS.values()) <= own


def test_help_and_version_are_verbs_too(run: Callable[..., Answer]) -> None:
    assert run("help").out == run("--help").out
    assert run("help", "claim").out == run("claim", "--help").out
    assert run("help", "next").out == run("claim", "--help").out
    assert run("version").out == run("--version").out
    assert run("version", "--json").out == run("--version", "--json").out
    answer = run("help", "delete")
    assert (answer.code, "cancel" in answer.err) == (2, True)


def test_a_kind_where_an_id_is_due_offers_the_option(ask: Callable[..., Any]) -> None:
    ask("add", "fix")
    error = ask("claim", "fix", code=6)
    assert (error["code"], "claim --kind fix" in error["hint"]) == ("not_found", True)
    assert "--kind" not in ask("claim", "0" * 21, code=6)["hint"]
    assert "--kind" not in ask("claim", "0-zzzz", code=6)["hint"]
    assert ask("stats")["counts"]["todo"] == 1


def test_a_title_where_a_kind_is_due_names_the_option(ask: Callable[..., Any]) -> None:
    assert "--title 'Fix it'" in ask("create", "Fix it", code=2)["hint"]
    assert "--title" in ask("add", "fix", "Fix it", code=2)["hint"]
    assert ask("list")["tasks"] == []
