"""An audit of a yard in PostgreSQL: what real verbs have made is clean, and each sort of damage is found by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import taken

if TYPE_CHECKING:
    from psycopg import Connection

    from taskyard import Yard

DAMAGE = {
    "body_missing": "DELETE FROM taskyard.body WHERE id = '{todo}'",
    "orphan": "DELETE FROM taskyard.task WHERE id = '{todo}'",
    "claim_illegal": "UPDATE taskyard.task SET nonce = NULL WHERE id = '{held}'",
    "state_illegal": "UPDATE taskyard.task SET state = 'done' WHERE id = '{todo}'",
    "due_missing": "UPDATE taskyard.task SET due = NULL WHERE id = '{waiting}'",
    "need_met": "DELETE FROM taskyard.need WHERE id = '{blocked}'",
    "need_open": "UPDATE taskyard.task SET state = 'todo' WHERE id = '{blocked}'",
    "need_lost": "UPDATE taskyard.need SET other = '{nowhere}' WHERE id = '{blocked}'",
    "cycle": (
        "UPDATE taskyard.task SET state = 'blocked', followed = true WHERE id IN ('{todo}', '{blocked}');"
        "INSERT INTO taskyard.need (project, id, other) SELECT project, other, id FROM taskyard.need WHERE id = '{blocked}'"
    ),
    "key_without_task": "UPDATE taskyard.key SET id = '{nowhere}' WHERE project = {project} AND key = 'k'",
    "key_missing": "DELETE FROM taskyard.key WHERE project = {project} AND key = 'k'",
    "use_without_claim": "UPDATE taskyard.used SET resource = 'other' WHERE project = {project} AND resource = 'db'",
    "use_missing": "DELETE FROM taskyard.used WHERE project = {project} AND resource = 'db'",
    "unlogged_ending": "DELETE FROM taskyard.event WHERE task = '{done}' AND event = 'done'",
    "state_behind": "UPDATE taskyard.task SET fence = 0 WHERE id = '{held}'",
    "two_states": "UPDATE taskyard.task SET id = '{done}', age = substr('{done}', 5) WHERE id = '{waiting}'",
}


@pytest.fixture
def ids(yard: Yard) -> dict[str, str]:
    """A task in every state, made by real verbs."""
    made = {"nowhere": "zzzz6a000000000000000"}
    made["done"] = yard.add("a").id
    taken(yard.claim(made["done"])).done({"n": 1})
    made["failed"] = yard.add("a", max_attempts=1).id
    taken(yard.claim(made["failed"])).fail("no")
    made["cancelled"] = yard.add("a").id
    yard.cancel(made["cancelled"])
    made["held"] = yard.add("a", uses="db").id
    taken(yard.claim(made["held"]))
    made["todo"] = yard.add("a", key="k").id
    made["waiting"] = yard.add("a", delay=3600).id
    made["blocked"] = yard.add("a", after=made["todo"]).id
    released = yard.add("a").id
    taken(yard.claim(released)).release()
    return made


def test_what_real_verbs_have_made_is_clean(yard: Yard, ids: dict[str, str]) -> None:
    found = yard.audit(repair=True)
    assert (found["verdict"], found["findings"]) == ("clean", [])
    assert found["checked"]["tasks"] == len(ids)  # the released one for the one that is nowhere


@pytest.mark.parametrize("code", DAMAGE)
def test_damage_is_found_by_its_name(yard: Yard, sql: Connection[Any], ids: dict[str, str], code: str) -> None:
    project = yard._store._context.project  # type: ignore[attr-defined]  # other tests have a key 'k' beside it
    sql.execute(DAMAGE[code].format(**ids, project=project).encode())
    found = yard.audit()
    assert found["verdict"] == "damaged"
    assert code in found["counts"]
    assert all(entry["what"] and entry["hint"] and not entry["repaired"] for entry in found["findings"])


def test_a_yard_at_work_is_clean_at_every_moment(yard: Yard, ids: dict[str, str]) -> None:
    import threading

    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            yard.add("b", key=None)
            claim = yard.claim(kinds=["b"])
            if claim is not None:
                claim.done({"by": claim.handle})

    hands = [threading.Thread(target=work) for _ in range(3)]
    for hand in hands:
        hand.start()
    try:
        assert [yard.audit()["findings"] for _ in range(15)] == [[]] * 15
    finally:
        over.set()
        for hand in hands:
            hand.join()
