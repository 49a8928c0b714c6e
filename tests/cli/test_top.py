"""`top`: the yard at a glance, printed once, as JSON, and live on a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import taskyard
from taskyard.doors.cli.verbs.running.top import TopView, gathered
from tests.conftest import taken, wait_until

if TYPE_CHECKING:
    from pathlib import Path

_PAINT = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


def busy(path: Path) -> taskyard.Yard:
    yard = taskyard.init(path, worker="tester", durability="fast")
    yard.add_many({"kind": "build", "title": f"Part {n}", "mission": "house"} for n in range(5))
    taken(yard.claim(worker="bob")).done()
    taken(yard.claim(worker="bob")).fail("no compiler\x1b[31m", retry=False)
    taken(yard.claim(worker="ada")).heartbeat(progress=0.4)
    yard.pause("rest")
    return yard


def command(path: Path, *words: str, **more: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "taskyard", "--yard", str(path), *words], **more)


def test_without_a_terminal_it_is_printed_once(tmp_path: Path) -> None:
    with busy(tmp_path / "yard"):
        process = command(tmp_path / "yard", "top", stdout=subprocess.PIPE)
        text = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 0
    assert "todo 2" in text
    assert "1/min" in text
    assert "1 failed for good" in text
    assert "paused: rest" in text
    assert re.search(r"ada .* build 40% Part 2", text)
    assert re.search(r"bob .* idle", text)
    assert "1 of 5  house" in text
    assert "no compiler" in text
    assert "\x1b" not in text, "what a worker wrote steers no terminal"


def test_it_is_drawn_on_a_terminal_until_q(tmp_path: Path) -> None:
    with busy(tmp_path / "yard") as yard:
        outer, inner = pty.openpty()
        os.set_blocking(outer, False)
        process = command(
            tmp_path / "yard", "top", stdin=inner, stdout=inner, stderr=inner, env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
        )  # fmt: skip
        seen = bytearray()

        def shows(text: str) -> bool:
            try:
                seen.extend(os.read(outer, 1 << 16))
            except BlockingIOError:
                pass
            return text.encode() in _PAINT.sub(b"", bytes(seen))

        wait_until(lambda: shows("Part 2"), 60)
        yard.add("later", title="One more")
        taken(yard.claim(kinds="later", worker="eve"))
        wait_until(lambda: shows("One more"), 60)
        os.write(outer, b"q")
        wait_until(lambda: shows("") and process.poll() is not None, 60)
        assert process.returncode == 0
        os.close(outer)
        os.close(inner)


def test_a_picture_fits_every_screen(tmp_path: Path) -> None:
    with busy(tmp_path / "yard") as yard:
        view = TopView(yard.label)
        for size in ((20, 5), (80, 24), (200, 60)):
            assert len(view.frame((), "the end", size, 0.0)) == size[1]
        view.found = gathered(yard)
        for width, height in ((40, 6), (80, 24), (200, 60)):
            frame = view.frame((), "the end", (width, height), 0.0)
            assert len(frame) == height
            assert all(len(_PAINT.sub(b"", line.encode()).decode()) < width for line in frame)


def test_the_counts_and_rates_are_whole_at_80_columns(tmp_path: Path) -> None:
    with busy(tmp_path / "yard") as yard:
        view = TopView(yard.label)
        view.found = gathered(yard)
        few = view.frame((), "the end", (80, 24), 0.0)[1]
        assert _PAINT.sub(b"", few.encode()).decode().endswith("1/min, 1/hour")
        view.found["overview"]["counts"].update(todo=1_234_567, done=12_345_678)
        many = _PAINT.sub(b"", view.frame((), "the end", (80, 24), 0.0)[1].encode()).decode()
        assert many.endswith("1/min, 1/hour")
        assert "todo 1234567" in many
