"""The command line as whole processes: pipes, signals, encodings, and two of them at once."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from taskyard import init
from taskyard.core.ids import short

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-m", "taskyard"]


@pytest.fixture
def yard(tmp_path: Path) -> str:
    path = str(tmp_path / "yard")
    init(path, durability="fast").close()
    return path


def environment(yard: str, **more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TASKYARD", "AGENT_ID", "LC_", "LANG", "PYTHONIO", "PYTHONUTF8"))
    }
    return {**kept, "TASKYARD": yard, "LC_ALL": "C.UTF-8", **more}


def taskyard(yard: str, *argv: str | bytes, stdin: str = "", **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *argv],
        input=stdin.encode(),
        capture_output=True,
        env=environment(yard, **more),
        check=False,
        timeout=60,
    )


def data(yard: str, *argv: str) -> Any:
    done = taskyard(yard, *argv, "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout)["data"]


@pytest.mark.parametrize("command", [["-m", "taskyard"], ["-m", "taskyard.doors.cli"]])
def test_the_command_line_is_a_module_too(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *command, "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("taskyard ")


def test_a_task_goes_from_add_to_done_between_processes(yard: str) -> None:
    id = taskyard(yard, "add", "build", "--data", "@-", stdin='{"n": 1}').stdout.decode().strip()
    claim = data(yard, "claim")
    assert (claim["task"]["id"], claim["task"]["data"]) == (id, {"n": 1})
    done = taskyard(yard, "done", TASKYARD_CLAIM=claim["claim"])
    assert (done.returncode, done.stdout.decode()) == (0, f"{short(id)} is done\n")
    assert taskyard(yard, "claim").returncode == 3


def test_errors_of_usage_are_json_too(yard: str) -> None:
    done = taskyard(yard, "--json", "claim", "--no-such")
    assert (done.returncode, done.stderr) == (2, b"")
    assert json.loads(done.stdout)["error"]["code"] == "invalid"


def test_an_argument_that_is_not_utf8_is_refused_clearly(yard: str) -> None:
    done = taskyard(yard, "add", b"kind-\xff")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"UTF-8" in done.stderr
    assert b"Traceback" not in done.stderr


def test_output_that_the_encoding_cannot_express_is_escaped(yard: str) -> None:
    data(yard, "add", "build", "--title", "漢字 é", "--data", '"漢"')
    narrow = taskyard(yard, "list", PYTHONIOENCODING="latin-1")
    assert (narrow.returncode, narrow.stderr) == (0, b"")
    assert b"\\u6f22" in narrow.stdout
    machines = taskyard(yard, "list", "--json", PYTHONIOENCODING="latin-1")
    assert json.loads(machines.stdout)["data"]["tasks"][0]["title"] == "漢字 é"


def test_a_reader_that_goes_away_is_no_error(yard: str) -> None:
    data(yard, "add", "build")
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen([*COMMAND, "list"], stdout=writer, stderr=subprocess.PIPE, env=environment(yard)) as process:
        os.close(writer)
        _, errors = process.communicate(timeout=60)
    assert errors == b""
    assert process.returncode == 141


def test_an_answer_is_written_at_once_where_nothing_is_buffered(yard: str) -> None:
    """Or a reader that has its line is gone before the end of the answer comes."""
    data(yard, "add", "build")
    reader, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with reader, writer:
        subprocess.run(
            [*COMMAND, "list"],
            stdout=writer.fileno(),
            env=environment(yard, PYTHONUNBUFFERED="1"),
            check=True,
            timeout=60,
        )
        assert reader.recv(1 << 16).endswith(b"\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
def test_an_answer_that_cannot_be_written_is_told(yard: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "stats", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(yard),
            check=False,
            timeout=60,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"taskyard: the answer cannot be written")
    assert done.stderr.count(b"\n") == 1


def test_closed_streams_do_no_harm(yard: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m taskyard list >&- 2>&- <&-'],
        env=environment(yard),
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m taskyard add x --data - <&- 2>&1'],
        env=environment(yard),
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert b"Traceback" not in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_janitor_that_goes_on_prints_only_what_it_did_and_ends_well_on_a_signal(
    yard: str, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [*COMMAND, "janitor", "--every", "0.05"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(yard),
    ) as process:
        assert process.stdout is not None
        opened = init(yard)
        for _ in range(2):
            opened.add("build", delay=0.3)
            assert process.stdout.readline() == b"taken in 0, reaped 0, woken 1, expired 0, mended 0\n"
        process.send_signal(number)
        rest, errors = process.communicate(timeout=60)
    assert (process.returncode, rest, errors) == (0, b"", b"")


def test_a_janitor_that_goes_on_answers_every_sweep_with_a_line_of_json(yard: str) -> None:
    with subprocess.Popen(
        [*COMMAND, "janitor", "--every", "0.05", "--json"], stdout=subprocess.PIPE, env=environment(yard)
    ) as process:
        assert process.stdout is not None
        nothing = {
            "taken": 0,
            "reaped": 0,
            "woken": 0,
            "expired": 0,
            "mended": 0,
            "ticked": 0,
            "not_tasks": [],
            "full": [],
        }
        for _ in range(3):
            assert json.loads(process.stdout.readline()) == {"v": 1, "ok": True, "data": nothing}
        process.terminate()
    assert process.returncode == 0


@pytest.mark.parametrize("argv", [("list", "--json"), ("stats", "--json"), ("--version",)])
def test_an_answer_that_nobody_can_get_is_no_success(yard: str, argv: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, *argv], stderr=subprocess.PIPE, env=environment(yard), check=False
    )
    assert (done.returncode, done.stderr) == (1, b"taskyard: the answer cannot be written: stdout is closed\n")


@pytest.mark.parametrize("lost", ["/dev/full", "a pipe that nobody reads"])
def test_what_stands_although_nobody_got_the_answer_is_told_on_stderr(yard: str, lost: str) -> None:
    """Said again, it would be a second task, and a second claim while nobody can give back the first."""

    def say(*argv: str) -> str:
        if lost == "/dev/full":
            writer = os.open(lost, os.O_WRONLY)
        else:
            reader, writer = os.pipe()
            os.close(reader)
        done = subprocess.run(
            [*COMMAND, *argv], stdout=writer, stderr=subprocess.PIPE, env=environment(yard), check=False, timeout=60
        )
        os.close(writer)
        return done.stderr.decode().splitlines()[-1]

    added = say("add", "build")
    (task,) = data(yard, "list")["tasks"]
    assert added == f"taskyard: the task {task['id']} was added all the same"
    claimed = say("claim", "--json")
    handle = claimed.split("'taskyard release ")[1].split("'")[0]
    assert data(yard, "release", handle)["task"]["id"] == task["id"]


def test_ctrl_c_ends_a_command_with_a_word_and_no_trace(yard: str) -> None:
    with subprocess.Popen(
        [*COMMAND, "add", "--from", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(yard),
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"\n" * 1_000_000)  # more than a pipe holds: once it is written, the command is at work
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stdout is not None
        assert process.stderr is not None
        told = (process.stdout.read(), process.stderr.read())
        assert told == (b"", b"taskyard: interrupted: nothing of the batch was added\n")


def test_eight_processes_never_claim_the_same_task(yard: str) -> None:
    opened = init(yard)
    ids = opened.add_many([{"kind": "build"}] * 16)
    argv = [*COMMAND, "claim", "--json", "--worker", "same-name"]
    claimed = []
    for _ in range(2):
        crew = [subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment(yard)) for _ in range(8)]
        claimed += [json.loads(process.communicate(timeout=60)[0])["data"]["task"]["id"] for process in crew]
    assert sorted(claimed) == sorted(ids)
