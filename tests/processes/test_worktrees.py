"""`work --worktree`: a git worktree and branch for each claim; no clean-up loses work."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from tests.conftest import taken, wait_until
from tests.processes import tools
from tests.servers import postgres
from tests.servers.gateway import Running

if TYPE_CHECKING:
    from collections.abc import Iterator

WHO = ("-c", "user.name=ada", "-c", "user.email=ada@example.org")
COMMIT = 'echo "$TASKYARD_TASK" > work.txt && git add . && git -c user.name=ada -c user.email=ada@example.org commit -q -m work'


def git(folder: Path | str, *words: str) -> str:
    ran = subprocess.run(
        ["git", "-C", str(folder), *WHO, *words], capture_output=True, text=True, env=tools.environment(), check=False
    )
    assert ran.returncode == 0, (words, ran.stderr)
    return ran.stdout.strip()


@pytest.fixture(params=["directory", "postgresql", "http directory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a new yard, in each sort of store."""
    if request.param == "postgresql":
        url = postgres.url()
        taskyard.init(url).close()
        yield url
        return
    with taskyard.init(tmp_path / "yard", durability="fast") as near:
        if request.param == "directory":
            yield near.url
            return
        running = Running({"default": near})
        yield running.url()
        running.stop()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "project"
    git(tmp_path, "init", "-q", "-b", "main", str(folder))
    (folder / "readme").write_text("hello\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("x\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def work(place: str, checkout: Path, script: str, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*tools.COMMAND, "work", "--worktree", "--drain", *options, "--", "sh", "-c", script],
        cwd=checkout,
        env=tools.environment(TASKYARD=place),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def worked(place: str, checkout: Path, script: str, *options: str) -> None:
    process = work(place, checkout, script, *options)
    out, err = process.communicate(timeout=tools.PATIENCE)
    assert process.returncode == 0, (out, err)


def trees(place: str, checkout: Path, act: str = "list") -> Any:
    return tools.taskyard(place, "worktree", act, cwd=checkout).data


def test_a_command_works_on_a_branch_that_the_claim_names_and_the_result_says_which(place: str, checkout: Path) -> None:
    added = tools.taskyard(place, "add", "build").data["task"]
    said = 'echo "{\\"cwd\\": \\"$PWD\\", \\"tree\\": \\"$TASKYARD_WORKTREE\\", \\"fence\\": $TASKYARD_FENCE}"'
    worked(place, checkout / "sub", f"{COMMIT} && {said}")
    shown = tools.taskyard(place, "show", added["id"]).data
    result = shown["task"]["result"]
    tree = checkout.parent / "project.worktrees" / f"{added['short']}-1"
    assert (result["tree"], result["cwd"], result["fence"]) == (str(tree), str(tree / "sub"), 1)
    assert result["branch"] == f"task/{added['short']}-1"
    assert result["commit"] == git(checkout, "rev-parse", result["branch"]) != git(checkout, "rev-parse", "main")
    assert result["branch"] in shown["notes"][0]["text"]
    assert git(checkout, "status", "--porcelain") == "", "the checkout itself was not touched"


def test_twenty_starts_at_once_have_twenty_clean_worktrees(place: str, checkout: Path) -> None:
    with taskyard.open(place) as yard:
        ids = set(yard.add_many([{"kind": "build"} for _ in range(20)]))
    # Each waits until all have begun, so that all worktrees are there at once; then it says what it sees.
    script = f'git status --porcelain > "$0/$TASKYARD_TASK.part"; mv "$0/$TASKYARD_TASK.part" "$0/$TASKYARD_TASK"; while [ "$(ls "$0" | wc -l)" -lt 20 ]; do sleep 0.05; done; {COMMIT}'
    seen = checkout.parent / "seen"
    seen.mkdir()
    crew = [
        subprocess.Popen(
            [*tools.COMMAND, "work", "--worktree", "--once", "--", "sh", "-c", script, str(seen)],
            cwd=checkout,
            env=tools.environment(TASKYARD=place),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(20)
    ]
    for process in crew:
        out, err = process.communicate(timeout=tools.PATIENCE)
        assert process.returncode == 0, (out, err)
    assert {path.name: path.read_text() for path in seen.iterdir()} == dict.fromkeys(ids, "")
    with taskyard.open(place) as yard:
        results = [yard.get(id).result for id in ids]
    assert len({result["branch"] for result in results}) == 20
    for result in results:
        assert git(checkout, "rev-parse", result["branch"]) == result["commit"]
    git(checkout, "fsck", "--no-dangling")
    assert {one["task"] for one in trees(place, checkout)["worktrees"]} == ids


def test_no_clean_up_removes_uncommitted_or_unmerged_work(place: str, checkout: Path) -> None:
    with taskyard.open(place) as yard:
        scripts = {
            "unmerged": COMMIT,
            "merged": COMMIT,
            "untracked": "echo new > new.txt",
            "changed": "echo changed > readme",
            "detached": f"git checkout -q --detach && {COMMIT}",
            "nothing": "true",
            "failed": f"{COMMIT}; exit 65",
        }
        ids = {name: yard.add(name).id for name in scripts}
        for name, script in scripts.items():
            work(place, checkout, script, "--kind", name).communicate(timeout=tools.PATIENCE)
        branch = yard.get(ids["merged"]).result["branch"]
        git(checkout, "merge", "-q", "--no-ff", "-m", "merge it", branch)
        # A clean-up by the merged branch alone must not take what was done after the merge.
        listed = {one["task"]: one for one in trees(place, checkout)["worktrees"]}
        assert ids["nothing"] not in listed, "one in which nothing was done goes with its claim"
        files = {one["path"]: _content(one["path"]) for one in listed.values()}
        cleaned = trees(place, checkout, "clean")
        assert [one["task"] for one in cleaned["removed"]] == [ids["merged"]]
        for _ in range(2):
            kept = {one["task"]: one["kept"] for one in trees(place, checkout, "clean")["kept"]}
        names = {name: kept[id].partition(":")[0] for name, id in ids.items() if id in kept}
        assert names == {
            "unmerged": "unmerged",
            "untracked": "uncommitted",
            "changed": "uncommitted",
            "detached": "unmerged",
            "failed": "unmerged",
        }
        gone = next(one["path"] for one in listed.values() if one["task"] == ids["merged"])
        assert not os.path.exists(gone)
        assert {path: _content(path) for path in files if path != gone} == {
            path: content for path, content in files.items() if path != gone
        }
        assert yard.get(ids["changed"]).result["uncommitted"] is True
        notes = " ".join(note["text"] for note in yard.report(ids["failed"]).notes)
        assert listed[ids["failed"]]["branch"] in notes, "the next worker finds what a failed one left"


def _content(path: str) -> dict[str, str]:
    return {str(file.relative_to(path)): file.read_text() for file in Path(path).rglob("*") if file.is_file()}


def test_a_worktree_is_kept_while_its_claim_holds_and_after_its_worker_was_killed(place: str, checkout: Path) -> None:
    with taskyard.open(place) as yard:
        id = yard.add("build", lease=8).id  # where only its lease tells that a worker is dead
        process = work(place, checkout, "echo half > half.txt; sleep 600", "--grace", "0.1")
        [one] = wait_until(lambda: trees(place, checkout)["worktrees"])
        wait_until((Path(one["path"]) / "half.txt").exists)
        assert trees(place, checkout)["worktrees"][0]["kept"] == "in use: its worker runs"
        process.kill()
        process.communicate()
        assert [kept["task"] for kept in trees(place, checkout, "clean")["kept"]] == [id]
        wait_until(lambda: yard.sweep() and yard.get(id).state == "todo")
        again = taken(yard.claim(id))
        assert [kept["kept"].partition(":")[0] for kept in trees(place, checkout, "clean")["kept"]] == ["uncommitted"]
        assert one["path"] in json.dumps(again.history)
        assert (Path(one["path"]) / "half.txt").read_text() == "half\n"


def test_a_branch_of_the_same_name_is_left_alone(place: str, checkout: Path) -> None:
    added = tools.taskyard(place, "add", "build").data["task"]
    git(checkout, "branch", f"task/{added['short']}-1")
    before = git(checkout, "rev-parse", f"task/{added['short']}-1")
    worked(place, checkout, COMMIT)
    result = tools.taskyard(place, "show", added["id"]).data["task"]["result"]
    assert result["branch"].startswith(f"task/{added['id']}.1.")
    assert git(checkout, "rev-parse", f"task/{added['short']}-1") == before


def test_a_worker_outside_of_a_repository_is_refused_before_it_claims(place: str, tmp_path: Path) -> None:
    tools.taskyard(place, "add", "build")
    process = work(place, tmp_path, "true")
    _, err = process.communicate(timeout=tools.PATIENCE)
    assert process.returncode == 2
    assert "is in no git repository" in err
    assert tools.taskyard(place, "stats").data["counts"]["todo"] == 1


def test_a_check_runs_in_the_worktree(place: str, checkout: Path) -> None:
    id = tools.taskyard(place, "add", "build", "--verify", "there").data["task"]["id"]
    worked(place, checkout, COMMIT, "--check", "there=test -e work.txt")
    assert tools.taskyard(place, "show", id).data["task"]["state"] == "done"
