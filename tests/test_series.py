"""The last hour in figures, and the claims of each worker, from events alone."""

from __future__ import annotations

from typing import Any

from taskyard.core import ids, series, spans, times

NOW = 1_800_000_000_000


def event(name: str, ago: float, task: str = "t", worker: str | None = "ada", **more: Any) -> dict[str, Any]:
    at = times.rfc3339(NOW - round(ago * 1000))
    return {"at": at, "event": name, "task": task, "kind": "build", "fence": 1, "worker": worker, "by": "x", **more}


def test_the_backlog_of_each_minute_follows_from_what_is_open_now() -> None:
    told = [event("added", 150, "a"), event("added", 130, "b"), event("claimed", 100), event("done", 30, "a")]
    found = series.described(told, NOW, 1, "")
    assert found["backlog"][-4:] == [0, 2, 2, 1]
    assert sum(found["counts"]["added"]) == 2


def test_waits_and_runs_are_medians_of_their_minute() -> None:
    id = ids.base32(0, ids.SEGMENT) + ids.age_at(NOW - 40_000).ljust(ids.LENGTH - ids.SEGMENT, "0")
    told = [event("claimed", 30, id), event("done", 10, id)]
    found = series.described(told, NOW, 0, "")
    assert found["run"][-1] == 20.0
    assert abs(found["wait"][-1] - 10.0) < 0.1
    assert found["run"][0] is None


def test_what_is_older_than_the_hour_is_not_counted() -> None:
    found = series.described([event("added", 3700), event("done", 3601)], NOW, 4, "")
    assert sum(found["counts"]["done"]) == 0
    assert found["backlog"] == [4] * 60


def test_a_claim_that_began_before_the_events_has_no_beginning() -> None:
    [history] = spans.by_worker([event("done", 5)]).values()
    assert [span.as_dict() for span in history.spans] == [
        {"task": "t", "kind": "build", "begin": None, "end": times.rfc3339(NOW - 5000), "how": "done"}
    ]


def test_a_claim_that_was_taken_over_ends_where_the_next_begins() -> None:
    found = spans.by_worker(
        [event("claimed", 9), event("claimed", 5, worker="bob"), event("cancelled", 1, worker=None)]
    )
    assert [(span.how, span.end) for span in found["ada"].spans] == [("resumed", times.rfc3339(NOW - 5000))]
    assert [span.how for span in found["bob"].spans] == ["cancelled"]


def test_a_reaped_claim_is_marked_and_is_no_sign_of_life() -> None:
    told = [event("claimed", 9), event("reaped", 5, reason="its lease ended"), event("refused", 2, verb="done")]
    [history] = spans.by_worker(told[:2]).values()
    assert history.last_at == times.rfc3339(NOW - 9000)
    [history] = spans.by_worker(told).values()
    assert [mark["event"] for mark in history.marks] == ["reaped", "refused"]
    assert history.counts == {"done": 0, "failed": 0, "reaped": 1, "refused": 1}
