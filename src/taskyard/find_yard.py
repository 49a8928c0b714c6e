"""Find the nearest yard upward; from a linked git worktree the search goes on in the main checkout."""

from __future__ import annotations

import os


def nearest(start: str, name: str, mark: str = "yard.json") -> str | None:
    """Return the path of the nearest directory called `name` that holds a `mark`, upward from `start`; None if there is none."""
    folder = os.path.abspath(start)
    while True:
        candidate = os.path.join(folder, name)
        if _is_one(candidate, mark):
            return candidate
        main = main_checkout(folder)
        if main is not None:
            # The same place in the main checkout, so that a worktree's subfolder finds the yard of the same subfolder there.
            found = nearest(os.path.join(main, os.path.relpath(start, folder)), name, mark)
            if found is not None:
                return found
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _is_one(candidate: str, mark: str) -> bool:
    """Whether this is a yard, also one that is shut to this user: opening it tells so, and one further up is another."""
    try:
        os.stat(os.path.join(candidate, mark))
    except PermissionError:
        return os.path.isdir(candidate)
    except OSError:
        return False
    return True


def main_checkout(folder: str) -> str | None:
    """Return the main checkout's root if this folder is the root of a linked git worktree, else None."""
    pointer = os.path.join(folder, ".git")
    try:
        with open(pointer, encoding="utf-8") as file:
            label, _, gitdir = file.read(4096).strip().partition(": ")
        if label != "gitdir":
            return None
        gitdir = os.path.join(folder, gitdir)
        with open(os.path.join(gitdir, "commondir"), encoding="utf-8") as file:
            common = os.path.normpath(os.path.join(gitdir, file.read(4096).strip()))
    except (OSError, UnicodeDecodeError):
        return None  # an ordinary checkout (.git is a directory), a submodule (no commondir), or no checkout at all
    root = os.path.dirname(common)
    return root if root != folder and os.path.basename(common) == ".git" else None
