"""Status changes as messages: each once, whoever made it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from tests.conftest import SOON, taken
from tests.valkey.waiting import Claimer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Yard


class Messages:
    """What is heard on a project's channel."""

    def __init__(self, client: Any, project: str) -> None:
        self._ear = client.pubsub(ignore_subscribe_messages=True)
        self._ear.subscribe(f"taskyard:{{{project}}}:events")
        while not self._ear.subscribed or self._ear.get_message(timeout=1) is not None:
            pass
        self.all: list[Any] = []

    def until(self, event: str, task: str) -> Any:
        """The message of this event; all that come before it are kept."""
        end = time.monotonic() + SOON
        while time.monotonic() < end:
            message = self._ear.get_message(timeout=0.2)
            if message is not None:
                self.all.append(json.loads(message["data"]))
                if (self.all[-1]["event"], self.all[-1]["task"]) == (event, task):
                    return self.all[-1]
        raise AssertionError(f"no {event} of {task}: {self.all}")

    def close(self) -> None:
        self._ear.close()


@pytest.fixture
def messages(client: Any, plain: str) -> Iterator[Messages]:
    heard = Messages(client, plain.partition("project=")[2])
    yield heard
    heard.close()


def test_every_step_of_a_task_is_sent_once(yard: Yard, messages: Messages) -> None:
    id = yard.add("build", priority=2).id
    claim = taken(yard.claim())
    claim.note("half way")
    claim.release()
    claim = taken(yard.claim())
    claim.done()
    last = messages.until("done", id)
    told = [(m["event"], m["state"], m["fence"], m["worker"]) for m in messages.all if m["event"] != "noted"]
    assert told == [
        ("added", "todo", 0, None),
        ("claimed", "processing", 1, "ada"),
        ("released", "todo", 2, "ada"),
        ("claimed", "processing", 3, "ada"),
        ("done", "done", 3, "ada"),
    ]
    assert (last["v"], last["kind"], last["by"]) == (1, "build", "ada")
    assert [m["text"] for m in messages.all if m["event"] == "noted"] == ["half way"]


def test_a_claim_is_sent_with_the_one_who_asked_for_it(yard: Yard, messages: Messages) -> None:
    id = yard.add("build").id
    taken(yard.acting_for("bo", by="a token").claim())
    told = messages.until("claimed", id)
    assert (told["worker"], told["by"]) == ("bo", "a token")
    [logged] = [event for event in yard.events(task=id) if event["event"] == "claimed"]
    assert logged["by"] == "a token"


def test_what_moves_with_another_task_is_sent_too(yard: Yard, messages: Messages) -> None:
    first = yard.add("build").id
    then = yard.add("test", after=[first]).id
    lost = yard.add("test", after=[then]).id
    taken(yard.claim(first)).done()
    assert messages.until("unblocked", then)["state"] == "todo"
    yard.cancel(then)
    assert messages.until("cancelled", then)["state"] == "cancelled"
    yard.cancel(lost)
    messages.until("cancelled", lost)
    names = [(m["event"], m["task"], m["fence"]) for m in messages.all]
    assert len(names) == len(set(names)), names


def test_a_task_added_in_a_transaction_of_the_callers_own_is_sent_by_who_waits(
    yard: Yard, url: str, plain: str, messages: Messages
) -> None:
    with taskyard.open(url, worker="bob") as other:
        claimer = Claimer(other).asleep()
        with psycopg.connect(plain.partition("&project=")[0]) as connection:
            id = yard.add("build", conn=connection).id
        assert claimer.got().task.id == id
        messages.until("added", id)


def test_what_a_client_without_valkey_does_is_sent_by_who_waits(url: str, plain: str, messages: Messages) -> None:
    with taskyard.open(url, worker="bob") as waiting, taskyard.open(plain, worker="ada") as apart:
        claimer = Claimer(waiting, kinds=["rare"]).asleep()
        id = apart.add("common").id
        taken(apart.claim(kinds=["common"])).done()
        assert messages.until("done", id)["by"] == "ada"
        apart.pause()
        rare = apart.add("rare").id
        messages.until("added", rare)
        assert claimer.answer == []
        apart.unpause()
        assert claimer.got().task.id == rare


def test_a_follower_of_the_log_is_woken_by_messages_and_the_database_rings_for_nobody(
    yard: Yard, url: str, plain: str
) -> None:
    with taskyard.open(url, worker="bob") as other:
        id = yard.add("build").id
        taken(yard.claim(id)).done()
        [ended] = other.wait(id, timeout=SOON)
        assert ended.state == "done"
        claimer = Claimer(other).asleep()
        with psycopg.connect(plain.partition("&project=")[0]) as sql:
            [(sleepers,)] = sql.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 747159 AND objid = %s",
                (other._store._context.project,),  # type: ignore[attr-defined]
            ).fetchall()
        assert sleepers == 0
        yard.add("build")
        claimer.got()
