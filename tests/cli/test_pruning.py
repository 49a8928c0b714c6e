"""`prune` tells first, and does only what --apply asks for."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Answer


def finish(ask: Callable[..., Any], number: int) -> list[str]:
    ids = [ask("add", "build", "--data", json.dumps({"n": n}))["task"]["id"] for n in range(number)]
    for _ in ids:
        ask("done", ask("claim")["claim"], "--result", '{"ok": true}')
    return ids


def test_without_apply_nothing_goes(ask: Callable[..., Any], run: Callable[..., Answer]) -> None:
    finish(ask, 3)
    told = ask("prune", "--keep", "1")
    assert (told["tasks"], told["applied"], told["archives"]) == (2, False, [])
    assert "would go" in run("prune", "--keep", "1").out
    assert ask("stats")["counts"]["done"] == 3


def test_what_goes_is_whole_in_the_archive(ask: Callable[..., Any], yard: Path) -> None:
    first, second = finish(ask, 2)
    told = ask("prune", "--keep", "0", "--apply")
    assert (told["tasks"], told["applied"]) == (2, True)
    texts = [gzip.decompress((yard / "archive" / name).read_bytes()).decode() for name in told["archives"]]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    assert [(line["task"]["id"], line["task"]["result"], line["history"][0]["outcome"]) for line in lines] == [
        (first, {"ok": True}, "done"),
        (second, {"ok": True}, "done"),
    ]
    assert ask("stats")["counts"]["done"] == 0
    assert [
        str(path) for folder in ("done", "results", "attempts") for path in (yard / folder).rglob("*") if path.is_file()
    ] == []


def test_a_prune_without_a_limit_is_a_usage_error(run: Callable[..., Answer]) -> None:
    assert run("prune", "--apply").code == 2
