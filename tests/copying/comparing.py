"""Comparing two yards by what the command line says of them, and by nothing that the copy itself uses."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from taskyard.doors.cli import main


def say(*words: str) -> Any:
    """What a command answers."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*words, "--json"])
    answer = json.loads(out.getvalue())
    assert code == 0, (words, answer, err.getvalue())
    return answer["data"]


def listed(url: str) -> list[dict[str, Any]]:
    """Every task of a yard, as `list` shows it."""
    tasks: list[dict[str, Any]] = []
    cursor: list[str] = []
    while True:
        page = say("list", "--yard", url, "--limit", "1000", *cursor)
        tasks += page["tasks"]
        if page["next"] is None:
            return tasks
        cursor = ["--cursor", page["next"]]


def logged(url: str) -> list[dict[str, Any]]:
    """All events of tasks: what was done to a yard itself stays with it."""
    events: list[dict[str, Any]] = []
    cursor: list[str] = []
    while True:
        page = say("log", "--yard", url, "--limit", "1000", *cursor)
        events += [event for event in page["events"] if event["task"]]
        if len(page["events"]) < 1000:
            return events
        cursor = ["--cursor", page["cursor"]]


def shown(url: str, id: str) -> dict[str, Any]:
    """All about one task; where its folder is differs, and whether there is one is told by other means."""
    told: dict[str, Any] = say("show", id, "--yard", url)
    for entry in told["history"]:
        del entry["workdir"]
    del told["children"]  # a directory has no index of them
    return told


def assert_same(one: str, other: str, sample: int | None = None) -> None:
    """Both yards tell the same: of all tasks in lists, of all or some in full, and the whole log."""
    tasks = listed(one)
    assert tasks == listed(other)
    ids = [task["id"] for task in tasks]
    for id in ids if sample is None else ids[:: max(1, len(ids) // sample)]:
        assert shown(one, id) == shown(other, id)
    assert logged(one) == logged(other)
    first, second = say("stats", "--yard", one), say("stats", "--yard", other)
    for told in (first, second):
        for name in (
            "lost_races",
            "set_aside",
            "ages",
            "oldest_ready",
            "rates",
        ):  # the clock alone changes the last three
            told.pop(name, None)
    assert first == second
