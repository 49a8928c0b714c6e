"""The checker finds each way of breaking the promise, and lets pass what only looks like one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskyard.proof.recorder import fingerprint
from taskyard.proof.verdict import CODES

from .tales import ONE, THREE, TWO, Tale, done, handle, taken_over

if TYPE_CHECKING:
    from collections.abc import Callable

ILLEGAL: dict[str, tuple[str, Callable[[], Tale]]] = {}
LEGAL: dict[str, Callable[[], Tale]] = {}


def illegal(code: str) -> Callable[[Callable[[], Tale]], Callable[[], Tale]]:
    def named(tell: Callable[[], Tale]) -> Callable[[], Tale]:
        ILLEGAL[tell.__name__] = (code, tell)
        return tell

    return named


def legal(tell: Callable[[], Tale]) -> Callable[[], Tale]:
    LEGAL[tell.__name__] = tell
    return tell


# What was added


@illegal("lost")
def an_acknowledged_add_is_gone() -> Tale:
    return Tale().add("boss", (1, 2), ONE)


@illegal("lost")
def a_claimed_task_of_an_add_without_an_answer_is_gone() -> Tale:
    return Tale().add("boss", (1, None), ONE).claim("ada", (3, 4), handle(1))


@illegal("lost")
def a_dropped_file_is_gone() -> Tale:
    drafts = [{"kind": "build", "data": fingerprint(1)}]
    return (
        Tale()
        .op("boss", (1, 2), "drop", {}, drafts=drafts)
        .op("boss", (3, 4), "drop", {}, drafts=drafts)
        .final("todo", 0, data=1)
    )


@illegal("lost")
def a_dropped_file_with_a_key_is_gone() -> Tale:
    return Tale().op("boss", (1, 2), "drop", {}, drafts=[{"kind": "build", "data": fingerprint(1), "key": "k"}])


@illegal("doubled")
def a_task_is_in_two_states() -> Tale:
    return done().final("done", 1, (handle(1), "done"), result="r", worker="ada", listed=["todo", "done"])


@illegal("altered")
def a_task_has_the_data_of_another() -> Tale:
    return Tale().add("boss", (1, 2), ONE, data=fingerprint({"n": 1})).final("todo", 0, data={"n": 2})


@illegal("altered")
def an_edit_of_the_title_changes_the_data() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).op("boss", (3, 4), "edit", {}, id=ONE, fields=["title"])
    return tale.final("todo", 1, data="new")


@illegal("unasked")
def a_task_comes_from_nowhere() -> Tale:
    return Tale().final("todo", 0)


@illegal("unasked")
def one_add_without_an_answer_made_two_tasks() -> Tale:
    return Tale().add("boss", (1, None), ONE).final("todo", 0).final("todo", 0, id=TWO)


@illegal("key_doubled")
def two_adds_of_a_key_are_told_two_ids() -> Tale:
    tale = Tale().add("boss", (1, 4), ONE, key="k").add("aide", (2, 3), TWO, key="k")
    return tale.final("todo", 0, key="k").final("todo", 0, id=TWO, key="k")


@illegal("key_doubled")
def two_adds_are_both_told_that_they_made_the_task() -> Tale:
    return Tale().add("boss", (1, 4), ONE, key="k").add("aide", (2, 3), ONE, key="k").final("todo", 0, key="k")


@illegal("key_doubled")
def the_yard_has_a_second_task_of_a_key() -> Tale:
    tale = Tale().add("boss", (1, 4), ONE, key="k").add("aide", (2, None), TWO, key="k")
    return tale.final("todo", 0, key="k").final("todo", 0, id=TWO, key="k")


@illegal("key_refused")
def an_add_is_refused_for_a_key_that_stands_for_the_same() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, key="k").add("boss", (3, 4), ONE, key="k", refused="conflict")
    return tale.final("todo", 0, key="k")


# Who holds it


@illegal("fence_repeated")
def two_workers_win_the_same_claim() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 6), handle(1)).claim("bob", (4, 5), handle(1, "bob"))
    return tale.final("processing", 1, worker="bob")


@illegal("handle_repeated")
def one_handle_is_given_twice() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1)).claim("ada", (5, 6), handle(1))
    return tale.final("processing", 1, worker="ada")


@illegal("fence_fell")
def a_later_claim_has_the_lower_fence() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(5)).claim("bob", (6, 7), handle(3, "bob"))
    return tale.final("processing", 5, (handle(3, "bob"), "crash"), worker="ada")


@illegal("fence_fell")
def the_task_ends_below_a_fence_that_was_given() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(5))
    return tale.final("todo", 4, (handle(5), "crash"))


@illegal("served_wrongly")
def a_worker_gets_another_kind_than_it_asked_for() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1), kinds=["test"])
    return tale.final("processing", 1, worker="ada")


@illegal("served_wrongly")
def a_worker_gets_what_is_meant_for_another() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, assignee="bob").claim("ada", (3, 4), handle(1))
    return tale.final("processing", 1, worker="ada", assignee="bob")


@illegal("served_wrongly")
def a_worker_gets_a_task_before_what_it_comes_after_is_done() -> Tale:
    tale = Tale().add("boss", (1, 2), TWO).add("boss", (3, 4), ONE, after=[TWO])
    tale.claim("ada", (5, 6), handle(1)).claim("bob", (5, 6), handle(1, "bob", TWO)).say(
        "bob", (7, 8), "done", handle(1, "bob", TWO)
    )
    tale.final("done", 1, (handle(1, "bob", TWO), "done"), id=TWO, worker="bob")
    return tale.final("processing", 1, worker="ada", after=[TWO])


@illegal("held_by_two")
def a_heartbeat_succeeds_after_somebody_else_got_the_task() -> Tale:
    return taken_over().say("ada", (13, 14), "heartbeat", handle(1))


@illegal("held_by_two")
def a_release_succeeds_after_somebody_else_got_the_task() -> Tale:
    return taken_over().say("ada", (13, 14), "release", handle(1))


@illegal("held_by_two")
def an_old_incarnation_goes_on_after_a_resume() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1))
    tale.claim("ada", (5, 6), handle(2, "new"), verb="resume", process="ada again")
    tale.say("ada", (7, 8), "note", handle(1))
    return tale.final("processing", 2, (handle(1), "resumed"), worker="ada")


def two_that_use_the_same(second: tuple[int, int]) -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, TWO).claim("ada", (3, 4), handle(1)).say("ada", (9, 10), "done", handle(1))
    tale.claim("bob", second, handle(1, "bob", TWO)).say("bob", (20, 21), "done", handle(1, "bob", TWO))
    tale.final("done", 1, (handle(1), "done"), worker="ada", uses=("x",))
    return tale.final("done", 1, (handle(1, "bob", TWO), "done"), id=TWO, worker="bob", uses=("x", "y"))


@illegal("used_by_two")
def two_tasks_that_use_the_same_run_at_once() -> Tale:
    return two_that_use_the_same((5, 6))


@illegal("revived")
def a_claim_that_was_lost_is_held_again() -> Tale:
    tale = taken_over().say("ada", (5, 6), "heartbeat", handle(1), refused="claim_lost")
    return tale.say("ada", (7, 8), "heartbeat", handle(1))


@illegal("revived")
def a_heartbeat_succeeds_after_the_claims_own_ending() -> Tale:
    return done().say("ada", (7, 8), "heartbeat", handle(1))


@illegal("unclaimed")
def a_task_tells_of_a_claim_that_nobody_made() -> Tale:
    return Tale().add("boss", (1, 2), ONE).final("todo", 2, (handle(1, "ghost"), "crash"))


@illegal("unclaimed")
def a_task_is_held_by_nobody_in_the_history() -> Tale:
    return Tale().add("boss", (1, 2), ONE).final("processing", 1, worker="ghost")


@illegal("unclaimed")
def a_claim_that_its_worker_lost_unheard_ended_by_a_word_of_its_own() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, TWO).claim("ada", (3, 4), handle(1, "ada", TWO))
    return tale.final("processing", 1, worker="ada", id=TWO).final("waiting", 2, (handle(1), "error"))


@illegal("unclaimed")
def a_claim_that_nobody_was_told_of_holds_though_its_worker_was_told_of_another() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, TWO).claim("ada", (3, 4), handle(1, "ada", TWO))
    return tale.final("processing", 1, worker="ada", id=TWO).final("processing", 1, worker="ada")


@illegal("unclaimed")
def a_claim_that_nobody_was_told_of_was_made_after_its_asking_was_answered() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, TWO).claim("ada", (3, 4), handle(3, "ada", TWO))
    tale.claim("bob", (5, 6), handle(1, "bob")).say("bob", (7, 8), "release", handle(1, "bob"))
    tale.final("processing", 3, worker="ada", id=TWO)
    return tale.final("todo", 4, (handle(1, "bob"), "released"), (handle(3), "crash"))


@illegal("unclaimed")
def a_claim_that_nobody_was_told_of_was_made_before_it_was_asked_for() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, TWO).claim("bob", (3, 4), handle(3, "bob"))
    tale.claim("ada", (5, 6), handle(1, "ada", TWO)).final("processing", 1, worker="ada", id=TWO)
    return tale.final("processing", 3, (handle(1), "crash"), worker="bob")


@illegal("unclaimed")
def one_asking_without_an_answer_has_made_claims_under_two_nonces() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, TWO).claim("ada", (3, None))
    tale.final("todo", 2, (handle(1), "crash"))
    return tale.final("todo", 4, (handle(3, "ada", TWO), "crash"), id=TWO)


@illegal("unclaimed")
def a_resume_without_an_answer_has_claimed_what_nobody_held() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, None), verb="resume")
    return tale.final("todo", 2, (handle(1), "crash"))


# How it ends


@illegal("ended_twice")
def one_claim_is_both_released_and_done() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1))
    tale.say("ada", (5, 6), "release", handle(1)).say("ada", (5, 7), "done", handle(1), process="ada too")
    return tale.final("done", 1, (handle(1), "done"), worker="ada")


@illegal("reopened")
def a_done_task_is_handed_out_again() -> Tale:
    return (
        done()
        .claim("bob", (8, 9), handle(3, "bob"))
        .final("done", 3, (handle(1), "done"), (handle(3, "bob"), "crash"), result="r")
    )


@illegal("reopened")
def a_task_that_an_unanswered_done_has_published_is_handed_out_again() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1)).say("ada", (5, None), "done", handle(1))
    tale.claim("bob", (8, 9), handle(3, "bob"))
    return tale.final("done", 3, (handle(1), "done"), (handle(3, "bob"), "crash"))


@illegal("published_twice")
def two_claims_of_a_task_are_both_told_done() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1)).claim("bob", (5, 6), handle(3, "bob"))
    tale.say("ada", (5, 8), "done", handle(1)).say("bob", (7, 9), "done", handle(3, "bob"))
    return tale.final("done", 3, (handle(3, "bob"), "done"), worker="bob")


@illegal("published_twice")
def the_task_tells_of_two_dones() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1)).claim("bob", (5, 6), handle(3, "bob"))
    tale.say("ada", (7, None), "done", handle(1)).say("bob", (7, 9), "done", handle(3, "bob"))
    return tale.final("done", 3, (handle(1), "done"), (handle(3, "bob"), "done"), worker="bob")


@illegal("ending_lost")
def an_acknowledged_done_is_forgotten() -> Tale:
    return done().final("todo", 2, (handle(1), "crash"))


@illegal("wrong_result")
def another_result_is_published_than_was_given() -> Tale:
    return done().final("done", 1, (handle(1), "done"), result="s", worker="ada")


@illegal("wrong_result")
def the_result_of_a_repeated_done_takes_the_place_of_the_first() -> Tale:
    tale = done().say("ada", (7, 8), "done", handle(1), result="s")
    return tale.final("done", 1, (handle(1), "done"), result="s", worker="ada")


@illegal("unsaid")
def a_task_is_done_that_nobody_called_done() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1)).say("ada", (5, 6), "heartbeat", handle(1))
    return tale.final("done", 1, (handle(1), "done"), worker="ada")


@illegal("unsaid")
def a_task_is_done_without_a_claim() -> Tale:
    return Tale().add("boss", (1, 2), ONE).final("done", 0)


@illegal("refused_yet_done")
def a_release_is_refused_and_counts() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1))
    return tale.say("ada", (5, 6), "release", handle(1), refused="claim_lost").final("todo", 2, (handle(1), "released"))


@illegal("answer_changed")
def a_repeated_done_is_refused() -> Tale:
    return done().say("ada", (7, 8), "done", handle(1), result="r", refused="claim_lost")


@illegal("ended_twice")
def a_repeated_done_with_another_result_is_acknowledged() -> Tale:
    return done().say("ada", (7, 8), "done", handle(1), result="other")


@illegal("unaccounted")
def a_claim_vanishes_without_an_ending() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1))
    return tale.final("todo", 2)


@illegal("unaccounted")
def a_fail_is_told_as_a_crash() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1)).say("ada", (5, 6), "fail", handle(1))
    return tale.final("todo", 2, (handle(1), "crash"))


def released_and_cancelled(cancel: tuple[int, int]) -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1)).say("ada", (5, 8), "release", handle(1))
    tale.op("boss", cancel, "cancel", {}, id=ONE)
    return tale.final("cancelled", 2, (handle(1), "cancelled"))


@illegal("unaccounted")
def a_release_is_told_as_a_cancel_that_came_later() -> Tale:
    return released_and_cancelled((9, 10))


@illegal("undone")
def a_cancelled_task_is_done() -> Tale:
    return done().op("boss", (5, 6), "cancel", {}, id=ONE)


@illegal("left_open")
def a_task_is_left_when_all_is_drained() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).final("todo", 0)
    tale.drained = True
    return tale


@illegal("left_open")
def a_task_is_blocked_by_what_is_done() -> Tale:
    return (
        done().add("boss", (7, 8), TWO, after=[ONE]).final("blocked", 0, id=TWO, after=[ONE]).log((0, "added"), id=TWO)
    )


# The log


@illegal("log_gap")
def the_log_leaves_out_a_move() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1)).say("ada", (5, 6), "release", handle(1))
    return tale.final("todo", 2, (handle(1), "released")).log((0, "added"), (1, "claimed"))


@illegal("log_doubled")
def the_log_tells_a_claim_twice() -> Tale:
    return done().log((1, "claimed"))


@illegal("log_doubled")
def the_log_tells_a_done_twice() -> Tale:
    return done().log((1, "done"))


@illegal("log_differs")
def the_log_names_another_winner() -> Tale:
    tale = done()
    tale.events = []
    return tale.log((0, "added"), (1, "claimed"), (1, "done"), worker="bob")


@illegal("log_differs")
def the_log_tells_of_a_done_that_is_none() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1)).final("processing", 1, worker="ada")
    return tale.log((0, "added"), (1, "claimed"), (1, "done"))


@illegal("log_differs")
def the_log_is_out_of_order() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1)).say("ada", (5, 6), "release", handle(1))
    return tale.final("todo", 2, (handle(1), "released")).log((0, "added"), (2, "released"), (1, "claimed"))


# What only looks wrong


@legal
def the_shortest_tale() -> Tale:
    return done()


@legal
def a_claim_beyond_the_limit_of_its_kind_raises_the_fence_and_is_not_logged() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(3)).say("ada", (5, 6), "done", handle(3))
    tale.final("done", 3, (handle(3), "done")).log((0, "added"), (3, "claimed"), (3, "done"))
    tale.limited = {tale.tasks[ONE].kind}
    return tale


@illegal("log_gap")
def a_kind_without_a_limit_gives_nothing_back() -> Tale:
    tale = a_claim_beyond_the_limit_of_its_kind_raises_the_fence_and_is_not_logged()
    tale.limited = {"another kind"}
    return tale


@legal
def whoever_was_stopped_before_it_was_told_of_its_claim_has_lost_it_and_got_another() -> Tale:
    lost, kept = handle(1, "ada"), handle(1, "ada", TWO)
    tale = Tale().add("boss", (1, 2), ONE).add("boss", (1, 2), TWO, process="boss too").claim("ada", (3, 9), kept)
    return tale.final("todo", 2, (lost, "crash")).final("processing", 1, worker="ada", id=TWO)


@legal
def an_add_without_an_answer_happened_or_not() -> Tale:
    tale = Tale().add("boss", (1, None), ONE).add("boss", (5, None), TWO)
    return tale.final("todo", 0)


@legal
def an_add_on_a_full_disk_happened_or_not() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, refused="unavailable").add("boss", (5, 6), TWO, refused="unavailable")
    return tale.final("todo", 0, id=TWO)


@legal
def an_add_whose_reply_was_lost_is_said_again_under_its_key() -> Tale:
    tale = Tale().add("boss", (1, None), ONE, key="k").add("boss", (3, 4), ONE, key="k", created=0)
    return tale.final("todo", 0, key="k")


@legal
def a_file_and_an_add_have_one_key() -> Tale:
    tale = Tale().op("boss", (1, 2), "drop", {}, drafts=[{"kind": "build", "data": fingerprint(None), "key": "k"}])
    return tale.add("boss", (3, 4), ONE, key="k", created=0).final("todo", 0, key="k")


@legal
def a_key_with_another_body_is_refused() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, key="k").add("boss", (3, 4), TWO, key="k", data="1", refused="conflict")
    return tale.final("todo", 0, key="k")


@legal
def a_claim_without_an_answer_was_made() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, None)).claim("bob", (7, 8), handle(3, "bob"))
    return tale.final("processing", 3, (handle(1), "crash"), worker="bob")


def several_were_claimed_and_no_answer_came(number: int) -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, TWO).claim("ada", (3, None), number=number)
    return tale.final("todo", 2, (handle(1), "crash")).final("todo", 3, (handle(2, "ada", TWO), "crash"), id=TWO)


@legal
def a_claim_of_two_without_an_answer_was_made() -> Tale:
    return several_were_claimed_and_no_answer_came(2)


@illegal("unclaimed")
def a_claim_of_one_without_an_answer_took_two() -> Tale:
    return several_were_claimed_and_no_answer_came(1)


@legal
def a_worker_lost_one_unheard_and_was_told_of_the_next() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, TWO).claim("ada", (3, 9), handle(1, "ada", TWO))
    tale.claim("bob", (5, 6), handle(3, "bob")).final("processing", 1, worker="ada", id=TWO)
    return tale.final("processing", 3, (handle(1), "crash"), worker="bob")


@legal
def a_worker_lost_one_unheard_and_was_told_that_nothing_is_ready() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 9))
    return tale.final("todo", 2, (handle(1), "crash"))


@legal
def each_of_two_askings_made_what_only_it_can_have_made() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, TWO).claim("ada", (3, None)).claim("ada", (3, 4), process="ada too")
    tale.final("todo", 2, (handle(1), "crash")).final("processing", 3, worker="ada", id=TWO)
    return tale


@legal
def a_resume_without_an_answer_took_several() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE, TWO).claim("ada", (3, 4), handle(1), process="ada before")
    tale.claim("ada", (3, 4), handle(3, "ada", TWO), process="ada before").claim("ada", (5, None), verb="resume")
    return tale.final("processing", 2, (handle(1), "resumed"), worker="ada").final(
        "processing", 4, (handle(3, "ada", TWO), "resumed"), worker="ada", id=TWO
    )


@legal
def a_done_without_an_answer_counted() -> Tale:
    tale = (
        Tale()
        .add("boss", (1, 2), ONE)
        .claim("ada", (3, 4), handle(1))
        .say("ada", (5, None), "done", handle(1), result="r")
    )
    return tale.final("done", 1, (handle(1), "done"), result="r", worker="ada")


@legal
def a_done_without_an_answer_did_not_count() -> Tale:
    tale = taken_over().say("ada", (5, None), "done", handle(1)).say("bob", (13, 14), "done", handle(3, "bob"))
    return tale.final("done", 3, (handle(1), "crash"), (handle(3, "bob"), "done"), worker="bob")


@legal
def a_done_whose_reply_was_lost_is_repeated_with_another_result() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1))
    tale.say("ada", (5, None), "done", handle(1), result="r")
    tale.say("ada", (7, 8), "done", handle(1), result="s", refused="conflict")
    return tale.final("done", 1, (handle(1), "done"), result="r", worker="ada")


@legal
def a_done_that_never_arrived_is_repeated_with_another_result() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1))
    tale.say("ada", (5, None), "done", handle(1), result="r").say("ada", (7, 8), "done", handle(1), result="s")
    return tale.final("done", 1, (handle(1), "done"), result="s", worker="ada")


@illegal("wrong_result")
def another_result_than_the_published_one_is_acknowledged() -> Tale:
    return a_done_that_never_arrived_is_repeated_with_another_result().final(
        "done", 1, (handle(1), "done"), result="r", worker="ada"
    )


@legal
def a_release_whose_reply_was_lost_is_repeated_after_the_next_claim() -> Tale:
    tale = taken_over().say("ada", (5, None), "release", handle(1)).say("ada", (13, 14), "release", handle(1))
    return tale.final("processing", 3, (handle(1), "released"), worker="bob")


@legal
def a_heartbeat_overlaps_the_claim_that_shuts_it_out() -> Tale:
    return (
        taken_over()
        .say("ada", (11, 13), "heartbeat", handle(1))
        .say("ada", (14, 15), "heartbeat", handle(1), refused="claim_lost")
    )


@legal
def a_repeated_done_is_acknowledged_after_a_refused_heartbeat() -> Tale:
    return (
        done()
        .say("ada", (7, 8), "heartbeat", handle(1), refused="claim_lost")
        .say("ada", (9, 10), "done", handle(1), result="r")
    )


@legal
def claims_of_hosts_with_clocks_of_their_own_have_no_order() -> Tale:
    tale = Tale()
    tale.clocks = {"bob": "another kernel"}
    tale.add("boss", (1, 2), ONE).claim("ada", (30, 40), handle(1)).claim("bob", (5, 6), handle(3, "bob"))
    tale.say("ada", (50, 60), "heartbeat", handle(1))
    return tale.final("processing", 3, (handle(1), "crash"), worker="bob")


@legal
def two_who_overlap_are_told_in_any_order() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 9), handle(1)).claim("bob", (4, 6), handle(3, "bob"))
    return tale.final("processing", 3, (handle(1), "crash"), worker="bob")


@legal
def a_release_is_told_as_a_cancel_that_came_in_the_same_moment() -> Tale:
    return released_and_cancelled((6, 10))


@legal
def a_cancelled_task_is_retried_and_done() -> Tale:
    tale = (
        Tale().add("boss", (1, 2), ONE).op("boss", (3, 4), "cancel", {}, id=ONE).op("boss", (5, None), "retry", id=ONE)
    )
    tale.claim("ada", (7, 8), handle(3)).say("ada", (9, 10), "done", handle(3))
    return tale.final("done", 3, (handle(3), "done"), worker="ada")


@legal
def a_failed_task_is_retried_and_its_old_fail_repeated() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).claim("ada", (3, 4), handle(1)).say("ada", (5, 6), "fail", handle(1))
    tale.op("boss", (7, 8), "retry", {}, id=ONE).claim("bob", (9, 10), handle(3, "bob"))
    tale.say("ada", (11, 12), "fail", handle(1))
    return tale.final("processing", 3, (handle(1), "error"), worker="bob")


@legal
def what_comes_after_a_failed_task_stays_blocked() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).add("boss", (3, 4), TWO, after=[ONE]).claim("ada", (3, 4), handle(1))
    tale.say("ada", (5, 6), "fail", handle(1)).final("failed", 1, (handle(1), "error"))
    tale.drained = True
    return tale.final("blocked", 0, id=TWO, after=[ONE])


@legal
def a_task_begins_while_the_one_that_uses_the_same_is_being_ended() -> Tale:
    return two_that_use_the_same((5, 10))


@legal
def what_a_dead_worker_used_is_used_again() -> Tale:
    tale = (
        Tale()
        .add("boss", (1, 2), ONE, TWO)
        .claim("ada", (3, 4), handle(1))
        .claim("bob", (50, 60), handle(1, "bob", TWO))
    )
    tale.final("todo", 2, (handle(1), "crash"), uses=("x",)).say("bob", (70, 71), "note", handle(1, "bob", TWO))
    return tale.final("processing", 1, id=TWO, worker="bob", uses=("x",))


@legal
def an_edited_task_says_something_else() -> Tale:
    tale = Tale().add("boss", (1, 2), ONE).op("boss", (3, None), "edit", id=ONE, fields=["data"])
    return tale.final("todo", 1, data="new")


@legal
def a_task_that_stood_back_for_another_has_a_gap_in_its_log() -> Tale:
    return Tale().add("boss", (1, 2), THREE).final("todo", 2, id=THREE, uses=("x",)).log((0, "added"), id=THREE)


@pytest.mark.parametrize("name", ILLEGAL)
def test_it_finds_that(name: str) -> None:
    code, tell = ILLEGAL[name]
    verdict = tell().verdict()
    assert code in verdict.codes, str(verdict)
    violation = next(violation for violation in verdict.violations if violation.code == code)
    assert violation.text
    assert not code.startswith(("held", "fence", "published", "revived")) or violation.lines


@pytest.mark.parametrize("name", LEGAL)
def test_it_lets_pass_that(name: str) -> None:
    verdict = LEGAL[name]().verdict()
    assert verdict.legal, str(verdict)


def test_every_rule_has_a_tale_that_breaks_it() -> None:
    assert {code for code, _ in ILLEGAL.values()} == set(CODES)


def test_a_violation_shows_the_lines_that_prove_it() -> None:
    [violation] = two_workers_win_the_same_claim().verdict().violations
    text = str(violation)
    assert text.startswith(f"fence_repeated: the fence 1 of task {ONE} was given twice")
    assert 'ada.jsonl:3: ada asks: {"ask": "claim"' in text
    assert f'bob.jsonl:5: at 5: told: {{"claims": ["{handle(1, "bob")}"]}}' in text
