"""`worktree`: the git worktrees that `work --worktree` made, which of them are kept and why."""

from __future__ import annotations

import os

from taskyard.core import ids
from taskyard.core.errors import Invalid
from taskyard.doors.cli.parser import Command, Option
from taskyard.doors.cli.replies import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def worktree(call: Call) -> Reply:
    """List the worktrees of claims, or remove those that need not be kept."""
    from taskyard.worker import worktree_cleanup
    from taskyard.worker.git import Repository

    act = call.given.words[0]
    if act not in ("list", "clean"):
        raise Invalid(
            f"worktree has no {ascii(act)[:40]}", hint="'taskyard worktree list' or 'taskyard worktree clean'"
        )
    yard, repository, ignored = call.yard, Repository(os.getcwd()), call.given.flag("ignored")
    if act == "list":
        found = worktree_cleanup.listed(repository, yard, ignored=ignored)
        return Reply({"worktrees": found}, lambda: _lines(found) or "there is no worktree of a claim")
    removed, kept = worktree_cleanup.clean(repository, yard, ignored=ignored)

    def text() -> str:
        gone = [f"removed {one['path']}" for one in removed]
        return "\n".join(filter(None, ("\n".join(gone), _lines(kept)))) or "there is no worktree of a claim"

    return Reply({"removed": removed, "kept": kept}, text)


def _lines(found: list[dict[str, Any]]) -> str:
    return "\n".join(
        f"{ids.short(one['task']) if one['task'] else '-'}  {one['state'] or '-'}  {one['branch']}  {one['path']}\n"
        f"  {'kept: ' + one['kept'] if one['kept'] else 'nothing in it would be lost'}"
        for one in found
    )


COMMANDS = {
    "worktree": Command(
        worktree,
        "The git worktrees that 'work --worktree' made for claims. list says which are kept and why. clean removes those whose claim is over, "
        "whose files are all committed and whose commits another branch has; it never removes uncommitted or unmerged work, "
        "and files that git ignores only with --ignored.",
        (
            ("taskyard worktree list", "each worktree, its task, and why it is kept"),
            ("taskyard worktree clean", "remove what is merged, and say what is kept"),
        ),
        options=(
            Option(
                "--ignored", None, "files that git ignores, such as what a build has made, are no reason to keep one"
            ),
        ),
        words="list|clean",
        least=1,
        most=1,
    ),
}
