"""The scene of `taskyard demo`: a crew sharpens pictures; one worker is killed, one is stopped; every picture is done once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from taskyard import opening
from taskyard.doors.cli import output
from taskyard.doors.cli.verbs.running.demo import sharpen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from taskyard.core.task import Task
    from taskyard.port import YardPort

CREW = ("ada", "grace", "linus", "margaret")
PICTURES = 16
SECONDS = 0.5  # for each picture
LEASE = 2.0  # seconds; short, so that the stopped worker's task is claimed again while you watch
PATIENCE = 60.0
ATTEMPTS = 9  # on a very busy machine the scene must not fail for lack of attempts
_VERBS = {
    "claimed": "takes",
    "done": "has done",
    "reaped": "loses",
    "refused": "comes too late with",
    "released": "hands back",
}


class Worker:
    """One process of the crew, started as a user would start it."""

    def __init__(self, yard: YardPort, name: str, root: str) -> None:
        self.name = name
        code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from taskyard.doors.cli import main; sys.exit(main())"
        # -I: no file in the user's folder must be imported as a module of ours.
        job = [sys.executable, "-I", "-S", sharpen.__file__]
        self.process = subprocess.Popen(  # noqa: S603  our own code
            [
                sys.executable,
                "-c",
                code,
                root,
                "--yard",
                yard.url,
                "work",
                "--worker",
                name,
                "--drain",
                "--grace",
                "1",
                "--",
                *job,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def signal(self, number: int) -> None:
        """Send a signal to the worker."""
        self.process.send_signal(number)


class Scene:
    """Plays the scene, and prints its events."""

    def __init__(self, folder: str, write_line: Callable[[str], None]) -> None:
        self.folder = folder
        self._write_line = write_line
        self.yard = opening.init(os.path.join(folder, "yard"), "tour")
        self.numbers: dict[str, int] = {}
        self.began = time.monotonic()

    def play(self) -> dict[str, Any]:
        """Play the whole scene; return what the yard holds afterwards."""
        self._fill()
        root = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 6))
        start = self.yard.events(limit=10_000).cursor
        crew = {name: Worker(self.yard, name, root) for name in CREW}
        try:
            self._watch(crew, start)
        finally:
            for worker in crew.values():
                if worker.process.poll() is None:
                    worker.signal(signal.SIGCONT)
                    worker.signal(signal.SIGTERM)
                worker.process.wait()
        return self._verdict()

    def _fill(self) -> None:
        tasks = []
        for number in range(1, PICTURES + 1):
            blurred, sharp = (os.path.join(self.folder, f"{number:02d}-{word}.pgm") for word in ("blurred", "sharp"))
            sharpen.write(blurred, sharpen.blurred(number))
            data = {
                "inputFile": blurred,
                "outputFile": sharp,
                "operation": "sharpen",
                "parameters": {"seconds": SECONDS},
            }
            tasks.append({"kind": "sharpen", "data": data, "lease": LEASE, "max_attempts": ATTEMPTS})
        self.numbers = {id: number for number, id in enumerate(self.yard.add_many(tasks), 1)}
        self._write("yard", f"{PICTURES} pictures to sharpen, in {self.yard.url}")
        self._write("yard", f"{len(CREW)} workers: taskyard work --worker NAME --drain -- sharpen.py")

    def _watch(self, crew: dict[str, Worker], cursor: str) -> None:
        """Print events; when the crew is at work, kill one worker and stop another."""
        killed = stopped = sleeper = ""
        done: set[str] = set()  # counted by events: a task may be done in the yard a moment before its event is read
        for event in self._events(cursor):
            self._write_event(event)
            if event["event"] == "done":
                done.add(event["task"])
            if event["event"] == "claimed" and not stopped and len(done) >= len(CREW):
                worker, task = self._stop_busy_worker(crew, killed)
                if task and not killed:
                    killed = worker
                    self._interfere(crew[worker], signal.SIGKILL, f"kill -9 {worker}, in the middle of", task)
                elif task:
                    stopped, sleeper = task, worker
                    self._interfere(crew[worker], signal.SIGSTOP, f"kill -STOP {worker}, in the middle of", task)
            elif event["event"] == "done" and event["task"] == stopped:
                what = f"kill -CONT {sleeper}, whose task was done by {event['worker']} meanwhile:"
                self._interfere(crew[sleeper], signal.SIGCONT, what, stopped)
            if len(done) == PICTURES:
                return

    def _stop_busy_worker(self, crew: dict[str, Worker], but: str) -> tuple[str, str]:
        """Stop a worker in the middle of a task; return its name and the task, or two empty strings."""
        for held in reversed(self.yard.find(state="processing")):
            name = held.worker or ""
            if name == but or name not in crew:
                continue
            crew[name].signal(signal.SIGSTOP)
            if any(still.id == held.id for still in self.yard.find(state="processing", worker=name)):
                return name, held.id
            crew[name].signal(signal.SIGCONT)  # its task has just ended
        return "", ""

    def _interfere(self, worker: Worker, number: int, what: str, task: str) -> None:
        worker.signal(number)
        self._write("you", f"{what} picture {self.numbers[task]}", "failed")

    def _events(self, cursor: str) -> Iterator[dict[str, Any]]:
        for page in self.yard.follow(cursor=cursor, timeout=PATIENCE):
            yield from page

    def _write_event(self, event: dict[str, Any]) -> None:
        if event["event"] not in _VERBS or event["task"] not in self.numbers:
            return
        more = f" (fence {event['fence']})" if event["event"] == "claimed" and event["fence"] > 1 else ""
        reason = f": {event['reason']}" if event.get("reason") else ""
        what = f"{_VERBS[event['event']]} picture {self.numbers[event['task']]}{more}{reason}"
        self._write(event["worker"], what, event["event"])

    def _write(self, who: str, what: str, colour: str = "") -> None:
        seconds = time.monotonic() - self.began
        self._write_line(f"{seconds:6.2f} s  {who:>8}  {output.paint(what, colour)}")

    def _verdict(self) -> dict[str, Any]:
        """Check the tasks in the yard, and the pictures themselves."""
        tasks = [self.yard.get(id) for id in self.numbers]
        endings = {task.id: [entry["outcome"] for entry in self.yard.report(task.id).history] for task in tasks}
        return {
            "tasks": len(tasks),
            "done": sum(task.state == "done" for task in tasks),
            "done_once": sum(outcomes.count("done") == 1 for outcomes in endings.values()),
            "crashes": sum(outcomes.count("crash") for outcomes in endings.values()),
            "right_pictures": sum(map(_is_right, tasks)),
            "by_worker": dict(Counter(str(task.worker) for task in tasks)),
            "seconds": round(time.monotonic() - self.began, 2),
        }


def _is_right(task: Task) -> bool:
    """Return whether the picture exists and is sharpened right, by computing it again."""
    try:
        made = sharpen.read(task.data["outputFile"])
    except (OSError, ValueError, IndexError):
        return False
    return made == sharpen.sharpened(sharpen.read(task.data["inputFile"]))
