"""Measure a gateway with many agents that wait while tasks flow: hand-out latency, memory and processor, beside a bare endpoint."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bench.yards import environment, filled, say

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

AGENTS = int(os.environ.get("TASKYARD_BENCH_AGENTS", "1000"))
RATE = 200  # tasks a second
SECONDS = float(os.environ.get("TASKYARD_BENCH_GATEWAY", "10"))
_PATIENCE = 60.0  # seconds for whatever is late
_TICKS = os.sysconf("SC_CLK_TCK")
PRODUCER = """
import sys, time, taskyard
rate, number = float(sys.argv[2]), int(sys.argv[3])
with taskyard.open(sys.argv[1], worker="producer", durability="fast") as yard:
    begin = time.monotonic()
    for at in range(number):
        time.sleep(max(0.0, begin + at / rate - time.monotonic()))
        yard.add("build", time.time())
    print(number / (time.monotonic() - begin))
"""
BARE = """
import json, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
async def echo(request):
    return JSONResponse({"ok": True, "data": await request.json()})
app = Starlette(routes=[Route("/", echo, methods=["POST"])])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning", backlog=4096)
"""


def report(folder: str) -> None:
    """Print what agents that wait cost, and how soon they get their tasks."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # a connection for each agent, at both ends
    print(f"A gateway, {AGENTS:,} agents that wait, {RATE} tasks a second for {SECONDS:g} s, files in memory:")
    with in_memory(folder) as place:
        path = f"{place}/yard"
        filled(path, 0).close()
        with started("-m", "taskyard", "--yard", path, "serve", "--port") as (server, port):
            asyncio.run(_crowd(server, port, path))
    with started("-c", BARE) as (server, port):
        asyncio.run(_bare(server, port))


@contextmanager
def in_memory(folder: str) -> Iterator[str]:
    place = tempfile.mkdtemp(prefix="taskyard-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else folder)
    try:
        yield place
    finally:
        shutil.rmtree(place)


@contextmanager
def started(*words: str) -> Iterator[tuple[Process, int]]:
    """Yield a server that answers, and its port; the last word of its command is the port."""
    with socket.create_server(("127.0.0.1", 0)) as line:
        port = int(line.getsockname()[1])
    with subprocess.Popen([sys.executable, *words, str(port)], stderr=subprocess.DEVNULL, env=environment()) as server:
        try:
            end = time.monotonic() + _PATIENCE
            while time.monotonic() < end:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
            yield Process(server.pid), port
        finally:
            server.kill()


class Process:
    """What a server costs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self._at, self._spent = time.monotonic(), self._cpu()

    def spent(self) -> float:
        """Return the processor seconds that all its threads used."""
        return self._cpu() - self._spent

    def share(self) -> float:
        """Return the share of one core that all its threads used."""
        return self.spent() / (time.monotonic() - self._at)

    def _cpu(self) -> float:
        with open(f"/proc/{self._pid}/stat", encoding="ascii") as file:
            return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / _TICKS

    def memory(self) -> str:
        """Return its resident memory."""
        with open(f"/proc/{self._pid}/status", encoding="ascii") as file:
            return f"{next(int(line.split()[1]) for line in file if line.startswith('VmRSS')) / 1024:.0f} MB"


class Connection:
    """One agent's connection: plain, so that a thousand of them cost this process little."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
        self._reader = reader
        self._writer = writer
        self._head = head

    async def post(self, path: str, value: Any) -> Any:
        """Return the answer to one request."""
        body = json.dumps(value).encode()
        self._writer.write(f"POST {path}{self._head}content-length: {len(body)}\r\n\r\n".encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer = json.loads(await self._reader.readexactly(size))
        assert answer["ok"], answer
        return answer["data"]

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


async def connected(port: int, number: int = AGENTS) -> list[Connection]:
    """Return a connection for each of so many agents, under a name of its own."""
    agents = []
    for at in range(number):
        head = (
            f" HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ntaskyard-worker: agent{at}\r\ncontent-type: application/json\r\n"
        )
        agents.append(Connection(*await asyncio.open_connection("127.0.0.1", port), head))
    return agents


async def _crowd(server: Process, port: int, path: str) -> None:
    say("the gateway alone", server.memory())
    agents = await connected(port)
    wanted, late = int(RATE * SECONDS), list[float]()
    tasks = [asyncio.create_task(work(agent, late)) for agent in agents]
    await until(lambda: _all_wait(port))
    server.begin()
    await asyncio.sleep(SECONDS / 2)
    say("with all agents waiting for nothing, of a core", f"{server.share():.1%}, {server.memory()}")
    server.begin()
    producer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PRODUCER, path, str(RATE), str(wanted), stdout=subprocess.PIPE, env=environment()
    )
    rate = float((await producer.communicate())[0])
    await until(lambda: _counted(late, wanted))
    say(f"while {rate:.0f} tasks a second flow, of a core", f"{server.share():.1%}, {server.memory()}")
    _say_times("from the call of add to the agent that has it", late)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for agent in agents:
        agent.close()


async def work(agent: Connection, late: list[float]) -> None:
    """Claim and end tasks for ever, and note how late each came."""
    while True:
        claim = (await agent.post("/v1/claims", {"kinds": ["build"], "wait": 20}))["claim"]
        if claim is not None:
            late.append(time.time() - claim["task"]["data"])
            await agent.post(f"/v1/claims/{claim['claim']}/done", {})


async def _all_wait(port: int) -> bool:
    """Whether all agents wait, as the gateway's metrics say."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    return f"taskyard_gateway_waiting_claims {AGENTS}\n" in text


async def _counted(late: list[float], wanted: int) -> bool:
    return len(late) >= wanted


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it is true."""
    async with asyncio.timeout(_PATIENCE):
        while not await true():
            await asyncio.sleep(0.1)


async def _bare(server: Process, port: int) -> None:
    """As many requests as claims and dones, over as many connections."""
    agents = await connected(port)
    server.begin()
    times: list[float] = []

    async def ask(agent: Connection, at: float) -> None:
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        begin = time.monotonic()
        await agent.post("/", {"n": 1})
        times.append(time.monotonic() - begin)

    number, rate, begin = int(2 * RATE * SECONDS), 2 * RATE, time.monotonic()
    for first in range(0, number, AGENTS):  # one request of a connection at a time
        turn = range(first, min(number, first + AGENTS))
        await asyncio.gather(*(ask(agents[at - first], begin + at / rate) for at in turn))
    say(f"a bare Starlette endpoint, {rate} requests a second", f"{server.share():.1%}, {server.memory()}")
    _say_times("one request of that", times)
    for agent in agents:
        agent.close()


def _say_times(label: str, times: list[float]) -> None:
    times.sort()
    half, most = times[len(times) // 2], times[len(times) * 99 // 100]
    say(f"{label}, p50, p99", f"{half * 1e3:.1f} ms, {most * 1e3:.1f} ms")
