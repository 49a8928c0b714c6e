"""The exact grammar of names in PROTOCOL.md; clients parse names less strictly (`names`)."""

from __future__ import annotations

import functools
import re

from taskyard.core import words
from taskyard.core.draft import LEASE_MOST
from taskyard.core.errors import Invalid
from taskyard.core.task import State
from taskyard.stores.directory.names import ASSIGNED, MISSION_DIGEST, Lane, Token

_B32 = "[0-9a-hjkmnp-tv-z]"
_NUMBER = "(?:0|[1-9][0-9]{0,8})"
_MILLISECONDS = "(?:0|[1-9][0-9]{0,9})"
_WORD = "(?:[A-Za-z0-9_-]|%[0-9A-F]{2})+"
_ID = f"{_B32}{{21}}"
_HANDLE = rf"{_ID}\.[1-9][0-9]{{0,8}}\.{_B32}{{8}}[0-9]*"
_OWN = rf"(?:\.x|\.b{_B32}{{8}})?(?:\.m[1-9][0-9]{{0,2}})?(?:\.t{_MILLISECONDS})?(?:\.[uvwUVWY])?"
_HEAD = rf"{_ID}\.{_NUMBER}\.e{_NUMBER}\.c{_NUMBER}{_OWN}"
_LANED = rf"{_HEAD}\.[0-9]-{_WORD}(?:@{_WORD})?(?:~[0-9a-f]{{{MISSION_DIGEST}}})?"
_CLAIM = rf"\.l{_MILLISECONDS}(?:\.L)?\.(?:{_WORD}|@)-{_B32}{{8}}[0-9]+"
_NAMES = {
    State.TODO: re.compile(rf"{_HEAD}\.json"),
    State.WAITING: re.compile(rf"{_LANED}\.d[0-9]{{1,15}}\.json"),
    State.BLOCKED: re.compile(rf"{_LANED}(?:\.d[0-9]{{1,15}})?\.json"),
    State.PROCESSING: re.compile(rf"{_LANED}{_CLAIM}\.json"),
    State.DONE: re.compile(rf"{_LANED}{_CLAIM}(?:\.r)?\.json"),
    State.FAILED: re.compile(rf"{_LANED}(?:{_CLAIM})?\.json"),
    State.CANCELLED: re.compile(rf"{_LANED}\.json"),
}
_OUTCOMES = "done|error|released|crash|cancelled|resumed"
RECORD = re.compile(rf"({_ID})\.([0-9]+)\.({_B32}+)\.({_OUTCOMES}|stale-[0-9a-f]{{12}})\.json")
NO_CLAIM = re.compile(rf"({_ID})\.({_NUMBER})\.(?:cancelled|retried)\.json")
"""Records that belong to a task, and to none of its claims."""
EDIT = re.compile(rf"({_ID})\.({_B32}{{8}})\.json")
CLAIM = re.compile(_HANDLE)
BUCKET = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}(?:-[0-9]{2})?)?")
BLOCK = re.compile("0|[1-9][0-9]{0,2}")
SLOT = re.compile(rf"{_NUMBER}\.{_NUMBER}\.[0-9]{{1,15}}\.(?:0|{_B32}{{8}})")
MISSION = re.compile(rf"since|[0-9a-f]{{{MISSION_DIGEST}}}\.(?:json|cancelled)")
KEY = re.compile(r"[0-9a-f]{40}\.json")
WRITER = re.compile(rf"[0-9]+-{_B32}{{8}}(?:\.new)?")
SHELL = re.compile(rf"{_WORD}\.sh|[0-9A-Za-z]+-[0-9]+\.look")
WORKER = re.compile(rf"{_WORD}-{_B32}{{8}}")
ARCHIVE = re.compile(
    rf"tasks-[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}-[0-9]{{2}}-[0-9]{{2}}-{_B32}{{4}}\.jsonl\.gz|events-.+\.jsonl\.gz"
)
_LEASE_MOST = round(LEASE_MOST * 1000)


def parse(state: State, name: str, lane: Lane | None) -> Token | None:
    """Parse the name; return None if a task in this state cannot have it."""
    if _NAMES[state].fullmatch(name) is None:
        return None
    token = Token.parse(name, lane)
    if token is None or not _is_legal(token.lane.text):
        return None
    if token.nonce is not None and not _is_claim(token, name):
        return None
    return token


@functools.lru_cache(maxsize=10_000)
def _is_legal(text: str) -> bool:
    """Return whether an add would accept the lane's kind and assignee."""
    lane = Lane.parse(text)
    if lane is None:
        return False
    try:
        words.kind(lane.kind)
        if lane.assignee is not None:
            words.worker(lane.assignee)
    except Invalid:
        return False
    return True


def _is_claim(token: Token, name: str) -> bool:
    """Return whether the lease and the worker are possible; only an assignee claims what is assigned, another one may accept it."""
    assigned = f".{ASSIGNED}-{token.nonce}." in name
    accepted = token.has_result and token.verified and token.worker != token.lane.assignee
    if assigned != (token.lane.assignee is not None and not accepted) or not token.fence:
        return False
    try:
        words.worker(token.worker)
    except Invalid:
        return False
    held = assigned or f".{words.encoded(token.worker or '')}-{token.nonce}." in name
    return held and (token.lease or 0) <= _LEASE_MOST


def is_word(part: str) -> bool:
    """Return whether this is an encoded kind or worker name."""
    try:
        return words.encoded(words.worker(words.decoded(part))) == part
    except (Invalid, ValueError):
        return False
