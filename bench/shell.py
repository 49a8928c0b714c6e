"""Measure a claim and a done of the shell client, in units of the two bare `mv`s that they are made of."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from pathlib import Path

import taskyard
from bench.yards import filled, say
from taskyard.doors.cli.verbs.running.sh import client

TASKS = 200
ROUNDS = 7
LOOP = """
. "$1"
n=0
while [ $n -lt "$2" ]; do
    claim_task >/dev/null
    complete_task "$TASK_HANDLE"
    n=$((n + 1))
done
"""
# The same for longer tasks: the client reuses a reading of the yard's time for one minute, so here each call takes its own.
LONG = LOOP.replace("    claim_task", "    _ty_looked=\n    claim_task").replace(
    "    complete_task", "    _ty_looked=\n    complete_task"
)
BARE = """
n=0
for file in "$1"/todo/*; do
    mv -fT -- "$file" "$1/processing/${file##*/}"
    mv -fT -- "$1/processing/${file##*/}" "$1/done/${file##*/}"
done
"""
ONE_SHOT = """
n=0
while [ $n -lt "$2" ]; do
    handle=$("$0" "$1" claim_task)
    "$0" "$1" complete_task "${handle%%\t*}"
    n=$((n + 1))
done
"""


def report(folder: str) -> None:
    print(
        f"The shell client, {TASKS} claims and dones in `fast`, best of {ROUNDS}: processor time (user + system), and that in units of the bare `mv`s:"
    )
    program = Path(folder, "taskyard.sh")
    program.write_text(client(), encoding="utf-8")
    for label, words, path in _shells(folder):
        environment = {**os.environ, "PATH": path, "TASKYARD": f"{folder}/yard", "TASKYARD_WORKER": "bench"}
        ours, long, bare = [], [], []
        for _ in range(ROUNDS):
            bare.append(_bare(folder, words, environment))
            ours.append(_ours(folder, [*words, "-c", LOOP, "loop", str(program), str(TASKS)], environment))
            long.append(_ours(folder, [*words, "-c", LONG, "loop", str(program), str(TASKS)], environment))
        each = [*words, "-c", ONE_SHOT, *words, str(program), str(TASKS)]
        one_shot = [_ours(folder, each, environment) for _ in range(4)]
        say(f"{label}: mv + mv", f"{min(bare) * 1e3:.2f} ms")
        for what, times in (
            ("sourced: claim_task + complete_task", ours),
            ("the same, a minute apart", long),
            ("a process for each of the two", one_shot),
        ):
            say(f"{label}, {what}", f"{min(times) * 1e3:.2f} ms = {min(times) / min(bare):.2f}")


def _shells(folder: str) -> list[tuple[str, list[str], str]]:
    """Return the name, the command and the PATH of each shell; busybox has its own tools."""
    shells = []
    if dash := shutil.which("dash"):
        shells.append(("dash", [dash], os.environ["PATH"]))
    if busybox := shutil.which("busybox"):
        tools = Path(folder, "tools")
        tools.mkdir()
        for name in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
            (tools / name).symlink_to(busybox)
        shells.append(("busybox", [str(tools / "sh")], str(tools)))
    return shells


def _ours(folder: str, command: list[str], environment: dict[str, str]) -> float:
    shutil.rmtree(f"{folder}/yard", ignore_errors=True)
    filled(f"{folder}/yard", TASKS).close()
    seconds = _timed(command, environment)
    with taskyard.open(f"{folder}/yard") as yard:
        assert yard.counts()["done"] == TASKS
    return seconds


def _bare(folder: str, words: list[str], environment: dict[str, str]) -> float:
    place = Path(folder, "bare")
    shutil.rmtree(place, ignore_errors=True)
    for part in ("todo", "processing", "done"):
        (place / part).mkdir(parents=True)
    for number in range(TASKS):
        (place / "todo" / f"{number:021d}.0.e0.c0.json").touch()
    return _timed([*words, "-c", BARE, "bare", str(place)], environment)


def _timed(command: list[str], environment: dict[str, str]) -> float:
    """Return the processor seconds for each task, of the shell and its children; other load does not count in them."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / TASKS
