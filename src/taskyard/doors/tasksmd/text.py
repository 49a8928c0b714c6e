"""Markdown as lines with their places in the text; edits are patches on places, so that all else stays byte for byte."""

from __future__ import annotations

import re

from taskyard.core.errors import Conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Patch = tuple[int, int, str]
    """Replace the text from here to there by this."""

_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_MARKER = re.compile(r"(<{7}|>{7}|\|{7})( |$)")
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_BOM = "\ufeff"
_INDENT = 4  # columns of a line of code
_CODE = re.compile(r"(`+)(?:(?!`).)+?\1(?!`)")


class Line:
    """One line: where it begins, where its words end, where the next begins; `visible` if it is neither code nor comment."""

    __slots__ = ("end", "next", "number", "start", "text", "visible")

    def __init__(self, number: int, start: int, end: int, following: int, text: str) -> None:
        self.number = number
        self.start = start
        self.end = end
        self.next = following
        self.text = text
        self.visible = True

    @property
    def indent(self) -> int:
        """How many columns the words are indented; a tab counts to the next multiple of four."""
        white = self.text[: len(self.text) - len(self.text.lstrip(" \t"))]
        return len(white.expandtabs(4))

    @property
    def blank(self) -> bool:
        """Whether there is nothing on it."""
        return not self.text.strip()

    def heading(self) -> tuple[int, str] | None:
        """Return the level and the words of a heading; None if this is none."""
        found = _HEADING.match(self.text) if self.visible else None
        return (len(found[1]), found[2]) if found else None


def lines(text: str) -> list[Line]:
    """Return the lines of a Markdown text; raise `Conflict` if it has conflict markers, or a code fence that never ends."""
    found: list[Line] = []
    at = len(_BOM) if text.startswith(_BOM) else 0
    while at < len(text):
        newline = text.find("\n", at)
        following = len(text) if newline < 0 else newline + 1
        end = following if newline < 0 else newline
        if newline > at and text[newline - 1] == "\r":
            end = newline - 1
        found.append(Line(len(found) + 1, at, end, following, text[at:end]))
        at = following
    _refuse_markers(found)
    _hide(text, found)
    return found


def _refuse_markers(found: list[Line]) -> None:
    for line in found:
        if line.text[:1] in ("<", ">", "|") and _MARKER.match(line.text):
            raise Conflict(
                f"line {line.number} is a conflict marker of a merge: {line.text[:40]}",
                hint="finish the merge in the file, then sync again; nothing was changed",
            )


def _hide(text: str, found: list[Line]) -> None:
    """Mark what is front matter, code, or a comment of several lines: nothing there is a task."""
    fence, opened, comment_end = "", 0, -1
    matter = _front_matter(found)
    for line in found[:matter]:
        line.visible = False
    for line in found[matter:]:
        if line.start < comment_end:
            line.visible = False
            continue
        if fence:
            line.visible = False
            words = line.text.strip(" \t>")
            if len(words) >= len(fence) and not words.strip(fence[0]):
                fence = ""
            continue
        mark = _FENCE.match(line.text)
        if mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence, opened, line.visible = mark[1], line.number, False
            continue
        comment_end = _comment(text, line)
    _hide_indented(found)
    if fence:
        raise Conflict(
            f"the code fence that line {opened} opens is never closed",
            hint="close it, then sync again; nothing was changed, because all lines after it would no longer be tasks",
        )


def _front_matter(found: list[Line]) -> int:
    """Return how many lines the front matter has that a file may begin with: from `---` to `---`."""
    if not found or found[0].text.rstrip() != "---":
        return 0
    return next((line.number for line in found[1:] if line.text.rstrip() in ("---", "...")), 0)


def _hide_indented(found: list[Line]) -> None:
    """Mark lines of code that are indented: after a blank line, and not below an item of a list."""
    in_list, after_blank = False, True
    for line in found:
        if line.blank:
            after_blank = True
            continue
        if line.visible and after_blank and not in_list and line.indent >= _INDENT:
            line.visible = False  # and the next one, if that is indented too
            continue
        if not line.visible or line.indent == 0:
            in_list = line.visible and (bool(_ITEM.match(line.text)) or (in_list and not after_blank))
        else:
            in_list = in_list or bool(_ITEM.match(line.text))
        after_blank = False


def _comment(text: str, line: Line) -> int:
    """Return where the comment ends that this line leaves open, or -1."""
    if "<!--" not in line.text:
        return -1
    words = _CODE.sub(lambda code: "x" * len(code[0]), line.text)
    at = words.rfind("<!--")
    if at < 0 or "-->" in words[at:]:
        return -1
    return text.find("-->", line.end)


def patched(text: str, patches: Iterable[Patch]) -> str:
    """Return the text with these patches made; several at one place come in the order given."""
    parts, at = [], 0
    for start, end, new in sorted(patches, key=lambda patch: (patch[0], patch[1])):
        assert at <= start <= end, f"patches overlap at {start}"
        parts += [text[at:start], new]
        at = end
    return "".join((*parts, text[at:]))


def newline_of(text: str) -> str:
    """Return the line ending of the text: that of its first line."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def harmless(value: str) -> str:
    """Return words of a yard as they may stand in a line: they open no comment and break no line."""
    words = "".join(" " if ord(letter) < 32 or letter in "\x7f\x85\u2028\u2029" else letter for letter in value)
    return words.replace("<!--", "&lt;!--").strip()


def plain(value: str) -> str:
    """Return what `harmless` made these words from."""
    return value.replace("&lt;!--", "<!--").strip()
