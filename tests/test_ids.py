"""Ids: one shape, rising, never twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard import Invalid
from taskyard.core import ids
from taskyard.core.task import Handle, State, Task

NOW = 1_800_000_000_000
MOMENTS = st.integers(ids.EPOCH, ids.EPOCH + 32**8 - 2)


@given(st.lists(MOMENTS, min_size=1, max_size=50))
def test_minted_ids_rise_whatever_the_clock_does(moments: list[int]) -> None:
    mint = ids.Mint()
    tails = [mint.tail(now) for now in moments]
    assert tails == sorted(set(tails))
    assert all(ids.is_id("0000" + tail) for tail in tails)


def test_a_batch_within_one_millisecond_keeps_its_order() -> None:
    mint = ids.Mint()
    tails = [mint.tail(NOW) for _ in range(10_000)]
    assert tails == sorted(set(tails))
    assert ids.created("0000" + tails[-1]) - NOW <= 1


def test_two_mints_never_make_the_same_id() -> None:
    assert len({ids.Mint().tail(NOW) for _ in range(1000)}) == 1000


@given(MOMENTS)
def test_an_id_tells_when_it_was_made(now: int) -> None:
    assert ids.created("zzzz" + ids.Mint().tail(now)) == now


def test_age_sorts_across_segments() -> None:
    mint = ids.Mint()
    made = [segment + mint.tail(NOW + n) for n, segment in enumerate(["00zz", "0001", "zzzz", "0000"])]
    assert sorted(sorted(made), key=ids.age_key) == made
    assert sorted(made) != made


@given(st.integers(0, 32**8 - 1))
def test_base_32_there_and_back(number: int) -> None:
    text = ids.base32(number, 8)
    assert len(text) == 8
    assert ids.number(text) == number


@given(st.integers(0, 32**4 - 1), st.integers(0, 32**4 - 1))
def test_base_32_sorts_as_its_numbers_do(one: int, other: int) -> None:
    assert (ids.base32(one, 4) < ids.base32(other, 4)) == (one < other)


@pytest.mark.parametrize("bits", [1, 7, 8, 16, 40])
def test_chance_stays_within_its_bits(bits: int) -> None:
    assert all(0 <= ids.chance(bits) < 1 << bits for _ in range(100))


@pytest.mark.parametrize(
    "text", ["", "0" * 20, "0" * 22, "0" * 20 + "i", "0" * 20 + "A", "0" * 20 + ".", "\u0660" * 21]
)
def test_what_is_no_id_is_seen_by_its_form(text: str) -> None:
    assert not ids.is_id(text)


def test_a_beginning_names_at_least_a_segment() -> None:
    assert [ids.is_prefix("0" * length) for length in (0, 3, 4, 21, 22)] == [False, False, True, True, False]
    assert not ids.is_prefix("00o0")


def test_a_handle_there_and_back() -> None:
    text = "0" * 21 + ".12.abcdefgh9"
    handle = Handle.parse(text)
    assert (handle.id, handle.fence, handle.nonce, str(handle)) == ("0" * 21, 12, "abcdefgh9", text)
    assert handle == Handle.parse(text)
    assert len({handle, Handle.parse(text)}) == 1


@pytest.mark.parametrize(
    "text",
    ["", None, 7, "a.b.c", "0" * 21, "0" * 21 + ".01.00000000", "0" * 21 + ".1.00000000\n", "0" * 21 + ".1.0000"],
)
def test_what_is_no_handle_is_invalid(text: object) -> None:
    with pytest.raises(Invalid):
        Handle.parse(text)


def test_a_task_has_its_fields_and_no_others() -> None:
    task = Task(id="0" * 21, kind="build", state=State.TODO, fence=0, max_attempts=3)
    assert list(task.as_dict()) == list(Task.FIELDS)
    assert list(task.as_line()) == list(Task.COMPACT)
    assert task.created_at == "2020-01-01T00:00:00.000Z"


def test_a_short_name_is_the_segment_without_zeros_and_the_end() -> None:
    assert ids.short("00006a1dkn473dtgwegf1") == "0-egf1"
    assert ids.short("0z006a1dkn473dtgwegf1", 6) == "z00-gwegf1"
    assert ids.short("zzzz6a1dkn473dtgwegf1", 17) == "zzzz-6a1dkn473dtgwegf1"


def test_a_short_name_grows_only_where_another_of_its_segment_ends_alike() -> None:
    one, two, three = "0000" + "a" * 13 + "kf12", "0000" + "b" * 13 + "kf12", "0001" + "a" * 13 + "kf12"
    assert ids.shorten([one, two, three], [one, two, three]) == ["0-akf12", "0-bkf12", "1-kf12"]
    assert ids.shorten([one], []) == ids.shorten([one], [one, three]) == ["0-kf12"]
    late = "0000" + "b" + "a" * 12 + "kf12"
    assert ids.shorten([one], [one, late]) == [f"0-{one[4:]}"], "the time tells apart what chance does not"


def test_a_short_name_is_read_as_it_is_written_and_nothing_else_is() -> None:
    assert ids.pattern("0-kf12") == ids.pattern("0000-KF12") == "0000-kf12"
    assert ids.pattern("00006A") == "00006a"
    for text in ("", "-", "0-", "-kf12", "0-kf1", "00000-kf12", "0-kf12-", "0-kfi2", "0-\u212af12", "0-" + "0" * 18):
        assert ids.pattern(text) is None


def test_no_short_name_is_an_id_a_beginning_or_a_handle() -> None:
    for length in range(ids.SHORT, 18):
        name = ids.short("zzzz6a1dkn473dtgwegf1", length)
        assert not ids.is_prefix(name)
        with pytest.raises(Invalid, match="task id"):
            Handle.parse(name)


def test_ends_of_ids_that_were_made_in_one_tick_are_as_good_as_chance() -> None:
    """Of 1,024 one shares its last four with another; 40 times that would be the mark of a pattern."""
    shared = 0
    for _ in range(20):
        mint = ids.Mint()
        ends = [mint.tail(ids.EPOCH)[-ids.SHORT :] for _ in range(1024)]
        shared += len(ends) - len(set(ends))
    assert shared < 20 * 20
