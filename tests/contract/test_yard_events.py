"""What is done to the yard and to no task is in the log too, with who did it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import Conflict, Invalid, NotFound
from taskyard.core.yard_events import YARD_EVENTS

if TYPE_CHECKING:
    from taskyard import Yard


def told(yard: Yard, cursor: str | None = None) -> list[dict[str, Any]]:
    """Events about the yard, without their times."""
    found = yard.events(event=YARD_EVENTS, cursor=cursor)
    return [{name: value for name, value in event.items() if name != "at"} for event in found]


def about(yard: Yard, event: str, kind: str = "", **more: Any) -> dict[str, Any]:
    return {"event": event, "task": "", "fence": 0, "kind": kind, "worker": None, "by": yard.worker, **more}


def test_pauses_are_told(yard: Yard) -> None:
    yard.pause()
    yard.unpause()
    yard.pause("build")
    assert told(yard) == [about(yard, "paused"), about(yard, "unpaused"), about(yard, "paused", "build")]
    assert [event["event"] for event in yard.events(kind="build")] == ["paused"]
    with pytest.raises(Invalid):
        yard.pause("no kind")
    assert len(told(yard)) == 3


def test_changed_settings_are_told(yard: Yard) -> None:
    changes = {"max_attempts": 7, "kinds": {"build": {"concurrency": 2}}}
    yard.set_settings(changes)
    with pytest.raises(Invalid):
        yard.set_settings({"max_attempts": -1})
    assert told(yard) == [about(yard, "configured", changes=changes)]


def test_tokens_are_told_of_without_their_secrets(yard: Yard, yard_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = yard.new_token("first", scope="manage")["token"]
    monkeypatch.setenv("TASKYARD_TOKEN", secret)  # which a gateway asks for from now on
    with taskyard.open(yard_url, worker=yard.worker) as own:
        own.new_token("board", scope="read")
        own.revoke_token("board")
        events = told(own)  # of two openings at one moment: in any order
    assert about(yard, "token_made", token="first", scope="manage") in events
    later = [(event["event"], event["scope"]) for event in events if event["token"] == "board"]
    assert later == [("token_made", "read"), ("token_revoked", "read")]
    assert secret not in str(events)


def test_missions_and_schedules_are_told_once(yard: Yard) -> None:
    for _ in range(2):
        yard.new_mission("1.0", "ship it")
        yard.new_schedule("nightly", "0 3 * * *", "report")
        yard.pause_schedule("nightly")
    yard.unpause_schedule("nightly")
    yard.remove_schedule("nightly")
    yard.cancel_mission("1.0")
    with pytest.raises(Conflict):
        yard.new_mission("1.0", "something else")
    with pytest.raises(NotFound):
        yard.remove_schedule("nightly")
    nightly = {"kind": "report", "schedule": "nightly"}
    assert told(yard) == [
        about(yard, "mission_made", mission="1.0"),
        about(yard, "schedule_made", **nightly),
        about(yard, "schedule_paused", **nightly),
        about(yard, "schedule_unpaused", **nightly),
        about(yard, "schedule_removed", **nightly),
        about(yard, "mission_cancelled", mission="1.0", cancelled=0),
    ]


def test_a_prune_is_told_if_it_is_applied(yard: Yard) -> None:
    yard.cancel(yard.add("build").id)
    yard.prune(count=0)
    assert told(yard) == []
    yard.prune(count=0, apply=True)
    assert told(yard) == [about(yard, "pruned", count=1)]


def test_an_audit_finds_nothing_wrong_with_them(yard: Yard) -> None:
    yard.pause()
    yard.unpause()
    assert yard.audit()["findings"] == []
