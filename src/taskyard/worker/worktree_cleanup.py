"""Which worktrees of claims are kept, and why; removal of those that hold nothing that is not elsewhere."""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING, Any

from taskyard.core.errors import Invalid, NotFound
from taskyard.core.task import Handle
from taskyard.worker.git import GitFailed
from taskyard.worker.guard import processes
from taskyard.worker.worktree import FACTS, PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.port import YardPort
    from taskyard.worker.git import Repository

# What git leaves in a worktree's folder in the middle of something: the files may be clean, and work is lost all the same.
_MIDDLE = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisect",
}
_CACHES = ("__pycache__", "node_modules")  # without the mark of a cache, a file CACHEDIR.TAG, that most others have


def listed(repository: Repository, yard: YardPort, *, ignored: bool = False) -> list[dict[str, Any]]:
    """Return each worktree of a claim: its place, branch, commit, claim and task's state, and why it is kept, or None."""
    found = []
    for about in repository.administrations():
        facts = _facts(about)
        if facts is not None:
            found.append(_described(repository, yard, about, facts, ignored))
    return found


def clean(
    repository: Repository, yard: YardPort, *, ignored: bool = False
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Remove every worktree that need not be kept; return those that were removed, and those that were kept.

    With `ignored`, files that git ignores are no reason to keep one.
    """
    removed: list[dict[str, Any]] = []
    kept: list[dict[str, Any]] = []
    for one in listed(repository, yard, ignored=ignored):
        if one["kept"] is None:
            try:
                remove(repository, one["path"], one["branch"])
            except GitFailed as error:
                one["kept"] = f"git does not remove it: {str(error).splitlines()[0]}"  # the rest is advice
        (removed if one["kept"] is None else kept).append(one)
    return removed, kept


def remove(repository: Repository, path: str, branch: str) -> None:
    """Remove a worktree without force, so that git looks once more; then its branch, if it is still where it was."""
    tip = repository.tells("rev-parse", "--verify", f"refs/heads/{branch}")
    repository.git("worktree", "remove", path)
    if tip is not None and _is_elsewhere(repository, tip, branch) and not _is_checked_out(repository, branch):
        repository.git("update-ref", "-d", f"refs/heads/{branch}", tip)


def why_kept(repository: Repository, path: str, branch: str, *, ignored: bool = False) -> str | None:
    """Return what in this worktree would be lost with it; None if nothing would. With `ignored`, ignored files may be."""
    try:
        return next(_reasons(repository, path, branch, ignored), None)
    except GitFailed as error:
        return f"git cannot read it: {error}"


def _reasons(repository: Repository, path: str, branch: str, ignored: bool) -> Iterator[str]:
    """Yield what would be lost; what matters most comes first."""
    if not os.path.isdir(path):
        yield f"its folder is gone; 'git worktree repair' finds one that was moved, and the branch {branch} is kept"
        return
    seen = repository.git(
        "status", "--porcelain", "--untracked-files=all", "--ignored=matching", folder=path
    ).splitlines()
    unkept = [line[3:] for line in seen if line.startswith("!!")]
    if len(seen) > len(unkept):
        yield f"uncommitted: {len(seen) - len(unkept)} changed or new files"
    unkept = [name for name in unkept if not _is_cache(path, name)]
    about = repository.git("rev-parse", "--absolute-git-dir", folder=path)
    yield from _in_the_middle(about)
    heads = [repository.git("rev-parse", "--verify", "HEAD^{commit}", folder=path)]
    heads += filter(None, [repository.tells("rev-parse", "--verify", "-q", f"refs/heads/{branch}")])
    for head in heads:
        if not _is_elsewhere(repository, head, branch):
            yield f"unmerged: no other branch has commit {head[:12]}"
    for name in _unseen(repository, path):
        yield f"overlooked: git was told not to see changes of {name}"
    if unkept and not ignored:
        yield f"ignored: git keeps no copy of {len(unkept)} files or folders, the first is {unkept[0]}"
    for pid in _sitters(path):
        yield f"in use: process {pid} is in it"


def _is_cache(path: str, name: str) -> bool:
    """Whether this is, or is in, a folder that a tool fills again by itself: marked as a cache, or known by its name."""
    parts = name.rstrip("/").split("/")
    folders = ["/".join(parts[:depth]) for depth in range(1, len(parts) + name.endswith("/"))]
    return any(
        os.path.basename(folder) in _CACHES or os.path.isfile(os.path.join(path, folder, "CACHEDIR.TAG"))
        for folder in folders
    )


def _in_the_middle(about: str) -> Iterator[str]:
    """Yield what git's own folder about a worktree says against its removal."""
    if os.path.exists(os.path.join(about, "locked")):
        with open(os.path.join(about, "locked"), encoding="utf-8", errors="replace") as file:
            yield f"locked by 'git worktree lock': {' '.join(file.read().split()) or 'no reason was given'}"
    for name, words in _MIDDLE.items():
        if os.path.exists(os.path.join(about, name)):
            yield f"it is in the middle of {words}"


def _unseen(repository: Repository, path: str) -> list[str]:
    """Return the files whose changes git does not show: marked with `assume-unchanged`, or `skip-worktree` and there."""
    files = repository.git("ls-files", "-v", "-z", folder=path).split("\0")[:-1]  # without -z, names may be in quotes
    marked = [line for line in files if not line.startswith("H")]
    return [line[2:] for line in marked if line[0].islower() or os.path.lexists(os.path.join(path, line[2:]))]


def _sitters(path: str) -> Iterator[int]:
    """Yield the processes whose working directory is in this folder, if the system shows them."""
    folder = os.path.realpath(path)
    for pid in processes() or ():
        try:
            if f"{os.readlink(f'/proc/{pid}/cwd')}/".startswith(f"{folder}/"):
                yield pid
        except OSError:
            continue  # it has ended, or is another user's


def _is_checked_out(repository: Repository, branch: str) -> bool:
    """Whether a checkout has this branch: without it that one would have no commit at all."""
    return bool(repository.git("for-each-ref", "--format=%(worktreepath)", f"refs/heads/{branch}"))


def _is_elsewhere(repository: Repository, commit: str, branch: str) -> bool:
    """Whether a branch that is no claim's own has this commit."""
    names = repository.git("for-each-ref", "--format=%(refname)", f"--contains={commit}", "refs/heads", "refs/remotes")
    claims = (f"refs/heads/{branch}", f"refs/heads/{PREFIX}")
    return any(not name.startswith(claims) for name in names.splitlines())


def _facts(about: str) -> dict[str, Any] | None:
    """Return what is known of a worktree; None if it is no claim's. Of one whose facts cannot be read, no claim is known."""
    path, branch = None, None
    try:
        with open(os.path.join(about, "gitdir"), encoding="utf-8") as file:
            pointer = os.path.join(about, file.read().strip())  # newer gits may keep a relative one
        path = os.path.dirname(os.path.normpath(pointer))
        with open(os.path.join(about, "HEAD"), encoding="utf-8") as file:
            branch = file.read().strip().removeprefix("ref: refs/heads/")
        with open(os.path.join(about, FACTS), encoding="utf-8") as file:
            facts = json.load(file)
        claim = Handle.parse(facts["claim"])
        return {"path": path, "branch": str(facts["branch"]), "claim": claim, "yard": facts.get("yard")}
    except FileNotFoundError:
        # Without facts it is somebody else's, or a worker was killed while it made it.
        if path is None or branch != PREFIX + os.path.basename(path):
            return None
        return {"path": path, "branch": branch, "claim": None, "yard": None}
    except (OSError, ValueError, KeyError, TypeError, Invalid):
        return {"path": path, "branch": branch, "claim": None, "yard": None}


def _described(
    repository: Repository, yard: YardPort, about: str, facts: dict[str, Any], ignored: bool
) -> dict[str, Any]:
    handle, branch, path = facts["claim"], facts["branch"], facts["path"]
    if handle is None:
        unknown = f"nobody knows whose it is: {os.path.join(about, FACTS)} cannot be read"
        return {**facts, "commit": None, "task": None, "state": None, "kept": unknown}
    return {
        "path": path,
        "branch": branch,
        "commit": repository.tells("rev-parse", "--verify", "-q", f"refs/heads/{branch}"),
        "claim": str(handle),
        "task": handle.id,
        "state": _state(yard, handle.id) if facts["yard"] == yard.label else None,
        "kept": _in_use(yard, about, handle, facts["yard"]) or why_kept(repository, path, branch, ignored=ignored),
    }


def _state(yard: YardPort, id: str) -> str | None:
    try:
        return str(yard.get(id).state)
    except NotFound:
        return None  # pruned


def _in_use(yard: YardPort, about: str, handle: Handle, label: str | None) -> str | None:
    if _is_locked(os.path.join(about, FACTS)):
        return "in use: its worker runs"
    if label != yard.label:
        return f"it belongs to the yard {label}"
    return "in use: its claim holds" if yard.holding([handle])[0] else None


def _is_locked(path: str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
