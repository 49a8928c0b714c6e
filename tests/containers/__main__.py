"""`make test-containers`: build the image and bring the compose files up as they stand, and see that nothing is lost.

It needs root, a Debian with its package mirror, and the package index; no image registry. The base image is made by debootstrap, and
takes the place of the one that the Dockerfile names. Everything is kept under /var/tmp/taskyard-containers, so that the
second run is quicker. `python -m tests.containers compose.yaml` tries one file only. The summary is printed as it goes; the exit code is 0 if all of it held.
"""

from __future__ import annotations

import statistics
import sys
import time

from tests.containers import images, story
from tests.containers.machine import PROJECT, ROOT, Failed, podman, prepare, succeeds
from tests.containers.stack import Stack

CORE, FULL = "localhost/taskyard:core", "localhost/taskyard:full"
ON_A_VOLUME = Stack(
    "compose.yaml",
    "taskyard",
    ["agent-1", "agent-2", "agent-3"],
    CORE,
    ["--network", "none", "--volume", "taskyard_shared-data:/app/shared", "--env", "TASKYARD=/app/shared"],
)
ON_POSTGRES = Stack(
    "compose.postgres.yaml",
    "taskyard-postgres",
    ["agent", "agent/2", "agent/3"],
    FULL,
    [
        *("--network", "taskyard-postgres_default", "--volume", "taskyard-postgres_secrets:/secrets:ro"),
        *("--env", "TASKYARD_FILE=/secrets/yard"),
    ],
    "postgres",
)
STACKS = [ON_A_VOLUME, ON_POSTGRES]
_RUNS = 5


def build() -> None:
    """Build what the compose files name, without any index, and report the sizes."""
    _clear()  # what an earlier run left that broke off
    for stack in STACKS:
        if (ROOT / stack.file).read_bytes() != (PROJECT / stack.file).read_bytes():
            raise Failed(f"{stack.file} is not the repository's")
        began = time.monotonic()
        stack.compose("build")
        story.tell(f"{stack.file}: 'build' took {time.monotonic() - began:.0f} s")
    base = images.size(images.BASE)
    sizes = {image: images.size(image) for image in (CORE, FULL)}
    told = ", ".join(f"{image} {size:.0f} MB (+{size - base:.0f})" for image, size in sizes.items())
    story.tell(f"sizes: base {base:.0f} MB, {told}")


def any_user() -> None:
    """Run a worker as a user that the image does not know, on a read-only root, without any capability."""
    podman("volume", "create", "any-user")
    try:
        for user in ("4711", "123456:0"):
            given = _strict("--user", user, "--volume", "any-user:/app/shared")
            script = "taskyard init > /dev/null; taskyard add once; taskyard work --drain -- true; ! touch /app/x 2> /dev/null"
            podman(*given, CORE, "sh", "-ec", script)
    finally:
        podman("volume", "rm", "any-user")
    story.tell("workers ran as the users 4711 and 123456 on a read-only root, without capabilities, on one volume")


def start_up() -> None:
    """Report how long a worker takes to start, claim and end a task, beyond what a container takes."""
    podman("volume", "create", "start-up")
    try:
        given = _strict("--volume", "start-up:/app/shared")
        podman(*given, CORE, "sh", "-ec", "taskyard init > /dev/null; for n in 1 2 3 4 5; do taskyard add once; done")
        empty = statistics.median(_seconds(*given, CORE, "true") for _ in range(_RUNS))
        worked = statistics.median(
            _seconds(*given, CORE, "taskyard", "work", "--once", "--", "true") for _ in range(_RUNS)
        )
    finally:
        podman("volume", "rm", "start-up")
    story.tell(f"start-up: a container with 'true' {empty:.2f} s, with a worker that does one task {worked:.2f} s")


def _strict(*options: str) -> list[str]:
    return [
        *("run", "--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "all", "--network", "none"),
        *("--env", "TASKYARD=/app/shared"),
        *options,
    ]


def _seconds(*words: str) -> float:
    began = time.monotonic()
    podman(*words)
    return time.monotonic() - began


def main() -> int:
    """Do everything in order; stop at the first thing that does not hold."""
    began = time.monotonic()
    try:
        prepare()
        print("images", flush=True)
        images.make_base()
        images.copy_project()
        images.make_postgres("localhost/postgres:18")
        images.make_valkey("localhost/valkey/valkey:9")
        build()
        any_user()
        start_up()
        for stack in _chosen(sys.argv[1:]):
            try:
                story.everything(stack)
            finally:
                _note_logs(stack)
                _clear()
    except Failed as error:
        print(f"FAILED: {error}", flush=True)
        return 1
    print(f"all of it held, in {time.monotonic() - began:.0f} s")
    return 0


def _clear() -> None:
    """Remove all containers and volumes: podman keeps nothing but this test's own here."""
    while podman("ps", "--all", "--quiet"):
        succeeds("rm", "--all", "--force", "--time", "0")  # refuses what others depend on, until those are gone
    podman("volume", "prune", "--force")


def _chosen(files: list[str]) -> list[Stack]:
    """Return the stacks of the compose files that are named, or all."""
    return [stack for stack in STACKS if not files or stack.file in files]


def _note_logs(stack: Stack) -> None:
    """Keep the containers' logs for whoever has to find out what went wrong."""
    for name in podman("ps", "--all", "--format", "{{.Names}}").split():
        if name.startswith(stack.project) and succeeds("container", "exists", name):
            (PROJECT.parent / f"{name}.log").write_text(podman("logs", name))


if __name__ == "__main__":
    sys.exit(main())
