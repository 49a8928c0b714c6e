"""Check several processes at once: who gets a file, who makes a name, whose lines arrive, and who sees a lock."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys

from taskyard.core.diagnosis import Finding, green, refuse, warn
from taskyard.stores.directory.doctor import racer
from taskyard.stores.directory.doctor.inspection import ELSEWHERE
from taskyard.stores.directory.filesystem import errors, safety

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from taskyard.stores.directory.doctor.directory import ProbeFolder

_TIMEOUT = 120.0  # seconds for the slowest race: a file server may take milliseconds for each call
_TWICE = "two workers would get one task"


def race(probes: ProbeFolder, processes: int) -> Iterator[Finding]:
    """Start `processes` processes that race for files and names, and check what each has won."""
    try:
        folder = _prepared(probes)
        got = _run(folder, processes)
        yield _renamed(folder, got)
        yield _created(folder, got)
        yield _appended(probes, folder, processes)
    except OSError as error:
        yield refuse(
            "race", f"it could not be tried: {error.strerror or error}", errors.hint(error), processes=processes
        )
    except ValueError:
        hint = "try again when the machine and the file server are less busy"
        yield refuse("race", "a process that raced has ended in error, or to no end", hint, processes=processes)


def _prepared(probes: ProbeFolder) -> str:
    """Make the folder of the race, with the files to race for."""
    folder = probes.folder("race")
    for name in (racer.POOL, racer.WON, racer.MADE, racer.LINKED):
        probes.folder("race", name)
    for count in range(racer.RENAMES):
        probes.file("race", racer.POOL, str(count), content=str(count).encode())
    return folder


def _run(folder: str, processes: int) -> list[dict[str, list[int]]]:
    runners = [_start("race", folder, number) for number in range(processes)]
    try:
        for runner in runners:
            _received(runner)
        for runner in runners:
            assert runner.stdin is not None
            runner.stdin.write("\n")
            runner.stdin.flush()
        return [_received(runner) for runner in runners]
    finally:
        for runner in runners:
            _end(runner)


def _renamed(folder: str, got: list[dict[str, list[int]]]) -> Finding:
    """Check that every file has one winner, and is only where that winner has moved it."""
    wins = [entry[racer.WON] for entry in got]
    winners: dict[int, list[int]] = {}
    for number, mine in enumerate(wins):
        for count in mine:
            winners.setdefault(count, []).append(number)
    twice = [count for count, some in winners.items() if len(some) > 1]
    there = {f"{count}.{some[0]}" for count, some in winners.items()}
    listed = os.listdir(os.path.join(folder, racer.WON))
    measured: dict[str, Any] = {
        "processes": len(got),
        "files": racer.RENAMES,
        "won": [len(mine) for mine in wins],
        "won_twice": len(twice),
        "lost": racer.RENAMES - len(winners),
    }
    if twice:
        reason = f"{len(twice)} of {racer.RENAMES} files were won by two of {len(got)} processes: {_TWICE}"
        return refuse("race", reason, ELSEWHERE, **measured)
    if set(listed) != there or len(listed) != racer.RENAMES or os.listdir(os.path.join(folder, racer.POOL)):
        reason = f"{racer.RENAMES} files were raced for, {len(winners)} were won, and {len(listed)} are listed"
        return refuse("race", f"{reason}: tasks would be lost, or seen where they are not", ELSEWHERE, **measured)
    spread = ", ".join(str(len(mine)) for mine in wins)
    return green("race", f"{len(got)} processes, {racer.RENAMES} files, each won once ({spread})", **measured)


def _created(folder: str, got: list[dict[str, list[int]]]) -> Finding:
    """Check that one process made each name, by an exclusive create and by a link."""
    measured = {}
    for way, call in ((racer.MADE, "O_EXCL"), (racer.LINKED, "link")):
        made = [count for entry in got for count in entry[way]]
        measured[way] = len(made)
        if len(made) != len(set(made)):
            reason = f"{len(made) - len(set(made))} of {racer.NAMES} names were made twice by {call}"
            return refuse("exclusive", f"{reason}: what one has written another would overwrite", ELSEWHERE, **measured)
    listed = len(os.listdir(os.path.join(folder, racer.MADE)))
    if measured[racer.MADE] != racer.NAMES or listed != racer.NAMES:
        reason = f"of {racer.NAMES} new names {measured[racer.MADE]} were made, and {listed} are listed"
        return refuse("exclusive", reason, ELSEWHERE, **measured)
    ways = "O_EXCL and by link" if measured[racer.LINKED] else "O_EXCL"
    return green("exclusive", f"{racer.NAMES} names, each made once by {ways}", names=racer.NAMES, **measured)


def _appended(probes: ProbeFolder, folder: str, processes: int) -> Finding:
    """Check that every appended line is complete."""
    with open(os.path.join(folder, racer.LOG), "rb") as file:
        lines = file.read().split(b"\n")[:-1]
    wanted = {f"{number} {count} {'.' * 80}".encode() for number in range(processes) for count in range(racer.LINES)}
    lost = len(wanted - set(lines))
    measured = {"lines": len(wanted), "lost": lost}
    if not lost:
        return green("append", f"{len(wanted):,} lines appended by {processes} processes, none lost", **measured)
    reason = f"{lost} of {len(wanted):,} lines that {processes} processes appended are lost"
    if safety.is_local(probes.directory.root):
        return warn("append", f"{reason}: the log would have gaps; tasks are not kept there", ELSEWHERE, **measured)
    return green("append", f"{reason}; here every process has a log of its own", **measured)


def locks(probes: ProbeFolder) -> Finding:
    """Check that others see a lock, and that it ends when its holder is killed, which shows a dead worker at once."""
    folder = probes.folder("locks")
    path = probes.file("locks", racer.LOCK)
    trusted = probes.directory.kind in safety.LOCAL and safety.is_local(probes.directory.root)
    holder = _start("hold", folder, 0)
    try:
        held = _received(holder) == "held"
        seen = held and not _is_free(path)
    except (OSError, ValueError):
        held = seen = False
    finally:
        _end(holder)
    freed = held and _is_free(path)
    measured = {"trusted": trusted, "held": held, "seen": seen, "freed_by_death": freed}
    if not trusted:
        reason = f"locks are not relied on here ({probes.directory.kind}): a dead worker's task comes back when its lease ends"
        return green("locks", reason, **measured)
    if not held:
        hint = "give short leases, so that the tasks of dead workers come back soon; or choose a place with flock"
        return warn(
            "locks", "no lock can be had (flock): a dead worker is known only when its lease ends", hint, **measured
        )
    if not seen or not freed:
        reason = "a lock is not seen by another process" if not seen else "a lock outlives the process that held it"
        return refuse(
            "locks", f"{reason}: the living would be taken for dead, or the dead for living", ELSEWHERE, **measured
        )
    return green("locks", "a lock is seen by others, and free when its holder is killed", **measured)


def _is_free(path: str) -> bool:
    from fcntl import LOCK_NB, LOCK_SH, flock

    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        flock(descriptor, LOCK_SH | LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _start(task: str, folder: str, number: int) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603  our own code, and arguments that no shell sees
        [sys.executable, "-I", "-S", racer.__file__, task, folder, str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _received(runner: subprocess.Popen[str]) -> Any:
    """Return the next value that the process prints; raise `ValueError` if it ends first, or after `_TIMEOUT`."""
    assert runner.stdout is not None
    if not select.select([runner.stdout], [], [], _TIMEOUT)[0]:
        raise ValueError("silent")
    return json.loads(runner.stdout.readline())


def _end(runner: subprocess.Popen[str]) -> None:
    """Kill the process if it still runs, and wait for it."""
    runner.kill()
    runner.wait()
    for stream in (runner.stdin, runner.stdout):
        assert stream is not None
        stream.close()
