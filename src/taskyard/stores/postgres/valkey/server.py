"""Connections to one Valkey server: every call has a time-out, and after trouble the server is left alone for a while."""

from __future__ import annotations

import os
import threading
import time
from urllib.parse import urlsplit

from taskyard.core import forks, ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Command = tuple[str | bytes | int | float, ...]

TIMEOUT = 0.5  # seconds for one exchange: no verb waits longer for a hint
_FIRST_REST, _LONGEST_REST = 0.25, 4.0  # seconds without a new attempt after trouble


class Trouble(Exception):
    """Valkey could not be reached, did not answer in time, or refused."""


class Server:
    """One Valkey server, as one store uses it."""

    def __init__(self, url: str, *, warns: bool = True) -> None:
        self.label = label(url)
        self._url = url
        self._moved_to: tuple[str, int] | None = None
        """The node of a cluster that has this project's keys, if another one said so."""
        self._warned = not warns
        self._begin()
        forks.renew_in_child(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._line: Any = None
        self._rest_until = float("-inf")
        self._rest = _FIRST_REST
        self.trouble: str | None = None
        """What went wrong last; None while all is well."""

    def renew(self) -> None:
        """Use connections of its own in a forked child."""
        self._begin()

    def rests(self) -> float:
        """Return the seconds for which the server is left alone; 0 if it may be asked."""
        return max(0.0, self._rest_until - time.monotonic())

    def ask(self, *commands: Command) -> list[Any]:
        """Send these commands together and return their answers; raise `Trouble` if one is refused."""
        answers = self.answers(*commands)
        for answer in answers:
            if isinstance(answer, Exception):
                raise self.failed(answer)
        return answers

    def get(self, key: str) -> bytes | None:
        """Return what this key holds; what is no string was put there by somebody else, and is removed."""
        [answer] = self.answers(("GET", key))
        if isinstance(answer, Exception):
            if not is_wrong_type(answer):
                raise self.failed(answer)
            self.ask(("DEL", key))
            return None
        found: bytes | None = answer
        return found

    def answers(self, *commands: Command) -> list[Any]:
        """The same as `ask`, with an exception in place of each answer that refuses a command."""
        with self._lock:
            if self.rests():
                raise Trouble(self.trouble)
            try:
                answers = self._exchange_anew(commands)
                if self._follow_move(answers):
                    answers = self._exchange(commands)
            except BaseException as error:
                self._drop()
                raise self.failed(error) from None
            self._rest, self.trouble = _FIRST_REST, None
            return answers

    def _exchange_anew(self, commands: Sequence[Command]) -> list[Any]:
        """Exchange; if the server has closed a connection that was idle, on another one. Every command may come twice."""
        if self._line is not None:
            from valkey.exceptions import ConnectionError as Closed

            try:
                return self._exchange(commands)
            except Closed:
                self._drop()
        return self._exchange(commands)

    def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        if self._line is None:
            self._line = self.connect()
        self._line.send(*commands)
        return [self._line.receive() for _ in commands]

    def _follow_move(self, answers: Sequence[Any]) -> bool:
        """Whether a node of a cluster named another one, which is asked from now on."""
        for answer in answers:
            if isinstance(answer, Exception) and str(answer).startswith("MOVED "):
                host, _, port = str(answer).split()[2].rpartition(":")
                self._moved_to = (host, int(port))
                self._drop()
                return True
        return False

    def connect(self) -> Any:
        """Open a connection of the caller's own; raise what the client library raises."""
        from taskyard.stores.postgres.valkey import line

        return line.connect(self._url, self._moved_to, TIMEOUT)

    def failed(self, error: BaseException) -> BaseException:
        """Leave the server alone for a while; return the trouble to raise, or the error if it is none of the server's."""
        if not isinstance(error, Exception):
            return error  # the process is being ended
        self._moved_to = None  # that node may be gone: the one of the URL knows the next
        first = (str(error).strip().splitlines() or [""])[0]
        self.trouble = first or type(error).__name__
        # At random: all clients met the trouble at the same moment, and must not return at the same one.
        self._rest_until = time.monotonic() + self._rest * (0.75 + ids.chance(8) / 512)
        self._rest = min(2 * self._rest, _LONGEST_REST)
        self._warn()
        return Trouble(self.trouble)

    def _warn(self) -> None:
        """Log the first trouble of a process, and no later one: PostgreSQL does everything meanwhile."""
        if self._warned:
            return
        self._warned = True
        import logging

        message = "Valkey at %s does not serve (%s); PostgreSQL alone does everything until it is back"
        logging.getLogger("taskyard").warning(message, self.label, self.trouble)

    def _drop(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.disconnect()

    def close(self) -> None:
        """Close the connection; a later call opens another."""
        with self._lock:
            self._drop()


def is_wrong_type(answer: object) -> bool:
    """Whether a command was refused because its key holds another type."""
    return isinstance(answer, Exception) and str(answer).startswith("WRONGTYPE")


def script() -> str:
    """Return the script that makes acts."""
    with open(os.path.join(os.path.dirname(__file__), "acts.lua"), encoding="utf-8") as file:
        return file.read()


def label(url: str) -> str:
    """Return the address without user, password and options."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return f"unix:{parts.path}"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
