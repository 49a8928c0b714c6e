"""The members of a crew, each a process: `python crew.py VERB YARD ARGUMENTS`, one JSON value a line on stdout.

No test by itself: the tests start, stop and kill these. A member that should begin together with others says `"ready"`
and waits for a line on stdin. What each asks its yard for and is told is in the history beside the yard.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import taskyard
from taskyard.proof import HistoryWriter, RecordedYard
from taskyard.proof.recorded_yard import recorded_draft
from taskyard.proof.recorder import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random


def recorded_yard(yard: str, worker: str | None = None) -> RecordedYard:
    """The yard, opened; all that is asked for and told is written down."""
    opened = taskyard.open(yard, worker=worker)
    return RecordedYard(opened, HistoryWriter(history(yard), opened.worker))


def history(yard: str) -> str:
    """Where the history of a yard is."""
    return f"{yard}.history"


def say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def line_up() -> None:
    say("ready")
    sys.stdin.readline()


def drain(yard: str, worker: str = "", lease: str = "60") -> None:
    """Claim and end tasks until nothing is ready; says every handle, and who held it."""
    with recorded_yard(yard, worker or None) as opened:
        line_up()
        while (claim := opened.claim(lease=float(lease))) is not None:
            claim.done({"by": claim.handle})
            say({"claim": claim.handle, "worker": opened.worker, "pid": os.getpid(), "host": os.uname().nodename})


def drain_by_command(yard: str, worker: str = "") -> None:
    """The same with a process for each claim and each done."""
    who = ["--worker", worker] if worker else []
    writer = HistoryWriter(history(yard), worker)
    line_up()
    while True:
        asked = writer.request("claim")
        claimed = _command(yard, "claim", *who, codes=(0, 3))
        if not claimed["ok"]:
            return writer.answered(asked, claims=[])
        claim = claimed["data"]["claim"]
        writer.answered(asked, claims=[claim], worker=claimed["data"]["task"]["worker"])
        result = {"by": claim}
        asked = writer.request("done", claim=claim, result=fingerprint(result))
        _command(yard, "done", claim, "--result", json.dumps(result), *who)
        writer.answered(asked)
        say({"claim": claim, "worker": claimed["data"]["task"]["worker"]})


def _command(yard: str, *argv: str, codes: tuple[int, ...] = (0,)) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "taskyard", "--yard", yard, "--json", *argv], stdout=subprocess.PIPE, check=False
    )
    assert done.returncode in codes, (argv, done.returncode, done.stdout)
    return json.loads(done.stdout)


def add(yard: str, number: str, kind: str = "build", delay: str = "0", pause: str = "0") -> None:
    """Add so many tasks one by one; says every id once it is acknowledged."""
    with recorded_yard(yard) as opened:
        line_up()
        for _ in range(int(number)):
            say(opened.add(kind, delay=float(delay)).id)
            time.sleep(float(pause))


def add_for_ever(yard: str) -> None:
    """Add tasks in every way there is until killed; says the ids."""
    with recorded_yard(yard) as opened:
        line_up()
        for turn in itertools.count():
            say([opened.add("single", {"turn": turn}).id])
            say(opened.add_many([{"kind": "bulk", "data": "x" * 5000}] * 7))
            say([opened.add("late", delay=0.05).id])


def work_for_ever(yard: str, lease: str) -> None:
    """Claim and end tasks until killed; says `[claim, id, fence]` when it has one and `[done, id, fence]` when it has ended it."""
    with recorded_yard(yard) as opened:
        line_up()
        while (claim := opened.claim(lease=float(lease))) is not None:
            say(["claim", claim.task.id, claim.fence])
            claim.done({"fence": claim.fence, "bulk": "x" * 5000})
            say(["done", claim.task.id, claim.fence])
    say(["idle", "", 0])
    sys.stdin.readline()  # to be killed, like all others


def claim_late(yard: str, lease: str, worker: str = "") -> None:
    """Claim a task, say so, and end it only when told to."""
    with recorded_yard(yard, worker or None) as opened:
        claim = opened.claim(lease=float(lease))
        assert claim is not None
        say(claim.handle)
        sys.stdin.readline()
        try:
            claim.done({"late": True})
        except taskyard.ClaimLost:
            say("lost")
        else:
            say("done")


def work_with_heartbeat(yard: str, lease: str) -> None:
    """Hold a task in a block until told to end it."""
    with recorded_yard(yard) as opened:
        claim = opened.claim(lease=float(lease))
        assert claim is not None
        with claim:
            say(claim.handle)
            sys.stdin.readline()
            say("lost" if claim.lost else "held")


def sweep_for_ever(yard: str) -> None:
    """Sweep without a pause until told to end."""
    import threading

    told = threading.Thread(target=sys.stdin.readline, daemon=True)
    told.start()
    swept = 0
    with recorded_yard(yard) as opened:
        while told.is_alive():
            swept += bool(opened.sweep())
    say(swept)


def drop(yard: str, name: str, good: str, bad: str, how: str) -> None:
    """Put so many good and bad files into the drop box, as people and programs do; says what each good one is called."""
    line_up()
    writer = HistoryWriter(history(yard), name)
    wrong = _bad_files(yard, name, writer)
    for number in range(int(good)):
        content: dict[str, Any] = {"operation": "sharpen", "n": f"{name}-{number}", "parameters": {"filler": "x" * 200}}
        if number % 5 == 0:
            content["taskId"] = f"{name}-{number}"
        _drop(writer, f"{yard}/todo/{name}-{number}.json", content, how)
        if number % (int(good) // int(bad)) == 0 and number // (int(good) // int(bad)) < int(bad):
            next(wrong)
        say(content["n"])


def _drop(writer: HistoryWriter, path: str, content: dict[str, Any], how: str) -> None:
    options = {"key": content["taskId"]} if "taskId" in content else {}
    asked = writer.request("drop", drafts=[recorded_draft({"kind": content["operation"], "data": content, **options})])
    _put(path, json.dumps(content, indent=2), how)
    writer.answered(asked)


def _put(path: str, text: str, how: str) -> None:
    folder, _, name = path.rpartition("/")
    hidden = f"{folder}/.{name}.part"
    if how == "slowly":
        with open(path, "w") as file:
            for part in (text[: len(text) // 2], text[len(text) // 2 :]):
                file.write(part)
                file.flush()
                time.sleep(0.003)
        return
    with open(hidden, "w") as file:
        file.write(text)
    if how == "cp":
        subprocess.run(["cp", hidden, path], check=True)
        os.unlink(hidden)
    else:
        os.rename(hidden, path)


def _bad_files(yard: str, name: str, writer: HistoryWriter) -> Iterator[None]:
    """One after the other a file that can never be a task, each of another sort."""
    sorts: dict[str, Any] = {
        "no-json": "this is not JSON",
        "truncated": '{"kind": "sharpen", "data": {"a": ',
        "list": "[1, 2, 3]",
        "kind": '{"kind": "no good"}',
        "priority": '{"priority": 17}',
        "twice": None,
        "large": None,
        "unreadable": None,
        "link": None,
    }
    for number, sort in enumerate(itertools.cycle(sorts)):
        path = f"{yard}/todo/bad-{name}-{number}-{sort}.json"
        if sort == "twice":
            # The same n as a file that was dropped before: whichever of the two is taken in first, it is done once.
            first = number * 25 // 5 * 5
            content = {"taskId": f"{name}-{first}", "operation": "sharpen", "n": f"{name}-{first}", "twice": True}
            _drop(writer, path, content, "rename")
        elif sort == "large":
            with open(f"{path}.part", "wb") as file:
                file.truncate(5 << 20)
            os.rename(f"{path}.part", path)
        elif sort == "unreadable":
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0)
            os.write(descriptor, b'{"n": "unreadable"}')
            os.close(descriptor)
        elif sort == "link":
            os.symlink("/etc/hostname", path)
        else:
            _put(path, sorts[sort], "rename")
        yield


def work_until_told(yard: str) -> None:
    """Claim and end tasks of any kind; says the data's `n` of each; goes on until told to end."""
    import threading

    told = threading.Thread(target=sys.stdin.readline, daemon=True)
    with recorded_yard(yard) as opened:
        line_up()
        told.start()
        while told.is_alive():
            claim = opened.claim(wait=0.1)
            if claim is not None:
                claim.done({"n": claim.task.data["n"]})
                say([claim.handle, claim.task.kind, claim.task.data["n"]])


def add_keys(yard: str, number: str, seed: str) -> None:
    """Add a task for each of so many keys, in an order of its own; says every key and id."""
    import random

    keys = [f"key-{number}" for number in range(int(number))]
    random.Random(int(seed)).shuffle(keys)
    with recorded_yard(yard) as opened:
        say("ready")
        for key in keys:
            say([key, opened.add("build", {"key": key}, key=key).id])


def live(yard: str, worker: str, seed: str) -> None:
    """All that a worker and its owner do, at random, until killed."""
    import random

    chance = random.Random(int(seed))
    with recorded_yard(yard, worker) as opened:
        say("ready")
        if int(seed) % 2:
            for claim in opened.resume():
                claim.release()
        while True:
            with contextlib.suppress(taskyard.Conflict, taskyard.ClaimLost):
                _live_once(opened, chance)


def _live_once(opened: RecordedYard, chance: Random) -> None:
    verb = chance.choice(("add", "add", *["work"] * 12, "cancel", "edit", "edit", "retry", "retry", "resume"))
    if verb == "add":
        opened.add_many([{"kind": chance.choice("abc"), "data": chance.random()}] * chance.randint(1, 5))
    elif verb == "work":
        claim = opened.claim(lease=chance.choice((0.05, 60)))
        if claim is not None:
            chance.choice(
                (claim.done, lambda: claim.done({"r": 1}), lambda: claim.fail("why"), claim.release, claim.heartbeat)
            )()
    elif verb == "resume":
        for claim in opened.resume():
            claim.done("resumed")
    else:
        states = {
            "cancel": ["todo", "processing"],
            "edit": ["todo", "waiting"],
            "retry": ["failed", "cancelled", "waiting"],
        }
        tasks = opened.find(state=states[verb], limit=20)
        if tasks:
            id = chance.choice(tasks).id
            if verb == "edit":
                opened.edit(id, title="edited", priority=chance.randint(0, 9))
            else:
                getattr(opened, verb)(id)


def work_through(yard: str, lease: str, pause: str) -> None:
    """Claim and end tasks until all have ended or it is killed."""
    with recorded_yard(yard) as opened:
        line_up()
        while True:
            claim = opened.claim(lease=float(lease), wait=0.5)
            if claim is None:
                counts = opened.counts()
                if not any(counts[state] for state in ("todo", "waiting", "blocked", "processing")):
                    break
                continue
            time.sleep(float(pause))
            with contextlib.suppress(taskyard.ClaimLost):
                claim.done()
    say("finished")


def work_graph(yard: str, lease: str) -> None:
    """Claim and end tasks as fast as it goes until all have ended or it is killed; writes no history."""
    with taskyard.open(yard) as opened:
        line_up()
        while True:
            claim = opened.claim(lease=float(lease), wait=0.5)
            if claim is None:
                counts = opened.counts()
                if not any(counts[state] for state in ("todo", "waiting", "blocked", "processing")):
                    break
                continue
            with contextlib.suppress(taskyard.ClaimLost):
                claim.done()
    say("finished")


def work_watched(yard: str, lease: str, pause: str, spans: str, drain: str = "") -> None:
    """Claim and end tasks until none is ready, or with `drain` until all have ended; write down when each was surely held."""
    out = os.open(spans, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(what: str, claim: Any, at: int) -> None:
        os.write(out, (json.dumps([what, claim.handle, claim.task.id, os.getpid(), at]) + "\n").encode())

    with taskyard.open(yard) as opened:
        line_up()
        while True:
            claim = opened.claim(lease=float(lease), wait=0.5 if drain else 0)
            if claim is None:
                counts = opened.counts()
                if not drain or not any(counts[state] for state in ("todo", "waiting", "blocked", "processing")):
                    break
                continue
            write("begin", claim, time.monotonic_ns())
            time.sleep(float(pause))
            ended = time.monotonic_ns()
            with contextlib.suppress(taskyard.ClaimLost):
                claim.done()
                write("end", claim, ended)
    say("finished")


VERBS: tuple[Callable[..., None], ...] = (
    drain, drain_by_command, add, add_for_ever, work_for_ever, claim_late, work_with_heartbeat, sweep_for_ever,
    drop, work_until_told, add_keys, live, work_through, work_graph, work_watched,
)  # fmt: skip

if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        {verb.__name__: verb for verb in VERBS}[sys.argv[1]](*sys.argv[2:])
