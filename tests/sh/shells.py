"""The shells that the client has to run under, each with its own tools, and one way to call it."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from taskyard.doors.cli.verbs.running.sh import client
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLIENT = Path(tempfile.mkdtemp(prefix="taskyard-sh-"), "taskyard.sh")
atexit.register(shutil.rmtree, CLIENT.parent)
CLIENT.write_text(client(), encoding="utf-8")
CLIENT.parent.chmod(0o755)  # some tests run it as another user
NAMES = ("dash", "busybox")


class Said:
    """What a call of the client came to."""

    def __init__(self, process: subprocess.CompletedProcess[str]) -> None:
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def line(self) -> str:
        """The one line that it printed, if all went well."""
        assert self.code == 0, (self.code, self.out, self.err)
        assert self.err == "", self.err
        return self.out.removesuffix("\n")


class Shell:
    """One shell, in a yard."""

    def __init__(self, words: Sequence[str], path: str, yard: str) -> None:
        self.words = list(words)
        self.path = path
        self.yard = yard

    def environment(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        given = {"PATH": self.path, "TASKYARD": self.yard, **(env or {})}
        return tools.environment(LC_ALL="C.UTF-8", **given)

    def run(
        self, *argv: str, env: Mapping[str, str] | None = None, prefix: Sequence[str] = (), stdin: str = ""
    ) -> Said:
        """One verb, as a process."""
        prefix = [shutil.which(prefix[0]) or prefix[0], *prefix[1:]] if prefix else []  # not busybox's own
        return self._said([*prefix, *self.words, str(CLIENT), *argv], env, stdin)

    def script(self, text: str, *argv: str, env: Mapping[str, str] | None = None) -> Said:
        """A script that sources the client."""
        return self._said([*self.words, "-c", f'. "$0"\n{text}', str(CLIENT), *argv], env, "", name="script")

    def _said(self, words: list[str], env: Mapping[str, str] | None, stdin: str, name: str = "") -> Said:
        if name:  # $0 must not be the client's own name there, or it takes itself for the program
            words = [*words[:3], name, words[3], *words[4:]]
            words[2] = words[2].replace('. "$0"', '. "$1"; shift', 1)
        return Said(
            subprocess.run(
                words,
                input=stdin,
                capture_output=True,
                text=True,
                env=self.environment(env),
                check=False,
                timeout=tools.PATIENCE,
            )
        )

    def start(self, *argv: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """One verb that goes on."""
        return subprocess.Popen(
            [*self.words, str(CLIENT), *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environment(env),
        )

    def claim(self, *kinds: str, env: Mapping[str, str] | None = None) -> tuple[str, Path]:
        """The handle and the file of a claim."""
        handle, file = self.run("claim_task", *kinds, env=env).line.split("\t")
        return handle, Path(file)


def shell(name: str, folder: Path, yard: str) -> Shell:
    """This shell with the tools that belong to it: coreutils with dash, busybox's own applets with busybox."""
    binary = found(name)
    if name == "dash":
        return Shell([binary], os.environ["PATH"], yard)
    applets = folder / "applets"
    if not applets.exists():
        applets.mkdir()
        for applet in subprocess.run([binary, "--list"], capture_output=True, text=True, check=True).stdout.split():
            (applets / applet).symlink_to(binary)
    return Shell([str(applets / "sh")], str(applets), yard)


def found(name: str) -> str:
    """The path of this program: the one that is installed, or the one in its package."""
    path = shutil.which(name)
    if path is None or not _minds_path(name, path):
        path = shutil.which(tools.unpacked(name) / "bin" / name)
    if path is None:
        tools.lacking(f"no {name} here (Debian: apt-get install {name})")
    return path


def _minds_path(name: str, path: str) -> bool:
    """Whether this shell runs what PATH names: a busybox that prefers its own applets cannot be given tools that fail."""
    if name != "busybox":
        return True
    words = [path, "sh", "-c", "command -v cat"]
    return subprocess.run(words, env={"PATH": "/nowhere"}, capture_output=True, check=False).returncode != 0
