"""Ways to a Valkey server: TLS, and clusters, whose nodes send clients to one another."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

import taskyard
from taskyard.stores.postgres.valkey.server import Server, Trouble
from tests.conftest import wait_until
from tests.servers import valkey
from tests.valkey.waiting import Claimer

if TYPE_CHECKING:
    from collections.abc import Iterator

PEM = Path(__file__).parents[1] / "gateway" / "localhost.pem"


@contextlib.contextmanager
def encrypted(path: str) -> Iterator[int]:
    """A port on which this server is reached by TLS: the wheel's own is built without."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    door = context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)
    lines: list[socket.socket] = []

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        while True:
            try:
                near = door.accept()[0]
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(path)
            lines.extend((near, far))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=pass_on, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield door.getsockname()[1]
    finally:
        with contextlib.suppress(OSError):
            door.shutdown(socket.SHUT_RDWR)
        for line in (door, *lines):
            line.close()


def serves(url: str) -> None:
    """Whether a claim that waits is woken by a hint."""
    with taskyard.open(url, worker="ada") as yard, taskyard.open(url, worker="bob") as other:
        claimer = Claimer(other).asleep()
        id = yard.add("build").id
        assert claimer.got().task.id == id


def test_a_server_is_reached_by_tls(plain: str, server: valkey.Server) -> None:
    with encrypted(server.socket) as port:
        serves(f"{plain}&valkey={quote(f'rediss://localhost:{port}/0?ssl_ca_certs={PEM}', safe='')}")


def port_of_a_node() -> int:
    """A free port whose bus port is free too: before Redis 7 that is always ten thousand above."""
    while True:
        with socket.socket() as line, socket.socket() as bus:
            line.bind(("127.0.0.1", 0))
            port = int(line.getsockname()[1])
            with contextlib.suppress(OSError, OverflowError):
                bus.bind(("127.0.0.1", port + 10_000))
                return port


def test_a_node_that_was_named_and_is_gone_is_forgotten() -> None:
    port, gone = port_of_a_node(), port_of_a_node()
    with valkey.Server("--port", str(port), "--bind", "127.0.0.1"):
        server = Server(f"valkey://127.0.0.1:{port}", warns=False)
        assert server._follow_move([Exception(f"MOVED 1 127.0.0.1:{gone}")])
        with pytest.raises(Trouble):
            server.ask(("PING",))
        wait_until(lambda: not server.rests())
        assert server.ask(("PING",)) == [b"PONG"]
        server.close()


def test_in_a_cluster_the_node_that_has_the_project_is_found(plain: str) -> None:
    ports = [port_of_a_node(), port_of_a_node()]
    settings = [("--port", str(port), "--bind", "127.0.0.1", "--cluster-enabled", "yes") for port in ports]
    with valkey.Server(*settings[0]) as first, valkey.Server(*settings[1]) as second:
        with first.client() as client, second.client() as other:
            other.execute_command("CLUSTER", "ADDSLOTS", *range(16384))
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", ports[1])
            wait_until(lambda: "cluster_state:ok" in str(client.execute_command("CLUSTER", "INFO")))
        serves(f"{plain}&valkey={quote(f'valkey://127.0.0.1:{ports[0]}', safe='')}")
        with second.client() as client:
            keys: list[Any] = client.execute_command("KEYS", "*")
            assert any(key.endswith("generation") for key in keys), keys
