"""A history is what was said, however its writers ended."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard import ClaimLost, Invalid
from taskyard.proof import FinalState, History, HistoryWriter, RecordedYard, check
from taskyard.proof.history import read
from taskyard.proof.recorder import clock, fingerprint
from tests.conftest import taken
from tests.processes import tools

if TYPE_CHECKING:
    from pathlib import Path

WRITER = """
import os, sys
from taskyard.proof import HistoryWriter
writer = HistoryWriter(sys.argv[1], "ada")
writer.answered(writer.request("claim", id=None), claims=[])
writer.request("claim", id=None)
os.kill(os.getpid(), 9)
"""


def test_what_was_said_outlives_its_process_and_the_last_question_has_no_answer(tmp_path: Path) -> None:
    assert subprocess.run([tools.PYTHON, "-c", WRITER, str(tmp_path)], check=False).returncode == -9
    first, second = History.load(tmp_path)
    assert (first.verb, first.worker, first.answer, first.unknown) == ("claim", "ada", {"claims": []}, False)
    assert (second.answer, second.end, second.unknown) == (None, None, True)
    assert first.precedes(second)
    assert not second.precedes(first)


def test_processes_of_one_kernel_share_a_clock_and_others_share_none(tmp_path: Path) -> None:
    subprocess.run([tools.PYTHON, "-c", WRITER, str(tmp_path)], check=False)
    writer = HistoryWriter(tmp_path, "bob")
    writer.request("resume")
    writer.close()
    claim, _, resume = sorted(History.load(tmp_path), key=lambda op: op.begin or 0)
    assert claim.precedes(resume)
    resume.clock = "another"
    assert not claim.precedes(resume)
    resume.clock, resume.begin = claim.clock, None
    assert not claim.precedes(resume)


def test_a_time_namespace_is_a_clock_of_its_own() -> None:
    words = tools.unshared("--time", "--fork")
    script = "from taskyard.proof.recorder import clock; print(clock())"
    told = subprocess.run([*words, tools.PYTHON, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.strip() != clock()


def test_a_line_that_is_not_whole_was_never_said(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path, "ada")
    writer.request("resume")
    writer.close()
    [path] = tmp_path.iterdir()
    with path.open("ab") as file:
        file.write(b'{"n":1,"at":5,"to')
    [op] = History.load(tmp_path)
    assert op.unknown
    assert read("empty.jsonl", b"") == []


@pytest.mark.parametrize(
    "content",
    [b"nonsense\n", b'{"v":9}\n', b'{"v":1,"process":"p","worker":"w","clock":"c"}\n{"n":7,"at":1,"told":{}}\n'],
)
def test_what_is_no_history_is_refused(content: bytes) -> None:
    with pytest.raises(Invalid):
        read("file.jsonl", content)


def test_a_long_value_is_known_by_its_digest() -> None:
    assert fingerprint({"b": 1, "a": [None]}) == '{"a":[null],"b":1}'
    assert fingerprint("x" * 5000) == fingerprint("x" * 5000) != fingerprint("x" * 5001)
    assert len(fingerprint("x" * 5000)) < 100


def test_a_witness_writes_down_every_verb_and_the_checker_understands_it(yard_url: str, tmp_path: Path) -> None:
    with RecordedYard(taskyard.open(yard_url, worker="ada"), HistoryWriter(tmp_path / "history", "ada")) as yard:
        id = yard.add("build", {"n": 1}, key="k").id
        yard.add("build", {"n": 1}, key="k")
        yard.add_many([{"kind": "test"}] * 2)
        yard.edit(id, title="new")
        claim = yard.claim(kinds=["build"])
        assert claim is not None
        claim.heartbeat()
        claim.note("so far")
        [again] = yard.resume()
        with pytest.raises(ClaimLost):
            claim.release()
        again.done("r")
        yard.held(again.handle).done("r")
        with taken(yard.claim()):  # type: ignore[arg-type]  # a RecordedYard wraps a yard
            pass
        other = yard.claim()
        assert other is not None
        other.fail("why")
        yard.cancel(other.task.id)
        yard.retry(other.task.id)
        with pytest.raises(ValueError, match="oops"), yard.claim() or pytest.fail("nothing was ready"):
            raise ValueError("oops")
        yard.sweep()
        assert yard.counts()["done"] == 2, "what is not written down goes to the yard"
        verbs = [op.verb for op in History.load(tmp_path / "history")]
        assert verbs == [
            "add", "add", "add", "edit", "claim", "heartbeat", "note", "resume", "release", "done", "done", "claim", "done",
            "claim", "fail", "cancel", "retry", "claim", "fail",
        ]  # fmt: skip
        verdict = check(History.load(tmp_path / "history"), FinalState.of(yard.yard))
        assert verdict.legal, str(verdict)
        assert verdict.figures["claims"] == 5
        assert verdict.figures["refused_late"] == 1
        assert verdict.figures["unanswered"] == 1


def test_checking_a_long_history_takes_no_time_to_speak_of(tmp_path: Path) -> None:
    with RecordedYard(taskyard.init("memory:long"), HistoryWriter(tmp_path, "ada")) as yard:
        yard.add_many([{"kind": "build", "data": n} for n in range(3000)])
        while (claim := yard.claim()) is not None:
            claim.done()
        yard.add("build")
        for _ in range(500):  # one task that is handed out time and again
            claim = yard.claim()
            assert claim is not None
            claim.release()
        final_state, history = FinalState.of(yard.yard), History.load(tmp_path)
        began = time.process_time()
        assert check(history, final_state).legal
        assert time.process_time() - began < 5
    assert len(os.listdir(tmp_path)) == 1
