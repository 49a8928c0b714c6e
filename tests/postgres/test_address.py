"""What is special in a URL is encoded and decoded as urllib does, which is loaded only where there is something special."""

from __future__ import annotations

from urllib.parse import quote, unquote

from hypothesis import example, given
from hypothesis import strategies as st

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
