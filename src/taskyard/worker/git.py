"""Calls of git in one repository: with a clean environment, and again when another git holds a lock."""

from __future__ import annotations

import os
import random
import subprocess
import time
from typing import TYPE_CHECKING

from taskyard.core.errors import Invalid, Unavailable
from taskyard.core.times import ticks

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 60.0  # seconds to wait for another git that holds a lock
_LOCKED = (".lock'", "could not lock", "cannot lock ref", "Unable to create")
# Set for hooks and by some tools: with them git would work in another checkout than the one that is named.
STRAY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY")


class GitFailed(Exception):
    """Git ended with an error; its words are the message."""


class Repository:
    """One git repository, seen from a folder of a checkout."""

    def __init__(self, folder: str) -> None:
        try:
            answer = call(folder, "rev-parse", "--path-format=absolute", "--git-common-dir", "--show-prefix")
        except GitFailed as error:
            raise Invalid(
                f"{folder} is in no git repository: {error}",
                hint="go to the checkout that the workers work on, and repeat the command there",
            ) from None
        self.common, _, self.prefix = answer.partition("\n")
        """The folder that all worktrees share, and where in the checkout this was started from (`sub/`, or nothing)."""
        self.folder = folder

    def git(self, *words: str, folder: str | None = None) -> str:
        """Run git and return its answer; wait while another git holds a lock."""
        end = ticks() + PATIENCE
        while True:
            try:
                return call(folder or self.folder, *words)
            except GitFailed as error:
                if ticks() > end or not any(sign in str(error) for sign in _LOCKED):
                    raise
            time.sleep(random.uniform(0.02, 0.2))  # noqa: S311  so that those who wait do not come back together

    def tells(self, *words: str, folder: str | None = None) -> str | None:
        """Return git's answer, or None if it refuses."""
        try:
            return self.git(*words, folder=folder)
        except GitFailed:
            return None

    def checkout(self) -> str:
        """Return the main checkout's folder: of a submodule that of the repository around it, of a bare one its own name."""
        if os.path.basename(self.common) == ".git":
            return os.path.dirname(self.common)
        if self.tells("rev-parse", "--is-bare-repository", folder=self.common) == "true":
            return self.common.removesuffix(".git")
        top = self.git("rev-parse", "--show-toplevel")
        while around := self.tells("rev-parse", "--show-superproject-working-tree", folder=top):
            top = around
        return top

    def administrations(self) -> Iterator[str]:
        """Yield the folder that git keeps about each linked worktree."""
        base = os.path.join(self.common, "worktrees")
        for name in sorted(os.listdir(base)) if os.path.isdir(base) else ():
            yield os.path.join(base, name)


def call(folder: str, *words: str) -> str:
    """Run git in this folder; return its answer without the last line end, or raise `GitFailed`."""
    environment = {name: value for name, value in os.environ.items() if name not in STRAY}
    try:
        ran = subprocess.run(  # noqa: S603  no shell sees these words
            ["git", "-C", folder, *words],  # noqa: S607  the user's own git
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
            check=False,
        )
    except OSError as error:
        raise Unavailable(f"git cannot be run: {error.strerror}", hint="install git, or leave --worktree out") from None
    if ran.returncode:
        raise GitFailed(ran.stderr.decode("utf-8", "replace").strip() or f"git {words[0]} failed")
    return ran.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")
