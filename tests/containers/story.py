"""What happens to the containers of one compose file: work, a kill, a pause, deafness, down and up again."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from urllib.request import urlopen

import yaml

from tests.containers.machine import PLACE, ROOT, Failed, container_state, podman, wait_until

if TYPE_CHECKING:
    from tests.containers.stack import Stack

TASKS = 500
AGAIN = 100  # tasks that are in the yard while it goes down
_TRIES = 20
_QUICK = 5.0  # seconds in which an agent has long ended its task


def tell(text: str) -> None:
    """Print one line of the summary."""
    print(f"  {text}", flush=True)


def rise(stack: Stack) -> list[str]:
    """Bring it up, add the tasks, and report when the first was done."""
    began = time.time()
    stack.up()
    up = time.time() - began
    wait_until("the gateway is well", lambda: stack.healthy(stack.container("gateway")))
    ids = stack.add(TASKS, "first")
    wait_until("a task is done", lambda: stack.counts()["done"])
    first = min(datetime.fromisoformat(event["at"]).timestamp() for event in stack.events("done"))
    tell(f"'up' took {up:.1f} s; the first of {TASKS} tasks was done {first - began:.1f} s after it was called")
    names = [name for name in podman("ps", "--format", "{{.Names}}").split() if name.startswith(f"{stack.project}_")]
    for name in names:
        wait_until(f"{name} is healthy", partial(stack.healthy, name))
    with urlopen("http://127.0.0.1:8377/default/board/", timeout=30) as page:
        if "text/html" not in page.headers["Content-Type"]:
            raise Failed("the gateway does not serve its board to this machine")
    tell(f"all {len(names)} containers are healthy, and the board is served at 127.0.0.1:8377")
    return ids


def kill_one(stack: Stack) -> list[str]:
    """Kill the first process of a container that holds a task, from outside; its restart policy starts it again."""
    name, ids = stack.agents[0], []
    for _ in range(_TRIES):
        if stack.counts()["todo"] < TASKS // 2:
            ids += stack.add(TASKS, "killed")
        before = len(stack.events("reaped"))
        killed = time.time()
        os.kill(stack.process_one(name), signal.SIGKILL)
        wait_until(f"{name} runs again", lambda: container_state(name)["Status"] == "running")
        stack.wait_for_end()
        reaped = stack.events("reaped")[before:]
        if reaped:
            seconds = datetime.fromisoformat(reaped[0]["at"]).timestamp() - killed
            tell(f"{name} was killed with a task in hand, which was free {seconds:.1f} s later; it was started again")
            return ids
    raise Failed(f"{name} held no task at any of {_TRIES} kills")


def pause_one_and_deafen_another(stack: Stack) -> list[str]:
    """Pause a container that holds a task, and stop the worker of another: the one loses its task, the other its health."""
    paused, deaf = stack.agents[1], stack.agents[2]
    ids = _pause_with_a_task(stack, paused)
    worker = podman("exec", deaf, "sh", "-c", "cat /proc/1/task/1/children").split()[0]
    podman("exec", deaf, "sh", "-c", f"kill -STOP {worker}")
    began = time.monotonic()
    stack.wait_for_end()
    tell(f"{paused} was paused with a task in hand; all {len(ids)} were done {time.monotonic() - began:.0f} s later")
    wait_until(f"the health check of {deaf} fails", partial(stack.unhealthy, deaf))
    tell(
        f"{deaf}, whose worker was stopped, failed its health check after {time.monotonic() - began:.0f} s at the most"
    )
    podman("exec", deaf, "sh", "-c", f"kill -CONT {worker}")
    podman("unpause", paused)
    for name in (paused, deaf):
        wait_until(f"{name} is healthy again", partial(stack.healthy, name))
    return ids


def _pause_with_a_task(stack: Stack, name: str) -> list[str]:
    ids: list[str] = []
    for _ in range(_TRIES):
        ids += stack.add(TASKS, "paused")
        podman("pause", name)
        wait_until("the others have begun all the rest", lambda: not stack.counts()["todo"])
        try:
            wait_until("the others have ended all the rest", lambda: not stack.counts()["processing"], _QUICK)
        except Failed:
            return ids  # what is still in processing is the paused one's
        podman("unpause", name)
    raise Failed(f"{name} held no task at any of {_TRIES} pauses")


def go_down_and_up(stack: Stack) -> list[str]:
    """Take everything down in the middle of the work, and bring it up again on the same volumes."""
    ids = stack.add(AGAIN, "again")
    stack.down()
    began = time.time()
    stack.up()
    wait_until("the gateway is well", lambda: stack.healthy(stack.container("gateway")))
    counts = stack.wait_for_end()
    tell(
        f"after 'down' and 'up' in mid-work the volume had everything; {counts['done']} done {time.time() - began:.1f} s later"
    )
    return ids


def lose_the_database(stack: Stack) -> list[str]:
    """Stop the database while agents work: the health checks of all who need it fail until it is back."""
    if stack.database is None:
        return []
    ids = stack.add(TASKS, "away")
    names = [stack.container("gateway"), *stack.agents]
    podman("pause", stack.database)
    began = time.monotonic()
    for name in names:
        wait_until(f"the health check of {name} fails", partial(stack.unhealthy, name))
    took = time.monotonic() - began
    podman("unpause", stack.database)
    for name in names:
        wait_until(f"{name} is healthy again", partial(stack.healthy, name))
    stack.wait_for_end()
    tell(
        f"while the database was paused, the gateway and all agents failed their health checks within {took:.0f} s; then all were healthy again"
    )
    return ids


def scale(stack: Stack) -> list[str]:
    """Start more containers of one service, and see that they work."""
    service, number = stack.services[-1], 5
    stack.compose("up", "-d", "--scale", f"{service}={number}")
    for each in range(1, number + 1):
        name = stack.container(service, str(each))
        wait_until(f"{name} is healthy", partial(stack.healthy, name))
    ids = stack.add(AGAIN, "scaled")
    stack.wait_for_end()
    tell(f"'--scale {service}={number}' started {number} of them, all healthy")
    return ids


def stop_in_order(stack: Stack) -> None:
    """Stop an agent by the signal that an engine sends, and look for what it left."""
    name = stack.agents[2]
    if found := stack.zombies(name):
        raise Failed(f"{name} has processes that were not waited for: {found}")
    began = time.monotonic()
    podman("stop", "--time", "30", name)
    seconds, code = time.monotonic() - began, container_state(name)["ExitCode"]
    if code != 0 or seconds > 15:
        raise Failed(f"{name} took {seconds:.1f} s to stop, and exited with {code}")
    tell(f"{name} stopped {seconds:.1f} s after SIGTERM, exit 0, and had no zombies")


def twins(stack: Stack) -> list[str]:
    """Have two workers of one host name work, whose process numbers are equal, too."""
    ids = stack.add(AGAIN, "twins")
    words = ("taskyard", "work", "--kind", "twins", "--drain", "--", "sleep", "0.05")
    given = ("run", "--detach", "--hostname", "twin", "--read-only", "--tmpfs", "/tmp", *stack.options)
    names = [podman(*given, stack.image, *words).strip() for _ in range(2)]
    codes = [podman("wait", name).strip() for name in names]
    podman("rm", *names)
    done = Counter(str(event["worker"]) for event in stack.events("done") if event["task"] in ids)
    if codes != ["0", "0"] or len(done) != 2 or len({worker.rpartition("-")[0] for worker in done}) != 1:
        raise Failed(f"the twins exited with {codes}; the tasks were done by {dict(done)}")
    told = " and ".join(f"{worker} {number}" for worker, number in done.items())
    tell(f"two workers of one host name and process number shared {len(ids)} tasks: {told}")
    return ids


def end_of_a_pod(stack: Stack) -> str:
    """End a worker as Kubernetes does, by the manifest's own command and grace, while its command runs and runs."""
    manifest = ROOT / "deploy" / "kubernetes" / "workers.yaml"
    pod = yaml.safe_load(manifest.read_text(encoding="utf-8"))["spec"]["template"]["spec"]
    words, seconds = pod["containers"][0]["command"], pod["terminationGracePeriodSeconds"]
    agent = PLACE / "agent.sh"
    agent.write_text("#!/bin/sh\nexec sleep 1000\n")
    agent.chmod(0o755)
    (id,) = stack.add(1, "pod")
    given = (
        "run",
        "--detach",
        "--name",
        "pod",
        "--read-only",
        "--tmpfs",
        "/tmp",
        "--volume",
        f"{agent}:/app/agent.sh:ro",
    )
    podman(*given, *stack.options, stack.image, *words)
    wait_until("the pod has the task", lambda: stack.counts()["processing"])
    began = time.monotonic()
    podman("stop", "--time", str(seconds), "pod")
    took, code = time.monotonic() - began, container_state("pod")["ExitCode"]
    podman("rm", "pod")
    task = stack.taskyard("show", id)["task"]
    if code != 0 or (task["state"], task["attempts"]) != ("todo", 0):
        raise Failed(f"the pod exited with {code}; its task is {task['state']} after {task['attempts']} attempts")
    tell(
        f"a worker of the Kubernetes manifest ended {took:.0f} s after SIGTERM, of {seconds} s that it has; its task came back uncounted"
    )
    return id


def everything(stack: Stack) -> None:
    """The whole story, with a check at its end that nothing was lost."""
    print(f"{stack.file}", flush=True)
    ids = rise(stack)
    ids += kill_one(stack)
    ids += pause_one_and_deafen_another(stack)
    with stack.without_agents():
        ids += [*twins(stack), end_of_a_pod(stack)]
    ids += go_down_and_up(stack)
    ids += lose_the_database(stack)
    ids += scale(stack)
    stop_in_order(stack)
    stack.check_nothing_lost(ids)
    tell(f"all {len(ids)} tasks were done exactly once; fsck finds nothing")
