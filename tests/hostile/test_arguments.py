"""Whatever is said to a command or to the Yard: an answer, or one of our own errors with what to do next."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import taskyard
from taskyard.core.errors import TaskyardError
from tests.hostile import verbs
from tests.hostile.conftest import examples

ODD_TEXTS = (
    "", " ", "-", "--", "---", "-1", "\x00", "\n", "a\nb", "../..", "/", "/etc/passwd", "../../etc", "~", "%2F", "%", "\u202e", "\ud800", "\udcff", "\U0001f600" * 70,
    "x" * 5000, "9" * 5000, "1e999", "nan", "inf", "-inf", "0x10", "1_000", "١٢", "²", "NaN", "null", "true", "[]", "{}", '{"a":1,"a":2}', "[" * 3000,
    '"\\ud800"', "@/nonexistent", "@/", "@/dev/null", "@", "2026-13-45T99:99:99Z", "2026-01-01T00:00:00", "99999-01-01T00:00:00Z", "0000", "zzzz", "ZZZZ", "0" * 21,
    "0" * 22, "000000000000000000000.1.00000000", "000000000000000000000.999999999.00000000", "000000000000000000000.9999999999.00000000", "eyJ4IjogW1tdXX0=", "=", "WzFd",
    "e30=", "IjEi", "{'a'}", "a" * 60, "a" * 61, "ä" * 10, "ä" * 11, "k", "build", "5", "0.5", "10m", "-5s", "1d", "1e5d",
)  # fmt: skip
OPTIONS = (
    "--data", "--title", "--priority", "--after", "--delay", "--not-before", "--key", "--max-attempts", "--lease", "--assignee", "--uses", "--mission", "--verify",
    "--from", "--state", "--kind", "--worker", "--limit", "--cursor", "--result", "--reason", "--no-retry", "--progress", "--note", "--task", "--since", "--event",
    "--older-than", "--keep", "--apply", "--timeout", "--durability", "--group", "--shared", "--every", "--json", "--help", "--version", "--bogus", "--",
)  # fmt: skip
VERBS = (
    "init", "add", "create", "ready", "list", "show", "stats", "claim", "next", "heartbeat", "done", "fail", "release", "note", "resume", "cancel", "retry", "edit",
    "pause", "unpause", "log", "prune", "bogus", "",
)  # fmt: skip
texts = st.sampled_from(ODD_TEXTS) | st.text(max_size=30) | st.binary(max_size=20).map(os.fsdecode)
words = st.lists(st.sampled_from(OPTIONS) | texts, max_size=6).filter(
    lambda some: not {"--every", "--follow"} & set(some)
)


@examples(400)
@given(verb=st.sampled_from(VERBS), rest=words, stdin=st.sampled_from(ODD_TEXTS) | st.text(max_size=50))
def test_any_words_get_a_legal_answer(
    tmp_path_factory: pytest.TempPathFactory, verb: str, rest: list[str], stdin: str
) -> None:
    yard = _yard(tmp_path_factory)
    around = sorted(os.listdir(yard.parent))
    rest = [word.replace("\0", "") for word in rest]  # no command line can hold one
    if verb == "init":  # only ever where the test says
        rest = [word for word in rest if word.startswith("--") or "/" not in word]
        rest = ["--shared" if word == "--group" else word for word in rest if word.startswith("--")]
    if verb == "claim":
        rest += ["--wait", "0"]
    verbs.say(
        yard,
        verb,
        *rest,
        stdin=os.fsencode(stdin) if stdin.isprintable() else stdin.encode("utf-8", "replace"),
        plain="--" in rest,
    )
    assert sorted(os.listdir(yard.parent)) == around


@examples(150)
@given(
    st.lists(
        st.sampled_from(ODD_TEXTS).map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=40),
        max_size=4,
    )
)
def test_any_lines_get_a_legal_answer(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    yard = _yard(tmp_path_factory)
    said = verbs.say(yard, "add", "--from", "-", stdin=b"\n".join(lines))
    assert said.code in (0, 2), said


_made: dict[str, Path] = {}


def _yard(factory: pytest.TempPathFactory) -> Path:
    """One yard for all examples."""
    if "yard" not in _made:
        _made["yard"] = factory.mktemp("arguments") / "yard"
        taskyard.init(str(_made["yard"]), durability="fast").close()
    return _made["yard"]


class Text(str):
    """A text that is one's own."""


ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 10**5000, -(10**5000), 1.5, float("nan"), float("inf"), float("-inf"), b"bytes", bytearray(b"x"), "", "x", "\ud800", "\0", "a" * 5000,
    Text("build"), [], [1], ["x"], (), {}, {"a": {1: 2}}, {1, 2}, object(), Exception("x"), iter([1]), range(3), 1j, Path("/etc"), lambda: None, int, "0" * 21, "0000",
    [[[[]]]], {"a": float("nan")}, {"a": "\ud800"}, {"a": 10**5000}, {(1, 2): 3}, [b"x"], {"kind": "build"}, [{"kind": "build"}] * 2, "2026-01-01T00:00:00Z",
)  # fmt: skip
CALLS: dict[str, Any] = {
    "add": lambda yard, one, two: yard.add(one, two),
    "add many": lambda yard, one, two: yard.add_many(one),
    "add many of": lambda yard, one, two: yard.add_many([{"kind": one, "data": two}]),
    **{
        f"add {name}": lambda yard, one, two, name=name: yard.add("build", None, **{name: one})
        for name in ("title", "priority", "delay", "not_before", "max_attempts", "lease", "assignee", "mission", "key", "verify", "after", "uses", "bogus")
    },
    "claim": lambda yard, one, two: yard.claim(one),
    "claim kinds": lambda yard, one, two: yard.claim(kinds=one, worker=two),
    "claim lease": lambda yard, one, two: yard.claim(lease=one, kinds=["never"]),
    "held": lambda yard, one, two: yard.held(one).done(two),
    "get": lambda yard, one, two: yard.get(one),
    "find": lambda yard, one, two: yard.find(state=one, limit=two) if not isinstance(two, int) else yard.find(kind=one),
    "find cursor": lambda yard, one, two: yard.find(cursor=one, limit=two),
    "events": lambda yard, one, two: yard.events(cursor=one, limit=two),
    "events since": lambda yard, one, two: yard.events(since=one, event=two),
    "cancel": lambda yard, one, two: yard.cancel(one, two),
    "retry": lambda yard, one, two: yard.retry(one),
    "edit": lambda yard, one, two: yard.edit("0" * 21, title=one, data=two),
    "pause": lambda yard, one, two: yard.pause(one),
    "prune": lambda yard, one, two: yard.prune(age=one, count=two),
    "wait": lambda yard, one, two: yard.wait("0" * 21, timeout=one) if not isinstance(one, int | float) else yard.wait(one, timeout=0),
    "resume": lambda yard, one, two: yard.resume(one),
    "done": lambda yard, one, two: _claimed(yard).done(one),
    "fail": lambda yard, one, two: _claimed(yard).fail(one),
    "note": lambda yard, one, two: _claimed(yard).note(one),
    "heartbeat": lambda yard, one, two: _claimed(yard).heartbeat(progress=one),
    "shorten": lambda yard, one, two: yard.shorten(one),
    "open": lambda yard, one, two: taskyard.open(one if one not in (None, "") else "\0").close(),
    "open worker": lambda yard, one, two: taskyard.open(yard.url, worker=one).close(),
    "open durability": lambda yard, one, two: taskyard.open(yard.url, durability=one).close(),
}  # fmt: skip


def _claimed(yard: taskyard.Yard) -> taskyard.Claim:
    claim = yard.claim(yard.add("own").id)
    assert claim is not None
    return claim


@pytest.mark.parametrize("call", CALLS)
def test_any_argument_gets_an_answer_or_an_error_of_ours(tmp_path: Path, call: str) -> None:
    """A TypeError is Python's own word for an argument of the wrong type, and will do where it is raised before anything is done."""
    with taskyard.init(str(tmp_path / "yard"), worker="ada", durability="fast") as yard:
        for one in ODD_VALUES:
            for two in (None, one):
                with verbs.in_time(f"{call} {type(one)!a}"):
                    try:
                        CALLS[call](yard, one, two)
                    except (TaskyardError, TypeError):
                        pass
        assert os.listdir(tmp_path) == ["yard"]
        yard.unpause()
        claim = yard.claim(yard.add("fresh").id)
        assert claim is not None
        claim.done()


@pytest.mark.parametrize("name", ["TASKYARD", "TASKYARD_WORKER", "AGENT_ID", "TASKYARD_CLAIM"])
@pytest.mark.parametrize(
    "value", [b"\xff\xfe", b"a\nb", b"..", b"x" * 5000, b"-", "\u202e".encode(), b" ", b"/", b"memory:\xff"]
)
def test_an_odd_environment_gets_a_legal_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: bytes
) -> None:
    from taskyard.doors.cli import main

    taskyard.init(str(tmp_path / "yard"), durability="fast").close()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TASKYARD", str(tmp_path / "yard"))
    monkeypatch.setitem(os.environb, name.encode(), value)
    for argv in (["add", "build"], ["claim"], ["done"], ["list"], ["resume"]):
        assert main([*argv, "--json"]) in verbs.LEGAL - {1}


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00", b"\xff\xfe", b"[", b"a = ", b"x = " + b"9" * 5000, b"[[worker]]\nname = 1", b"[worker.a]\ncommand = 5", b"[worker.a]\ncommand = []", b"a" * 100_000,
     b"[worker.'../x']\ncommand = ['true']", b"[worker.a]\ncommand = ['true']\nconcurrency = 99999999999999999999", b"[worker.a]\ncommand = ['true']\nlease = nan",
     b"x = " + b"[" * 3000, b"[worker.a]\ncommand=['\\u0000']"],
)  # fmt: skip
def test_an_odd_crew_file_gets_a_legal_answer(tmp_path: Path, content: bytes) -> None:
    yard = tmp_path / "yard"
    taskyard.init(str(yard), durability="fast").close()
    (tmp_path / "crew.toml").write_bytes(content)
    said = verbs.say(yard, "crew", str(tmp_path / "crew.toml"), "--check")
    assert said.code in (0, 1, 2), said
    assert "internal" not in json.dumps(said.envelope), said
