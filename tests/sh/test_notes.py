"""note_task: a word for whoever comes next, where Python finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conftest import taken, wait_until
from tests.directory.stories import check_log
from tests.processes import tools

if TYPE_CHECKING:
    from taskyard import Yard
    from tests.sh.shells import Shell

TEXT = 'half "done"\n\\ see 漢字\tbelow'


def test_a_note_is_found_with_those_of_python(sh: Shell, yard: Yard) -> None:
    task = yard.add("docs.html")
    handle, _ = sh.claim(env={"AGENT_ID": "bob"})
    assert sh.run("note_task", handle, TEXT, env={"AGENT_ID": "bob"}).line == ""
    assert tools.taskyard(yard.url, "note", handle, "and this").code == 0
    assert sh.run("note_task", "by the variable", env={"AGENT_ID": "bob", "TASKYARD_CLAIM": handle}).line == ""
    notes = yard.report(task.id).notes
    assert [(note["text"], note["worker"], note["fence"], note["claim"]) for note in notes] == [
        (TEXT, "bob", 1, handle),
        ("and this", "bob", 1, handle),
        ("by the variable", "bob", 1, handle),
    ]
    noted = [event for event in yard.events(task=task.id) if event["event"] == "noted"]
    assert next((event["text"], event["worker"], event["kind"]) for event in noted) == (TEXT, "bob", "docs.html")
    assert sh.run("complete_task", handle).line == ""
    assert len(yard.report(task.id).notes) == 3
    check_log(yard)


def test_a_note_begins_the_lease_anew(sh: Shell, yard: Yard) -> None:
    yard.add("build")
    handle, file = sh.claim()
    before = file.stat().st_ctime_ns
    wait_until(lambda: (sh.run("note_task", handle, "still here"), file.stat().st_ctime_ns > before)[1])


def test_a_note_on_a_claim_that_is_over_is_refused(sh: Shell, yard: Yard) -> None:
    task = yard.add("build")
    handle, _ = sh.claim()
    sh.run("release_task", handle)
    refused = sh.run("note_task", handle, "too late")
    assert refused.code == 4
    assert yard.report(task.id).notes == []
    assert [event["verb"] for event in yard.events(task=task.id) if event["event"] == "refused"] == ["note"]
    assert tools.taskyard(yard.url, "note", handle, "too late").code == 4
    taken(yard.claim())


def test_a_note_says_something(sh: Shell, yard: Yard) -> None:
    yard.add("build")
    handle, _ = sh.claim()
    for words in ([], [handle], [handle, ""], [handle, " \n"], [handle, "a", "b"], ["nonsense", "text"]):
        assert sh.run("note_task", *words).code == 2, words
    assert sh.run("note_task", "0000" + "0" * 17 + ".1.b979d98y1", "hello").code == 6
    long = "x" * 70_000
    assert sh.run("note_task", handle, long).line == ""
    (note,) = yard.report(handle.split(".")[0]).notes
    assert 60_000 < len(note["text"]) <= 65_536
