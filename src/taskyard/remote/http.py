"""HTTP/1.1 over plain sockets: one request, one answer. `http.client` would cost a command 20 ms, this costs 3.

Connections are kept open and used again. A request whose connection breaks is sent once more, to the next address of the
gateway: a claim's endings say the same again, and what adds or claims carries a key.
"""

from __future__ import annotations

import select
import socket
import time

from taskyard.core import forks
from taskyard.core.errors import Away, Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from ssl import SSLContext

_CONNECT = 5.0  # seconds until an address counts as away
_HEAD_MOST = 65_536
_SLICE = 65_536
# If packets are dropped silently, the kernel gives up after a few unanswered keepalives (seconds), or after the same
# time with unacknowledged data (milliseconds). Its own limits are hours, and an ending would wait for them.
_KEEPALIVES = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 10_000}
DEFAULT_PORT = 8377


class Broken(Exception):
    """The connection broke before the whole answer was there."""


class Woken(Exception):
    """The caller was woken while it waited for the answer."""


class Answer:
    """Status, headers in lower case, and the body of an answer."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class Address:
    """The parts of `http(s)://host:port[,host:port...]/project`."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        hosts, _, project = rest.partition("/")
        if "@" in hosts or "?" in project or "#" in project or "/" in project.rstrip("/"):
            raise Invalid(
                "the URL of a gateway is http://host:port/project",
                hint="a token goes into $TASKYARD_TOKEN, and nothing comes after the project",
            )
        self.secure = scheme == "https"
        self.project = project.rstrip("/") or "default"
        self.path = "" if self.project == "default" else f"/{_printable(self.project)}"
        """How the path of every request begins."""
        self.hosts = [_host(host, 443 if self.secure else DEFAULT_PORT) for host in hosts.split(",")]
        self.url = f"{scheme}://{hosts}/{self.project}"


def _printable(text: str) -> str:
    """Return the text with everything encoded that would end a path, or a line; what is encoded already stays as it is."""
    return "".join(
        chr(byte) if 0x20 < byte < 0x7F else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass")
    )


def _host(text: str, port: int) -> tuple[str, int]:
    name, colon, number = text.rpartition(":")
    if not colon or text.endswith("]"):  # an address of IPv6 stands in brackets
        name, number = text, str(port)
    if not name or not number.isdigit() or not 0 < int(number) < 65536:
        raise Invalid(f"not a gateway's host and port: {ascii(text)[:80]}", hint="write http://host:port/project")
    return name.strip("[]"), int(number)


class Connections:
    """The open connections to the gateway of one yard, one for each thread that is in the middle of a request."""

    def __init__(self, address: Address) -> None:
        self.renew()
        self._address = address
        self._first = 0
        self._tls: SSLContext | None = None
        forks.renew_in_child(self)

    def renew(self) -> None:
        """Forget the connections: a forked child must not use those of its parent."""
        self._idle: list[tuple[socket.socket, int]] = []  # append and pop are atomic

    def ask(
        self,
        head: Callable[[str, bool], bytes],
        body: bytes,
        seconds: float,
        woken: Callable[[], int | None] = lambda: None,
    ) -> Answer:
        """Send a request and return its answer; `head` makes the request's first lines for a host, and for a repetition.

        `woken` returns a descriptor; if that becomes readable before the answer, raise `Woken`.
        """
        broke: BaseException | None = None
        for turn in range(len(self._address.hosts) + 1):
            again = turn > 0
            try:
                line, place, used = self._connection(again)
            except (OSError, UnicodeError) as error:  # a name that can be no host's is not even looked up
                self._first += 1
                broke = error
                if turn < len(self._address.hosts) > 1:
                    continue
                raise self._away(error) from None
            try:
                _send(line, head(self._shown(place), again) + body)
                answer = _read(line, time.monotonic() + seconds, woken())
            except Woken:
                line.close()
                raise
            except (OSError, Broken) as error:
                line.close()
                broke = error
                if not used:
                    self._first += 1  # a new connection that breaks: another gateway may serve
                continue
            if answer.headers.get("connection", "").lower() == "close":
                line.close()
            else:
                self._idle.append((line, place))
            return answer
        raise self._away(broke)

    def _connection(self, again: bool) -> tuple[socket.socket, int, bool]:
        """Return an idle connection, or a new one to the address that served last."""
        while not again:
            try:
                line, place = self._idle.pop()
            except IndexError:  # also if another thread has just taken the last one
                break
            if not _is_readable(line):  # readable while idle: the gateway has closed it
                return line, place, True
            line.close()
        place = self._first % len(self._address.hosts)
        host, port = self._address.hosts[place]
        line = socket.create_connection((host, port), _CONNECT)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVES.items():
            if hasattr(socket, name):  # not on every system
                line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if self._address.secure:
            line = self._context().wrap_socket(line, server_hostname=host)
        return line, place, False

    def _context(self) -> SSLContext:
        if self._tls is None:
            import ssl

            self._tls = ssl.create_default_context()
        return self._tls

    def _shown(self, place: int) -> str:
        host, port = self._address.hosts[place]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _away(self, error: BaseException | None) -> Away:
        text = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Away(
            f"the gateway at {self._address.url} does not answer: {text}",
            hint="check that 'taskyard serve' runs there, and that the URL is right",
        )

    def close(self) -> None:
        """Close all connections that are idle."""
        idle, self._idle = self._idle, []
        for line, _ in idle:
            line.close()

    def __del__(self) -> None:
        self.close()  # a yard need not be closed by its user


def _is_readable(line: socket.socket) -> bool:
    poll = select.poll()  # not select.select, which takes no descriptor over 1023
    poll.register(line, select.POLLIN)
    return bool(poll.poll(0))


def _send(line: socket.socket, data: bytes) -> None:
    """Send all, however long that takes, as long as it goes on: `sendall` would count the whole time."""
    rest = memoryview(data)
    while rest:
        rest = rest[line.send(rest[:_SLICE]) :]


def _read(line: socket.socket, end: float, woken: int | None) -> Answer:
    """Read one answer; raise `Broken` if the connection ends before, `TimeoutError` if it takes too long."""
    data = bytearray()
    while (cut := data.find(b"\r\n\r\n")) < 0:
        if len(data) > _HEAD_MOST:
            raise Broken("its answer is no HTTP")
        data += _more(line, end, woken)
    first, *lines = bytes(data[:cut]).decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise Broken("its answer is no HTTP")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    rest = data[cut + 4 :]
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Answer(int(words[1]), headers, _chunks(line, rest, end))
    length = headers.get("content-length", "0")
    if not length.isdigit():
        raise Broken("its answer is no HTTP")
    while len(rest) < int(length):
        rest += _more(line, end, None)
    return Answer(int(words[1]), headers, bytes(rest[: int(length)]))


def _chunks(line: socket.socket, data: bytearray, end: float) -> bytes:
    """Read a body that comes in chunks, as a proxy may send it."""
    body = bytearray()
    while True:
        while (cut := data.find(b"\r\n")) < 0:
            data += _more(line, end, None)
        digits = bytes(data[:cut]).split(b";")[0].strip()
        if not digits.isalnum():
            raise Broken("its answer is no HTTP")
        try:
            size = int(digits, 16)
        except ValueError:
            raise Broken("its answer is no HTTP") from None
        while len(data) < cut + 2 + size + 2:
            data += _more(line, end, None)
        body += data[cut + 2 : cut + 2 + size]
        del data[: cut + 2 + size + 2]
        if size == 0:
            return bytes(body)


def _more(line: socket.socket, end: float, woken: int | None) -> bytes:
    left = end - time.monotonic()
    pending = getattr(line, "pending", None)
    if pending is None or not pending():
        poll = select.poll()
        poll.register(line, select.POLLIN)
        if woken is not None:
            poll.register(woken, select.POLLIN)
        ready = dict(poll.poll(max(0.0, left) * 1000))
        if woken is not None and woken in ready:
            raise Woken
        if not ready:
            raise TimeoutError("no answer in time")
    some = line.recv(_SLICE)
    if not some:
        raise Broken("it has closed the connection")
    return some
