"""Podman as this test uses it: in a folder of its own, so that no image, volume or network of the user is touched.

Where there is no systemd, podman needs the cgroupfs manager, files for its events, and limits that it may set itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PLACE = Path(os.environ.get("TASKYARD_CONTAINERS", "/var/tmp/taskyard-containers"))
PROJECT = PLACE / "project"
"""A copy of the repository, in which the compose files are brought up."""
PACKAGES = {"podman": "podman", "runc": "runc", "debootstrap": "debootstrap", "iptables": "iptables"}
"""Programs, and the packages of Debian that have them."""
NETWORKING = ("netavark", "aardvark-dns")  # programs that are on no path
_SETTINGS = """\
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
log_driver = "k8s-file"
[network]
network_backend = "netavark"
network_config_dir = "{place}/networks"
"""
_STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{place}/storage"
runroot = "/run/taskyard-containers"
"""


class Failed(Exception):
    """A command failed, or something is not as it should be."""


def prepare() -> None:
    """Install what is missing, and write podman's settings."""
    if os.geteuid() != 0:
        raise Failed("run it as root: podman, debootstrap and packages of the system need it")
    missing = [package for program, package in PACKAGES.items() if shutil.which(program) is None]
    if missing or not Path("/usr/lib/podman/netavark").exists():
        run("apt-get", "update", "-qq")
        install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends")
        run(*install, *missing, *NETWORKING, env={"DEBIAN_FRONTEND": "noninteractive"})
    PLACE.mkdir(parents=True, exist_ok=True)
    (PLACE / "networks").mkdir(exist_ok=True)
    (PLACE / "containers.conf").write_text(_SETTINGS.format(place=PLACE))
    (PLACE / "storage.conf").write_text(_STORAGE.format(place=PLACE))


def run(*words: str, cwd: Path | None = None, env: dict[str, str] | None = None, stdin: bytes | None = None) -> str:
    """Run a command, and return its standard output; raise `Failed` with both outputs if it fails."""
    scripts = sysconfig.get_path("scripts")
    own = {
        "PATH": f"{scripts}:{os.environ['PATH']}",
        "CONTAINERS_CONF": str(PLACE / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(PLACE / "storage.conf"),
    }
    done = subprocess.run(
        words, cwd=cwd, env={**os.environ, **own, **(env or {})}, input=stdin, capture_output=True, check=False
    )
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if done.returncode != 0:
        raise Failed(f"{' '.join(words)[:300]}: exit {done.returncode}\n{out[-3000:]}\n{err[-3000:]}")
    return out


def podman(*words: str, stdin: bytes | None = None) -> str:
    """Run podman."""
    return run("podman", *words, stdin=stdin)


def succeeds(*words: str) -> bool:
    """Whether podman exits with 0."""
    try:
        podman(*words)
    except Failed:
        return False
    return True


def container_state(name: str) -> dict[str, Any]:
    """Return podman's word on a container: status, pid, exit code."""
    found: dict[str, Any] = json.loads(podman("inspect", name))[0]["State"]
    return found


def wait_until(what: str, happened: Callable[[], Any], seconds: float = 240.0) -> Any:
    """Return the first true answer; raise `Failed` if it does not come in time."""
    end = time.monotonic() + seconds
    while True:
        answer = happened()
        if answer:
            return answer
        if time.monotonic() > end:
            raise Failed(f"waited {seconds:.0f} s in vain until {what}")
        time.sleep(0.2)
