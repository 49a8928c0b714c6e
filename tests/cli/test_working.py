"""`work`: a command for each task, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import State
from tests.conftest import wait_until
from tests.processes import tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """A yard whose backoff is short."""
    path = tmp_path / "yard"
    taskyard.init(path, durability="fast").close()
    tools.settle(path, backoff=0.05, backoff_cap=0.1)
    with taskyard.open(path, worker="boss") as opened:
        yield opened


def work(yard: Yard, *argv: str, **more: Any) -> tools.Answer:
    """Have a worker work, and wait for its end."""
    return tools.taskyard(yard.url, "work", *argv[: argv.index("--")], "--json", *argv[argv.index("--") :], **more)


def shell(yard: Yard, script: str, *options: str, **more: Any) -> tools.Answer:
    """The same with a command of the shell."""
    return work(yard, *options, "--", "sh", "-c", script, **more)


@pytest.fixture(autouse=True)
def _json_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--json` after the command would be the command's: it stands before the dashes here."""

    def run(yard: str, *argv: str, cwd: Any = None, env: Any = None, **_: Any) -> tools.Answer:
        return tools.Answer(
            subprocess.run(
                [*tools.COMMAND, *argv],
                capture_output=True,
                text=True,
                env=tools.environment(TASKYARD=yard, **(env or {})),
                cwd=cwd,
                check=False,
                timeout=60,
            )
        )

    monkeypatch.setattr(tools, "taskyard", run)


def test_a_command_is_run_for_each_task_and_told_all_about_it(yard: Yard, tmp_path: Path) -> None:
    task = yard.add("build", {"n": 1}, title="Build it")
    script = 'env | grep ^TASKYARD | sort; pwd; echo "$0 $1" ; cat "$2"; printf "{\\"task\\": "; cat; echo "}"'
    answer = work(
        yard, "--once", "--worker", "ada", "--", "sh", "-c", script, "{id}", "{kind}", "{file}",
        cwd=tmp_path, env={"OWN": "kept"},
    )  # fmt: skip
    assert answer.data == {"worker": "ada", "ended": {"done": 1}}
    done = yard.get(task.id)
    told = done.result["task"]
    assert (told["id"], told["data"], told["title"], told["state"]) == (task.id, {"n": 1}, "Build it", "processing")
    [log] = Path(yard.url).glob("attempts/*/*/*/stdout.log")
    lines = log.read_text().splitlines()
    environment = dict(line.split("=", 1) for line in lines[:6])
    assert environment == {
        "TASKYARD": yard.url,
        "TASKYARD_CLAIM": yard.report(task.id).history[0]["claim"],
        "TASKYARD_FENCE": "1",
        "TASKYARD_TASK": task.id,
        "TASKYARD_WORKDIR": str(log.parent),
        "TASKYARD_WORKER": "ada",
    }
    assert lines[6:8] == [str(tmp_path), f"{task.id} build"]
    assert json.loads(lines[8])["id"] == task.id


def test_task_data_is_never_a_word_of_a_shell(yard: Yard, tmp_path: Path) -> None:
    yard.add("build", {"n": f"$(touch {tmp_path}/hacked) ; touch {tmp_path}/hacked"}, title="{file} `id`")
    assert work(yard, "--once", "--", "echo", "{id}", "{title}", "$(id)").data["ended"] == {"done": 1}
    assert not (tmp_path / "hacked").exists()
    [log] = Path(yard.url).glob("attempts/*/*/*/stdout.log")
    assert log.read_text().split(" ", 1)[1] == "{title} $(id)\n"


@pytest.mark.parametrize(
    ("code", "state", "attempts"), [(0, "done", 0), (75, "waiting", 0), (65, "failed", 1), (3, "waiting", 1)]
)
def test_the_exit_code_tells_how_it_ended(yard: Yard, code: int, state: str, attempts: int) -> None:
    id = yard.add("build").id
    tools.settle(yard.url, backoff=600, backoff_cap=600)
    shell(yard, f"echo because >&2; exit {code}", "--once")
    task = yard.get(id)
    assert (task.state, task.attempts) == (state, attempts)
    assert code == 0 or "because" in yard.report(id).history[0]["reason"]


def test_nothing_to_do_once_is_exit_3(yard: Yard) -> None:
    answer = shell(yard, "exit 0", "--once")
    assert (answer.code, answer.error["code"]) == (3, "nothing_ready")


@pytest.mark.parametrize(
    "argv",
    [["--"], ["--concurrency", "0", "--", "true"], ["--check", "tests", "--", "true"], ["--check", "t='", "--", "true"],
     ["--once", "--max-tasks", "2", "--", "true"], ["--timeout", "0", "--", "true"], ["--grace", "-1", "--", "true"],
     ["--kind", "no good", "--", "true"], ["--", ""]],
)  # fmt: skip
def test_nonsense_is_exit_2_and_nothing_is_claimed(yard: Yard, argv: list[str]) -> None:
    yard.add("build")
    answer = work(yard, *argv)
    assert (answer.code, answer.error["code"]) == (2, "invalid")
    assert yard.counts()["todo"] == 1


def test_a_memory_yard_is_refused(yard: Yard) -> None:
    assert tools.taskyard("memory:", "work", "--json", "--once", "--", "true").code == 2


@pytest.mark.parametrize(
    ("script", "state", "outcome"),
    [
        ("taskyard done --result '\"said\"'; exit 1", "done", "done"),
        ("taskyard done --result '\"said\"'; echo '{\"other\": 1}'", "done", "done"),
        ("taskyard fail --no-retry --reason said; exit 0", "failed", "error"),
        ("taskyard fail --reason said; exit 65", "waiting", "error"),
        ("taskyard release; exit 1", "todo", "released"),
        ("taskyard release; sleep 60", "todo", "released"),
        ("trap 'echo \"{}\"; exit' TERM; taskyard fail --reason said; sleep 60 & wait", "waiting", "error"),
    ],
)
def test_what_the_command_said_itself_stands(yard: Yard, script: str, state: str, outcome: str) -> None:
    tools.settle(yard.url, backoff=600, backoff_cap=600)
    id = yard.add("build").id
    answer = shell(yard, f'taskyard() {{ {tools.IN_SHELL} "$@"; }}; {script}', "--once")
    assert answer.data["ended"] == {"failed" if state == "failed" else "settled": 1}
    report = yard.report(id)
    assert (report.task.state, [entry["outcome"] for entry in report.history]) == (state, [outcome])
    assert report.stale_results == []


def test_a_command_may_delete_its_workdir_and_be_done(yard: Yard) -> None:
    id = yard.add("build").id
    shell(yard, 'echo before; rm -rf "$TASKYARD_WORKDIR"; echo after; echo \'{"ok": 1}\'', "--once")
    assert yard.get(id).result == {"ok": 1}


def test_a_worker_in_a_folder_that_is_gone_works_on(yard: Yard, tmp_path: Path) -> None:
    id = yard.add("build").id
    (tmp_path / "gone").mkdir()
    script = f'cd {tmp_path}/gone && rmdir {tmp_path}/gone && {tools.IN_SHELL} work --once -- echo "{{file}}"'
    subprocess.run(
        ["sh", "-c", script], env=tools.environment(TASKYARD=yard.url), check=True, capture_output=True, timeout=60
    )
    assert yard.get(id).state is State.DONE


def test_a_check_is_the_workers_or_the_yards(yard: Yard) -> None:
    file = Path(yard.url) / "yard.json"
    content = json.loads(file.read_text())
    content["settings"]["checks"] = {"no": ["false"], "yes": ["true"]}
    file.write_text(json.dumps(content))
    ids = {name: yard.add("build", verify=name, max_attempts=1).id for name in ("no", "yes", "own", "unknown")}
    answer = shell(yard, "exit 0", "--drain", "--check", "own=sh -c 'echo \"tastes bad\" >&2; exit 3'")
    assert answer.code == 1
    assert {name: yard.get(id).state for name, id in ids.items()} == {
        "no": "failed", "yes": "done", "own": "failed", "unknown": "failed"
    }  # fmt: skip
    assert yard.get(ids["own"]).error == "the check 'own' did not pass: exit 3: tastes bad"


def ended(answer: tools.Answer) -> tuple[int, dict[str, int]]:
    """The exit code of a worker, and how its tasks ended."""
    return answer.code, json.loads(answer.out)["data"]["ended"]


def test_a_drain_says_how_many_failed_for_good_and_attempts_that_were_made_good_are_none(
    yard: Yard, tmp_path: Path
) -> None:
    once = "n=$(cat tries 2>/dev/null || echo 0); echo $((n + 1)) > tries; [ $n -gt 0 ]"
    yard.add("build")
    assert ended(shell(yard, once, "--drain", cwd=tmp_path)) == (0, {"error": 1, "done": 1})
    for code in ("65", "1"):
        yard.add("build", max_attempts=1)
        assert ended(shell(yard, f"exit {code}", "--drain")) == (1, {"failed": 1})
    yard.add("build")
    script = f"{tools.IN_SHELL} fail --no-retry --reason no"
    assert ended(shell(yard, script, "--drain")) == (1, {"failed": 1})
    yard.add("build", max_attempts=1)
    assert shell(yard, "exit 65", "--once").code == 0


def test_drain_ends_when_all_have_ended_with_1_if_some_failed_for_good(yard: Yard) -> None:
    ids = yard.add_many([{"kind": "build", "data": {"n": number}} for number in range(9)])
    later = yard.add("build", delay=3600).id
    other = yard.add("bake").id
    somebodys = yard.add("build", assignee="ben").id
    answer = shell(yard, "grep -q '\"n\":[012]' && exit 1; exit 0", "--drain", "--kind", "build", "--concurrency", "4")
    assert ended(answer) == (1, {"done": 6, "error": 6, "failed": 3})
    states = [yard.get(id).state for id in ids]
    assert (states.count(State.DONE), states.count(State.FAILED)) == (6, 3)
    assert [yard.get(id).state for id in (later, other, somebodys)] == ["waiting", "todo", "todo"]


def test_drain_waits_for_what_others_have_in_hand(yard: Yard) -> None:
    yard.add("build")
    claim = yard.claim()
    assert claim is not None
    with subprocess.Popen(
        [*tools.COMMAND, "work", "--drain", "--", "true"],
        env=tools.environment(TASKYARD=yard.url),
        stdout=subprocess.PIPE,
    ) as worker:
        wait_until(lambda: list((Path(yard.url) / "workers").glob("*")))
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(0.5)
        claim.release()
        assert worker.wait(20) == 0
    assert yard.counts()["done"] == 1


def test_max_tasks_holds_for_all_slots_together(yard: Yard) -> None:
    yard.add_many([{"kind": "build"}] * 8)
    assert shell(yard, "exit 0", "--concurrency", "8", "--max-tasks", "3").data["ended"] == {"done": 3}
    assert yard.counts()["todo"] == 5


def test_idle_exit_ends_a_worker_without_tasks(yard: Yard) -> None:
    assert shell(yard, "exit 0", "--idle-exit", "0.1").data["ended"] == {}


def test_a_command_that_takes_too_long_is_an_error(yard: Yard) -> None:
    id = yard.add("build", max_attempts=1).id
    shell(yard, "echo slowly >&2; sleep 600", "--once", "--timeout", "0.3")
    assert yard.get(id).error == "timed out after 0.3 s: slowly"


def test_people_are_told_line_by_line(yard: Yard) -> None:
    yard.add("build", title="Build it")
    yard.add("bake", priority=9, max_attempts=1)
    done = subprocess.run(
        [*tools.COMMAND, "work", "--max-tasks", "2", "--", "sh", "-c", 'test {kind} = build || { echo "no flour" >&2; exit 1; }'.replace("{kind}", '"$0"'), "{kind}"],
        env=tools.environment(TASKYARD=yard.url), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    first, second, summary = done.stdout.splitlines()
    assert first.startswith("done ")
    assert first.endswith("Build it")
    assert second.startswith("failed ")
    assert second.endswith("exit 1: no flour")
    assert summary == "1 done, 1 failed for good"


def test_a_reader_who_leaves_ends_the_worker_and_loses_nothing(yard: Yard) -> None:
    yard.add_many([{"kind": "build"}] * 5)
    reading, writing = os.pipe()
    with subprocess.Popen(
        [*tools.COMMAND, "work", "--drain", "--", "true"], env=tools.environment(TASKYARD=yard.url), stdout=writing
    ) as worker:
        os.close(writing)
        os.close(reading)
        assert worker.wait(20) == 141
    assert yard.counts() == {**yard.counts(), "done": 1, "todo": 4, "processing": 0}


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_of_the_worker_are_not_mistaken_for_those_of_its_command(yard: Yard, closed: str) -> None:
    id = yard.add("build").id
    script = f"""{tools.IN_SHELL} work --once -- sh -c 'cat >&2; echo "{{\\"a\\": 1}}"' {closed}"""
    subprocess.run(
        ["sh", "-c", script], env=tools.environment(TASKYARD=yard.url), check=True, capture_output=True, timeout=60
    )
    assert yard.get(id).result == {"a": 1}
    [log] = Path(yard.url).glob("attempts/*/*/*/stderr.log")
    assert json.loads(log.read_text())["id"] == id


def test_a_command_that_is_not_there_uses_up_no_attempts(yard: Yard) -> None:
    id = yard.add("build", max_attempts=1).id
    for words in (("--", "no-such-command"), ("--check", "tests=no-such-check", "--", "true")):
        refused = subprocess.run(
            [*tools.COMMAND, "work", "--once", *words],
            env=tools.environment(TASKYARD=yard.url), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert refused.returncode == 2
        assert "there is no command 'no-such-c" in refused.stderr
    assert yard.get(id).state == "todo"


def test_a_command_that_a_kind_leads_to_and_is_not_there_is_said_in_the_tasks_history(yard: Yard) -> None:
    id = yard.add("no-such-command", max_attempts=1).id
    work(yard, "--once", "--", "{kind}")
    assert yard.get(id).error == "the command cannot be started: no-such-command: No such file or directory"


def started(yard: Yard, tmp_path: Path, script: str, *options: str) -> subprocess.Popen[str]:
    """A worker whose command has begun."""
    worker = subprocess.Popen(
        [*tools.COMMAND, "work", *options, "--", "sh", "-c", f"echo $$ > {tmp_path}/part; mv {tmp_path}/part {tmp_path}/up; {script}"],
        env=tools.environment(TASKYARD=yard.url), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until((tmp_path / "up").exists)
    return worker


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_lets_what_runs_finish_and_claims_nothing_more(
    yard: Yard, tmp_path: Path, number: signal.Signals
) -> None:
    ids = yard.add_many([{"kind": "build"}] * 2)
    worker = started(yard, tmp_path, f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done")
    worker.send_signal(number)
    assert worker.stderr is not None
    said = worker.stderr.readline()  # a signal takes effect when its process runs again, and says so
    assert (
        said
        == "taskyard: warning: stopping: the task that runs may take 10 s to finish; a second signal stops at once\n"
    )
    (tmp_path / "go").touch()
    assert worker.communicate(timeout=30)[0].splitlines()[-1] == "1 done"
    assert worker.returncode == 0
    assert sorted(yard.get(id).state for id in ids) == ["done", "todo"]


def test_after_the_grace_the_command_is_stopped_and_its_task_handed_back_uncounted(yard: Yard, tmp_path: Path) -> None:
    id = yard.add("build").id
    worker = started(yard, tmp_path, "trap '' TERM; sleep 600 & wait; sleep 600", "--grace", "0.2")
    worker.send_signal(signal.SIGTERM)
    assert worker.communicate(timeout=30)[0].splitlines()[-1] == "1 released"
    task = yard.get(id)
    assert (task.state, task.attempts) == (State.TODO, 0)
    assert not Path(f"/proc/{(tmp_path / 'up').read_text().strip()}").exists()


def test_a_command_that_ends_well_because_it_was_stopped_is_not_done(yard: Yard, tmp_path: Path) -> None:
    """Many a program answers TERM with exit 0, whatever is left to do."""
    id = yard.add("build").id
    worker = started(yard, tmp_path, "trap 'exit 0' TERM; while :; do sleep 0.01; done", "--grace", "0.2")
    worker.send_signal(signal.SIGTERM)
    assert worker.communicate(timeout=30)[0].splitlines()[-1] == "1 released"
    assert yard.get(id).state is State.TODO


def test_a_second_signal_stops_at_once(yard: Yard, tmp_path: Path) -> None:
    id = yard.add("build").id
    worker = started(yard, tmp_path, "trap '' TERM; sleep 600; sleep 600", "--grace", "600")
    began = time.monotonic()
    worker.send_signal(signal.SIGINT)
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=30)
    assert time.monotonic() - began < 10
    assert yard.get(id).state is State.TODO
    assert not Path(f"/proc/{(tmp_path / 'up').read_text().strip()}").exists()


def test_a_cancelled_command_that_ignores_term_is_killed_after_the_grace(yard: Yard, tmp_path: Path) -> None:
    id = yard.add("build").id
    worker = started(yard, tmp_path, "trap '' TERM; sleep 600; sleep 600", "--max-tasks", "1", "--grace", "0.3")
    yard.cancel(id)
    began = time.monotonic()
    assert "1 lost" in worker.communicate(timeout=30)[0]
    assert time.monotonic() - began < 8, "the default is 10 s"


def test_drain_waits_for_a_kind_that_is_paused(yard: Yard) -> None:
    yard.add("build")
    yard.pause("build")
    with subprocess.Popen(
        [*tools.COMMAND, "work", "--drain", "--", "true"],
        env=tools.environment(TASKYARD=yard.url),
        stdout=subprocess.PIPE,
    ) as worker:
        wait_until(lambda: list((Path(yard.url) / "workers").glob("*")))
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(0.3)
        yard.unpause("build")
        assert worker.wait(20) == 0
    assert yard.counts()["done"] == 1


def test_a_cancelled_task_stops_its_command_and_the_worker_goes_on(yard: Yard, tmp_path: Path) -> None:
    id = yard.add("build").id
    worker = started(yard, tmp_path, f"test -e {tmp_path}/go && exit 0; sleep 600", "--max-tasks", "2")
    (tmp_path / "go").touch()
    yard.cancel(id)
    other = yard.add("build").id
    assert "1 lost, 1 done" in worker.communicate(timeout=30)[0]
    assert (yard.get(id).state, yard.get(other).state) == ("cancelled", "done")


def test_a_done_that_is_said_by_hand_is_verified_too(yard: Yard) -> None:
    tools.settle(yard.url, checks={"good": ["true"], "bad": ["sh", "-c", "echo it is not >&2; exit 9"]})
    for name, code in (("good", 0), ("bad", 7), ("unknown", 7)):
        id = yard.add("build", verify=name).id
        claim = yard.claim(id)
        assert claim is not None
        said = subprocess.run(
            [*tools.COMMAND, "done", claim.handle], env=tools.environment(TASKYARD=yard.url), capture_output=True, text=True, check=False
        )  # fmt: skip
        assert said.returncode == code, said.stderr
        assert claim.holds() is (code != 0)
        if name == "bad":
            assert "the check 'bad' did not pass: exit 9: it is not" in said.stderr


def test_a_command_cannot_talk_its_way_past_the_check_of_its_worker(yard: Yard) -> None:
    id = yard.add("build", verify="tests", max_attempts=1).id
    command = tools.IN_SHELL
    shell(yard, f"{command} done && exit 0; exit 3", "--once", "--check", "tests=test -e never-built")
    assert yard.get(id).state is State.FAILED
    assert "exit 3" in str(yard.get(id).error)
