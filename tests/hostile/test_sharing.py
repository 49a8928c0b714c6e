"""A yard that two users of one group share: each works with what the other has made, whatever their umasks are."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import find_yard
from taskyard.doors.cli.verbs.running.sh import client
from tests.conftest import sampled, taken, wait_until
from tests.hostile import imports, verbs
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CREW = 12_000
ADA, BOB, EVE = 12_001, 12_002, 12_003  # Eve is in no group but her own
UMASKS = [0o022, 0o077, 0o002]
PAIRS = [(first, second) for first in UMASKS for second in UMASKS]


def as_user(user: int, umask: int, what: Callable[[], Any], groups: tuple[int, ...] = (CREW,)) -> Any:
    """What this gives in a process of that user's."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            os.setgroups(groups)
            os.setgid(user)
            os.setuid(user)
            os.umask(umask)
            with imports.closed():
                answer = {"said": what()}
        except BaseException:
            answer = {"failed": traceback.format_exc()}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        told = json.loads(stream.read())
    os.waitpid(pid, 0)
    assert "said" in told, told["failed"]
    return told["said"]


@pytest.fixture
def room(loaded: None) -> Iterator[Path]:
    """A folder that the crew shares."""
    if os.geteuid() != 0:
        tools.lacking("only root can be several users")
    folder = Path(tempfile.mkdtemp(prefix="taskyard-shared-"))
    os.chown(folder, ADA, CREW)
    folder.chmod(0o2770)
    yield folder
    shutil.rmtree(folder)


def made(room: Path, umask: int = 0o022) -> Path:
    as_user(ADA, umask, lambda: verbs.say(room / "yard", "init").code)
    return room / "yard"


def do(yard: Path, user: int, umask: int, *argv: str, groups: tuple[int, ...] = (CREW,)) -> Any:
    """What this command says when that user gives it: exit code and envelope."""

    def run() -> Any:
        said = verbs.say(yard, *argv)
        return [said.code, said.envelope]

    code, envelope = as_user(user, umask, run, groups)
    return code, envelope


@sampled("first,second", PAIRS, PAIRS[::4])
def test_two_users_of_a_group_do_each_others_work(room: Path, first: int, second: int) -> None:
    yard = made(room, first)
    for (one, mask), (other, others) in (((ADA, first), (BOB, second)), ((BOB, second), (ADA, first))):
        code, said = do(yard, one, mask, "add", "build", "--key", f"key of {one}")
        assert code == 0, said
        code, said = do(yard, other, others, "claim", "--worker", "other")
        assert code == 0, said
        handle = said["data"]["claim"]
        for argv in (
            ["heartbeat", handle, "--progress", "0.5"],
            ["note", handle, "a word"],
            ["resume", "--worker", "other"],
        ):
            code, said = do(yard, one, mask, *argv)
            assert code == 0, said
        handle = said["data"]["claims"][0]["claim"]
        code, said = do(yard, one, mask, "heartbeat", handle)
        assert code == 0, said
        code, said = do(yard, other, others, "done", handle, "--result", "1")
        assert code == 0, said
        code, said = do(yard, one, mask, "add", "build", "--delay", "1h", "--after", said["data"]["task"]["id"])
        assert code == 0, said
        for argv in (["edit", said["data"]["task"]["id"], "--title", "x"], ["cancel", said["data"]["task"]["id"]]):
            code, said = do(yard, other, others, *argv)
            assert code == 0, said
    for user, mask in ((ADA, first), (BOB, second)):
        for argv in (["janitor"], ["log"], ["list"], ["stats"], ["pause"], ["unpause"], ["add", "fresh"]):
            code, said = do(yard, user, mask, *argv)
            assert code == 0, (argv, said)
    code, said = do(yard, BOB, second, "prune", "--older-than", "0", "--apply")
    assert (code, said["data"]["tasks"]) == (0, 4), said
    assert_shared(yard)


def assert_shared(yard: Path) -> None:
    """All is the group's, and can be written by it; but for the settings, which their owner alone writes."""
    for path in yard.rglob("*"):
        status = path.lstat()
        assert status.st_gid == CREW, path
        want = 0o2070 if path.is_dir() else 0o060
        if path.name != "yard.json":
            assert status.st_mode & want == want, (path, oct(status.st_mode))


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_each_reaps_what_the_other_let_lapse(room: Path, umask: int) -> None:
    yard = made(room, umask)

    def begin() -> str:
        with taskyard.open(str(yard), worker="ada") as opened:
            opened.add("build")
            return taken(opened.claim(lease=0.01)).handle

    def reap() -> int:
        with taskyard.open(str(yard), worker="bob") as opened:
            return wait_until(lambda: opened.sweep().reaped)

    as_user(ADA, umask, begin)
    assert as_user(BOB, umask, reap) == 1
    code, said = do(yard, ADA, umask, "claim")
    assert (code, said["data"]["history"][0]["outcome"]) == (0, "crash")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o664])
@pytest.mark.parametrize("content", ['{"kind": "build"}', '{"kind": "build", "taskId": "t1"}'])
def test_a_file_that_one_drops_is_worked_on_by_the_other(room: Path, mode: int, content: str) -> None:
    yard = made(room)

    def drop() -> None:
        (yard / "todo" / "order.json").write_text(content)
        (yard / "todo" / "order.json").chmod(mode)

    as_user(ADA, 0o022, drop)
    code, said = do(yard, BOB, 0o022, "claim", "--worker", "bob")
    assert code == 0, said
    for user in (BOB, ADA):
        code, beat = do(yard, user, 0o022, "heartbeat", said["data"]["claim"])
        assert code == 0, beat
    assert do(yard, ADA, 0o077, "done", said["data"]["claim"])[0] == 0
    assert do(yard, BOB, 0o022, "stats")[1]["data"]["counts"]["done"] == 1
    assert_shared(yard)


def test_a_file_that_its_owner_keeps_shut_is_set_aside_and_told(room: Path) -> None:
    yard = made(room)
    tools.settle(yard, settle=0)
    (yard / "todo" / "secret.json").write_text('{"kind": "build"}')
    (yard / "todo" / "secret.json").chmod(0o600)  # root's, as `sudo cp` leaves it
    assert do(yard, BOB, 0o022, "add", "other")[0] == 0
    _code, _said = do(yard, BOB, 0o022, "list")
    wait_until(lambda: (yard / "failed" / "secret.json").exists() or not do(yard, BOB, 0o022, "janitor"))
    [aside] = do(yard, BOB, 0o022, "list")[1]["data"]["set_aside"]
    assert "root" in aside["reason"]
    assert "read" in aside["reason"]
    assert (yard / "failed" / "secret.json").read_text() == '{"kind": "build"}'
    assert do(yard, BOB, 0o022, "claim")[0] == 0
    (yard / "failed" / "secret.json").chmod(0o644)
    assert do(yard, BOB, 0o022, "retry", "secret")[0] == 0
    assert do(yard, BOB, 0o022, "claim", "--kind", "build")[0] == 0


def test_whoever_is_not_of_the_group_is_told_so_and_changes_nothing(room: Path) -> None:
    yard = made(room)
    assert do(yard, ADA, 0o022, "add", "build")[0] == 0
    room.chmod(0o2775)
    before = sorted(str(path) for path in yard.rglob("*"))
    for argv in (["add", "build"], ["claim"], ["pause"], ["add", "build", "--key", "k"]):
        code, said = do(yard, EVE, 0o022, *argv, groups=())
        assert (code, said["error"]["code"]) == (8, "unavailable"), (argv, said)
        assert "group" in said["error"]["hint"], said
    assert sorted(str(path) for path in yard.rglob("*")) == before


def test_a_yard_is_private_where_nobody_shares_the_place(room: Path) -> None:
    room.chmod(0o770)
    for umask, mode in ((0o022, 0o755), (0o077, 0o700)):
        yard = room / f"yard-{umask}"
        assert do(yard, ADA, umask, "init")[0] == 0
        assert do(yard, ADA, umask, "add", "build")[0] == 0
        for path in [yard, *yard.rglob("*")]:
            assert stat.S_IMODE(path.stat().st_mode) == (mode if path.is_dir() else mode & 0o666), path
        assert "shared" not in json.loads((yard / "yard.json").read_text())["settings"]
        code, said = do(yard, BOB, 0o022, "add", "build")
        assert code == 8, said


def test_the_nearest_yard_is_refused_where_it_is_shut_and_none_further_up_is_taken_for_it(room: Path) -> None:
    project = room / "project"

    def make() -> None:
        for folder in (room, project):
            (folder / "sub").mkdir(parents=True)
            taskyard.init(folder / ".taskyard").close()
        (project / ".taskyard").chmod(0o700)

    def nearest(start: Path) -> Any:
        return as_user(BOB, 0o022, lambda: find_yard.nearest(str(start), ".taskyard"))

    as_user(ADA, 0o022, make)
    assert nearest(room / "sub") == str(room / ".taskyard")
    assert nearest(project / "sub") == str(project / ".taskyard")
    shut = room / "shut"
    (shut / "sub").mkdir(parents=True)
    shut.chmod(0o700)
    assert nearest(shut / "sub") == str(room / ".taskyard"), "what cannot be seen is no yard"
    (room / "taskyard.sh").write_text(client(), encoding="utf-8")
    told = as_user(BOB, 0o022, lambda: by_shell(room / "taskyard.sh", project / "sub"))
    assert f"there is no yard at {project}/.taskyard, or it cannot be read" in told


def by_shell(script: Path, folder: Path) -> str:
    """What the shell client answers there."""
    words = ["sh", str(script), "claim_task"]
    environment = {"PATH": os.environ["PATH"]}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False).stderr


def test_a_yard_is_shared_where_that_is_asked_for(room: Path) -> None:
    room.chmod(0o770)
    assert as_user(ADA, 0o077, lambda: verbs.say(room / "yard", "init", "--group", str(CREW)).code) == 0
    assert do(room / "yard", BOB, 0o077, "add", "build")[0] == 0
    assert_shared(room / "yard")
    code, said = do(room / "yard", ADA, 0o077, "init", "--shared")
    assert (code, said["data"]["warnings"]) == (0, [])
    code, said = do(room / "other", ADA, 0o022, "init", "--group", "nosuchgroup")
    assert (code, said["error"]["code"]) == (2, "invalid")
    code, said = do(room / "other", ADA, 0o022, "init", "--group", str(BOB))
    assert (code, said["error"]["code"]) == (8, "unavailable"), said


def test_init_tells_whoever_can_only_look_at_a_yard(room: Path) -> None:
    yard = made(room)
    room.chmod(0o2775)
    code, said = do(yard, EVE, 0o022, "init", groups=())
    assert code == 0, said
    assert "cannot be written" in said["data"]["warnings"][0]


@pytest.mark.parametrize("umask", ["022", "077"])
def test_the_shell_client_shares_as_well(room: Path, umask: str) -> None:
    yard = made(room)
    (room / "taskyard.sh").write_text(client(), encoding="utf-8")
    (room / "taskyard.sh").chmod(0o755)

    def run(user: int, *argv: str) -> str:
        words = [
            "setpriv",
            f"--reuid={user}",
            f"--regid={user}",
            f"--groups={CREW}",
            "sh",
            "-c",
            f'umask {umask}; exec sh "$@"',
            "sh",
        ]
        done = subprocess.run(
            [*words, str(room / "taskyard.sh"), *argv], env=tools.environment(TASKYARD=str(yard)), capture_output=True, text=True, check=False, timeout=tools.PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        return done.stdout

    run(ADA, "add_task", "build")
    code, said = do(yard, BOB, 0o077, "claim", "--worker", "bob")
    assert code == 0, said
    run(ADA, "heartbeat", said["data"]["claim"])
    run(ADA, "complete_task", said["data"]["claim"])
    assert do(yard, BOB, 0o077, "janitor")[0] == 0
    assert_shared(yard)


def test_nobody_has_commands_run_by_another_member_of_the_group(room: Path) -> None:
    """Whoever can write the yard can replace yard.json; its checks are then nobody's but its writer's."""
    yard = made(room)
    assert stat.S_IMODE((yard / "yard.json").stat().st_mode) & 0o022 == 0

    def settle() -> None:
        content = json.loads((yard / "yard.json").read_text())
        content["settings"]["checks"] = {"owned": ["touch", str(room / "owned")]}
        (yard / "new.json").write_text(json.dumps(content))
        os.rename(yard / "new.json", yard / "yard.json")

    as_user(BOB, 0o022, settle)
    assert do(yard, BOB, 0o022, "add", "build", "--verify", "owned")[0] == 0
    code, said = do(yard, ADA, 0o022, "claim")
    code, refused = do(yard, ADA, 0o022, "done", said["data"]["claim"])
    assert (code, refused["error"]["code"]) == (7, "conflict"), refused
    assert not (room / "owned").exists()
    assert do(yard, BOB, 0o022, "done", said["data"]["claim"])[0] == 0
    assert (room / "owned").exists()
