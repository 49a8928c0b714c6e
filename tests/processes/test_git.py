"""A yard in a git checkout: out of git's sight, and the same one for all worktrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.processes import tools

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git checkout with one commit, a subdirectory, and no yard."""
    root = tmp_path / "main"
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "docs" / "deep" / "page.md").write_text("a page\n")
    (root / ".gitignore").write_text("*.log\n")
    tools.git(root, "init", "--quiet")
    tools.git(root, "add", ".")
    tools.git(root, "commit", "--quiet", "-m", "first")
    return root


def made(folder: Path) -> Path:
    return folder.__class__(tools.taskyard(None, "init", cwd=folder).data["yard"])


def added(folder: Path) -> str:
    """Add a task from this folder, to whichever yard is found from there."""
    return str(tools.taskyard(None, "add", "build", cwd=folder).data["task"]["id"])


def test_init_keeps_the_yard_out_of_gits_sight(checkout: Path) -> None:
    before = (checkout / ".gitignore").read_bytes(), (checkout / ".git" / "info" / "exclude").read_bytes()
    yard = made(checkout)
    assert yard == checkout / ".taskyard"
    added(checkout)
    claimed = tools.taskyard(None, "claim", cwd=checkout).data
    tools.taskyard(None, "note", claimed["claim"], "a word", cwd=checkout)
    tools.taskyard(None, "done", claimed["claim"], "--result", "1", cwd=checkout)
    assert tools.git(checkout, "status", "--porcelain", "--untracked-files=all") == ""
    assert ((checkout / ".gitignore").read_bytes(), (checkout / ".git" / "info" / "exclude").read_bytes()) == before
    tools.git(checkout, "add", "--all")
    assert tools.git(checkout, "diff", "--cached", "--name-only") == ""


def test_a_yard_in_a_subdirectory_of_a_checkout_is_hidden_too(checkout: Path) -> None:
    made(checkout / "docs")
    added(checkout / "docs" / "deep")
    assert tools.git(checkout, "status", "--porcelain", "--untracked-files=all") == ""


def test_a_yard_under_a_name_of_its_own_is_hidden_too(checkout: Path) -> None:
    tools.taskyard(None, "init", "crew", cwd=checkout)
    assert tools.git(checkout, "status", "--porcelain", "--untracked-files=all") == ""


@pytest.mark.parametrize("where", ["../side", "inner/side"])
def test_a_linked_worktree_finds_the_main_checkouts_yard(checkout: Path, where: str) -> None:
    yard = made(checkout)
    tools.git(checkout, "worktree", "add", "--quiet", "-b", "side", where)
    worktree = (checkout / where).resolve()
    ids = {added(folder) for folder in (checkout, worktree, worktree / "docs", worktree / "docs" / "deep")}
    assert set(tools.places(yard)) == ids
    assert not (worktree / ".taskyard").exists()
    assert tools.git(worktree, "status", "--porcelain") == ""


def test_a_worktree_finds_the_yard_of_the_main_checkouts_same_subdirectory(checkout: Path) -> None:
    yard = made(checkout / "docs")
    tools.git(checkout, "worktree", "add", "--quiet", "-b", "side", "../side")
    worktree = checkout.parent / "side"
    ids = {added(worktree / "docs"), added(worktree / "docs" / "deep")}
    assert set(tools.places(yard)) == ids
    nothing = tools.taskyard(None, "add", "build", cwd=worktree)
    assert (nothing.code, nothing.error["code"]) == (2, "invalid")


def test_a_worktrees_own_yard_wins(checkout: Path) -> None:
    theirs = made(checkout)
    tools.git(checkout, "worktree", "add", "--quiet", "-b", "side", "../side")
    worktree = checkout.parent / "side"
    own = made(worktree)
    assert own == worktree / ".taskyard"
    id = added(worktree / "docs" / "deep")
    assert set(tools.places(own)) == {id}
    assert tools.places(theirs) == {}


def test_a_submodule_belongs_to_the_checkout_around_it(checkout: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    (part / "lib").mkdir(parents=True)
    (part / "lib" / "code").write_text("code\n")
    tools.git(part, "init", "--quiet")
    tools.git(part, "add", ".")
    tools.git(part, "commit", "--quiet", "-m", "first")
    tools.git(checkout, "submodule", "--quiet", "add", str(part), "vendor/part")
    tools.git(checkout, "commit", "--quiet", "-m", "with a part")
    foreign, yard = made(part), made(checkout)
    id = added(checkout / "vendor" / "part" / "lib")
    assert set(tools.places(yard)) == {id}
    assert tools.places(foreign) == {}
    assert tools.git(checkout, "status", "--porcelain") == ""
    own = made(checkout / "vendor" / "part")
    id = added(checkout / "vendor" / "part" / "lib")
    assert set(tools.places(own)) == {id}
    assert tools.git(checkout, "status", "--porcelain") == ""


def test_a_submodule_in_a_worktree_leads_to_the_main_checkouts_yard(checkout: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.mkdir()
    (part / "code").write_text("code\n")
    tools.git(part, "init", "--quiet")
    tools.git(part, "add", ".")
    tools.git(part, "commit", "--quiet", "-m", "first")
    tools.git(checkout, "submodule", "--quiet", "add", str(part), "vendor/part")
    tools.git(checkout, "commit", "--quiet", "-m", "with a part")
    tools.git(checkout, "worktree", "add", "--quiet", "-b", "side", "../side")
    tools.git(tmp_path / "side", "submodule", "--quiet", "update", "--init")
    yard = made(checkout)
    id = added(tmp_path / "side" / "vendor" / "part")
    assert set(tools.places(yard)) == {id}
