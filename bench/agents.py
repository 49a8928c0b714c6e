"""Measure what an agent pays: the start and the memory of an MCP server beside an empty interpreter and one of the SDK; and `prime`."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import taskyard
from bench.yards import environment, filled, process, say
from tests.servers.postgres import Server

ROUNDS = 20
BACKLOG = 100_000
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
_ASK = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": _META}}).encode() + b"\n"
EMPTY = "import sys; sys.stdin.readline(); sys.stdout.write('{}\\n'); sys.stdout.flush(); sys.stdin.read()"
SDK = """
from mcp.server import MCPServer
server = MCPServer("peer")
@server.tool()
def claim(kind: str | None = None) -> str:
    return ""
server.run()
"""


def report(folder: str) -> None:
    yard = filled(f"{folder}/yard", BACKLOG, kinds=3)
    print("An MCP server over stdio, from its start to its first answer, and its resident memory then:")
    for label, words in (
        ("an empty interpreter that answers one line", ["-c", EMPTY]),
        ("taskyard mcp", ["-m", "taskyard", "mcp", "--yard", yard.url]),
        ("a server of the SDK with one tool", ["-c", SDK]),
    ):
        times, sizes = zip(*(_started(words) for _ in range(ROUNDS)), strict=True)
        say(label, f"{min(times) * 1000:.0f} ms, {min(sizes) / 1024:.1f} MB")
    print(f"`taskyard prime` on a yard with {BACKLOG:,} tasks, as whole processes, the best of {ROUNDS}:")
    say("python -c pass", f"{process('-c', 'pass', rounds=ROUNDS) * 1000:.0f} ms")
    _prime("a directory, all tasks ready", yard.url)
    late = taskyard.init(f"{folder}/late", worker="bench", durability="fast")
    _fill(late, delay=3600)
    _prime("a directory, all tasks due later", late.url)
    with Server() as server:
        url = f"postgresql://taskyard@/postgres?host={server.folder}&project=bench"
        with taskyard.init(url, worker="bench") as database:
            _fill(database)
        _prime("PostgreSQL, all tasks ready", url)


def _fill(yard: taskyard.Yard, **options: int) -> None:
    for start in range(0, BACKLOG, 10_000):
        numbers = range(start, start + 10_000)
        yard.add_many([{"kind": f"kind{number % 3}", **options} for number in numbers])


def _prime(label: str, url: str) -> None:
    say(label, f"{process('-m', 'taskyard', '--yard', url, 'prime', rounds=ROUNDS) * 1000:.0f} ms")


def _started(words: list[str]) -> tuple[float, int]:
    """Seconds to the first answer, and resident memory in KiB."""
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(_ASK)
        server.stdin.flush()
        assert server.stdout.readline()
        took = time.perf_counter() - begin
        with open(f"/proc/{server.pid}/status", encoding="ascii") as status:
            size = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        server.stdin.close()
        server.wait()
    return took, size
