"""Which worktrees of claims are kept, and why; removal of those that hold nothing that is not elsewhere."""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING, Any

from taskyard.core.errors import NotFound
from taskyard.core.task import Handle
from taskyard.worker.git import GitFailed
from taskyard.worker.worktree import FACTS, PREFIX

if TYPE_CHECKING:
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


def listed(repository: Repository, yard: YardPort) -> list[dict[str, Any]]:
    """Return each worktree of a claim: its place, branch, commit, claim and task's state, and why it is kept, or None."""
    found = []
    for about in repository.administrations():
        facts = _facts(about)
        if facts is not None:
            found.append(_described(repository, yard, about, facts))
    return found


def clean(repository: Repository, yard: YardPort) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Remove every worktree that need not be kept; return those that were removed, and those that were kept."""
    removed: list[dict[str, Any]] = []
    kept: list[dict[str, Any]] = []
    for one in listed(repository, yard):
        if one["kept"] is None:
            try:
                remove(repository, one["path"], one["branch"])
            except GitFailed as error:
                one["kept"] = f"git does not remove it: {error}"
        (removed if one["kept"] is None else kept).append(one)
    return removed, kept


def remove(repository: Repository, path: str, branch: str) -> None:
    """Remove a worktree without force, so that git looks once more; then its branch, if it is still where it was."""
    tip = repository.tells("rev-parse", "--verify", f"refs/heads/{branch}")
    repository.git("worktree", "remove", path)
    if tip is not None and _is_elsewhere(repository, tip, branch):
        repository.git("update-ref", "-d", f"refs/heads/{branch}", tip)


def why_kept(repository: Repository, path: str, branch: str) -> str | None:
    """Return what in this worktree would be lost with it; None if nothing would."""
    if not os.path.isdir(path):
        return f"its folder is gone; 'git worktree repair' finds one that was moved, and the branch {branch} is kept"
    try:
        changed = repository.git("status", "--porcelain", "--untracked-files=all", folder=path)
        about = repository.git("rev-parse", "--absolute-git-dir", folder=path)
        heads = [repository.git("rev-parse", "--verify", "HEAD^{commit}", folder=path)]
        heads += filter(None, [repository.tells("rev-parse", "--verify", "-q", f"refs/heads/{branch}")])
        unmerged = [head for head in dict.fromkeys(heads) if not _is_elsewhere(repository, head, branch)]
    except GitFailed as error:
        return f"git cannot read it: {error}"
    if changed:
        return f"uncommitted: {len(changed.splitlines())} changed or new files"
    middle = next((words for name, words in _MIDDLE.items() if os.path.exists(os.path.join(about, name))), None)
    if middle is not None:
        return f"it is in the middle of {middle}"
    if unmerged:
        return f"unmerged: no other branch has commit {unmerged[0][:12]}"
    return None


def _is_elsewhere(repository: Repository, commit: str, branch: str) -> bool:
    """Whether a branch that is no claim's own has this commit."""
    names = repository.git("for-each-ref", "--format=%(refname)", f"--contains={commit}", "refs/heads", "refs/remotes")
    claims = (f"refs/heads/{branch}", f"refs/heads/{PREFIX}")
    return any(not name.startswith(claims) for name in names.splitlines())


def _facts(about: str) -> dict[str, Any] | None:
    try:
        with open(os.path.join(about, FACTS), encoding="utf-8") as file:
            facts = json.load(file)
        with open(os.path.join(about, "gitdir"), encoding="utf-8") as file:
            path = os.path.dirname(file.read().strip())
        return {"path": path, "branch": str(facts["branch"]), "claim": facts["claim"], "yard": facts.get("yard")}
    except (OSError, ValueError, KeyError, TypeError):
        return None  # somebody else's worktree


def _described(repository: Repository, yard: YardPort, about: str, facts: dict[str, Any]) -> dict[str, Any]:
    handle = Handle.parse(facts["claim"])
    branch, path = facts["branch"], facts["path"]
    return {
        "path": path,
        "branch": branch,
        "commit": repository.tells("rev-parse", "--verify", "-q", f"refs/heads/{branch}"),
        "claim": str(handle),
        "task": handle.id,
        "state": _state(yard, handle.id) if facts["yard"] == yard.label else None,
        "kept": _in_use(yard, about, handle, facts["yard"]) or why_kept(repository, path, branch),
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
