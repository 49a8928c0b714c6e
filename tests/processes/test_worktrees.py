"""`work --worktree`: a git worktree and branch for each claim; no clean-up loses work."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.worker.worktree import Worktrees
from tests.conftest import sampled, sized, taken, wait_until
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


OTHERS = [pytest.param(store, marks=pytest.mark.proof) for store in ("postgresql", "http directory")]


@pytest.fixture(params=["directory", *OTHERS])
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
    (folder / "sub" / "ü").write_text("x\n")
    (folder / ".gitignore").write_text("out/\n__pycache__/\n")
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


def test_the_result_leads_to_the_work_though_it_is_on_a_branch_of_its_own(place: str, checkout: Path) -> None:
    for kind, script in (("own", "git checkout -q -b fix"), ("none", "git checkout -q --detach")):
        id = tools.taskyard(place, "add", kind).data["task"]["id"]
        told = f"git rev-parse HEAD > {checkout.parent}/{kind}"
        worked(place, checkout, f"{script} && {COMMIT} && {told}", "--kind", kind)
        result = tools.taskyard(place, "show", id).data["task"]["result"]
        assert result["commit"] == (checkout.parent / kind).read_text().strip()
        assert (result["branch"] == "fix") == (kind == "own")
        assert git(checkout, "cat-file", "-t", result["commit"]) == "commit"


def test_a_command_that_says_done_itself_has_its_branch_in_the_result_too(place: str, checkout: Path) -> None:
    said = f"{tools.IN_SHELL} done --result"
    call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"done","arguments":{"result":{"a":2}}}}'
    scripts = {
        "object": f"{COMMIT} && {said} '{{\"a\": 1}}' && {said} '{{\"a\": 1}}' > /dev/null",
        "text": f"{COMMIT} && {said} '\"text\"'",
        "mcp": f"{COMMIT} && echo '{call}' | {tools.IN_SHELL} mcp",
    }
    results = {}
    for kind, script in scripts.items():
        id = tools.taskyard(place, "add", kind).data["task"]["id"]
        worked(place, checkout, script, "--kind", kind)
        results[kind] = tools.taskyard(place, "show", id).data["task"]["result"]
    assert results["object"].pop("branch").startswith("task/")
    assert results["mcp"].pop("branch").startswith("task/")
    assert results == {"object": {"a": 1}, "text": "text", "mcp": {"a": 2}}


@sized("count", 5, 20)
def test_starts_at_once_have_a_clean_worktree_each(place: str, checkout: Path, count: int) -> None:
    with taskyard.open(place) as yard:
        ids = set(yard.add_many([{"kind": "build"} for _ in range(count)]))
    # Each waits until all have begun, so that all worktrees are there at once; then it says what it sees.
    script = f'git status --porcelain > "$0/$TASKYARD_TASK.part"; mv "$0/$TASKYARD_TASK.part" "$0/$TASKYARD_TASK"; : < "$0.gate"; {COMMIT}'
    seen, gate = checkout.parent / "seen", checkout.parent / "seen.gate"
    seen.mkdir()
    os.mkfifo(gate)  # whoever opens it waits for the test to open it too
    crew = [
        subprocess.Popen(
            [*tools.COMMAND, "work", "--worktree", "--once", "--", "sh", "-c", script, str(seen)],
            cwd=checkout,
            env=tools.environment(TASKYARD=place),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    wait_until(lambda: {path.name for path in seen.iterdir()} == ids, tools.PATIENCE)
    with gate.open("wb"):
        for process in crew:
            out, err = process.communicate(timeout=tools.PATIENCE)
            assert process.returncode == 0, (out, err)
    assert {path.name: path.read_text() for path in seen.iterdir()} == dict.fromkeys(ids, "")
    with taskyard.open(place) as yard:
        results = [yard.get(id).result for id in ids]
    assert len({result["branch"] for result in results}) == count
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
            "ignored": f"{COMMIT} && mkdir out && echo work > out/report",
            "only ignored": "mkdir out && echo work > out/report",
            "overlooked": "git update-index --assume-unchanged readme && echo work > readme",
            "overlooked too": "git update-index --skip-worktree sub/ü && echo work > sub/ü",
            "detached": f"git checkout -q --detach && {COMMIT}",
            "nothing": "true",
            "caches": "mkdir -p sub/__pycache__ out && echo x > sub/__pycache__/a.pyc && echo x > out/CACHEDIR.TAG",
            "failed": f"{COMMIT}; exit 65",
        }
        ids = {name: yard.add(name.replace(" ", "-")).id for name in scripts}
        for name, script in scripts.items():
            work(place, checkout, script, "--kind", name.replace(" ", "-")).communicate(timeout=tools.PATIENCE)
        for name in ("merged", "ignored"):
            git(
                checkout, "merge", "-q", "-X", "ours", "--no-ff", "-m", "merge it", yard.get(ids[name]).result["branch"]
            )
        # A clean-up by the merged branch alone must not take what was done after the merge.
        listed = {one["task"]: one for one in trees(place, checkout)["worktrees"]}
        for name in ("nothing", "caches"):
            assert ids[name] not in listed, "one in which nothing was done goes with its claim"
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
            "ignored": "ignored",
            "only ignored": "ignored",
            "overlooked": "overlooked",
            "overlooked too": "overlooked",
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
        asked = tools.taskyard(place, "worktree", "clean", "--ignored", cwd=checkout).data
        assert {one["task"] for one in asked["removed"]} == {ids["ignored"], ids["only ignored"]}


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


def merged(place: str, checkout: Path) -> tuple[Path, str]:
    """The worktree and branch of a task that is done and merged."""
    id = tools.taskyard(place, "add", "build").data["task"]["id"]
    worked(place, checkout, COMMIT)
    branch = tools.taskyard(place, "show", id).data["task"]["result"]["branch"]
    git(checkout, "merge", "-q", branch)
    return checkout.parent / "project.worktrees" / branch.removeprefix("task/"), branch


def test_a_worktree_that_somebody_sits_in_is_kept(place: str, checkout: Path) -> None:
    tree, _ = merged(place, checkout)
    with subprocess.Popen(["sleep", "600"], cwd=tree / "sub") as sitter:
        [one] = trees(place, checkout, "clean")["kept"]
        assert one["kept"] == f"in use: process {sitter.pid} is in it"
        sitter.kill()
    assert [one["kept"][:6] for one in trees(place, tree, "clean")["kept"]] == ["in use"], "who says it is one too"
    assert trees(place, checkout, "clean")["kept"] == []
    assert not tree.exists()


def test_a_worktree_that_a_person_has_locked_is_kept(place: str, checkout: Path) -> None:
    tree, _ = merged(place, checkout)
    git(checkout, "worktree", "lock", "--reason", "for the demo", str(tree))
    [one] = trees(place, checkout)["worktrees"]
    assert one["kept"] == "locked by 'git worktree lock': for the demo"
    [kept] = trees(place, checkout, "clean")["kept"]
    assert kept["kept"] == one["kept"]


@sampled("facts", [None, "", "{", '{"claim": 5, "branch": "x"}', '{"claim": "x", "branch": "x"}', "[]"], [None, "{"])
def test_a_worktree_of_which_nothing_can_be_read_is_kept_and_hides_no_other(checkout: Path, facts: str | None) -> None:
    place = str(checkout.parent / "yard")
    taskyard.init(place, durability="fast").close()
    tools.taskyard(place, "add", "build")
    worked(place, checkout, COMMIT)
    broken = next(checkout.glob(".git/worktrees/*/taskyard.json"))
    merged(place, checkout)
    if facts is None:
        broken.unlink()  # as of a worker that was killed while it made the worktree
    else:
        broken.write_text(facts)
    assert len(trees(place, checkout)["worktrees"]) == 2
    cleaned = trees(place, checkout, "clean")
    [kept] = cleaned["kept"]
    assert kept["kept"].startswith("nobody knows whose it is")
    assert Path(kept["path"]).is_dir()
    assert tools.taskyard(place, "worktree", "list", cwd=checkout).code == 0


def test_a_worktree_is_found_by_a_relative_path_as_newer_gits_keep_it(place: str, checkout: Path) -> None:
    tools.taskyard(place, "add", "build")
    worked(place, checkout, COMMIT)
    [before] = trees(place, checkout)["worktrees"]
    [pointer] = checkout.glob(".git/worktrees/*/gitdir")
    pointer.write_text(os.path.relpath(pointer.read_text().strip(), pointer.parent) + "\n")
    assert trees(place, checkout)["worktrees"] == [before]
    assert before["kept"].startswith("unmerged")


def test_a_branch_that_another_checkout_has_outlives_its_worktree(place: str, checkout: Path) -> None:
    tree, branch = merged(place, checkout)
    git(tree, "checkout", "-q", "--detach")
    git(checkout, "branch", "copy", branch)
    git(checkout, "checkout", "-q", branch)
    assert len(trees(place, checkout, "clean")["removed"]) == 1
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "rev-parse", "HEAD") == git(checkout, "rev-parse", "copy")


def test_a_repository_without_a_commit_is_refused_before_a_claim(place: str, tmp_path: Path) -> None:
    tools.taskyard(place, "add", "build")
    git(tmp_path, "init", "-q", "empty")
    process = work(place, tmp_path / "empty", "true")
    _, err = process.communicate(timeout=tools.PATIENCE)
    assert process.returncode == 2
    assert "make a first commit" in err
    assert tools.taskyard(place, "stats").data["counts"]["todo"] == 1


def test_worktrees_of_a_submodule_and_of_a_bare_repository_lie_beside_them(checkout: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(checkout), "bare.git")
    git(tmp_path, "init", "-q", "around")
    git(tmp_path / "around", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(checkout), "inner")
    assert Worktrees(str(tmp_path / "around" / "inner" / "sub")).place == str(tmp_path / "around.worktrees")
    assert Worktrees(str(tmp_path / "bare.git")).place == str(tmp_path / "bare.worktrees")
    git(checkout, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert Worktrees(str(tmp_path / "linked")).place == str(tmp_path / "project.worktrees")


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
