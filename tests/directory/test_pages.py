"""The pages of the log: a busy hour has many, old ones leave for the archive, and no event is lost or told twice."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.stores.directory.log import writer
from tests.conftest import taken
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard import Yard

HOUR = len("2026-01-31T12")


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A yard whose log has small pages."""
    monkeypatch.setattr(writer, "PAGE", 2000)
    monkeypatch.setattr(writer, "_LEAST", 100)
    monkeypatch.setattr(writer, "_PERIOD", 20)
    taskyard.init(tmp_path / "yard", durability="fast").close()
    return str(tmp_path / "yard")


def end(yard: Yard, number: int) -> list[str]:
    ids = []
    for _ in range(number):
        ids.append(yard.add("k").id)
        taken(yard.claim(ids[-1])).done()
    return ids


def pages(url: str) -> list[str]:
    return sorted(os.listdir(f"{url}/events"), key=writer.page_number)


def told(lines: Iterable[str]) -> list[tuple[str, str]]:
    events = [json.loads(line) for line in lines]
    return [(event["task"], event["event"]) for event in events]


def archived(url: str) -> list[tuple[str, str]]:
    paths = sorted(Path(url, "archive").glob("events-*"))
    return told(line for path in paths for line in gzip.decompress(path.read_bytes()).decode().splitlines())


def kept(url: str) -> list[tuple[str, str]]:
    return told(line for name in pages(url) for line in Path(url, "events", name).read_text().splitlines())


def test_a_busy_hour_has_pages_and_its_story_is_whole_and_in_order(url: str) -> None:
    with taskyard.open(url) as yard:
        ids = end(yard, 50)
        assert len(pages(url)) > 5
        story = [(event["task"], event["event"]) for event in yard.events(limit=1000)]
    assert story == [(id, event) for id in ids for event in ("added", "claimed", "done")]
    assert all(os.path.getsize(f"{url}/events/{name}") < 4000 for name in pages(url))


def test_whoever_begins_later_writes_to_the_last_page(url: str) -> None:
    with taskyard.open(url) as yard:
        end(yard, 30)
        before = len(pages(url))
        with taskyard.open(url) as other:
            id = other.add("k").id
        assert len(pages(url)) <= before + 1
    assert id in Path(url, "events", pages(url)[-1]).read_text()


def test_pages_go_as_far_as_the_ended_tasks_go(url: str) -> None:
    tools.settle(url, retention_count=5)
    with taskyard.open(url) as yard:
        ids = []
        most = 0
        for _ in range(10):
            ids += end(yard, 20)
            yard.sweep()
            most = max(most, len(pages(url)))
        assert most < 10
        for id in ids[-5:]:
            assert [event["event"] for event in yard.events(task=id)] == ["added", "claimed", "done"]
    expected = Counter((id, event) for id in ids for event in ("added", "claimed", "done"))
    assert Counter(archived(url) + kept(url)) == expected


def test_a_page_name_never_comes_twice(url: str) -> None:
    tools.settle(url, retention_count=0)
    seen: Counter[str] = Counter()
    for _ in range(5):
        with taskyard.open(url) as yard:
            end(yard, 20)
            yard.sweep()
        seen.update(path.name for path in Path(url, "archive").glob("events-*"))
        assert not {f"events-{name}.gz" for name in pages(url)} & set(seen)
    assert len(archived(url) + kept(url)) == len(set(archived(url) + kept(url))) == 300


def test_a_cursor_goes_on_behind_what_was_pruned(url: str) -> None:
    with taskyard.open(url) as yard:
        end(yard, 20)
        early = yard.events(limit=3).cursor
        late = yard.events(limit=1000).cursor
        end(yard, 20)
        yard.prune(count=0, apply=True)
        assert len(pages(url)) < 6
        last = end(yard, 1)[0]
        rest = yard.events(cursor=late, limit=1000)
        assert [event["event"] for event in rest][-3:] == ["added", "claimed", "done"]
        assert {event["task"] for event in rest[-3:]} == {last}
        everything = kept(url)
        assert all((event["task"], event["event"]) in everything for event in rest)
        assert [(event["task"], event["event"]) for event in yard.events(cursor=early, limit=1000)] == everything[3:]
        assert len(yard.events(cursor=rest.cursor)) == 0
        assert len(rest.cursor) < 400


def test_who_follows_while_pages_go_hears_everything_once(url: str) -> None:
    tools.settle(url, retention_count=3)
    heard: list[tuple[str, str]] = []
    cursor = None
    with taskyard.open(url) as yard:
        ids = []
        for _ in range(40):
            ids += end(yard, 3)
            while page := yard.events(cursor=cursor, limit=7):
                heard += [(event["task"], event["event"]) for event in page]
                cursor = page.cursor
            yard.sweep()
    assert heard == [(id, event) for id in ids for event in ("added", "claimed", "done")]


def test_the_page_of_a_process_that_only_waits_stays_until_it_goes_on(url: str) -> None:
    with taskyard.open(url) as yard, taskyard.open(url) as idle:
        end(yard, 20)
        held = idle.claim(idle.add("k").id)
        (mine,) = [name for name in pages(url) if taken(held).task.id in Path(url, "events", name).read_text()]
        end(yard, 40)
        yard.prune(count=0, apply=True)
        assert mine in pages(url)
        taken(held).done()
        assert (taken(held).task.id, "done") in kept(url)


def test_a_crew_that_prunes_while_it_works_loses_no_event(url: str) -> None:
    tools.settle(url, retention_count=5)
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                work(url, number)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    counted = Counter(archived(url) + kept(url))
    assert {event: sum(1 for _, name in counted if name == event) for event in ("added", "claimed", "done")} == {
        "added": 400,
        "claimed": 400,
        "done": 400,
    }
    assert set(counted.values()) == {1}
    assert len(pages(url)) < 40


def work(url: str, number: int) -> None:
    with taskyard.open(url, worker=f"w{number}") as yard:
        for _ in range(20):
            yard.add_many([{"kind": f"k{number}"}] * 5)
            for _ in range(5):
                taken(yard.claim(kinds=[f"k{number}"])).done()
            yard.sweep()


def test_a_forked_child_holds_the_page_that_it_writes_to(url: str) -> None:
    with taskyard.open(url) as yard:
        end(yard, 20)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                end(yard, 20)
                code = 0
            finally:
                os._exit(code)
        end(yard, 20)
        assert os.waitpid(child, 0)[1] == 0
    assert Counter(event for _, event in kept(url)) == {"added": 60, "claimed": 60, "done": 60}


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("2026-01-31T12.ab12cd34.jsonl", ("2026-01-31T12.ab12cd34", 0)),
        ("2026-01-31T12.12345678.jsonl", ("2026-01-31T12.12345678", 0)),
        ("2026-01-31T12.ab12cd34-4711-abcdefgh.17.jsonl", ("2026-01-31T12.ab12cd34-4711-abcdefgh", 17)),
    ],
)
def test_a_name_tells_its_log_and_page(name: str, page: Any) -> None:
    assert writer.page_number(name) == page
    assert writer.page_name(*page) == name


def test_a_cursor_of_another_yard_is_refused(tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "one") as one, taskyard.init(tmp_path / "other") as other:
        one.add("build")
        other.add("build")
        for cursor in (other.events().cursor, other.log_end()):
            with pytest.raises(taskyard.Invalid, match="another yard"):
                one.events(cursor=cursor)
            assert list(other.events(cursor=cursor)) == []
    os.rename(tmp_path / "other", tmp_path / "moved")
    with taskyard.open(tmp_path / "moved") as moved:
        assert list(moved.events(cursor=cursor)) == []
