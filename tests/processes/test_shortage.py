"""Out of inodes, out of descriptors, out of permissions, in the midst of a run: said plainly, nothing half done, and well again afterwards."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from typing import Any

import pytest

import taskyard
from taskyard.stores.directory.recovery import crashes
from tests.conftest import taken, wait_until
from tests.directory.staging import yard_on
from tests.directory.stories import check_log, check_places
from tests.processes import tools
from tests.processes.test_trouble import inside

# What every shortage is tried with: a worker that was at work before, with a task in its hands and two files in its drop box.
STAGE = """
import time
import taskyard as ty
def begin(root):
    yard = root + "/yard"
    if not Path(yard).exists():
        ty.init(yard, durability="fast").close()
    settings = json.loads(Path(yard, "yard.json").read_text())
    settings["settings"].update(settle=0, sweep_every=1e8)
    Path(yard, "yard.json").write_text(json.dumps(settings))
    opened = ty.open(yard, worker="ada")
    ids = opened.add_many([{"kind": "build", "data": n} for n in range(4)])
    claim = opened.claim()
    for name, text in (("keyed", '{"taskId": "t", "kind": "dropped"}'), ("plain", '{"kind": "dropped"}'), ("bad", "[]")):
        Path(yard, "todo", "." + name).write_text(text)
    return yard, opened, claim, ids
def drop(yard):
    for name in ("keyed", "plain", "bad"):
        os.rename(f"{yard}/todo/.{name}", f"{yard}/todo/{name}.json")
    time.sleep(0.02)
def attempt(verb):
    try:
        answer = verb()
    except ty.TaskyardError as error:
        return [error.code, error.message, error.hint]
    return ["ok", str(answer), None]
def verbs(opened, claim):
    return {
        "add": lambda: opened.add("more"),
        "add many": lambda: opened.add_many([{"kind": "many", "data": n} for n in range(30)]),
        "add with a key": lambda: opened.add("keyed", key="k"),
        "claim": lambda: opened.claim(kinds=["build"]).handle,
        "done": lambda: claim.done("result"),
        "sweep": lambda: opened.sweep().as_dict(),
    }
def look(yard, opened, claim):
    task = opened.get(claim.task.id)
    return {
        "counts": opened._store.counts().kinds,
        "held": [task.state, task.result],
        "tmp": sorted(name for name in os.listdir(yard + "/tmp") if name != "clock"),
        "todo": sorted(name for name in os.listdir(yard + "/todo") if name.endswith(".json")),
        "aside": opened.set_aside(),
    }
"""

INODES = (
    STAGE
    + """
root = sys.argv[1]
mount("-t", "tmpfs", "-o", "nr_inodes=200", "tmpfs", root)
yard, opened, claim, ids = begin(root)
ballast = 0
drop(yard)
while True:
    try:
        Path(root, f"ballast{ballast}").touch()
    except OSError:
        break
    ballast += 1
short = {name: attempt(verb) for name, verb in verbs(opened, claim).items()}
during = look(yard, opened, claim)
command = taskyard("add", "x", "--yard", yard)
for number in range(ballast):
    Path(root, f"ballast{number}").unlink()
again = {name: attempt(verb) for name, verb in verbs(opened, claim).items()}
opened.sweep()
answer({"short": short, "during": during, "command": command, "again": again, "after": look(yard, opened, claim)})
"""
)

DESCRIPTORS = (
    STAGE
    + """
import resource
root = sys.argv[1]
yard, opened, claim, ids = begin(root)
opened.sweep()
drop(yard)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
free = os.dup(0)
os.close(free)
resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
short = {name: attempt(verb) for name, verb in verbs(opened, claim).items()}
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
during = look(yard, opened, claim)
again = {name: attempt(verb) for name, verb in verbs(opened, claim).items()}
opened.sweep()
answer({"short": short, "during": during, "again": again, "after": look(yard, opened, claim)})
"""
)

PERMISSIONS = (
    STAGE
    + """
root = sys.argv[1]
yard, opened, claim, ids = begin(root)
drop(yard)
folders = [path for path in [Path(yard), *Path(yard).rglob("*")] if path.is_dir()]
for folder in folders:
    folder.chmod(0o555)
short = {name: attempt(verb) for name, verb in verbs(opened, claim).items()}
during = look(yard, opened, claim)
command = taskyard("claim", "--yard", yard)
for folder in folders:
    folder.chmod(0o755)
again = {name: attempt(verb) for name, verb in verbs(opened, claim).items()}
opened.sweep()
answer({"short": short, "during": during, "command": command, "again": again, "after": look(yard, opened, claim)})
"""
)


def check_short(said: dict[str, Any], words: str, refused: set[str]) -> None:
    """Every verb was refused in these words, or it was done; nothing in between."""
    for name, (code, message, hint) in said["short"].items():
        if name in refused:
            assert code == "unavailable", (name, message)
        if code != "ok":
            assert code == "unavailable", (name, message)
            assert words in message, name
            assert hint, name
    counts = said["during"]["counts"]
    assert said["during"]["held"] == ["processing", None]
    assert counts["build"].get("todo", 0) + counts["build"]["processing"] == 4
    for kind in ("more", "many", "keyed"):
        assert kind not in counts, f"half published: {counts}"


def check_well_again(said: dict[str, Any]) -> None:
    for name, (code, message, _) in said["again"].items():
        assert code == "ok", (name, message)
    after = said["after"]
    assert after["held"] == ["done", "result"]
    assert after["counts"]["many"] == {"todo": 30}, "said again, and there once"
    assert after["counts"]["more"] == {"todo": 1}
    assert after["counts"]["keyed"] == {"todo": 1}
    assert sum(after["counts"]["build"].values()) == 4
    assert after["todo"] == []


def check_dropped(said: dict[str, Any]) -> None:
    """What lay in the drop box all the while is taken in by the same process once it can be."""
    after = said["after"]
    assert after["counts"].get("dropped") == {"todo": 2}, after
    assert [entry["name"] for entry in after["aside"]] == ["bad"], after
    assert after["tmp"] == [], after


@pytest.fixture(scope="module")
def no_inodes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return inside(tools.unshared("--mount"), INODES, str(tmp_path_factory.mktemp("inodes")))


@pytest.fixture(scope="module")
def no_descriptors(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return inside([], DESCRIPTORS, str(tmp_path_factory.mktemp("descriptors")))


@pytest.fixture(scope="module")
def no_permissions(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return inside(tools.powerless(), PERMISSIONS, str(tmp_path_factory.mktemp("permissions")))


def test_a_yard_without_inodes_says_so_and_nothing_is_half_published(no_inodes: Any) -> None:
    check_short(no_inodes, "No space left on device", {"add", "add many", "add with a key", "done"})
    assert (no_inodes["command"]["code"], no_inodes["command"]["error"]["code"]) == (8, "unavailable")


def test_a_yard_without_inodes_works_again_when_there_are_some(no_inodes: Any) -> None:
    check_well_again(no_inodes)


def test_files_dropped_into_a_yard_without_inodes_are_taken_in_when_there_are_some(no_inodes: Any) -> None:
    check_dropped(no_inodes)


def test_a_process_without_descriptors_says_so_and_nothing_is_half_published(no_descriptors: Any) -> None:
    check_short(no_descriptors, "Too many open files", {"add", "add many", "add with a key", "done", "sweep"})


def test_a_process_without_descriptors_works_again_when_there_are_some(no_descriptors: Any) -> None:
    check_well_again(no_descriptors)


def test_files_dropped_while_there_were_no_descriptors_are_taken_in_when_there_are_some(no_descriptors: Any) -> None:
    check_dropped(no_descriptors)


def test_a_yard_that_lost_its_permissions_says_so_and_nothing_is_half_published(no_permissions: Any) -> None:
    check_short(no_permissions, "Permission denied", {"add", "add many", "add with a key", "claim", "done", "sweep"})
    assert (no_permissions["command"]["code"], no_permissions["command"]["error"]["code"]) == (8, "unavailable")


def test_a_yard_that_lost_its_permissions_works_again_when_it_has_them(no_permissions: Any) -> None:
    check_well_again(no_permissions)


def test_files_dropped_while_permissions_were_lost_are_taken_in_when_they_are_back(no_permissions: Any) -> None:
    check_dropped(no_permissions)


# The same to the exact call, on a staged disk


class Failing:
    """A disk on which every call of this name fails after so many, until it is over."""

    def __init__(self, left: int, code: int, call: str, part: str) -> None:
        self._left, self._code, self._call, self._part = left, code, call, part
        self.over = False

    def __call__(self, name: str, paths: str, made: bool) -> None:
        if made or self.over or name != self._call or self._part not in paths:
            return
        self._left -= 1
        if self._left < 0:
            raise OSError(self._code, os.strerror(self._code), paths.split(" ", 1)[0])


def test_a_claim_whose_file_cannot_be_opened_just_now_is_not_kept_from_everybody(place: str) -> None:
    """No descriptor is left after the rename: the worker was told nothing, so nobody has the task."""
    cue = Failing(0, errno.EMFILE, "read", "/processing/")
    with yard_on(place, cue) as yard:
        id = yard.add("build", {"n": 1}).id
        with pytest.raises(taskyard.Unavailable):
            yard.claim()
        cue.over = True
        assert taken(yard.claim()).task.id == id
        check_log(yard)


def test_a_batch_that_finds_no_room_is_cleared_away(place: str) -> None:
    """Or a full disk stays full."""
    cue = Failing(30, errno.ENOSPC, "create", "/tmp/")
    with yard_on(place, cue) as yard:
        with pytest.raises(taskyard.Unavailable):
            yard.add_many([{"kind": "one"}] * 50)
        assert os.listdir(f"{place}/tmp") in ([], ["clock"])


@pytest.mark.parametrize(
    ("call", "part", "left"),
    [
        ("mkdir", "/5-two", 0),
        ("rename", "/5-two/", 20),
        ("rename", "/5-two/", 600),
        ("create", "/tmp/", 700),
    ],
)
def test_of_a_batch_that_finds_no_room_nothing_stays(place: str, call: str, part: str, left: int) -> None:
    cue = Failing(left, errno.ENOSPC, call, part)
    batch = [{"kind": "one"}, {"kind": "two"}] * 700
    with yard_on(place, cue) as yard:
        with pytest.raises(taskyard.Unavailable, match="No space left") as refused:
            yard.add_many(batch)
        assert "stay" not in refused.value.message
        assert check_places(place) == {}
        assert os.listdir(f"{place}/tmp") in ([], ["clock"])
        cue.over = True
        assert len(set(yard.add_many(batch))) == len(check_places(place)) == 1400
        check_log(yard)


def test_what_was_claimed_of_a_batch_that_finds_no_room_stays_and_is_named(place: str) -> None:
    claims: list[taskyard.Claim] = []
    failing = Failing(4, errno.ENOSPC, "rename", "/5-two/")

    def cue(name: str, paths: str, made: bool) -> None:
        if not claims and not made and name == "rename" and "/5-two/" in paths:
            claims.append(taken(other.claim(kinds=["one"])))
        failing(name, paths, made)

    with yard_on(place) as other, yard_on(place, cue) as yard:
        with pytest.raises(taskyard.Unavailable) as refused:
            yard.add_many([{"kind": kind} for kind in ("one", "one", "two", "two", "two", "two", "two")])
        assert refused.value.message.endswith(f"under a key: {claims[0].task.id}")
        assert list(check_places(place)) == [claims[0].task.id]
        claims[0].done()
        check_log(yard)


def test_a_task_with_a_key_of_a_batch_that_finds_no_room_stays_and_is_known_when_it_is_said_again(place: str) -> None:
    cue = Failing(0, errno.ENOSPC, "rename", "/5-two/")
    batch = [{"kind": "one"}, {"kind": "one", "key": "k"}, {"kind": "two"}]
    with yard_on(place, cue) as yard:
        with pytest.raises(taskyard.Unavailable) as refused:
            yard.add_many(batch)
        (kept,) = check_places(place)
        assert kept in refused.value.message
        assert yard.events(task=kept)[-1]["event"] == "added"
        withdrawn = [event for event in yard.events() if event["event"] == "cancelled"]
        assert [(event["kind"], event["reason"], event["taken_back"]) for event in withdrawn] == [
            ("one", "the rest of its batch could not be added", True)
        ]
        cue.over = True
        assert yard.add_many(batch)[1] == kept
        assert len(check_places(place)) == 3


@pytest.mark.parametrize(
    ("content", "call", "part"),
    [
        ('{"taskId": "t"}', "create", "/tmp/"),
        ("[]", "create", "/tmp/"),
        ("[]", "rename", "/failed/"),
        ('{"taskId": "t"}', "rename", "/5-default/"),
        ('{"n": 1}', "rename", "/5-default/"),
    ],
)
def test_a_dropped_file_for_which_there_is_no_room_is_taken_in_by_the_same_process_later(
    place: str, content: str, call: str, part: str
) -> None:
    tools.settle(place, settle=0)
    cue = Failing(0, errno.ENOSPC, call, part)
    with yard_on(place, cue) as yard:
        with open(f"{place}/todo/a.json", "w") as file:
            file.write(content)
        ticks = time.monotonic() + 0.05  # more than the clock's grain, so that the file counts as settled
        while time.monotonic() < ticks:
            with contextlib.suppress(taskyard.Unavailable):
                yard.sweep()
        cue.over = True

        def found() -> tuple[int, int] | None:
            yard.sweep()
            counts = len(check_places(place)), len(yard.set_aside())
            return counts if any(counts) else None

        assert wait_until(found, timeout=2) == ((0, 1) if content == "[]" else (1, 0))
        assert os.listdir(f"{place}/tmp") == ["clock"]


@pytest.mark.parametrize(("call", "part"), [("append", "/names/"), ("unlink", ".drop"), ("sync", "/5-default/")])
def test_a_dropped_file_that_has_become_a_task_is_not_set_aside_when_a_later_call_fails(
    place: str, call: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.settle(place, durability="durable")
    cue = Failing(0, errno.ENOSPC, call, part)
    with yard_on(place, cue) as yard:
        with open(f"{place}/todo/a.json", "w") as file:
            file.write('{"taskId": "t"}')
        with pytest.raises(taskyard.Unavailable):
            yard.sweep()
        cue.over = True
        yard.sweep()
        (id,) = check_places(place)
        assert yard.set_aside() == []
        monkeypatch.setattr(crashes, "PATIENCE", -1)  # ten minutes later
        yard.sweep()
        assert yard.get(id).dropped_as == "a"
        assert (list(check_places(place)), yard.set_aside()) == ([id], [])
        assert os.listdir(f"{place}/tmp") == ["clock"]
