"""Words that users choose (kind, worker, assignee, mission, title): what is legal, and how a word fits a file name.

In a file name a word keeps ASCII letters, digits, `_` and `-`; every other byte of its UTF-8 form becomes `%XX`. So no
encoded word has a dot, a slash or a NUL, and none can break a name or leave the yard. Decoding returns exactly the
original word. Every store has the same limits, so that a task can move between stores.
"""

from __future__ import annotations

from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENCODED_MOST = 60  # bytes; a claimed name must stay under the 255 bytes that filesystems allow
KIND_WITH_MISSION, ASSIGNEE_WITH_MISSION = 49, 58  # bytes: the names of a mission's tasks have its digest as well
TEXT_MOST = 256  # characters of a mission, key or resource
TITLE_MOST = 500

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_KIND_MARKS = frozenset("_-.:")
_KINDS: set[str] = set()  # legal ones that were seen: a yard has few, and a look at every letter of one takes 1 us
_KINDS_MOST = 1000


def encoded(word: str) -> str:
    """Return the word as a part of a file name."""
    if _PLAIN.issuperset(word):
        return word
    return "".join(chr(byte) if chr(byte) in _PLAIN else f"%{byte:02X}" for byte in word.encode())


def decoded(part: str) -> str:
    """Return the word that `encoded` made this part from."""
    if "%" not in part:
        return part
    first, *rest = part.split("%")
    return (first.encode() + b"".join(bytes.fromhex(piece[:2]) + piece[2:].encode() for piece in rest)).decode()


def kind(value: object) -> str:
    """Return a legal kind: letters or digits of any script and `_ - . :`, the first a letter or digit."""
    if type(value) is str and value in _KINDS:
        return value
    word = _word(value, "kind")
    if _PLAIN.issuperset(word) and word[0] not in "_-":
        if len(_KINDS) < _KINDS_MOST:
            _KINDS.add(word)
        return word  # as most are, and without a look at every letter
    if not word[0].isalnum() or not all(
        letter.isalnum() or letter in _KIND_MARKS or _is_mark(letter) for letter in word
    ):
        raise Invalid(
            f"kind {_shown(word)} is not allowed",
            hint="use letters, digits, and _ - . : after the first character",
        )
    return word


def _is_mark(letter: str) -> bool:
    """Whether this belongs to the letter before it, as vowel signs and accents do in many scripts."""
    from unicodedata import category  # only needed for a character that is no letter

    return category(letter).startswith("M")


def worker(value: object, name: str = "worker") -> str:
    """Return a legal worker or assignee: any printable text that fits a file name."""
    return _word(value, name)


def text(value: object, name: str, most: int = TEXT_MOST) -> str:
    """Return a legal mission, title or other free text of one line."""
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a text, not {type(value).__name__}")
    if not 1 <= len(value) <= most:
        raise Invalid(f"{name} must have 1 to {most} characters, not {len(value)}")
    _printable(value, name)
    return value


def _word(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a text, not {type(value).__name__}")
    if not value:
        raise Invalid(f"{name} is empty")
    _printable(value, name)
    if len(value) > ENCODED_MOST or len(encoded(value)) > ENCODED_MOST:
        raise Invalid(
            f"{name} {_shown(value)} is too long",
            hint=f"at most {ENCODED_MOST} bytes, where all but ASCII letters, digits, _ and - count as %XX for each byte",
        )
    return value


def _printable(value: str, name: str) -> None:
    if _PLAIN.issuperset(value):
        return
    for letter in value:
        code = ord(letter)
        # Control characters (C0, DEL, C1), line and paragraph separators; lone surrogates are bytes that were not UTF-8.
        if code < 32 or 127 <= code < 160 or code in (0x2028, 0x2029) or 0xD800 <= code < 0xE000:
            raise Invalid(f"{name} {_shown(value)} has a character that is not allowed: U+{code:04X}")


def shown(value: object, most: int = 40) -> str:
    """Return any value in a form that fits into a message."""
    try:
        text = ascii(value)
    except ValueError:
        return "a number of too many digits"  # more than Python converts to text
    return text if len(text) <= most else text[:most] + "..."


def _shown(value: str) -> str:
    return ascii(value if len(value) <= 40 else value[:40] + "...")


def several(value: object, name: str) -> list[Any]:
    """Return the entries of a list, and a text as the only entry; raise `Invalid` for what has none."""
    if isinstance(value, str):
        return [value]
    try:
        entries = iter(value)  # type: ignore[call-overload]
    except TypeError:
        raise Invalid(f"{name} must be a list, not {type(value).__name__}") from None
    return list(entries)
