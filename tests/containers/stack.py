"""One compose file that is up: its containers, and its yard as a user asks it, by `taskyard` inside of a container."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.containers import images
from tests.containers.machine import PROJECT, Failed, container_state, podman, run, succeeds, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = 30.0  # seconds in which a container finds others by their names again


class Stack:
    """The containers of one compose file."""

    def __init__(
        self, file: str, project: str, agents: list[str], image: str, options: list[str], database: str | None = None
    ) -> None:
        self.file = file
        self.project = project
        self.image = image
        self.database = None if database is None else self.container(database)
        self.options = options
        """How another worker is started beside the agents: podman's options for the yard."""
        self.services = sorted({name.split("/")[0] for name in agents})
        self.agents = [self.container(*name.split("/")) for name in agents]
        """Its agents' containers; "agent/2" is the second of a service."""

    def compose(self, *words: str) -> str:
        """Run podman-compose on the file as it stands; only the base image's name is another."""
        return run("podman-compose", "-f", self.file, *words, cwd=PROJECT, env={"BASE": images.BASE})

    def container(self, service: str, number: str = "1") -> str:
        """Return the name of a service's container."""
        return f"{self.project}_{service}_{number}"

    def taskyard(self, *words: str, stdin: str | None = None) -> Any:
        """Return the data that a command answers, run in the gateway's container."""
        gateway = self.container("gateway")
        given = ["exec", *(["--interactive"] if stdin is not None else []), gateway, "taskyard", *words, "--json"]
        answer, refusal = "", ""

        def answered() -> bool:
            nonlocal answer, refusal
            try:
                answer = podman(*given, stdin=None if stdin is None else stdin.encode())
            except Failed as error:
                refusal = str(error)
                if '"unavailable"' not in refusal:
                    raise
            return bool(answer)

        # Podman's name server is away for a moment when containers come and go; podman 4.3 may leave it without their names.
        try:
            wait_until("the yard answers", answered, _NAMES)
        except Failed:
            print(f"  no answer, so podman's networks are set up anew: {refusal[-300:]}")  # noqa: T201
            podman("network", "reload", "--all")
            wait_until("the yard answers", answered, _NAMES)
        return json.loads(answer)["data"]

    def up(self) -> None:
        """Start all of it, as the README says."""
        self.compose("up", "-d")

    def down(self, *words: str) -> None:
        """Stop all of it, and remove the containers; the volumes stay, unless `-v` is among the words."""
        self.compose("down", *words)

    @contextmanager
    def without_agents(self) -> Iterator[None]:
        """Stop the file's own agents meanwhile, so that others have the tasks for themselves."""
        self.compose("stop", *self.services)
        yield
        self.compose("start", *self.services)

    def add(self, number: int, kind: str) -> list[str]:
        """Add so many tasks with one command."""
        lines = "".join(json.dumps({"kind": kind, "data": {"n": each}}) + "\n" for each in range(number))
        found: list[str] = self.taskyard("add", "--from", "-", stdin=lines)["ids"]
        return found

    def counts(self) -> dict[str, int]:
        """Return how many tasks are in each state."""
        found: dict[str, int] = self.taskyard("stats")["counts"]
        return found

    def wait_for_end(self, seconds: float = 240.0) -> dict[str, int]:
        """Wait until nothing is left to do; return the counts."""

        def ended() -> dict[str, int] | None:
            counts = self.counts()
            return None if any(counts[state] for state in ("todo", "processing", "waiting", "blocked")) else counts

        found: dict[str, int] = wait_until("all tasks have ended", ended, seconds)
        return found

    def events(self, event: str) -> list[dict[str, Any]]:
        """Return all events of this name."""
        found: list[dict[str, Any]] = []
        cursor: list[str] = []
        while True:
            page = self.taskyard("log", "--event", event, "--limit", "1000", *cursor)
            found += page["events"]
            if not page["events"] or cursor == ["--cursor", page["cursor"]]:
                return found
            cursor = ["--cursor", page["cursor"]]

    def check_nothing_lost(self, ids: list[str]) -> None:
        """Raise `Failed` unless each task was done, once, and the yard is in order."""
        ends = Counter(event["task"] for event in self.events("done"))
        lost = [id for id in ids if ends[id] != 1]
        if lost:
            raise Failed(
                f"{len(lost)} of {len(ids)} tasks were not done exactly once, such as {lost[0]}: {ends[lost[0]]}"
            )
        podman("exec", self.container("gateway"), "taskyard", "fsck")  # exit 1 if anything is damaged

    def healthy(self, name: str) -> bool:
        """Whether the health check of a container succeeds, run now: without systemd, podman does not run it by itself."""
        return succeeds("healthcheck", "run", name)

    def unhealthy(self, name: str) -> bool:
        """Whether the health check of a container fails, run now."""
        return not self.healthy(name)

    def process_one(self, name: str) -> int:
        """Return the number that the machine knows a container's first process by."""
        return int(container_state(name)["Pid"])

    def zombies(self, name: str) -> list[str]:
        """Return the processes in a container that have ended and were not waited for."""
        listed = podman("exec", name, "sh", "-c", "cat /proc/[0-9]*/stat 2> /dev/null || true")
        return [line for line in listed.splitlines() if line.rpartition(")")[2].split()[:1] == ["Z"]]
