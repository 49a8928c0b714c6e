"""Whatever goes wrong under the client: a move that fails, a reply that is lost, a full disk, a claim that is taken away."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from tests.conftest import taken, wait_until
from tests.directory.stories import check_log, check_places
from tests.processes import tools
from tests.sh import shells

if TYPE_CHECKING:
    from taskyard import Yard
    from tests.sh.shells import Shell

FAILS = """#!/bin/sh
echo "mv: cannot move: Input/output error" >&2
exit 1
"""
LOSES_REPLIES = """#!/bin/sh
"$REAL_MV" "$@"
echo "mv: cannot stat: No such file or directory" >&2
exit 1
"""
TAKEN_FIRST = """#!/bin/sh
[ -e "$MARK" ] || { : >"$MARK"; eval "$FIRST"; }
exec "$REAL_MV" "$@"
"""
REMOVED_MEANWHILE = """#!/bin/sh
"$REAL_MKDIR" "$@"
case "$*" in */names/*) [ -e "$MARK" ] || { : >"$MARK"; rmdir -- "$TASKYARD"/names/*; } ;; esac
exit 0
"""


class Shims:
    """Tools that misbehave, found before the real ones."""

    def __init__(self, sh: Shell, folder: Path) -> None:
        self._sh = sh
        self._folder = folder / "shims"
        self._folder.mkdir()

    def put(self, name: str, text: str, **more: str) -> dict[str, str]:
        """The environment in which this tool is another one."""
        file = self._folder / name
        file.write_text(text)
        file.chmod(0o755)
        real = next(
            path for part in self._sh.path.split(":") if (path := Path(part, name)).exists() or path.is_symlink()
        )
        # The real one by its own name: busybox is what it is called.
        return {"PATH": f"{self._folder}:{self._sh.path}", f"REAL_{name.upper()}": str(real), **more}


@pytest.fixture
def shims(sh: Shell, tmp_path: Path) -> Shims:
    return Shims(sh, tmp_path)


def leftovers(place: str) -> list[str]:
    return [name for name in os.listdir(f"{place}/tmp") if name != "clock"]


@pytest.mark.parametrize("key", [{}, {"taskId": "t-1"}], ids=["plain", "keyed"])
def test_a_folder_of_dropped_names_that_a_sweep_removes_at_once_costs_nothing(
    sh: Shell, place: str, shims: Shims, tmp_path: Path, key: dict[str, str]
) -> None:
    """A failed redirection of a special built-in such as ':' would end the shell without a word."""
    Path(place, "todo", "order.json").write_text(json.dumps({"n": 1, **key}))
    sweep = sh.run("reap_stale", env=shims.put("mkdir", REMOVED_MEANWHILE, MARK=str(tmp_path / "mark")))
    assert (sweep.code, sweep.out.count("taken in ")) == (0, 1), sweep
    assert (tmp_path / "mark").exists()
    with taskyard.open(place) as yard:
        assert yard.get("order").data["n"] == 1


def test_a_move_that_fails_is_said_and_nothing_has_changed(sh: Shell, yard: Yard, shims: Shims, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("1")
    held, waiting = yard.add("build"), yard.add("build")
    handle, _ = sh.claim()
    env = shims.put("mv", FAILS)
    before = tools.places(yard.url)
    for words in (
        ["add_task", "build"],
        ["claim_task"],
        ["complete_task", handle],
        ["complete_task", handle, str(tmp_path / "result.json")],
        ["fail_task", handle, "no"],
        ["release_task", handle],
    ):
        refused = sh.run(*words, env=env)
        assert (refused.code, refused.out) == (8, ""), words
        assert "Input/output error" in refused.err, words
        assert tools.places(yard.url) == before
    assert leftovers(yard.url) == []
    assert (yard.get(held.id).state, yard.get(waiting.id).state) == ("processing", "todo")
    assert sh.run("complete_task", handle, str(tmp_path / "result.json")).line == ""
    assert yard.get(held.id).result == 1
    assert [entry["outcome"] for entry in yard.report(held.id).history] == ["done"]


def test_a_move_whose_reply_is_lost_was_made(sh: Shell, yard: Yard, shims: Shims) -> None:
    env = {**shims.put("mv", LOSES_REPLIES), "AGENT_ID": "bob"}
    ids = [sh.run("add_task", "build", env=env).line for _ in range(3)]
    handles = [sh.run("claim_task", env=env).line.split("\t")[0] for _ in ids]
    assert [handle.split(".")[0] for handle in handles] == ids
    assert sh.run("complete_task", handles[0], env=env).line == ""
    assert sh.run("fail_task", handles[1], "no", env=env).line == ""
    assert sh.run("release_task", handles[2], env=env).line == ""
    assert [yard.get(id).state for id in ids] == ["done", "waiting", "todo"]
    assert [yard.get(id).fence for id in ids] == [1, 2, 2]
    check_log(yard)


def test_a_task_that_somebody_else_takes_first_is_theirs(sh: Shell, yard: Yard, shims: Shims, tmp_path: Path) -> None:
    first, second = yard.add("build"), yard.add("build")
    first_claim = f"{tools.IN_SHELL} --yard {yard.url} --worker eve claim >&2"
    env = shims.put("mv", TAKEN_FIRST, MARK=str(tmp_path / "mark"), FIRST=first_claim)
    handle = sh.run("claim_task", env=env).out.split(".")[0]
    assert handle == second.id
    assert yard.get(first.id).worker == "eve"
    check_log(yard)


def test_a_claim_that_is_taken_away_in_the_middle_of_its_ending_is_lost(
    sh: Shell, yard: Yard, shims: Shims, tmp_path: Path
) -> None:
    (tmp_path / "result.json").write_text("1")
    task = yard.add("build")
    handle, _ = sh.claim()
    cancel = f"{tools.IN_SHELL} --yard {yard.url} cancel {task.id} >&2"
    env = shims.put("mv", TAKEN_FIRST, MARK=str(tmp_path / "mark"), FIRST=cancel)
    assert sh.run("complete_task", handle, str(tmp_path / "result.json"), env=env).code == 4
    report = yard.report(task.id)
    assert (report.task.state, report.task.result) == ("cancelled", None)
    assert [entry["outcome"] for entry in report.history] == ["cancelled"]
    assert [(entry["outcome"], entry["result"]) for entry in report.stale_results] == [("done", 1)]
    check_log(yard)


def test_a_heartbeat_while_the_reaper_writes_keeps_the_claim(
    sh: Shell, yard: Yard, shims: Shims, tmp_path: Path
) -> None:
    task = yard.add("build")
    claim = taken(yard.claim(lease=1))
    beat = f"{tools.IN_SHELL} --yard {yard.url} heartbeat {claim.handle} >&2"
    tools.settle(yard.url, sweep_every=1e8)
    shim = """#!/bin/sh
"$REAL_LN" "$@"
code=$?
touch -c "$YARD"/processing/*.json
exit $code
"""
    env = shims.put("ln", shim, YARD=yard.url, FIRST=beat)
    record = Path(yard.url, "results", task.id[:4], f"{claim.handle}.crash.json")
    wait_until(lambda: (sh.run("reap_stale", env=env), record.exists())[1])
    assert check_places(yard.url)[task.id][1].nonce == claim.handle.split(".")[2]
    claim.done("still mine")
    assert [entry["outcome"] for entry in yard.report(task.id).history] == ["done"]


def test_a_record_that_was_written_before_a_kill_stands(sh: Shell, yard: Yard, shims: Shims, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("1")
    (tmp_path / "two.json").write_text("2")
    task = yard.add("build")
    handle, _ = sh.claim()
    assert sh.run("complete_task", handle, str(tmp_path / "one.json"), env=shims.put("mv", FAILS)).code == 8
    assert sh.run("complete_task", handle, str(tmp_path / "two.json")).code == 7
    report = yard.report(task.id)
    assert report.task.result == 1, "the first record of a claim stands"
    assert [entry["result"] for entry in report.stale_results] == [2]


@pytest.mark.damages("its settings are broken")
@pytest.mark.parametrize(
    "content",
    [
        '{"taskyard": 2, "features": [], "settings": {}}',
        '{"taskyard": 1, "features": ["sharding"], "settings": {}}',
        '{"taskyard": 1, "features": ["missions", "sharding"], "settings": {}}',
        '{\n"taskyard": 1,\n"features": [\n"missions",\n"sharding"\n],\n"settings": {\n}\n}\n',
        '{"taskyard": 1, "features": [], "settings": {"durability": "eternal"}}',
        '{"taskyard": 1, "features": [], "settings": {"lease": "long"}}',
        '{"taskyard": 1, "features": [], "settings": {"lease": 0}}',
        json.dumps({"taskyard": 1, "features": [], "settings": {"max_crashes": 0}}, indent=2),
        '{"taskyard": 1, "features": [], "settings": []}',
        '{"taskyard": 1, "features": []',
        "[1]",
        "",
    ],
)
def test_a_yard_whose_rules_it_cannot_keep_is_refused(sh: Shell, place: str, content: str) -> None:
    Path(place, "yard.json").write_text(content)
    for verb in (["add_task", "build"], ["claim_task"], ["reap_stale"], ["process_loop", "true"]):
        refused = sh.run(*verb)
        assert (refused.code, refused.out) == (8, ""), verb
    with pytest.raises(taskyard.Unavailable):
        taskyard.open(place).counts()


def test_settings_that_it_does_not_know_are_passed_over(sh: Shell, place: str) -> None:
    settings = {
        "checks": {"features": ["make", 'te"st'], "settings": ["{", "}"]},
        "max_attempts": 1,
        "new": {"lease": "x", "deep": [[{"lease": 1}]]},
    }
    Path(place, "yard.json").write_text(json.dumps({"settings": settings, "taskyard": 1}))
    with taskyard.open(place) as yard:
        task = yard.add("build")
        handle, file = sh.claim()
        assert ".l1800000." in file.name
        sh.run("fail_task", handle, "no")
        assert yard.get(task.id).state == "failed"


DISK_FULL = """
mount -t tmpfs -o size=400k tmpfs "$1" || exit 90
taskyard() { "$PYTHON" -m taskyard --yard "$1/yard" "$2" "$3" "$4" "$5"; }
"$PYTHON" -m taskyard init "$1/yard" --durability fast >/dev/null || exit 91
export TASKYARD="$1/yard"
client() { $SHELL_WORDS "$CLIENT" "$@"; echo "$1 $?"; }
client add_task build
handle=$($SHELL_WORDS "$CLIENT" claim_task); handle=${handle%%	*}
client add_task build
head -c 300 /dev/zero | tr '\\0' 1 >"$1/data"
cat /dev/zero >"$1/ballast" 2>/dev/null
client add_task build "$1/data"
client complete_task "$handle" "$1/data"
client fail_task "$handle" no
client claim_task
ls "$1/yard/tmp"
rm "$1/ballast"
echo room
client complete_task "$handle" "$1/data"
client add_task build "$1/data"
"$PYTHON" -m taskyard --json stats
"""


@pytest.mark.parametrize("name", shells.NAMES)
def test_a_full_disk_is_said_and_nothing_is_half_there(name: str, tmp_path: Path, place: str) -> None:
    shell = shells.shell(name, tmp_path, place)
    mount = tmp_path / "mount"
    mount.mkdir()
    said = subprocess.run(
        [*tools.unshared("--mount"), "sh", "-c", DISK_FULL, "sh", str(mount)],
        env=tools.environment(
            PATH=f"{shell.path}:{os.environ['PATH']}",
            PYTHON=tools.PYTHON,
            SHELL_WORDS=" ".join(shell.words),
            CLIENT=str(shells.CLIENT),
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert said.returncode == 0, said
    before, after = said.stdout.split("room\n")
    lines = before.splitlines()
    assert [line for line in lines if line.endswith(" 8")][:2] == ["add_task 8", "complete_task 8"], said
    assert not [line for line in lines if line.startswith("fail_task") and not line.endswith((" 8", " 0"))]
    assert "is the disk full?" in said.stderr
    assert "complete_task 0" in after or "fail_task 0" in before, said
    assert "add_task 0" in after
    counts = json.loads(after.splitlines()[-1])["data"]["counts"]
    assert sum(counts.values()) == 3, said


MOUNTED = """
mount -t tmpfs tmpfs "$1/done" || exit 90
for verb in "add_task build" claim_task; do $SHELL_WORDS "$CLIENT" $verb; echo $?; done
umount "$1/done"
mount --bind "$1/done" "$1/done" || exit 91
$SHELL_WORDS "$CLIENT" claim_task; echo $?
umount "$1/done"
$SHELL_WORDS "$CLIENT" claim_task; echo $?
"""


def test_a_yard_of_more_than_one_mount_is_refused(sh: Shell, yard: Yard) -> None:
    """From one mount to another mv copies and removes, without a word: two workers could do so at once."""
    yard.add("build")
    said = subprocess.run(
        [*tools.unshared("--mount"), "sh", "-c", MOUNTED, "sh", yard.url],
        env=tools.environment(
            TASKYARD=yard.url,
            PATH=f"{sh.path}:{os.environ['PATH']}",
            SHELL_WORDS=" ".join(sh.words),
            CLIENT=str(shells.CLIENT),
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert [line for line in said.stdout.splitlines() if line.isdigit()] == ["8", "8", "8", "0"], said
    assert "is a mount of its own" in said.stderr


def test_a_yard_that_is_gone_is_not_made_again(sh: Shell, yard: Yard, tmp_path: Path) -> None:
    yard.add("build")
    handle, _ = sh.claim()
    Path(yard.url).rename(tmp_path / "elsewhere")
    for words in (["claim_task"], ["complete_task", handle], ["add_task", "build"]):
        assert sh.run(*words).code == 8
    assert not Path(yard.url).exists()
    (tmp_path / "elsewhere").rename(yard.url)
    assert sh.run("complete_task", handle).line == ""


def test_a_yard_that_cannot_be_written_says_so(sh: Shell, yard: Yard) -> None:
    yard.add("build")
    yard.add("build")
    handle, _ = sh.claim()
    folders = [path for path in [Path(yard.url), *Path(yard.url).rglob("*")] if path.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    try:
        for words in (["add_task", "build"], ["claim_task"], ["complete_task", handle], ["fail_task", handle, "no"]):
            assert sh.run(*words, prefix=tools.powerless()).code == 8, words
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert sh.run("complete_task", handle).line == ""


SYNCED = """#!/bin/sh
for path; do
    [ -e "$path" ] || exit 1
    printf '%s\\n' "${path#"$TASKYARD"/}" >>"$SYNCS"
done
"""


@pytest.mark.parametrize("durability", ["fast", "durable", "strict"])
def test_what_must_survive_a_power_cut_is_synced(
    sh: Shell, yard: Yard, shims: Shims, tmp_path: Path, durability: str
) -> None:
    """What PROTOCOL.md lists as synced, and in fast nothing."""
    settings = json.loads(Path(yard.url, "yard.json").read_text())
    settings["settings"]["durability"] = durability
    Path(yard.url, "yard.json").write_text(json.dumps(settings))
    (tmp_path / "result.json").write_text("1")
    log = tmp_path / "syncs"
    env = shims.put("sync", SYNCED, SYNCS=str(log))

    def synced(*words: str) -> list[str]:
        log.write_text("")
        assert sh.run(*words, env=env).code == 0
        return log.read_text().splitlines()

    sh.run("add_task", "build")
    added = synced("add_task", "build")
    claimed = synced("claim_task")
    (held,) = [path.name for path in Path(yard.url, "processing").iterdir()]
    handle = f"{held.split('.')[0]}.{held.split('.')[1]}.{held.split('-')[-1].split('.')[0]}"
    done = synced("complete_task", handle, str(tmp_path / "result.json"))
    failed = synced("fail_task", sh.claim()[0], "no")
    if durability == "fast":
        assert added == claimed == done == failed == []
        return
    assert [path.split("/")[0] for path in added] == ["tmp", "todo"]
    assert added[-1] == "todo/5-build/0000"
    assert claimed == ([f"processing/{held}", "processing"] if durability == "strict" else [])
    assert [path.split("/")[0] for path in done if path not in ("", yard.url)][:1] == ["tmp"]
    assert done[-2:] == [f"done/0000/{held[:-5]}.r.json", "done/0000"]
    assert done.index("results/0000") < done.index("done/0000")
    assert failed[-1].startswith("waiting/")
    assert failed[-2].endswith(".json")
    assert "results/0000" in failed


@pytest.mark.damages("a folder is a link")
def test_a_folder_that_is_a_link_is_refused(sh: Shell, yard: Yard, tmp_path: Path) -> None:
    """It may lead to another filesystem, where mv copies: two workers could do so at once."""
    yard.add("build")
    handle, _ = sh.claim()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = Path(yard.url)
    (place / "todo" / "5-other").symlink_to(elsewhere)
    assert sh.run("add_task", "other").code == 8
    (place / "done").rmdir()
    (place / "done").symlink_to(elsewhere)
    for words in (["claim_task"], ["complete_task", handle], ["add_task", "build"]):
        refused = sh.run(*words)
        assert (refused.code, refused.out) == (8, "")
        assert "is a link" in refused.err
    assert list(elsewhere.iterdir()) == []


def test_a_sync_that_fails_is_said_and_nothing_is_acknowledged(sh: Shell, yard: Yard, shims: Shims) -> None:
    task = yard.add("build")
    handle, _ = sh.claim()
    settings = json.loads(Path(yard.url, "yard.json").read_text())
    settings["settings"]["durability"] = "durable"
    Path(yard.url, "yard.json").write_text(json.dumps(settings))
    env = shims.put("sync", "#!/bin/sh\necho 'sync: Input/output error' >&2\nexit 1\n")
    for words in (["add_task", "other"], ["complete_task", handle]):
        refused = sh.run(*words, env=env)
        assert (refused.code, refused.out) == (8, ""), words
        assert "cannot be made sure of: sync: Input/output error" in refused.err
    assert leftovers(yard.url) == []
    assert sh.run("complete_task", handle).line == ""
    assert yard.get(task.id).state == "done"
    check_log(yard)


def test_messages_steer_no_terminal(sh: Shell, yard: Yard) -> None:
    for words in (["heartbeat", "x\x1b[31m"], ["complete_task", "\x07"], ["add_task", "a\x1b[31m"]):
        refused = sh.run(*words)
        assert refused.code == 2
        assert not set(refused.err) & {"\x1b", "\x07"}
    assert "\x1b" not in sh.run("claim_task", env={"AGENT_ID": "w\x1b[31m"}).err


def test_an_id_in_place_of_a_handle_gets_the_hint(sh: Shell, yard: Yard) -> None:
    task = yard.add("build")
    for verb in ("heartbeat", "complete_task", "release_task", "verify_ownership"):
        refused = sh.run(verb, task.id)
        assert refused.code == 2
        assert "this needs the handle that claim_task printed" in refused.err


def test_no_tool_is_used_that_is_not_named(sh: Shell, yard: Yard, tmp_path: Path) -> None:
    """With the tools that the head of the file names, and setsid, every verb works."""
    head = shells.CLIENT.read_text(encoding="utf-8").split("# It needs ")[1].split("GNU's or")[0]
    named = [word.strip(",") for word in head.replace("\n#", " ").split() if word.strip(",").isalnum()]
    bin = tmp_path / "bin"
    bin.mkdir()
    for name in [*(set(named) - {"and", "a", "with"}), "sh"]:
        found = next(path for part in sh.path.split(":") if (path := Path(part, name)).exists())
        (bin / name).symlink_to(found)
    env = {"PATH": str(bin)}
    assert sh.run("add_task", "build", "-", stdin='"é"', env=env).code == 0
    assert sh.run("process_loop", "--once", "sh", "-c", 'echo 1 >"$TASKYARD_WORKDIR/result.json"', env=env).code == 0
    assert yard.counts()["done"] == 1
    yard.add("build")
    handle = sh.run("claim_task", env=env).line.split("\t")[0]
    for words in (["heartbeat", handle], ["note_task", handle, "é"], ["fail_task", handle, "no\n"], ["reap_stale"]):
        assert sh.run(*words, env=env).line == "", words
    assert sh.run("complete_task", handle, env=env).code == 4
    assert "Exit codes: 0 ok" in sh.run("--help", env=env).line
