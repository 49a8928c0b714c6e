"""Boards that are open while tasks flow: what they cost agents that wait for tasks, and how smooth the page stays."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from bench import gateway
from bench.yards import environment, filled, say

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BOARDS = 20
AGENTS = 50
SECONDS = float(os.environ.get("TASKYARD_BENCH_BOARDS", "8"))  # of one scene
ROUNDS = 3
_LEAST = 1.0  # seconds between two looks of one page, as `app.js` has it
PAGES = (
    ("v1/lanes?limit=20", "v1/overview"),
    ("v1/overview",),
    ("v1/lanes?limit=20&kind=build", "v1/overview"),
    ("v1/agents",),
    ("v1/series",),
    (),  # the page of events lives by the stream alone
    ("v1/lanes?limit=100&state=done", "v1/overview"),
    ("v1/missions",),
)
"""What the pages ask for when something has happened."""
SCENES = {
    "no board": (0, False),
    f"{BOARDS} boards": (BOARDS, False),
    f"{BOARDS} boards, one in Chromium": (BOARDS - 1, True),
}
FRAMES = """() => {
  window.frames_ = []; window.long_ = [];
  new PerformanceObserver(list => list.getEntries().forEach(entry => window.long_.push(entry.duration)))
    .observe({type: "longtask"});
  let last = performance.now();
  const next = now => { window.frames_.push(now - last); last = now; requestAnimationFrame(next); };
  requestAnimationFrame(next);
}"""


def report(folder: str) -> None:
    """Print the hand-out latency with and without boards, and the frames of a board in a real browser."""
    print(
        f"{BOARDS} boards open while {gateway.RATE} tasks a second flow to {AGENTS} agents that wait, scenes of {SECONDS:g} s, {ROUNDS} rounds:"
    )
    with gateway.in_memory(folder) as place:
        path = f"{place}/yard"
        filled(path, 0).close()
        with gateway.started("-m", "taskyard", "--yard", path, "serve", "--port") as (server, port):
            asyncio.run(_measured(server, port, path))


async def _measured(server: gateway.Process, port: int, path: str) -> None:
    late: dict[str, list[float]] = {name: [] for name in SCENES}
    cost: dict[str, list[float]] = {name: [] for name in SCENES}
    frames: list[dict[str, Any]] = []
    order = [*SCENES]
    for _ in range(ROUNDS):  # in turn, and each scene as often first: the machine's load changes, and the yard fills
        order.append(order.pop(0))
        for name in order:
            boards, browser = SCENES[name]
            async with _open(port, boards, browser, frames):
                server.begin()
                late[name] += await _flow(port, path)
                cost[name].append(server.spent())
    alone = {share: _quantile(late["no board"], share) for share in (0.5, 0.95, 0.99)}
    for name, times in late.items():
        found = {share: _quantile(times, share) for share in alone}
        text = ", ".join(f"{value * 1e3:.1f} ({value / alone[share]:.2f})" for share, value in found.items())
        say(f"{name}: p50, p95, p99 in ms (times those of no board)", text)
        say(f"{name}: the gateway, processor ms for each task", f"{sum(cost[name]) / len(times) * 1e3:.2f}")
    intervals = [value for one in frames for value in one["frames"]]
    long = [value for one in frames for value in one["long"]]
    say("Chromium: frames a second", f"{1000 / statistics.fmean(intervals):.0f}")
    say("Chromium: frame time p50, p95, p99", ", ".join(f"{_quantile(intervals, share):.0f} ms" for share in alone))
    say("Chromium: tasks of over 50 ms, the longest", f"{len(long)}, {max(long, default=0):.0f} ms")


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def _flow(port: int, path: str) -> list[float]:
    """Have tasks flow for one scene, and return how late each came to its agent."""
    agents, late = await gateway.connected(port, AGENTS), list[float]()
    tasks = [asyncio.create_task(gateway.work(agent, late)) for agent in agents]
    wanted = int(gateway.RATE * SECONDS)
    words = (sys.executable, "-c", gateway.PRODUCER, path, str(gateway.RATE), str(wanted))
    producer = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE, env=environment())
    await producer.communicate()

    async def all_came() -> bool:
        return len(late) >= wanted

    await gateway.until(all_came)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for agent in agents:
        agent.close()
    return late


@contextlib.asynccontextmanager
async def _open(port: int, boards: int, browser: bool, frames: list[dict[str, Any]]) -> AsyncIterator[None]:
    """Hold boards open, in a process of their own: what they cost here must not delay the agents."""
    if not boards:
        yield
        return
    words = (sys.executable, "-m", "bench.boards", str(port), str(boards), str(int(browser)))
    process = await asyncio.create_subprocess_exec(
        *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    )
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        yield
    finally:
        process.stdin.close()
        told = json.loads(await process.stdout.read())
        await process.wait()
        if browser:
            frames.append(told)


async def _hold(port: int, boards: int, browser: bool) -> None:
    """Hold boards open until the standard input ends; then print what the browser has measured."""
    tasks = [asyncio.create_task(_board(port, PAGES[at % len(PAGES)])) for at in range(boards)]
    end = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    told: dict[str, Any] = {}
    if browser:
        from playwright.async_api import async_playwright

        from tests.gateway.board.conftest import FLAGS, executable

        async with async_playwright() as playwright:
            chromium = await playwright.chromium.launch(executable_path=executable(), args=list(FLAGS))
            page = await chromium.new_page(viewport={"width": 1440, "height": 900})
            await page.goto(f"http://127.0.0.1:{port}/default/board/#/board")
            await page.locator("[data-lane]").first.wait_for()
            await page.evaluate(FRAMES)
            print("open", flush=True)
            await end
            told = await page.evaluate("({frames: window.frames_, long: window.long_})")
            await chromium.close()
    else:
        await asyncio.sleep(0.5)
        print("open", flush=True)
        await end
    assert not [task for task in tasks if task.done()], "a board was cut off"
    for task in tasks:
        task.cancel()
    print(json.dumps(told), flush=True)


async def _board(port: int, paths: tuple[str, ...]) -> None:
    """Do what a page does: follow the stream, and after a tick ask again, at most once a second."""
    head = f" HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ntaskyard-board: 1\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    asks = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    writer.write(f"GET /default/board/stream{head}".encode())
    looked, looking = 0.0, None
    while line := await reader.readline():
        now = asyncio.get_running_loop().time()
        if line.startswith(b"event: tick") and now - looked >= _LEAST and (looking is None or looking.done()):
            looked, looking = now, asyncio.create_task(_look(*asks, paths, head))


async def _look(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, paths: tuple[str, ...], head: str) -> None:
    for path in paths:
        writer.write(f"GET /default/board/{path}{head}".encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert answer.startswith(b"http/1.1 200"), answer
        await reader.readexactly(int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0]))


if __name__ == "__main__":
    asyncio.run(_hold(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1"))
