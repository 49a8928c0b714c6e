"""`settings` from the command line, and what it leaves in yard.json."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer


def test_settings_prints_all_and_marks_the_defaults(ask: Callable[..., Any], run: Callable[..., Answer]) -> None:
    ask("init")
    assert ask("settings")["settings"]["max_attempts"] == 3
    assert "max_attempts = 3  (default)" in run("settings").out
    changed = ask("settings", "max_attempts=5", "kinds.a.b.concurrency=2", "kinds.a.b.rate=60", "ageing=3600")[
        "settings"
    ]
    assert (changed["max_attempts"], changed["kinds"], changed["ageing"]) == (
        5,
        {"a.b": {"concurrency": 2, "rate": 60}},
        3600,
    )
    told = run("settings").out
    assert "max_attempts = 5\n" in told
    assert "kinds.a.b.concurrency = 2\n" in told
    assert ask("settings", "kinds.a.b.rate=", "ageing=")["settings"]["kinds"] == {"a.b": {"concurrency": 2}}
    assert "ageing = none  (default)" in run("settings").out


def test_a_setting_that_cannot_be_is_refused_and_nothing_changes(
    run: Callable[..., Answer], ask: Callable[..., Any]
) -> None:
    ask("init")
    before = ask("settings")
    for words in (["max_attempts"], ["max_attempts=none"], ["lease=60", "odd=1"], ["kinds.build=3"], ["shared=group"]):
        refused = run("settings", *words, "--json")
        assert (refused.code, refused.error["code"]) == (2, "invalid"), words
    assert ask("settings") == before


def test_the_file_keeps_what_this_version_does_not_know(place: Path, ask: Callable[..., Any]) -> None:
    ask("init")
    file = place / ".taskyard" / "yard.json"
    content = json.loads(file.read_text())
    content["settings"]["later"] = {"a": [1]}
    content["note"] = "by hand"
    file.write_text(json.dumps(content))
    file.chmod(0o640)
    ask("settings", "lease=60")
    after = json.loads(file.read_text())
    assert after == {**content, "settings": {**content["settings"], "lease": 60}}
    assert file.stat().st_mode & 0o777 == 0o640


def test_clients_that_know_no_limits_refuse_a_yard_that_has_some(place: Path, ask: Callable[..., Any]) -> None:
    ask("init")
    file = place / ".taskyard" / "yard.json"
    ask("settings", "kinds.build.concurrency=2", "kinds.deploy.max_todo=2")
    assert json.loads(file.read_text())["features"] == ["limits"]
    ask("settings", "kinds.build=")
    assert json.loads(file.read_text())["features"] == []
