"""Every POST of the table, sent twice under one Idempotency-Key: what it creates is there once, and the answer is the same."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from taskyard.remote import routes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Yard
    from tests.servers.gateway import Running

    Given = dict[str, Any]

CREATE: dict[str, list[Given]] = {
    "add": [{"kind": "build"}, {"kind": "build", "key": "own"}],
    "add_many": [{"tasks": [{"kind": "build"}, {"kind": "build"}, {"kind": "build", "key": "own"}]}],
    "claim": [{}, {"kinds": ["first"]}],
    "claim_many": [{"number": 2}],
    "new_mission": [{"name": "site", "brief": "b"}],
    "new_schedule": [{"name": "nightly", "cron": "0 3 * * *", "kind": "build"}],
    "new_token": [{}, {"name": "board", "scope": "read"}, {"project": "elsewhere"}],
}
"""What creates a task, a claim, a mission, a schedule or a token, with arguments that do."""
CREATE_NOTHING = {
    "accept", "audit", "bulk", "cancel", "cancel_mission", "crash", "done", "done_many", "fail", "get_many", "graph",
    "give_team", "heartbeat", "holding", "pause", "pause_schedule", "prune", "reject", "release", "remains", "remove_schedule", "resume",
    "retry", "revoke_team_token", "revoke_token", "set_file_conflicts", "shorten", "sweep", "take_team", "unpause", "unpause_schedule", "wait",
}  # fmt: skip
"""What changes or reads what is there."""
OF_TEAMS = {"new_team", "new_team_token"}
"""What creates only in a database: `test_team_tokens` and `test_teams` send it twice."""


@pytest.fixture
def line(near: Yard, gateway: Running) -> Iterator[http.client.HTTPConnection]:
    near.add_many([{"kind": "first"}] * 6)
    open_line = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    yield open_line
    open_line.close()


def sent(line: http.client.HTTPConnection, verb: str, given: Given, key: str, token: str) -> tuple[int, Given]:
    headers = {"Idempotency-Key": key, "Taskyard-Worker": "ada", "Authorization": f"Bearer {token}"}
    line.request("POST", routes.BY_VERB[verb].path, json.dumps(given).encode(), headers)
    answer = line.getresponse()
    return answer.status, told(json.loads(answer.read())["data"])


def told(answer: Any) -> Any:
    """An answer without `created` and `lease_until`.

    Where a name or the caller's own key tells that something is there, `created` is false again; a lease's end is the
    file's time when it is asked for again, which is later by the milliseconds of the move.
    """
    if isinstance(answer, dict):
        return {name: told(value) for name, value in answer.items() if name not in ("created", "lease_until")}
    return [told(value) for value in answer] if isinstance(answer, list) else answer


def there(near: Yard) -> Given:
    """All that a request may have created."""
    return {
        "tasks": {task.id: task.fence for task in near.find(limit=1000)},
        "missions": sorted(one["name"] for one in near.missions()),
        "schedules": sorted(one["name"] for one in near.schedules()),
        "tokens": near.tokens(),
    }


def test_every_post_of_the_table_is_known_to_create_or_not() -> None:
    posts = {route.verb for route in routes.ROUTES if route.method == "POST"}
    assert posts == CREATE.keys() | CREATE_NOTHING | OF_TEAMS


@pytest.mark.parametrize(
    ("verb", "given"), [pytest.param(verb, given, id=verb) for verb, several in CREATE.items() for given in several]
)
def test_what_is_created_under_one_key_is_there_once(
    near: Yard, line: http.client.HTTPConnection, verb: str, given: Given
) -> None:
    token = near.new_token("manager", scope="manage")["token"]
    before = there(near)
    first = sent(line, verb, given, "key-1", token)
    once = there(near)
    assert first[0] == 200
    assert once != before
    assert sent(line, verb, given, "key-1", token) == first
    assert there(near) == once


@pytest.mark.parametrize("given", [{}, {"name": "board", "scope": "read"}])
def test_another_key_or_another_asker_does_not_get_a_token_that_was_made(
    near: Yard, line: http.client.HTTPConnection, given: Given
) -> None:
    maker, other = (near.new_token(name, scope="manage")["token"] for name in ("maker", "other"))
    _, made = sent(line, "new_token", given, "key-1", maker)
    for key, asker in (("key-2", maker), ("key-1", other)):
        headers = {"Idempotency-Key": key, "Authorization": f"Bearer {asker}"}
        line.request("POST", "/v1/tokens", json.dumps(given).encode(), headers)
        answer = line.getresponse()
        assert made["token"]["token"] not in answer.read().decode()
        assert answer.status == (409 if given else 200)
