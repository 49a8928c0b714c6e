"""Words in file names: they come back exactly, and none is dangerous."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard import Invalid
from taskyard.core import words

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT)
def test_a_word_comes_back_from_a_file_name(word: str) -> None:
    assert words.decoded(words.encoded(word)) == word


@given(TEXT)
def test_an_encoded_word_holds_nothing_dangerous(word: str) -> None:
    assert re.fullmatch(r"([A-Za-z0-9_-]|%[0-9A-F]{2})*", words.encoded(word))


@given(TEXT, TEXT)
def test_two_words_never_share_a_name(one: str, other: str) -> None:
    assert (words.encoded(one) == words.encoded(other)) == (one == other)


@given(st.text())
def test_a_kind_is_legal_or_refused_and_never_anything_else(word: str) -> None:
    try:
        assert words.kind(word) == word
    except Invalid as refusal:
        assert refusal.message.isprintable()  # noqa: PT017  both ways are right here
    else:
        assert len(words.encoded(word)) <= words.ENCODED_MOST
        assert word[0].isalnum()


@given(st.text())
def test_a_worker_is_legal_or_refused_and_never_anything_else(word: str) -> None:
    try:
        assert words.worker(word) == word
    except Invalid as refusal:
        assert refusal.message.isprintable()  # noqa: PT017  both ways are right here
    else:
        assert 0 < len(words.encoded(word)) <= words.ENCODED_MOST


@pytest.mark.parametrize(
    ("word", "part"),
    [("build", "build"), ("a.b", "a%2Eb"), ("../x", "%2E%2E%2Fx"), ("é", "%C3%A9"), ("100%", "100%25"), ("", "")],
)
def test_the_form_in_a_file_name_is_fixed(word: str, part: str) -> None:
    assert words.encoded(word) == part


@pytest.mark.parametrize("value", [None, 1, b"build", ["build"]])
def test_a_word_must_be_a_text(value: object) -> None:
    for check in (words.kind, words.worker, lambda given: words.text(given, "mission")):
        with pytest.raises(Invalid, match="must be a text"):
            check(value)


@pytest.mark.parametrize(
    "letter", [chr(code) for code in (*range(32), *range(127, 160), 0x2028, 0x2029, 0xD800, 0xDFFF)]
)
def test_no_text_may_hold_a_control_character(letter: str) -> None:
    for check in (words.kind, words.worker, lambda given: words.text(given, "mission")):
        with pytest.raises(Invalid):
            check(f"a{letter}b")


def test_texts_have_their_limits() -> None:
    assert words.text("m" * 256, "mission") == "m" * 256
    assert words.text("t" * 500, "title", words.TITLE_MOST) == "t" * 500
    for bad in ("", "m" * 257):
        with pytest.raises(Invalid, match="mission"):
            words.text(bad, "mission")
