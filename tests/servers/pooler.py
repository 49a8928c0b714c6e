"""A pooler of connections in front of a PostgreSQL server, as PgBouncer is one: it speaks the protocol, on unix sockets.

    python pooler.py FOLDER SERVER MODE SIZE

Clients are logged in by the pooler itself, with a process number that is no process. In session mode a client keeps its server
connection until it leaves; in transaction mode only until the server says that it is idle. More than SIZE wait in a queue. A client
that leaves in the middle of something takes its server connection with it: what the server is at goes on there. SIGUSR1 cuts
all clients off. Nothing but the standard library: it is run as a process of its own, and goes when its input ends.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from typing import Self
from urllib.parse import quote

NAME = ".s.PGSQL.5432"
_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102
_TRACKED = ("client_encoding", "application_name")  # what this pooler takes from a client to its server connections


class Gone(Exception):
    """The other side has left."""


class Wire:
    """One side's socket, read message by message."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._buffer = b""

    def read(self, number: int) -> bytes:
        while len(self._buffer) < number:
            try:
                more = self.end.recv(65536)
            except OSError:
                more = b""
            if not more:
                raise Gone
            self._buffer += more
        taken, self._buffer = self._buffer[:number], self._buffer[number:]
        return taken

    def message(self) -> tuple[bytes, bytes]:
        """The sort of the next message, and all of it."""
        head = self.read(5)
        return head[:1], head + self.read(struct.unpack("!I", head[1:])[0] - 4)

    def has_more(self) -> bool:
        return bool(self._buffer)

    def send(self, data: bytes) -> None:
        try:
            self.end.sendall(data)
        except OSError:
            raise Gone from None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.end.shutdown(socket.SHUT_RDWR)
        self.end.close()


class Backend:
    """A connection to the server."""

    def __init__(self, server: str, user: str, database: str) -> None:
        end = socket.socket(socket.AF_UNIX)
        end.connect(f"{server}/{NAME}")
        self.wire = Wire(end)
        self.wire.send(_startup({"user": user, "database": database, "client_encoding": "UTF8"}))
        self.greeting = b""
        while True:
            sort, whole = self.wire.message()
            if sort == b"E":
                raise Gone
            if sort == b"S":
                self.greeting += whole
            if sort == b"Z":
                return

    def say(self, text: str) -> None:
        """A statement of the pooler's own."""
        self.wire.send(_message(b"Q", text.encode() + b"\0"))
        while self.wire.message()[0] != b"Z":
            pass


class Pool:
    """The connections to the server, as many as there may be, handed out in the order in which they were asked for."""

    def __init__(self, server: str, size: int) -> None:
        self._server, self._size = server, size
        self._idle: dict[tuple[str, str], list[Backend]] = {}
        self._used = 0
        self._queue: list[object] = []
        self._change = threading.Condition()

    def take(self, whose: tuple[str, str], client: socket.socket) -> Backend:
        place = object()
        with self._change:
            self._queue.append(place)
            while not (self._queue[0] is place and self._used < self._size):
                self._change.wait(0.02)
                if _has_left(client):
                    self._queue.remove(place)
                    self._change.notify_all()
                    raise Gone
            self._queue.remove(place)
            self._used += 1
            self._change.notify_all()
            idle = self._idle.get(whose)
            if idle:
                return idle.pop()
        try:
            return Backend(self._server, *whose)
        except BaseException:
            self._free()
            raise

    def back(self, whose: tuple[str, str], backend: Backend) -> None:
        with self._change:
            self._idle.setdefault(whose, []).append(backend)
        self._free()

    def lose(self, backend: Backend) -> None:
        backend.wire.end.close()
        self._free()

    def _free(self) -> None:
        with self._change:
            self._used -= 1
            self._change.notify_all()


class Client:
    """One client from its login on."""

    def __init__(self, pool: Pool, end: socket.socket, mode: str) -> None:
        self.wire = Wire(end)
        self._pool, self._mode = pool, mode
        self._backend: Backend | None = None
        self._words: dict[str, str] = {}
        self._whose = ("", "")
        self._is_idle = True

    def run(self) -> None:
        try:
            if not self._log_in():
                return
            while True:
                self._serve()
        except Gone:
            pass
        finally:
            if self._backend is not None:
                self._leave(self._backend)
            self.wire.close()

    def _log_in(self) -> bool:
        while True:
            size, code = struct.unpack("!II", self.wire.read(8))
            rest = self.wire.read(size - 8)
            if code not in (_SSL, _GSS):
                break
            self.wire.send(b"N")
        if code == _CANCEL:
            return False
        parts = rest.split(b"\0")
        self._words = {
            name.decode(): value.decode() for name, value in zip(parts[::2], parts[1::2], strict=False) if name
        }
        self._whose = (self._words["user"], self._words.get("database", self._words["user"]))
        backend = self._pool.take(self._whose, self.wire.end)
        self._pool.back(self._whose, backend)
        key = _message(b"K", struct.pack("!II", random.getrandbits(30), random.getrandbits(32)))
        self.wire.send(_message(b"R", struct.pack("!I", 0)) + backend.greeting + key + _message(b"Z", b"I"))
        return True

    def _serve(self) -> None:
        """Pass on what comes next from either side."""
        for wire in [self.wire] if self._backend is None else _ready(self.wire, self._backend.wire):
            sort, whole = wire.message()
            if wire is self.wire:
                self._to_server(sort, whole)
            else:
                self._to_client(sort, whole)

    def _to_server(self, sort: bytes, whole: bytes) -> None:
        if sort == b"X":
            raise Gone
        if self._backend is None:
            self._link()
        assert self._backend is not None
        self._is_idle = False
        self._backend.wire.send(whole)

    def _to_client(self, sort: bytes, whole: bytes) -> None:
        """In transaction mode the server is somebody else's as soon as it says that it is idle."""
        if sort == b"Z":
            self._is_idle = whole[5:] == b"I"
            if self._is_idle and self._mode == "transaction" and self._backend is not None:
                backend, self._backend = self._backend, None
                self._pool.back(self._whose, backend)
        self.wire.send(whole)

    def _link(self) -> None:
        self._backend = self._pool.take(self._whose, self.wire.end)
        for name in _TRACKED:
            if name in self._words:
                self._backend.say(f"SET {name} = '{self._words[name]}'")

    def _leave(self, backend: Backend) -> None:
        """In session mode a server connection that is idle is made as new; one in the middle of something is given up."""
        with contextlib.suppress(Gone):
            if self._is_idle:
                backend.say("DISCARD ALL")
                self._pool.back(self._whose, backend)
                return
        self._pool.lose(backend)


def _ready(*wires: Wire) -> list[Wire]:
    """Those of which something has come."""
    known = [wire for wire in wires if wire.has_more()]
    return known or [wire for wire in wires if wire.end in select.select([one.end for one in wires], [], [])[0]]


def _has_left(end: socket.socket) -> bool:
    try:
        return end.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _message(sort: bytes, body: bytes) -> bytes:
    return sort + struct.pack("!I", len(body) + 4) + body


def _startup(words: dict[str, str]) -> bytes:
    body = struct.pack("!I", 196608) + b"".join(f"{name}\0{value}\0".encode() for name, value in words.items()) + b"\0"
    return struct.pack("!I", len(body) + 4) + body


def serve(folder: str, server: str, mode: str, size: int) -> None:
    """Serve until the input ends."""
    pool, clients = Pool(server, size), set[Client]()

    def cut(*_: object) -> None:
        for client in list(clients):
            client.wire.close()

    signal.signal(signal.SIGUSR1, cut)
    door = socket.socket(socket.AF_UNIX)
    door.bind(f"{folder}/door")
    door.listen(64)
    os.rename(f"{folder}/door", f"{folder}/{NAME}")  # seen when it answers

    def attend(end: socket.socket) -> None:
        client = Client(pool, end, mode)
        clients.add(client)
        client.run()
        clients.discard(client)

    while True:
        for ready in select.select([door, sys.stdin], [], [])[0]:
            if ready is not door:
                return
            threading.Thread(target=attend, args=(door.accept()[0],), daemon=True).start()


class Pooler:
    """A pooler of a test's own."""

    def __init__(self, server: str, mode: str, size: int = 20) -> None:
        self.folder = tempfile.mkdtemp(prefix="taskyard-pooler-")  # short: a socket is in it
        words = [sys.executable, "-S", __file__, self.folder, server, mode, str(size)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE)
        end = time.monotonic() + 30
        while not os.path.exists(f"{self.folder}/{NAME}"):
            assert self._process.poll() is None
            assert time.monotonic() < end, "the pooler did not start"
            time.sleep(0.005)

    def url(self, url: str) -> str:
        """The URL of the same yard, by way of this pooler."""
        server = re.search("host=([^&]*)", url)
        assert server is not None
        return url.replace(server[1], quote(self.folder, safe="/"))

    def cut(self) -> None:
        """End all connections to clients; what the server is at goes on."""
        self._process.send_signal(signal.SIGUSR1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self.folder)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
