"""The edges of a graph in one file: what is in it counts as what is in needs/ and followers/ does, and it may be lost."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import opening
from taskyard.core import ids as task_ids
from taskyard.stores.directory.recovery import batches, crashes, edges
from tests.conftest import damage, taken, wait_until
from tests.directory.staging import Step, dead, die, yard_on
from tests.directory.stories import check_log, check_nothing_is_stuck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard import Yard

GRAPH: list[dict[str, Any]] = [
    {"kind": "k", "ref": "a"},
    {"kind": "k", "ref": "b"},
    {"kind": "k", "ref": "c", "after": ["a", "b"]},
    {"kind": "k", "ref": "d", "after": ["a", "b"]},
    {"kind": "k", "ref": "e", "after": ["c", "d"]},
]


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with taskyard.init(str(tmp_path / "yard"), worker="ada", durability="fast") as opened:
        yield opened


def sheets(yard: Yard) -> list[Path]:
    return [path for path in Path(yard.url, "sheets").rglob("*") if path.is_file()]


def done(yard: Yard, *some: str) -> None:
    for id in some:
        taken(yard.claim(id)).done()


def states(yard: Yard, some: list[str]) -> list[str]:
    return [str(yard.get(id).state) for id in some]


def end_all(yard: Yard) -> None:
    while (claim := yard.claim()) is not None:
        claim.done()


def test_a_graph_has_one_sheet_that_goes_with_its_last_need(yard: Yard) -> None:
    ids = yard.add_many(GRAPH)
    assert len(sheets(yard)) == 1
    assert os.listdir(f"{yard.url}/needs") == os.listdir(f"{yard.url}/followers") == []
    check_nothing_is_stuck(yard)
    assert damage(yard) == []
    end_all(yard)
    assert yard.counts()["done"] == len(ids)
    assert sheets(yard) == []
    check_log(yard)


def test_tasks_of_several_lanes_share_a_sheet_with_a_name_in_each_segment(yard: Yard) -> None:
    graph = [{**task, "kind": f"kind{number}"} for number, task in enumerate(GRAPH)]
    yard.add_many(graph)
    found = sheets(yard)
    assert len({path.parent for path in found}) == len(found) == len(GRAPH)
    assert len({path.stat().st_ino for path in found}) == 1
    end_all(yard)
    assert yard.counts()["done"] == len(GRAPH)
    assert sheets(yard) == []


def test_what_a_failure_cancels_or_lets_run_is_in_no_sheet(yard: Yard) -> None:
    graph = [*GRAPH, {"kind": "k", "ref": "f", "after": ["a:cancel"]}, {"kind": "k", "after": ["a:run", "b"]}]
    ids = yard.add_many(graph)
    assert {path.name for path in Path(yard.url, "needs").rglob("*") if task_ids.is_id(path.parent.name)} == set(
        ids[:2]
    )
    taken(yard.claim(ids[0])).fail("no", retry=False)
    assert states(yard, ids[2:]) == ["blocked", "blocked", "blocked", "cancelled", "blocked"]
    done(yard, ids[1])
    assert states(yard, ids[2:]) == ["blocked", "blocked", "blocked", "cancelled", "todo"]
    assert damage(yard) == []
    yard.retry(ids[0])
    end_all(yard)
    assert yard.counts()["done"] == len(graph) - 1


@pytest.mark.parametrize("lost", ["the sheet", "its lines", "its end"])
def test_a_sheet_that_is_lost_or_broken_is_made_up_for_by_fsck(yard: Yard, lost: str) -> None:
    ids = yard.add_many(GRAPH)
    [sheet] = sheets(yard)
    if lost == "the sheet":
        sheet.unlink()
    else:
        text = sheet.read_bytes()
        sheet.write_bytes(b"\0\xff nonsense\n" if lost == "its lines" else text[: text.index(b"\n") + 40])
    with taskyard.open(yard.url, worker="eve") as other:
        for folder in ("blocked", "needs", "followers", "sheets"):
            assert set(os.listdir(f"{yard.url}/{folder}")) <= {ids[0][:4]}
        other.sweep()
        assert states(other, ids[2:]) == ["blocked"] * 3, "nothing is let go on the evidence of a lost sheet"
        assert {finding["code"] for finding in damage(other)} == {"need_missing"}
        other.audit(repair=True)
        assert damage(other) == []
        end_all(other)
        order = [event["task"] for event in other.events(event="done")]
    assert [order.index(id) for id in ids] == sorted(order.index(id) for id in ids)
    assert len(order) == len(ids)


def test_what_another_process_notes_is_read_before_a_task_is_let_go(yard: Yard) -> None:
    ids = yard.add_many(GRAPH)
    with taskyard.open(yard.url, worker="bob") as other:
        done(yard, ids[0])
        assert states(other, ids[2:]) == ["blocked"] * 3
        done(other, ids[1])
        assert states(yard, ids[2:]) == ["todo", "todo", "blocked"]
        done(yard, ids[2])
        done(other, ids[3])
        assert yard.get(ids[4]).state == "todo"


def test_a_line_that_was_never_written_is_made_up_for_by_a_sweep(yard: Yard) -> None:
    ids = yard.add_many(GRAPH)
    [sheet] = sheets(yard)
    before = sheet.read_bytes()
    done(yard, ids[0])
    sheet.write_bytes(before)  # as a power cut leaves it
    with taskyard.open(yard.url, worker="bob") as other:
        done(other, ids[1])
        assert states(other, ids[2:4]) == ["blocked", "blocked"]
        wait_until(lambda: other.sweep() and states(other, ids[2:4]) == ["todo", "todo"])
        end_all(other)
        assert other.counts()["done"] == len(ids)


def test_a_failed_task_stays_as_long_as_another_waits_for_it_in_a_sheet(yard: Yard) -> None:
    ids = yard.add_many(GRAPH)
    taken(yard.claim(ids[0])).fail("no", retry=False)
    assert yard.prune(count=0, apply=True)["tasks"] == 0
    for id in ids[2:]:
        yard.cancel(id)
    assert yard.prune(count=0, apply=True)["tasks"] == 4
    assert sheets(yard) == []
    done(yard, ids[1])
    assert damage(yard) == []


def test_a_cancelled_task_of_a_sheet_is_blocked_again_by_a_retry(yard: Yard) -> None:
    ids = yard.add_many(GRAPH)
    yard.cancel(ids[2])
    done(yard, ids[0])
    assert yard.retry(ids[2]).state == "blocked"  # type: ignore[union-attr]
    done(yard, ids[1])
    assert yard.get(ids[2]).state == "todo"


def test_a_copy_in_the_midst_of_a_graph_goes_on_there(yard: Yard, tmp_path: Path) -> None:
    ids = yard.add_many(GRAPH)
    done(yard, ids[0])
    target = str(tmp_path / "copy")
    yard.pause()
    opening.copy(yard.url, target)
    with taskyard.open(target, worker="bob") as other:
        other.unpause()
        assert states(other, ids) == states(yard, ids)
        end_all(other)
        assert other.counts()["done"] == len(ids)
        assert damage(other) == []


def test_without_hard_links_each_edge_is_a_file(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise PermissionError(1, "no hard links here")

    monkeypatch.setattr(yard._store._context.disk, "link", refuse)  # type: ignore[attr-defined]
    ids = yard.add_many(GRAPH)
    assert sheets(yard) == []
    check_nothing_is_stuck(yard)
    end_all(yard)
    assert yard.counts()["done"] == len(ids)


def test_a_yard_that_is_used_over_a_network_lets_tasks_of_a_sheet_go_by_its_sweeps(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = yard.add_many(GRAPH)
    monkeypatch.setattr(yard._store._context, "local", False)  # type: ignore[attr-defined]
    [sheet] = sheets(yard)
    before = sheet.read_bytes()
    done(yard, *ids[:2])
    assert sheet.read_bytes() == before, "appends of two machines would overwrite one another"
    wait_until(lambda: yard.sweep() and states(yard, ids[2:4]) == ["todo", "todo"])
    assert damage(yard) == []


def test_a_batch_whose_adder_stands_still_is_put_in_its_place_before_its_files_are_given_up(
    fresh: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after Ctrl-Z, or where a machine sleeps, for longer than files in tmp/ are left alone."""
    url = fresh()
    monkeypatch.setattr(batches, "_STILL", 0)
    monkeypatch.setattr(crashes, "PATIENCE", 0)
    with yard_on(url, worker="bob") as bob:

        def sweep() -> None:
            time.sleep(0.002)  # a millisecond must have passed
            bob.sweep()

        stop = Step("after", "rename", "/blocked/", sweep)
        with yard_on(url, stop) as yard:
            ids = yard.add_many(GRAPH)
            assert stop.taken
            assert states(bob, ids) == ["todo"] * 2 + ["blocked"] * 3
            end_all(bob)
            assert bob.counts()["done"] == len(GRAPH)
            check_log(bob)


def test_a_task_whose_needs_were_removed_while_its_adder_stood_still_is_not_let_go(url: str) -> None:
    """A sweep takes edges for left over if their task has been nowhere for long."""
    with yard_on(url, worker="bob") as bob:
        first = bob.add("k").id

        def sweep() -> None:
            for path in Path(url, "needs").glob("*/*"):
                bob._store.shifts.edges.withdraw(path.name)  # type: ignore[attr-defined]

        stop = Step("before", "create", "/tmp/", sweep)
        with yard_on(url, stop) as yard:
            id = yard.add("k", after=first).id
            assert stop.taken
            assert states(bob, [id]) == ["blocked"]
            done(bob, first)
            assert states(bob, [id]) == ["todo"]


def test_a_sheet_of_a_batch_that_was_never_added_goes_in_time(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.add_many(GRAPH)
    for state in ("blocked", "todo"):
        shutil.rmtree(f"{yard.url}/{state}")
        os.mkdir(f"{yard.url}/{state}")
    [sheet] = sheets(yard)
    yard.sweep()
    assert sheet.exists(), "its adder may be at work on it"
    monkeypatch.setattr(edges, "PATIENCE", 0)
    wait_until(lambda: yard.sweep() is not None and not sheet.exists())


def test_what_a_sweep_reads_of_sheets_grows_with_the_tasks_that_wait_and_not_with_their_square(
    fresh: Callable[[], str],
) -> None:
    def reads(graphs: int) -> int:
        url, found = fresh(), 0

        def cue(name: str, paths: str, made: bool) -> None:
            nonlocal found
            found += name == "read_at" and "/sheets/" in paths and made

        with yard_on(url, worker="bob") as bob:
            for _ in range(graphs):
                bob.add_many(GRAPH)
        with yard_on(url, cue) as yard:
            yard.sweep()
        return found

    assert reads(40) < 3 * reads(20)


@pytest.mark.parametrize("names", range(1, len(GRAPH) + 1))
def test_a_sheet_whose_adder_was_killed_before_it_had_all_its_names_goes_in_time(
    fresh: Callable[[], str], monkeypatch: pytest.MonkeyPatch, names: int
) -> None:
    url, left = fresh(), names

    def cue(name: str, paths: str, made: bool) -> None:
        nonlocal left
        left -= name == "link" and "/sheets/" in paths and made
        if not left:
            die()

    def add() -> None:
        with yard_on(url, cue) as adder:
            adder.add_many({**task, "kind": f"kind{number}"} for number, task in enumerate(GRAPH))

    dead(add)
    with yard_on(url) as yard:
        assert len(sheets(yard)) == names
        monkeypatch.setattr(edges, "PATIENCE", 0)
        monkeypatch.setattr(edges, "_PER_ROUND", 1)
        wait_until(lambda: yard.sweep() is not None and not sheets(yard))
