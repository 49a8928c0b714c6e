"""The client may be killed before whatever it does to the disk: then one sweep, and all is as before or as after."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.stores.directory.recovery import crashes
from tests.conftest import taken
from tests.directory.stories import check_log, check_nothing_is_stuck, check_places
from tests.processes import tools
from tests.sh import shells

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Yard

pytestmark = pytest.mark.proof

# Statements that read or change the disk, at the beginning of a line; what stands before them must be a whole statement.
TOUCHES = re.compile(
    r"\s+(\{ printf|printf .*>|_ty_error=\$\((mv|ln|mkdir|touch)|rm -f|rmdir|mkdir|touch|sync |out=\$\(stat|for \w+ in \"\$_ty|"
    r"\{ read|\{ \{ _ty_shift|\[ ?! -d|\[ -[ef]|\(_ty_pulse|_ty_wait_for|_ty_sync)"
)
GOES_ON = re.compile(r"(\\|&&|\|\||\||\(|;;|\bin)$")
DIES = """
_ty_dies_in=${DIES_IN:-0}
_ty_die() {
    _ty_dies_in=$((_ty_dies_in - 1))
    [ $_ty_dies_in -ne 0 ] || kill -s KILL $$
}
"""
LEASE = 0.05
FULL = '{"r": 1}'


def mortal(folder: Path) -> Path:
    """A copy of the client that dies before the so-manieth statement that touches the disk."""
    out: list[str] = []
    quoted, points = False, 0
    for line in shells.CLIENT.read_text(encoding="utf-8").splitlines():
        previous = next((before for before in reversed(out) if before.strip()), "")
        if not quoted and TOUCHES.match(line) and not GOES_ON.search(previous.split(" #")[0]):
            out.append("_ty_die")
            points += 1
        out.append(line)
        quoted = (quoted or (line.endswith("'") and "awk" in line)) and not line.lstrip().startswith("}'")
        if line == "_ty_early=":
            out.extend(DIES.splitlines())
    assert points > 40
    copy = folder / "taskyard.sh"
    copy.write_text("\n".join(out) + "\n", encoding="utf-8")
    return copy


class Scene:
    """One verb: a yard made ready for it, its words, and what must hold if it was answered."""

    def __init__(
        self, ready: Callable[[Yard], str], words: Callable[[str], list[str]], holds: Callable[[Yard, str, str], bool]
    ) -> None:
        self.ready = ready
        self.words = words
        self.holds = holds


def held(yard: Yard) -> str:
    yard.add("k", {"n": 1})
    return taken(yard.claim(lease=60)).handle


def needed(yard: Yard) -> str:
    first = yard.add("k")
    yard.add("k", after=[first.id])
    yard.add("k", after=[first.id], delay=60)
    return taken(yard.claim(first.id, lease=60)).handle


def lapsed(yard: Yard) -> str:
    yard.add("k")
    handle = taken(yard.claim(lease=LEASE)).handle
    yard.add("k", delay=LEASE)
    time.sleep(2 * LEASE)  # over, and due, by any clock
    return handle


def dropped(yard: Yard, task: dict[str, object]) -> str:
    Path(yard.url, "todo", "order.json").write_text(json.dumps(task))
    return ""


def state(yard: Yard, handle: str) -> str:
    return yard.get(handle.split(".", maxsplit=1)[0]).state


SCENES = {
    "add": Scene(lambda y: "", lambda _: ["add_task", "k"], lambda y, _, out: y.get(out.strip()).state == "todo"),
    "claim": Scene(lambda y: y.add("k").id, lambda _: ["claim_task"], lambda y, id, out: y.get(id).state == "processing"),
    "done": Scene(held, lambda handle: ["complete_task", handle], lambda y, handle, _: state(y, handle) == "done"),
    "done with a result": Scene(
        held,
        lambda handle: ["complete_task", handle, "-"],
        lambda y, handle, _: y.get(handle.split(".")[0]).result == {"r": 1},
    ),
    "done with followers": Scene(
        needed,
        lambda handle: ["complete_task", handle],
        lambda y, _, out: (y.counts()["todo"], y.counts()["waiting"]) == (1, 1),
    ),
    "fail": Scene(held, lambda handle: ["fail_task", handle, "why"], lambda y, handle, _: state(y, handle) == "waiting"),
    "release": Scene(held, lambda handle: ["release_task", handle], lambda y, handle, _: state(y, handle) == "todo"),
    "heartbeat": Scene(held, lambda handle: ["heartbeat", handle], lambda y, handle, _: state(y, handle) == "processing"),
    "note": Scene(
        held,
        lambda handle: ["note_task", handle, "hello"],
        lambda y, handle, _: y.report(handle.split(".")[0]).notes[0]["text"] == "hello",
    ),
    "reap and wake": Scene(lapsed, lambda _: ["reap_stale"], lambda y, handle, _: y.counts()["todo"] == 2),
    "take in": Scene(
        lambda y: dropped(y, {"kind": "k", "n": 1}),
        lambda _: ["reap_stale"],
        lambda y, _, out: y.counts()["todo"] == 1 and out.startswith("taken in "),
    ),
    "take in with a key": Scene(
        lambda y: dropped(y, {"kind": "k", "taskId": "t", "n": 1}),
        lambda _: ["reap_stale"],
        lambda y, _, out: y.counts()["todo"] == 1 and out.startswith("taken in "),
    ),
    "the loop": Scene(
        lambda y: y.add("k").id,
        lambda _: ["process_loop", "--once", "sh", "-c", 'cp "$1" "$TASKYARD_WORKDIR/result.json"', "sh", "/dev/stdin"],
        lambda y, id, _: y.get(id).state == "done",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "durability"), [("dash", "durable"), ("busybox", "fast")])
@pytest.mark.parametrize("scene", SCENES)
def test_a_kill_anywhere_leaves_nothing_for_anybody_to_repair(
    scene: str, name: str, durability: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, client = SCENES[scene], mortal(tmp_path)
    template = str(tmp_path / "template")
    with taskyard.init(template, worker="ada", durability=durability) as yard:
        ready = shown.ready(yard)
    before = check_places(template)
    died, fatal = True, 0
    while died:
        fatal += 1
        url = str(tmp_path / str(fatal))
        subprocess.run(["cp", "-a", template, url], check=True)
        if scene == "reap and wake":
            time.sleep(2 * LEASE)  # a copy begins the lease anew
        sh = shells.shell(name, tmp_path, url)
        ran = subprocess.run(
            [*sh.words, str(client), *shown.words(ready)],
            input=FULL,
            text=True,
            capture_output=True,
            env=sh.environment({"AGENT_ID": "ada", "DIES_IN": str(fatal)}),
            check=False,
            timeout=tools.PATIENCE,
        )
        died = ran.returncode == -9
        assert died or ran.returncode == 0, ran
        with taskyard.open(url, worker="other") as yard:
            yard.sweep()
            assert set(before) <= set(check_places(url)), f"a task is gone after a kill at {fatal}"
            check_log(yard)
            check_nothing_is_stuck(yard)
            if not died:
                assert shown.holds(yard, ready, ran.stdout), ran
            with monkeypatch.context() as patience:
                patience.setattr(crashes, "PATIENCE", -1)  # ten minutes later
                yard.sweep()
                yard.sweep()  # what the first has put to use again, a marker say, is as young as that
            assert set(os.listdir(f"{url}/tmp")) <= {"clock"}, f"after a kill at {fatal} of {ran.args}"
            if scene.startswith("take in"):
                assert [yard.get(task.id).data["n"] for task in yard.find()] == [1], f"one task after a kill at {fatal}"
                assert yard.set_aside() == []
                check_log(yard)
            assert not [entry for entry in os.listdir(f"{url}/writers") if entry.endswith((".sh", ".look"))]
            shutil.rmtree(url, ignore_errors=True)  # a child of the killed shell may still be ending
    print(f"{scene}, {name}: killed at each of {fatal - 1} places")  # noqa: T201  for whoever runs it with -s
    assert fatal > 4


@pytest.mark.parametrize("name", shells.NAMES)
def test_an_event_that_is_still_to_come_is_not_logged_for_the_living(name: str, tmp_path: Path) -> None:
    """The client stands still between its move and its event, and a janitor comes by."""
    url = str(tmp_path / "yard")
    with taskyard.init(url, worker="ada") as yard:
        task = yard.add("k")
        sh = shells.shell(name, tmp_path, url)
        shim = tmp_path / "shims"
        shim.mkdir()
        real = shutil.which("mv", path=sh.path)
        (shim / "mv").write_text(f'#!/bin/sh\n"{real}" "$@"\ntouch "{tmp_path}/moved"\nread -r _ <"{tmp_path}/go"\n')
        (shim / "mv").chmod(0o755)
        os.mkfifo(tmp_path / "go")
        process = subprocess.Popen(
            [*sh.words, str(shells.CLIENT), "claim_task"],
            env=sh.environment({"PATH": f"{shim}:{sh.path}"}),
            stdout=subprocess.PIPE,
        )
        deadline = time.monotonic() + tools.PATIENCE
        while not (tmp_path / "moved").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yard.sweep()
        assert [event["event"] for event in yard.events(task=task.id)] == ["added"]
        (tmp_path / "go").write_text("\n")
        assert process.communicate()[0].startswith(task.id.encode())
        yard.sweep()
        assert [event["event"] for event in yard.events(task=task.id)] == ["added", "claimed"]
        check_log(yard)
