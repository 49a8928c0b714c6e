"""Lists and mappings of YAML in brackets."""

from __future__ import annotations

from taskyard.doors.importers.yaml_text import BLANKS, end_of_quote, scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DEPTH_MOST = 20
NOT_READ = {"&": "an anchor", "*": "an alias", "!": "a tag", "%": "a directive", "`": "a reserved character"}


class Flow:
    """A list or mapping in brackets, which has become one line."""

    def __init__(
        self, text: str, column: int, refuse: Callable[[int, str], Exception], unquoted: Callable[[str, int], str]
    ) -> None:
        self._text = text
        self._column = column
        self._refuse_at = refuse
        self._unquoted = unquoted
        self._at = 0

    def whole(self) -> Any:
        """Return the value; nothing but a comment may follow it."""
        value = self._value(0)
        rest = self._text[self._at :].strip(BLANKS)
        if rest and not rest.startswith("#"):
            raise self._refuse("there is more behind the bracket")
        return value

    def _refuse(self, message: str) -> Exception:
        return self._refuse_at(self._column + self._at, message)

    def _peek(self) -> str:
        while self._text[self._at : self._at + 1] in (" ", "\t", "\n"):
            self._at += 1
        return self._text[self._at : self._at + 1]

    def _value(self, depth: int) -> Any:
        if depth > DEPTH_MOST:
            raise self._refuse("the YAML is nested too deeply")
        first = self._peek()
        if first == "[":
            return self._list(depth)
        if first == "{":
            return self._mapping(depth)
        return self._scalar(",]}")

    def _list(self, depth: int) -> list[Any]:
        found = []
        self._at += 1
        while self._peek() != "]":
            found.append(self._value(depth + 1))
            self._separated("]")
        self._at += 1
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._at += 1
        while self._peek() != "}":
            key = str(self._scalar(":,}"))
            if self._peek() != ":":
                raise self._refuse("a colon is missing")
            self._at += 1
            found[key] = self._value(depth + 1)
            self._separated("}")
        self._at += 1
        return found

    def _separated(self, end: str) -> None:
        mark = self._peek()
        if mark == ",":
            self._at += 1
        elif mark != end:
            raise self._refuse(f"a comma or {end} is missing")

    def _scalar(self, ends: str) -> Any:
        first = self._peek()
        if first in ("", ",", "]", "}"):
            raise self._refuse("a value is missing")
        if first in NOT_READ:
            raise self._refuse(f"{NOT_READ[first]} is YAML that is not read here; put the text in quotes")
        start = self._at
        if first in "\"'":
            end = end_of_quote(self._text, start)
            if end is None:
                raise self._refuse("the quotes have no end")
            self._at = end + 1
            return self._unquoted(self._text[start : self._at], self._column + start)
        while self._at < len(self._text) and self._text[self._at] not in ends:
            self._at += 1
        return scalar(self._text[start : self._at].strip(BLANKS))
