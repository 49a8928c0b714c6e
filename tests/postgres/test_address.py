"""What is special in a URL is encoded and decoded as urllib does, and what no driver could pass on is refused."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import taskyard
from taskyard.stores.postgres import address

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text("aZ09_.-~/%@ ")


@given(TEXTS)
@example("/run/postgresql")
def test_what_is_special_is_encoded(text: str) -> None:
    assert address._quoted(text) == quote(text, safe="")
    assert address._quoted(text, "/") == quote(text, safe="/")


@given(TEXTS)
def test_what_was_encoded_is_decoded(text: str) -> None:
    assert address._unquoted(quote(text)) == unquote(quote(text)) == text


@pytest.mark.parametrize("mark", ["\0", "\udcff"])
def test_a_character_that_no_driver_can_pass_on_is_refused(mark: str) -> None:
    with pytest.raises(taskyard.Invalid, match="no text"):
        taskyard.open(f"postgresql://host/data{mark}base")
