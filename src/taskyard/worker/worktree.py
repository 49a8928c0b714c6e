"""A git worktree and branch for one claim, named by the claim: `0-kf12-3` is fence 3 of task 0-kf12.

What Taskyard knows of a worktree lies in git's own folder about it (`.git/worktrees/NAME/taskyard.json`), and goes with it.
The worker holds a lock on that file as long as the claim's work goes on.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from typing import TYPE_CHECKING, Any

from taskyard.core import ids
from taskyard.core.errors import Invalid, Unavailable
from taskyard.worker.git import STRAY, GitFailed, Repository

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.yard.claim import Claim

FACTS = "taskyard.json"
PREFIX = "task/"  # of every branch


class Worktrees:
    """Makes worktrees of one repository, in one folder."""

    def __init__(self, folder: str, place: str | None = None) -> None:
        self.repository = Repository(folder)
        if self.repository.tells("rev-parse", "--verify", "-q", "HEAD^{commit}") is None:
            raise Invalid(
                f"the repository of {folder} has no commit yet, and a worktree begins at one",
                hint="make a first commit, and say it again",
            )
        self.place = os.path.abspath(place) if place else f"{self.repository.checkout()}.worktrees"

    def make(self, claim: Claim) -> Worktree:
        """Make the worktree of this claim, from the commit that the checkout has now; raise `Unavailable` if git cannot."""
        git = self.repository.git
        try:
            base = git("rev-parse", "--verify", "HEAD^{commit}")
            os.makedirs(self.place, exist_ok=True)
            with _alone(self.repository.common):
                name = self._free_name(claim)
                path, branch = os.path.join(self.place, name), PREFIX + name
                # Without a checkout, which may take long: that is done outside of the lock.
                git("worktree", "add", "-q", "--no-track", "--no-checkout", "-b", branch, path, base)
                tree = Worktree(self.repository, path, branch, base)
                tree.describe(claim)
            try:
                git("checkout", "-q", "-f", branch, "--", folder=path)
            except GitFailed:
                tree.discard()
                raise
        except GitFailed as error:
            raise Unavailable(f"git cannot make a worktree in {self.place}: {error}") from None
        except OSError as error:
            raise Unavailable(f"no worktree can be made in {self.place}: {error.strerror or error}") from None
        return tree

    def _free_name(self, claim: Claim) -> str:
        """Return the short name, or the whole handle if another claim has had that: a power cut can make a fence come again."""
        short = f"{ids.short(claim.id)}-{claim.fence}"
        taken = os.path.lexists(os.path.join(self.place, short))
        if taken or self.repository.tells("rev-parse", "--verify", "-q", f"refs/heads/{PREFIX}{short}") is not None:
            return claim.handle
        return short


class Worktree:
    """The worktree of one claim that is being worked on."""

    def __init__(self, repository: Repository, path: str, branch: str, base: str) -> None:
        self.repository = repository
        self.path = path
        self.branch = branch
        self.base = base
        self._lock: int | None = None

    def describe(self, claim: Claim) -> None:
        """Write down whose worktree this is, and lock that."""
        about = self.repository.git("rev-parse", "--absolute-git-dir", folder=self.path)
        facts = {"claim": claim.handle, "yard": claim.yard.label, "branch": self.branch, "base": self.base}
        self._lock = os.open(os.path.join(about, FACTS), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(self._lock, json.dumps(facts).encode() + b"\n")
        os.fsync(self._lock)

    @property
    def folder(self) -> str:
        """Where a command starts: the same folder of the worktree as the worker's in its own checkout."""
        folder = os.path.join(self.path, self.repository.prefix)
        return folder if os.path.isdir(folder) else self.path

    def environment(self) -> dict[str, str | None]:
        """Return the variables about it for a command; None takes one away."""
        return {**dict.fromkeys(STRAY), "TASKYARD_WORKTREE": self.path, "TASKYARD_BRANCH": self.branch}

    def result(self, result: Any) -> Any:
        """Return the task's result with branch and commit in it; one that is no object stays as it is."""
        if result is not None and not isinstance(result, dict):
            return result
        # A command may have made a branch of its own: what it has checked out at its end leads to its work.
        tells = self.repository.tells
        branch = tells("symbolic-ref", "--short", "-q", "HEAD", folder=self.path) or self.branch
        head = tells("rev-parse", "--verify", "HEAD^{commit}", folder=self.path)
        where: dict[str, Any] = {"branch": branch}
        where["commit"] = head or tells("rev-parse", "--verify", f"refs/heads/{self.branch}")
        if tells("status", "--porcelain", "--untracked-files=all", folder=self.path):
            where["uncommitted"] = True
        return {**where, **(result or {})}

    def discard(self) -> None:
        """Remove a worktree that no command has worked in."""
        self._unlock()
        self.repository.tells("worktree", "remove", "--force", self.path)
        self.repository.tells("update-ref", "-d", f"refs/heads/{self.branch}", self.base)

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def close(self) -> None:
        """Unlock it, and remove it if nothing was done in it."""
        from taskyard.worker.worktree_cleanup import remove, why_kept

        self._unlock()
        with contextlib.suppress(Unavailable, GitFailed, OSError):
            tip = self.repository.tells("rev-parse", "--verify", f"refs/heads/{self.branch}")
            if tip == self.base and why_kept(self.repository, self.path, self.branch) is None:
                remove(self.repository, self.path, self.branch)


@contextlib.contextmanager
def _alone(common: str) -> Iterator[None]:
    """Let one process after the other add a worktree: git's own locks are not all waited for."""
    lock = os.open(os.path.join(common, "taskyard.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
