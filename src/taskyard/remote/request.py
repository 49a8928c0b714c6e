"""One verb as one request: from the table of routes to an answer, or to the error that the gateway sent."""

from __future__ import annotations

import itertools
import time

from taskyard.core import forks, ids, json_codec, secret_files
from taskyard.core.errors import Away, Full, Invalid, TaskyardError, Unavailable
from taskyard.remote import routes, wire
from taskyard.remote.http import Address, Connections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.remote.http import Answer
    from taskyard.remote.routes import Route

_QUICK = 60.0  # seconds for an answer, beside what the gateway was asked to wait
_CHECKED = 3600.0  # for verbs that may take long: a `done` may run a check, a `prune` may move a million tasks
_PATIENCE = 3.0  # seconds in which a request is sent again if the gateway asks for that; then the call raises
_AWAY = 503  # the gateway answers, and its store does not
_PROXY = (502, 503, 504)  # a proxy answers, and its gateway does not
_NAME_MOST = 2000  # characters of a path's part: longer ones are no names, and no server takes them
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")


def quoted(text: str) -> str:
    """Return the text for a path, a query or a header: like `urllib.parse.quote`, which costs 4 ms to load."""
    if _PLAIN.issuperset(text):
        return text
    return "".join(
        chr(byte) if chr(byte) in _PLAIN else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass")
    )


class Requests:
    """Asks one gateway, on behalf of one worker."""

    def __init__(self, address: Address, connections: Connections, token: str | None) -> None:
        self.address = address
        self.connections = connections
        self.token = token
        self.worker = ""
        self._closed = False
        self._identify()

    def _identify(self) -> None:
        self._forks = forks.count
        self._incarnation = ids.base32(ids.chance(60), 12)
        self._count = itertools.count(1)

    def new_key(self) -> str:
        """Return a name for a request that no other request has."""
        if self._forks != forks.count:
            self._identify()
        return f"{self._incarnation}-{next(self._count)}"

    def ask(
        self,
        verb: str,
        given: dict[str, Any] | None = None,
        *,
        key: str | None = None,
        again: bool = False,
        wait: float = 0.0,
        nulls: bool = False,
        woken: Callable[[], int | None] = lambda: None,
    ) -> dict[str, Any]:
        """Send the request of a verb and return the data of its answer; without `nulls`, arguments that are None are left out."""
        if self._closed:
            raise Unavailable(f"the yard {self.address.url} was closed here", hint="open it again with taskyard.open")
        route = routes.BY_VERB[verb]
        arguments = {name: value for name, value in (given or {}).items() if nulls or value is not None}
        path = "/".join(
            _named(part[1:-1], arguments.pop(part[1:-1], None)) if part.startswith("{") else part
            for part in route.parts()
        )
        body = b""
        if route.method == "GET":
            path += _query(route, arguments)
        else:
            body = wire.encoded(arguments)
        rest = self._headers(key, len(body) if route.method != "GET" else None)

        def head(host: str, repeated: bool) -> bytes:
            more = f"{wire.AGAIN}: {int(again or repeated)}\r\n" if key is not None else ""
            return f"{route.method} {self.address.path}/{path} HTTP/1.1\r\nhost: {host}\r\n{rest}{more}\r\n".encode()

        seconds = (_CHECKED if route.slow else _QUICK) + wait
        end = time.monotonic() + _PATIENCE
        while True:
            answer = self.connections.ask(head, body, seconds, woken)
            pause = _pause(answer)
            if pause is None or time.monotonic() + pause > end:
                return _data(answer, self.address.url)
            again = True
            time.sleep(pause)

    def close(self) -> None:
        """Close the connections, and refuse every later request."""
        self._closed = True
        self.connections.close()

    def _headers(self, key: str | None, length: int | None) -> str:
        lines = [f"{wire.WORKER}: {quoted(self.worker)}"]
        if self.token:
            lines.append(f"authorization: Bearer {quoted(self.token)}")
        if key is not None:
            lines.append(f"{wire.KEY}: {key}")
        if length is not None:
            lines.append(f"content-type: application/json\r\ncontent-length: {length}")
        return "".join(f"{line}\r\n" for line in lines)


def opened(url: str) -> Requests:
    """Return what asks the gateway of this URL, with the token of the environment."""
    address = Address(url)
    return Requests(address, Connections(address), secret_files.given("TASKYARD_TOKEN"))


def _named(name: str, value: object) -> str:
    """Return an argument that is a part of a path."""
    return quoted(_text(name, value)[:_NAME_MOST])


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        what = "a task id" if name in ("id", "task") else name
        raise Invalid(f"{what} must be a text, not {type(value).__name__}")
    return value


def _query(route: Route, arguments: dict[str, Any]) -> str:
    """Return the arguments as a query; a list is the same name several times."""
    pairs = []
    for name, value in arguments.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and route.takes[name].strip("?") in ("int", "float", "bool"):
                raise Invalid(f"{name} must be a number, not {ascii(one)[:80]}")  # as text it would look like one
            texts = route.takes[name].strip("[]?") == "str" and name != "since"  # which may be a number
            text = _text(name, one) if texts else one if isinstance(one, str) else wire.encoded(one).decode()
            pairs.append(f"{name}={quoted(text)}")
    return "?" + "&".join(pairs) if pairs else ""


def _pause(answer: Answer) -> float | None:
    """Return after how many seconds the gateway, or a proxy before it, asks to be asked again; None if it does not."""
    after = answer.headers.get("retry-after", "")
    if answer.status not in (429, 503) or not (after.isascii() and after.isdigit()) or _code(answer) == Full.code:
        return None  # a yard that is full says so: whether to wait for room is for the caller to say
    return int(after) + ids.chance(8) / 512  # not all at one moment


def _code(answer: Answer) -> object:
    try:
        return json_codec.decode(answer.body)["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return None


def _data(answer: Answer, url: str) -> dict[str, Any]:
    """Return the data of an answer, or raise its error."""
    try:
        decoded = json_codec.decode(answer.body)
        if decoded.get("ok") is True:
            data: dict[str, Any] = decoded["data"]
            return data
        error: TaskyardError = wire.raised(decoded["error"])
        if answer.status == _AWAY and type(error) is Unavailable:
            error = Away(error.message, hint=error.hint)
    except (ValueError, AttributeError, KeyError, TypeError):
        if answer.status in _PROXY:
            raise Away(
                f"the gateway at {url} does not answer: the proxy before it says {answer.status}",
                hint="check that 'taskyard serve' runs there",
            ) from None
        raise Unavailable(
            f"what answers at {url} is no gateway of Taskyard (status {answer.status})",
            hint="check the URL, and the proxy before the gateway if there is one",
        ) from None
    raise error
