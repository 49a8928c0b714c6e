"""A marked section in somebody else's text: put at its end, renewed where it stands, taken out byte for byte.

A mark counts only alone on its line, and only as one of two: a section is an end mark and the last begin mark before it.
What stands beside a mark whose other half is gone is the user's own, and stays.
"""

from __future__ import annotations


def put_in(text: str | None, marks: tuple[str, str], content: str) -> str:
    """Return the text with the section, which ends with a newline: a line that is added by `>>` stands below it.

    A text without a newline at its end gets one before the section, and any other an empty line: so the way back is known.
    """
    newline = "\r\n" if text is not None and "\r\n" in text else "\n"
    block = newline.join((marks[0], *content.split("\n"), marks[1]))
    if text is None:
        return block + newline
    found = _found(text, marks)
    if found is not None:
        return text[: found[0]] + block + text[found[1] :]
    return f"{text}{newline}{block}{newline}"


def taken_out(text: str | None, marks: tuple[str, str]) -> str | None:
    """Return the text without the section, or however many there are; None if that was the whole file, which was made for it."""
    found = None if text is None else _found(text, marks)
    while text is not None and found is not None:
        begin, end = found
        newline = "\r\n" if text.startswith("\r\n", begin + len(marks[0])) else "\n"
        text = _without(text[:begin], text[end:], newline)
        found = None if text is None else _found(text, marks)
    return text


def _without(before: str, after: str, newline: str) -> str | None:
    if before == "" and after == newline:
        return None
    after = after.removeprefix(newline)
    if before == newline or before.endswith(newline * 2) or not after:  # else the user's own line ends there
        before = before.removesuffix(newline)
    return before + after


def _found(text: str, marks: tuple[str, str]) -> tuple[int, int] | None:
    """Return where the first whole section begins and ends."""
    begin, at = None, 0
    for line in text.split("\n"):
        bare = line.strip("\ufeff \t\r")
        if bare == marks[0]:
            begin = at + line.index(bare)
        elif bare == marks[1] and begin is not None:
            return begin, at + line.index(bare) + len(bare)
        at += len(line) + 1
    return None
