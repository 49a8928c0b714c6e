"""A copy tells just what its origin tells, whichever way it went."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import taskyard
from taskyard import NotFound, opening
from taskyard.core import transfer
from tests.conftest import sampled, sized
from tests.copying import mix
from tests.copying.comparing import assert_same, say

if TYPE_CHECKING:
    from collections.abc import Callable

STORES = ("directory", "postgresql")


def task_copies(url: str) -> list[bytes]:
    """All that must be the same of a yard, as digests."""
    endpoint = opening.endpoint(url, target=False)
    try:
        seen = [task.digest() for segment in endpoint.segments() for task in endpoint.tasks(segment)]
        seen += [repr(window).encode() for window in transfer.windows(endpoint.events())]
        return [*seen, repr(endpoint.facts().compared()).encode()]
    finally:
        endpoint.close()


def tree(root: str) -> dict[str, tuple[int, bytes]]:
    """Every file below, with when it was changed and what is in it."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            found[path] = (os.stat(path).st_mtime_ns, Path(path).read_bytes())
    return found


@sized("count", 300, 2000)
def test_mixed_tasks_go_to_a_database_and_come_back(
    made: Callable[..., str], new: Callable[[str], str], count: int
) -> None:
    origin, database, back = made("directory", count), new("postgresql"), new("directory")
    before = tree(origin)
    there = opening.copy(origin, database)
    again = opening.copy(database, back)
    assert tree(origin) == before, "the source was changed"
    assert there.tasks == again.tasks == count + 5
    assert there.events == again.events > 2 * count
    assert task_copies(origin) == task_copies(database) == task_copies(back)
    assert_same(origin, back, sample=150)
    assert_same(origin, database, sample=50)


@sampled("source,target", [(one, other) for one in STORES for other in STORES], [("directory", "postgresql")])
def test_every_way_gives_the_same(
    source: str, target: str, made: Callable[..., str], new: Callable[[str], str]
) -> None:
    origin, other = made(source, 150), new(target)
    opening.copy(origin, other)
    assert task_copies(origin) == task_copies(other)
    assert_same(origin, other)
    with taskyard.open(other) as yard:
        assert yard.paused() == {"yard": True, "kinds": [mix.KINDS[1]]}
        assert yard.checks == {"tests": ["true", "ü"]}
        assert yard.policy.backoff == 90_000
        assert yard.audit()["findings"] == []
        yard.sweep()
    assert task_copies(origin) == task_copies(other), "the janitor had something to put right"


def test_files_go_from_directory_to_directory_and_are_told_of_where_they_stay(
    made: Callable[..., str], new: Callable[[str], str]
) -> None:
    origin, other, database = made("directory", 300), new("directory"), new("postgresql")
    with taskyard.open(origin) as yard:
        yard.prune(count=50, apply=True)
    opening.copy(origin, other)
    for folder in ("attempts", "failed", "archive"):
        files = {path.removeprefix(origin): content for path, (_, content) in tree(f"{origin}/{folder}").items()}
        copied = {path.removeprefix(other): content for path, (_, content) in tree(f"{other}/{folder}").items()}
        kept = {path: files[path] for path in files if not path.endswith("notes.jsonl") and path.count("/") != 3}
        assert kept, folder
        assert kept.items() <= copied.items()
    first, second = ({**say("stats", "--yard", url)} for url in (origin, other))
    assert first["set_aside"] == second["set_aside"] == 2
    seen = opening.copy(origin, database)
    assert seen.left_behind.keys() == {"attempts", "failed", "archive"}
    assert seen.left_behind["failed"] == 4
    assert "4 set aside (failed/)" in seen.warnings[0]


def test_a_copy_keeps_the_durability_of_its_origin_unless_it_has_its_own(
    made: Callable[..., str], new: Callable[[str], str]
) -> None:
    origin, other, own = made("directory", 5), new("directory"), new("directory")
    taskyard.init(own, durability="strict").close()
    for target, durability in ((other, "fast"), (own, "strict")):
        opening.copy(origin, target)
        assert f'"durability": "{durability}"' in (Path(target) / "yard.json").read_text()


def test_events_out_of_order_and_of_several_kernels_are_copied_in_the_order_they_are_told_in(
    made: Callable[..., str], new: Callable[[str], str]
) -> None:
    origin = made("directory", 40)
    pages = sorted((Path(origin) / "events").iterdir())
    lines = [line for page in pages for line in page.read_text().splitlines()]
    for page in pages:
        page.unlink()
    hour = "2026-01-31T12"
    for number in range(3):
        mine = [line.replace(line[7:20], f"2026-01-31T1{2 + n * 3 // len(lines)}", 1) for n, line in enumerate(lines)]
        (Path(origin) / "events" / f"{hour}.kernel{number}.jsonl").write_text(
            "".join(f"{line}\n" for line in mine[number::3]) + "torn {\n"
        )
    database, back = new("postgresql"), new("directory")
    opening.copy(origin, database)
    opening.copy(database, back)
    assert task_copies(origin) == task_copies(database) == task_copies(back)
    assert_same(origin, back, sample=3)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32), count=st.integers(0, 40), ways=st.lists(st.sampled_from(STORES), min_size=1, max_size=3)
)
def test_any_mix_is_the_same_after_any_way(
    seed: int, count: int, ways: list[str], made: Callable[..., str], new: Callable[[str], str]
) -> None:
    url = origin = made(ways[0], count, seed)
    for store in ways[1:] or ["directory"]:
        url, before = new(store), url
        opening.copy(before, url)
    assert task_copies(origin) == task_copies(url)
    assert_same(origin, url, sample=8)


@pytest.mark.parametrize("target", STORES)
def test_a_task_is_found_by_the_name_it_was_dropped_under_wherever_it_is_copied(
    target: str, new: Callable[[str], str]
) -> None:
    origin, other, back = new("directory"), new(target), new("directory")
    with taskyard.init(origin) as yard:
        for name in ("task_7", "ann_task_8", "straße %"):
            (Path(origin) / "todo" / f"{name}.json").write_text('{"n": 1}')
        yard.sweep()
        own = {name: yard.get(name).id for name in ("task_7", "task_8", "straße %")}
        yard.claim(own["task_7"]).done()  # type: ignore[union-attr]
        yard.pause()
    opening.copy(origin, other)
    opening.copy(other, back)
    for url in (other, back):
        with taskyard.open(url) as yard:
            assert {name: yard.get(name).id for name in own} == own
            assert yard.get(own["task_8"]).dropped_as == "ann_task_8"
            yard.unpause()
            assert yard.prune(count=0, apply=True)["tasks"] == 1
            with pytest.raises(NotFound):
                yard.get("task_7")
            yard.pause()
