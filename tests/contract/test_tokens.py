"""Tokens for a gateway: a yard keeps what tells them apart, on every store alike, and never the tokens."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import Conflict, Invalid, NotFound

if TYPE_CHECKING:
    from taskyard import Yard


def test_tokens_are_made_listed_and_revoked(yard: Yard, yard_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert yard.tokens() == []
    first = yard.new_token("first", scope="manage")
    monkeypatch.setenv("TASKYARD_TOKEN", first["token"])  # which a gateway asks for from now on
    with taskyard.open(yard_url) as own:
        made = own.new_token("board", scope="read", project="site")
        assert made.pop("token") != first.pop("token")
        assert own.tokens() == [made, first]
        assert (made["name"], made["scope"], made["project"]) == ("board", "read", "site")
        for wrong in ({"name": "x", "scope": "all"}, {"name": ""}, {"name": "a\nb"}):
            with pytest.raises(Invalid):
                own.new_token(**wrong)
        with pytest.raises(Conflict):
            own.new_token("board")
        assert own.revoke_token("board") == made
        with pytest.raises(NotFound):
            own.revoke_token("board")
        assert own.tokens() == [first]
        assert own.new_token()["scope"] == "work"


def test_a_token_that_is_made_again_under_its_key_is_the_same_token(
    yard: Yard, yard_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = yard.new_token("first", scope="manage", key="0")
    monkeypatch.setenv("TASKYARD_TOKEN", first["token"])
    with taskyard.open(yard_url) as own:
        named = own.new_token("board", scope="read", key="a")
        unnamed = own.new_token(project="site", key="b")
        assert own.new_token("board", scope="read", key="a") == named
        assert own.new_token(scope="read", key="a") == named
        assert own.new_token(project="site", key="b") == unnamed
        for other in ({"scope": "manage"}, {"name": "x", "scope": "read"}, {"scope": "read", "project": "site"}):
            with pytest.raises(Conflict, match="key"):
                own.new_token(**other, key="a")
        with pytest.raises(Conflict, match="already"):
            own.new_token("board", scope="read", key="c")
        assert len(own.tokens()) == 3
        made = sorted(event["token"] for event in own.events(event="token_made", limit=10))
        assert made == ["board", "first", unnamed["name"]]
        own.revoke_token("board")
        assert own.new_token("board", scope="read", key="a")["token"] != named["token"]


def test_settings_neither_show_nor_change_tokens(yard: Yard, yard_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = yard.settings()
    made = yard.new_token("first", scope="manage")
    monkeypatch.setenv("TASKYARD_TOKEN", made.pop("token"))
    with taskyard.open(yard_url) as own:
        assert own.settings() == before
        assert own.set_settings({"max_attempts": 7}) == {**before, "max_attempts": 7}
        with pytest.raises(Invalid):
            own.set_settings({"tokens": {}})
        assert own.tokens() == [made]


def test_tokens_that_are_made_at_once_are_all_kept(yard: Yard, yard_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_TOKEN", yard.new_token("t", scope="manage")["token"])

    def make(number: int) -> None:
        with taskyard.open(yard_url) as own:
            own.new_token(f"t{number}")

    threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with taskyard.open(yard_url) as own:
        assert [one["name"] for one in own.tokens()] == ["t", "t0", "t1", "t2", "t3"]
