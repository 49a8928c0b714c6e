"""What cannot be done is refused with a way on, and what is only looked at is never refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Claim, Yard


@pytest.mark.parametrize("state", ["processing", "done", "failed", "cancelled"])
def test_an_edit_that_is_refused_never_suggests_to_take_the_task_from_anybody(yard: Yard, state: str) -> None:
    id = yard.add("build").id
    if state == "cancelled":
        yard.cancel(id)
    else:
        claim = taken(yard.claim())
        if state == "done":
            claim.done()
        elif state == "failed":
            claim.fail("no", retry=False)
    with pytest.raises(taskyard.Conflict) as refusal:
        yard.edit(id, title="other")
    assert "cancel" not in str(refusal.value.hint)


def test_what_was_added_comes_back_as_any_store_keeps_it(yard: Yard) -> None:
    task = yard.add("build", {"pair": (1, 2)})
    assert task.data == yard.get(task.id).data == {"pair": [1, 2]}


def test_a_kind_may_be_written_in_any_script(yard: Yard) -> None:
    for kind in ("हिन्दी", "a\u0301b", "größe", "日本語"):
        assert yard.get(yard.add(kind).id).kind == kind
        taken(yard.claim(kinds=kind)).done()


def test_a_late_verb_is_told_as_the_holders_whoever_says_it(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    handle = taken(yard.claim()).handle
    yard.cancel(id)
    with taskyard.open(yard_url, worker="somebody") as other, pytest.raises(taskyard.ClaimLost):
        other.held(handle).done("late")
    (refused,) = [event for event in yard.events(task=id) if event["event"] == "refused"]
    assert (refused["worker"], refused["by"]) == ("ada", "somebody")


def test_a_file_that_is_set_aside_never_hides_a_task(yard: Yard) -> None:
    id = yard.cancel(yard.add("build").id).id
    if not os.path.isabs(yard.url):
        return  # there is no drop box
    for name in (id, id[:4]):
        with open(f"{yard.url}/todo/{name}.json", "w") as file:
            file.write('{"kind": "no good"}')
    yard.sweep()
    assert len(yard.set_aside()) == 2
    with pytest.raises(taskyard.Ambiguous):
        yard.retry(id[:4])
    assert yard.retry(id).state == "todo"  # type: ignore[union-attr]


def test_a_file_that_is_still_wrong_is_refused_again(yard: Yard) -> None:
    if not os.path.isabs(yard.url):
        return
    with open(f"{yard.url}/todo/order.json", "w") as file:
        file.write('{"kind": "no good"}')
    yard.sweep()
    with pytest.raises(taskyard.Conflict, match="set aside again"):
        yard.retry("order")
    with open(f"{yard.url}/failed/order.json", "w") as file:
        file.write('{"kind": "good"}')
    assert yard.retry("order") is None
    assert [task.kind for task in yard.find()] == ["good"]
    assert os.listdir(f"{yard.url}/failed") == []


def test_a_task_that_i_hold_already_names_the_way_to_a_lost_handle(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    with taskyard.open(yard_url, worker="ada") as forgetful:
        with pytest.raises(taskyard.Conflict, match="you hold it") as refusal:
            forgetful.claim(id)
        assert "resume --worker ada" in str(refusal.value.hint)
        for text in (id, id[:20]):
            with pytest.raises(taskyard.Invalid, match="you hold") as confusion:
                forgetful.held(text)
            assert "resume --worker ada" in str(confusion.value.hint)
    assert claim.holds()


def test_a_task_that_another_holds_names_no_way_to_take_it(yard: Yard, yard_url: str) -> None:
    id = yard.add("build").id
    taken(yard.claim())
    with taskyard.open(yard_url, worker="bob") as other:
        with pytest.raises(taskyard.Conflict) as refusal:
            other.claim(id)
        with pytest.raises(taskyard.Invalid, match="task id") as confusion:
            other.held(id)
    assert "resume" not in f"{refusal.value.hint}{confusion.value.hint}"


def _misspelt(handle: str) -> list[str]:
    start, _, nonce = handle.rpartition(".")
    other = "0" if nonce[3] != "0" else "1"
    spelt = (
        nonce[:3] + other + nonce[4:],  # one character is another
        nonce[:3] + other + other + nonce[5:] if nonce[4] != other else nonce[:3] + other + nonce[4:],  # two are
        nonce[:3] + nonce[4:] + other,  # one is left out, one put in
        nonce + other,
        nonce[1] + nonce[0] + nonce[2:] if nonce[0] != nonce[1] else nonce + other + other,  # two have changed places
    )
    return [f"{start}.{word}" for word in spelt]


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize(
    "verb",
    [
        lambda claim: claim.heartbeat(),
        lambda claim: claim.note("here"),
        lambda claim: claim.done("result"),
        lambda claim: claim.fail("broken", retry=False),
        lambda claim: claim.release(),
        lambda claim: claim.publish(__file__, "/nowhere/at/all"),
        lambda claim: claim.settled(),
    ],
    ids=["heartbeat", "note", "done", "fail", "release", "publish", "settled"],
)
def test_a_mistyped_handle_is_invalid_and_nothing_is_kept_or_logged(
    yard: Yard, verb: Callable[[Claim], None], over: bool
) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    if over:
        claim.release()
    before, log = yard.report(id), list(yard.events())
    for handle in _misspelt(claim.handle):
        with pytest.raises(taskyard.Invalid, match="mistyped"):
            verb(yard.held(handle))
    after = yard.report(id)
    assert (after.task.as_dict(), after.history, after.notes) == (before.task.as_dict(), before.history, before.notes)
    assert (after.stale_results, list(yard.events())) == ([], log)


def test_a_mistyped_handle_of_an_ended_task_is_mistyped_still(yard: Yard) -> None:
    id = yard.add("build").id
    claim = taken(yard.claim())
    claim.done("result")
    for handle in _misspelt(claim.handle):
        with pytest.raises(taskyard.Invalid, match="mistyped"):
            yard.held(handle).done("result")
    assert yard.report(id).stale_results == []


def test_handles_that_were_made_up_keep_no_more_than_a_handful_of_results(yard: Yard) -> None:
    id = yard.add("build").id
    real = taken(yard.claim())
    for number in range(50):
        with pytest.raises(taskyard.ClaimLost):
            yard.held(f"{id}.1.{number:08d}").done(number)
    real.done("the result")
    report = yard.report(id)
    assert report.task.result == "the result"
    assert 0 < len(report.stale_results) <= 32
