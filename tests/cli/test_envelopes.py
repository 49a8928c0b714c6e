"""What each verb answers with --json, to the letter."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import Task
from taskyard.core import ids

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Answer

COMPACT = {"id", "short", "kind", "title", "state", "priority", "worker", "mission"}


def test_init_says_where_the_yard_is_and_whether_it_is_new(run: Callable[..., Answer], place: Path) -> None:
    first = run("init", "--json").data
    again = run("init", "--json").data
    assert first == {"yard": str(place / ".taskyard"), "created": True, "warnings": []}
    assert again["created"] is False


def test_init_takes_the_path_then_the_yard_option_then_the_environment(
    run: Callable[..., Answer], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD", str(place / "third"))
    assert run("init", "first", "--yard", "second", "--json").data["yard"] == str(place / "first")
    assert run("--yard", "second", "init", "--json").data["yard"] == str(place / "second")
    assert run("init", "--json").data["yard"] == str(place / "third")


def test_init_of_an_existing_yard_with_another_durability_warns_on_stderr(
    run: Callable[..., Answer], yard: Path
) -> None:
    answer = run("init", "--durability", "strict", "--json")
    assert len(answer.data["warnings"]) == 1
    assert answer.data["warnings"][0] in answer.err


def test_add_gives_the_whole_task(ask: Callable[..., Any]) -> None:
    data = ask(
        "add",
        "build",
        "--title",
        "Docs",
        "--priority",
        "0",
        "--data",
        '{"a": 1}',
        "--mission",
        "M",
        "--assignee",
        "ada",
        "--max-attempts",
        "7",
    )
    task = data["task"]
    assert data["created"] is True
    assert set(task) == set(Task.FIELDS)
    assert (task["kind"], task["title"], task["state"], task["priority"], task["data"]) == (
        "build",
        "Docs",
        "todo",
        0,
        {"a": 1},
    )
    assert (task["mission"], task["assignee"], task["max_attempts"]) == ("M", "ada", 7)


def test_a_delayed_task_waits(ask: Callable[..., Any]) -> None:
    assert ask("add", "build", "--delay", "10m")["task"]["state"] == "waiting"
    assert ask("add", "build", "--not-before", "2050-01-01T00:00:00Z")["task"]["not_before"].startswith(
        "2050-01-01T00:00:00"
    )
    assert ask("claim", code=3)["code"] == "nothing_ready"


def test_add_from_lines_gives_the_ids_in_order(ask: Callable[..., Any], place: Path) -> None:
    lines = '{"kind": "a", "data": {"n": 1}}\n\n{"kind": "b", "title": "T", "maxAttempts": 2}\n'
    (place / "tasks.jsonl").write_text(lines)
    data = ask("add", "--from", "tasks.jsonl")
    assert data["created"] == 2
    assert [ask("show", id)["task"]["kind"] for id in data["ids"]] == ["a", "b"]
    assert ask("add", "--from", "-", stdin=lines)["created"] == 2
    assert ask("add", "--from", "-", stdin="\n")["ids"] == []
    missing = ask("add", "--from", "nowhere.jsonl", code=2)
    assert missing["message"] == "cannot read nowhere.jsonl: No such file or directory"


@pytest.mark.parametrize("verb", ["ready", "list"])
def test_lists_are_compact_and_paged(ask: Callable[..., Any], verb: str) -> None:
    ids = ask("add", "--from", "-", stdin='{"kind": "a"}\n' * 5)["ids"]
    first = ask(verb, "--limit", "3")
    assert [task["id"] for task in first["tasks"]] == ids[:3]
    assert set(first["tasks"][0]) == COMPACT
    rest = ask(verb, "--limit", "3", "--cursor", first["next"])
    assert [task["id"] for task in rest["tasks"]] == ids[3:]
    assert rest["next"] is None


def test_list_filters_by_states_kinds_mission_and_holder(ask: Callable[..., Any]) -> None:
    for kind in ("a", "b", "c"):
        ask("add", kind, "--mission", f"m{kind}")
    ask("claim", "--kind", "a", "--worker", "ada")

    def kinds(*options: str) -> list[str]:
        return [task["kind"] for task in ask("list", *options)["tasks"]]

    assert kinds() == ["a", "b", "c"]
    assert kinds("--state", "processing") == ["a"]
    assert kinds("--state", "processing", "--state", "todo") == ["a", "b", "c"]
    assert kinds("--kind", "b", "--kind=c") == ["b", "c"]
    assert kinds("--mission", "mc") == ["c"]
    assert kinds("--worker", "ada") == ["a"]
    assert kinds("--worker", "bob") == []


def test_ready_is_what_this_worker_could_get(ask: Callable[..., Any]) -> None:
    ask("add", "a", "--assignee", "ada")
    ask("add", "b", "--delay", "1h")
    assert [task["kind"] for task in ask("ready", "--worker", "ada")["tasks"]] == ["a"]
    assert ask("ready", "--worker", "bob")["tasks"] == []
    assert ask("ready", "--worker", "ada", "--state", "waiting")["tasks"] == []


def test_claim_gives_everything_that_the_work_needs(ask: Callable[..., Any]) -> None:
    added = ask("add", "build", "--data", "[1]")["task"]
    data = ask("claim", "--worker", "ada", "--lease", "90")
    assert set(data) == {"claim", "fence", "task", "workdir", "history", "lease_until"}
    assert data["claim"].startswith(f"{added['id']}.{data['fence']}.")
    assert (data["task"]["id"], data["task"]["state"], data["task"]["worker"], data["task"]["data"]) == (
        added["id"],
        "processing",
        "ada",
        [1],
    )
    assert data["history"] == []
    assert data["lease_until"].endswith("Z")


def test_claim_shows_how_earlier_attempts_ended(ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    ask("fail", ask("claim", "--worker", "ada")["claim"], "--reason", "no disk")
    ask("retry", id)
    (before,) = ask("claim", "--worker", "bob")["history"]
    assert (before["outcome"], before["reason"], before["worker"]) == ("error", "no disk", "ada")


def test_claim_of_one_task_by_its_beginning(ask: Callable[..., Any]) -> None:
    ids = ask("add", "--from", "-", stdin='{"kind": "a"}\n' * 2)["ids"]
    assert ask("claim", ids[1])["task"]["id"] == ids[1]
    assert ask("claim", ids[1], code=7)["code"] == "conflict"


def test_heartbeat_gives_the_new_end_of_the_lease(ask: Callable[..., Any]) -> None:
    ask("add", "build")
    claim = ask("claim", "--lease", "60")
    data = ask("heartbeat", claim["claim"], "--progress", "0.5", "--note", "half")
    assert set(data) == {"lease_until"}
    assert data["lease_until"] >= claim["lease_until"]
    shown = ask("show", claim["task"]["id"])
    assert shown["task"]["progress"] == 0.5
    assert shown["notes"][0]["text"] == "half"


def test_endings_give_the_task_as_it_is_now(ask: Callable[..., Any]) -> None:
    ask("add", "--from", "-", stdin='{"kind": "a"}\n' * 4)

    def claimed() -> str:
        return str(ask("claim")["claim"])

    done = ask("done", claimed(), "--result", '{"ok": true}')["task"]
    assert (done["state"], done["result"], set(done)) == ("done", {"ok": True}, {*Task.FIELDS, "evidence"})
    assert ask("fail", claimed(), "--reason", "x")["task"]["state"] == "waiting"
    failed = ask("fail", claimed(), "--reason", "-x", "--no-retry")["task"]
    assert (failed["state"], failed["error"]) == ("failed", "-x")
    assert ask("release", claimed())["task"]["state"] == "todo"


def test_done_repeated_by_the_winner_is_done(ask: Callable[..., Any]) -> None:
    ask("add", "build")
    handle = ask("claim")["claim"]
    assert ask("done", handle, "--result", "1") == ask("done", handle, "--result", "1")


def test_note_is_kept_for_the_next_worker(ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    handle = ask("claim")["claim"]
    assert ask("note", handle, "- mind the gap")["task"]["id"] == id
    assert [note["text"] for note in ask("show", id)["notes"]] == ["- mind the gap"]


def test_the_claim_of_the_environment_is_used_where_no_handle_is_given(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    id = ask("add", "build")["task"]["id"]
    monkeypatch.setenv("TASKYARD_CLAIM", ask("claim")["claim"])
    ask("heartbeat")
    ask("note", "one word")
    assert ask("done", "--result", "-", stdin='"from stdin"')["task"]["result"] == "from stdin"
    assert ask("show", id)["notes"][0]["text"] == "one word"


def test_show_gives_task_history_notes_and_stale_results(ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    late = ask("claim")["claim"]
    ask("release", late)
    ask("done", ask("claim")["claim"], "--result", "1")
    assert ask("done", late, "--result", "2", code=4)["code"] == "claim_lost"
    data = ask("show", id)
    assert set(data) == {"task", "history", "notes", "stale_results", "dependencies", "dependents", "children"}
    assert data["task"]["result"] == 1
    assert [entry["outcome"] for entry in data["history"]] == ["released", "done"]
    assert [entry["result"] for entry in data["stale_results"]] == [2]


def test_a_claim_prints_its_handle_alone_where_that_is_asked_for(
    run: Callable[..., Answer], ask: Callable[..., Any]
) -> None:
    ask("add", "build")
    ask("add", "build")
    handle = run("claim", "--handle").out
    assert handle.count("\n") == 1
    assert ask("done", handle.strip())["task"]["state"] == "done"
    assert ask("claim", "--handle")["claim"].count(".") == 2  # JSON is whole in any case


def test_stats_counts_by_state_and_kind(ask: Callable[..., Any]) -> None:
    ask("add", "--from", "-", stdin='{"kind": "a"}\n{"kind": "b"}\n{"kind": "b"}\n')
    ask("claim", "--kind", "a")
    data = ask("stats")
    assert (data["counts"]["todo"], data["counts"]["processing"], data["counts"]["done"]) == (2, 1, 0)
    assert data["kinds"] == {"a": {"processing": 1}, "b": {"todo": 2}}


def test_cancel_and_retry_give_the_task(ask: Callable[..., Any]) -> None:
    id = ask("add", "build")["task"]["id"]
    assert ask("cancel", id, "--reason", "no need")["task"]["state"] == "cancelled"
    assert ask("retry", id)["task"]["state"] == "todo"


def test_wait_gives_the_whole_tasks(ask: Callable[..., Any]) -> None:
    ids = ask("add", "--from", "-", stdin='{"kind": "a"}\n' * 2)["ids"]
    for _ in ids:
        ask("done", ask("claim")["claim"], "--result", "7")
    tasks = ask("wait", ids[1], "--timeout", "5", ids[0])["tasks"]
    assert [(task["id"], task["result"]) for task in tasks] == [(ids[1], 7), (ids[0], 7)]
    assert set(tasks[0]) == {*Task.FIELDS, "evidence"}


def test_janitor_counts_what_it_did(ask: Callable[..., Any]) -> None:
    assert ask("janitor") == {
        "taken": 0,
        "reaped": 0,
        "woken": 0,
        "expired": 0,
        "mended": 0,
        "full": [],
        "ticked": 0,
        "not_tasks": [],
    }


@pytest.mark.parametrize("value", ["{}", '"text"', "null", "-5", "[1, 2]", '"漢字 😀"'])
def test_data_comes_back_as_it_went_in(ask: Callable[..., Any], place: Path, value: str) -> None:
    (place / "data.json").write_bytes(b"\xef\xbb\xbf" + value.encode())
    for given, stdin in ((value, ""), ("@data.json", ""), ("-", value), ("@-", value)):
        assert ask("add", "build", "--data", given, stdin=stdin)["task"]["data"] == json.loads(value)


def test_a_name_is_as_long_as_it_must_be_wherever_a_command_gives_a_task(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = ids.chance
    fixed = {40: lambda: chance(40) & ~0xFFFFF | 0xBEEF, 16: lambda: (1 << 20) - 1}
    monkeypatch.setattr(ids, "chance", lambda bits: fixed.get(bits, lambda: chance(bits))())
    ask("add", "build")
    second = ask("add", "build")["task"]
    assert len(second["short"]) > len(ids.short(second["id"]))
    assert ask("claim", second["short"], "--worker", "ada")["task"]["short"] == second["short"]
    [resumed] = ask("resume", "--worker", "ada")["claims"]
    assert resumed["task"]["short"] == second["short"]
    assert ask("release", resumed["claim"])["task"]["short"] == second["short"]
    assert [task["short"] for task in ask("list")["tasks"]][1] == second["short"]
    assert [task["short"] for task in ask("ready")["tasks"]][1] == second["short"]
    assert ask("show", ids.short(second["id"]), code=6)["code"] == "ambiguous"
