"""Names that other programs make: a loop that does not know the yard renames what it takes from todo/ to AGENT_NAME.

It moves that to processing/, and on to done/NAME or failed/NAME; its janitor moves AGENT_NAME back to todo/. What it
takes may be a dropped file, a whole lane, or a claim of ours that such a janitor has put into todo/.
"""

from __future__ import annotations

import re

from taskyard.core import ids
from taskyard.stores.directory.names import SUFFIX, Lane, Token

_CARRIED = re.compile(r"(?:(.*)_)?([0-9a-hjkmnp-tv-z]{21}\.[0-9]{1,9}\.e.*\.json)", re.DOTALL)
_DIVIDER = "_"
UNKNOWN = "guest"  # the worker of a task in done/ or failed/ whose name has no agent


def split(name: str) -> tuple[str, str]:
    """Split a guest's name in processing/ into its agent and the name in todo/; the agent is "" if it is not a guest's."""
    agent, divider, own = name.partition(_DIVIDER)
    return (agent, own) if divider and own else ("", name)


def carried(name: str) -> tuple[str, str, Token] | None:
    """Find a claimed name of ours in a guest's name: the agent before it, if any, the name itself, and its parsed form."""
    match = _CARRIED.fullmatch(name)
    token = None if match is None else Token.parse(match[2])
    if match is None or token is None or token.nonce is None:
        return None
    return match[1] or "", match[2], token


def taken_by(agent: str, own: str, token: Token, lease: float) -> Token:
    """Return the token of a guest's claim as if made by the rules: the next fence, and a nonce from the name."""
    from hashlib import sha256

    digest = int.from_bytes(sha256(own.encode("utf-8", "surrogateescape")).digest()[:5], "big")
    token.fence += 1
    token.worker = printable(agent) or UNKNOWN
    token.nonce = f"{ids.base32(digest, 8)}1"
    token.lease = round(lease * 1000)
    token.vouched = token.has_result = False
    return token


def printable(text: str) -> str:
    """Keep what a worker's name can hold, and as much as fits."""
    return "".join(letter for letter in text if letter.isascii() and letter.isprintable())[:20].strip()


def lanes(name: str) -> dict[str, Lane]:
    """Return the lanes that a folder of this name may be: by the whole name, and by what follows each divider in it."""
    if name.endswith(SUFFIX):
        return {}
    parts = name.split(_DIVIDER)
    texts = (_DIVIDER.join(parts[start:]) for start in range(len(parts)))
    found = ((text, Lane.of_folder(text)) for text in texts)
    return {text: lane for text, lane in found if lane is not None}
