"""PROTOCOL.md tells the truth: its tables, names and call lists are compared with the code."""

from __future__ import annotations

import ast
import gzip
import json
import os
import re
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard import ClaimLost, State
from taskyard.core import draft, ids, settings, times
from taskyard.core.retry import Policy
from taskyard.core.store_records import Terms, Want
from taskyard.core.task import Handle
from taskyard.core.words import ENCODED_MOST, decoded, encoded
from taskyard.core.yard_events import YARD_EVENTS
from taskyard.store import Parts, Store
from taskyard.stores.directory import context, layout, names
from taskyard.stores.directory.dropbox import file_format
from taskyard.stores.directory.log import watch
from taskyard.stores.directory.names import Lane, Token
from taskyard.yard import Yard

from .conftest import taken, wait_until
from .recording import Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard import Claim
    from taskyard.core.options import TaskOptions

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "PROTOCOL.md").read_text(encoding="utf-8")
SOURCES = [path.read_text(encoding="utf-8") for path in Path(taskyard.__file__).parent.rglob("*.py")]


def blocks(kind: str) -> dict[str, str]:
    """Fenced blocks of this kind, by the rest of their first line."""
    found = re.findall(rf"^```{kind}(?: ([^\n]*))?\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert found, f"PROTOCOL.md has no block of {kind}"
    return dict(found)


def table(head: str) -> list[list[str]]:
    """The rows of the table that begins so, without the marks of code."""
    lines = TEXT[TEXT.index(f"| {head} |") :].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split(" |")])
    return rows


# Folders and settings


def test_the_folders_are_those_that_init_makes() -> None:
    assert [row[0] for row in table("folder")] == list(layout.FOLDERS)


def test_the_settings_have_the_defaults_that_are_told() -> None:
    told = {row[0]: row[1].strip("`") for row in table("setting")}
    assert told.pop("durability") == settings.DURABILITY
    settle = [int(seconds) * 1000 for seconds in re.findall(r"\d+", told.pop("settle"))]
    assert settle == [context._SETTLE, context._SETTLE_NETWORK]
    kept = settings.Retention()
    assert (kept.age, kept.count) == (None, None)
    assert all(told.pop(f"retention_{name}").startswith("none") for name in ("age", "count"))
    assert [told.pop(name) for name in ("checks", "max_todo", "kinds", "file_conflicts")] == ["none"] * 4
    assert all(told.pop(name).startswith("none") for name in ("shared", "tokens"))
    assert (told.pop("ageing")[:4], Policy().ageing) == ("none", None)
    assert {name: float(value) for name, value in told.items()} == {
        name: float(getattr(Policy(), name)) for name in Policy.__slots__ if name != "ageing"
    }


def test_the_settings_have_the_bounds_that_are_told() -> None:
    told = {row[0]: row[2] for row in table("setting") if row[2]}
    assert list(told) == list(settings.BOUNDS)
    for name, (least, most) in settings.BOUNDS.items():
        low, _, high = told[name].removesuffix(", whole").replace(",", "").partition(" to ")
        assert (float(low), float(high)) == (least, most)
        assert told[name].endswith(", whole") == isinstance(least, int)


def test_yard_json_is_what_init_writes(tmp_path: Path) -> None:
    taskyard.init(tmp_path / "yard").close()
    assert (tmp_path / "yard" / "yard.json").read_text() == blocks("json")[""]
    assert (tmp_path / "yard" / ".gitignore").read_text() == "*\n"


# Names


def examples() -> list[tuple[str, dict[str, str]]]:
    lines = blocks("names")[""].splitlines()
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [(path, dict(part.split("=", 1) for part in said.split())) for path, said in pairs]


def parsed(path: str) -> Token | None:
    parts = path.split("/")
    return Token.parse(parts[-1], Lane.parse(parts[1]) if parts[0] == State.TODO else None)


@pytest.mark.parametrize(("path", "said"), examples(), ids=[path for path, _ in examples()])
def test_an_example_says_what_is_told(path: str, said: dict[str, str]) -> None:
    token = parsed(path)
    assert token is not None
    fields: dict[str, Any] = {name: getattr(token, name) for name in Token.__slots__ if name != "lane"}
    fields |= {"priority": token.lane.priority, "kind": token.lane.kind, "assignee": token.lane.assignee}
    if fields["worker"] is not None:
        fields["worker"] = encoded(fields["worker"])
    assert {name: str(value) for name, value in fields.items() if value is not None and value is not False} == said
    segments = [part for part in path.split("/")[1:-1] if ids.is_segment(part)]
    assert segments == ([] if path.startswith("processing/") else [token.id[: ids.SEGMENT]])


@pytest.mark.parametrize("path", blocks("not-names")[""].splitlines())
def test_what_is_no_name_is_passed_over(path: str) -> None:
    assert parsed(path) is None


def test_every_state_that_tasks_reach_has_an_example() -> None:
    assert {path.split("/")[0] for path, _ in examples()} == {str(state) for state in State}


@pytest.mark.parametrize(("word", "part"), [(row[0], row[1]) for row in table("given")])
def test_words_are_encoded_as_told(word: str, part: str) -> None:
    assert encoded(word) == part
    assert decoded(part) == word


@pytest.mark.parametrize(("there", "names"), table("ids of a segment | short names"))
def test_short_names_derive_as_told(there: str, names: str) -> None:
    whole, short = re.findall(r"[0-9a-z]{21}", there), re.findall(r"[0-9a-z]+-[0-9a-z]+", names)
    assert ids.shorten(whole, whole) == short
    assert [[id for id in whole if ids.fits(str(ids.pattern(name)), id)] for name in short] == [[id] for id in whole]


def test_the_longest_name_is_as_long_as_told_and_fits(tmp_path: Path) -> None:
    rows = table("part | at most | bytes")
    told = int(rows[-1][-1].strip("*"))
    assert sum(int(row[-1]) for row in rows[:-1]) == told < 255
    lane = Lane.of(9, "k" * ENCODED_MOST, "a" * ENCODED_MOST)
    counters = names.Counters.parse("e999999999.c999999999.bzzzzzzzz.m999.t2592000000.u.json")
    assert counters is not None
    terms = Terms("a" * ENCODED_MOST, draft.LEASE_MOST, None, True)
    plan = names.Plan(counters, lane, "a" * ENCODED_MOST, terms, Policy())
    nonce = "z" * 8 + "9" * 16
    longest = f"{'z' * ids.LENGTH}.999999999.{plan.middle}{nonce}.{names.RESULT}.json"
    assert len(longest) == told
    token = Token.parse(longest)
    assert token is not None
    assert (token.nonce, token.worker, token.has_result, token.body) == (nonce, lane.assignee, True, "z" * 8)
    assert len(str(Handle.parse(f"{token.id}.{token.fence}.{token.nonce}"))) == 56
    (tmp_path / longest).touch()
    bare = names.Plan(counters, Lane.of(9, lane.kind, None), "a" * ENCODED_MOST, terms, Policy())
    assert len(bare.middle) <= len(plan.middle)


@pytest.mark.parametrize(("now", "due", "bucket"), [tuple(row) for row in table("now")])
def test_buckets_are_as_told(now: str, due: str, bucket: str) -> None:
    assert names.bucket(times.moment(due, "due"), times.moment(now, "now")) == bucket


# Waiting

IN = {"MODIFY": 0x2, "CLOSE_WRITE": 0x8, "MOVED_FROM": 0x40, "MOVED_TO": 0x80, "CREATE": 0x100, "DELETE": 0x200}


def test_what_a_waiter_watches_is_told() -> None:
    told = {row[0]: sum(IN[word.strip()[3:]] for word in row[1].split(",")) for row in table("watched")}
    assert told == watch.WATCHED


# Contents


def play_everything(path: Path) -> None:
    """Have everything happen in a yard that can."""
    stage = Stage(path, "fast")
    yard = stage.yard
    stage.claimed().note("half of it")
    yard.resume("ada")
    stage.claimed().done({"ok": True})
    stage.claimed().fail("no disk")
    failed = stage.claimed()
    failed.fail("no use", retry=False)
    yard.retry(failed.task.id)
    stage.claimed().release()
    yard.cancel(stage.claimed().task.id, "not needed")
    late = stage.lapsed()
    yard.add("test", delay=0.001)
    stage.until_overdue(2)
    yard.sweep()
    with pytest.raises(ClaimLost):
        late.done("too late")
    yard.edit(added(stage), delay=3600)
    first = stage.claimed()
    yard.add("test", after=first.task.id, delay=3600)
    first.done()
    stage.drop('{"kind": "no kind"}')
    yard.sweep()
    options: TaskOptions = {
        "title": "Ship it",
        "priority": 0,
        "not_before": "2026-01-31T12:05:00Z",
        "assignee": "ada",
        "mission": "1.0",
        "key": "deploy-17",
        "max_attempts": 5,
        "lease": 7200,
        "after": first.task.id,
        "uses": ["production"],
    }
    yard.add("deploy", {"to": "production"}, **options)
    steer(yard)


def steer(yard: Yard) -> None:
    """Do everything to a yard that is done to no task."""
    yard.pause("build")
    yard.unpause("build")
    yard.set_settings({"max_attempts": 4})
    yard.revoke_token(yard.new_token("board")["name"])
    yard.new_mission("2.0")
    yard.cancel_mission("2.0")
    yard.new_schedule("nightly", "0 3 * * *", "report")
    yard.pause_schedule("nightly")
    yard.unpause_schedule("nightly")
    yard.remove_schedule("nightly")
    yard.prune(age="1h", apply=True)
    words = {"row": "T1", "line": 3, "field": "title", "file": "one", "yard": "other"}
    yard.set_file_conflicts("TASKS.md", [{"task": yard.add("build").id, **words}])


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in (path / "events").iterdir() for line in file.read_text().splitlines()]


EVENTS = table("event | fence | worker | more")


def test_every_event_is_told_with_its_fields(tmp_path: Path) -> None:
    play_everything(tmp_path / "yard")
    example = json.loads(blocks("event")[""])
    told = {row[0]: row[3] for row in EVENTS}
    seen: dict[str, set[str]] = {}
    for event in events(tmp_path / "yard"):
        assert list(event)[: len(example)] == list(example)
        seen.setdefault(event["event"], set()).update(set(event) - set(example))
    assert set(seen) == set(told)
    for name, fields in seen.items():
        assert fields <= set(re.findall(r"\w+", told[name])), name


def test_no_event_is_written_that_is_not_told() -> None:
    """By the source: the first word of a Move, and the second of what the log is told."""
    written = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                log = name in ("write", "line") and "log" in ast.unparse(node.func)
                at = 1 if log else 0 if name in ("Move", "_back") else None
                if at is not None and isinstance(node.args[at], ast.Constant):
                    written.add(str(ast.literal_eval(node.args[at])))
        written.update(re.findall(r'"event":"(\w+)"', source))
    assert written | {*YARD_EVENTS} == {row[0] for row in EVENTS}


def test_records_and_tasks_have_the_fields_that_are_told(tmp_path: Path) -> None:
    play_everything(tmp_path / "yard")
    records = [path for path in (tmp_path / "yard" / "results").rglob("*.json") if ".stale-" not in path.name]
    [retried] = [path for path in records if path.name.endswith(".retried.json")]
    assert list(json.loads(retried.read_text())) == ["task", "fence", "state", "errors", "crashes", "at", "by"]
    records.remove(retried)
    assert {path.name.split(".")[3] for path in records} == {row[0] for row in table("outcome")}
    told = list(json.loads(blocks("record")[""]))
    for path in records:
        fields = list(json.loads(path.read_text()))
        assert fields == (told if ".done." in path.name else [name for name in told if name != "result"])
    [deploy] = (tmp_path / "yard" / "todo" / Lane.of(0, "deploy", "ada", "1.0").text).rglob("*.json")
    example = json.loads(blocks("task")[""])
    assert list(json.loads(deploy.read_text())) == list(example)
    task = {**example, "id": deploy.name[:21], "after": json.loads(deploy.read_text())["after"]}
    assert deploy.read_text() == json.dumps(task, separators=(",", ":")) + "\n"


def test_the_keys_that_steer_a_dropped_file_are_told() -> None:
    told = {key for row in table("key in a dropped file") for key in re.findall(r"\w+", row[0])}
    assert told == {"kind", "data", *file_format._STEERING}


def test_a_key_is_a_second_name_of_its_tasks_file(tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "yard") as yard:
        id = yard.add("build", key="deploy-17").id
    digest = sha256(b"deploy-17").hexdigest()[:40]
    [task] = (tmp_path / "yard" / "todo").rglob(f"{id}*")
    assert (tmp_path / "yard" / "keys" / digest[:2] / f"{digest}.json").samefile(task)


def test_a_writers_file_has_the_event_of_the_move_that_it_is_about_to_make(tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "yard") as yard:
        yard.add("build")
        [file] = (tmp_path / "yard" / "writers").iterdir()
        assert re.fullmatch(r"\d+-[0-9a-z]{8}", file.name)
        assert file.stat().st_size == 16_384
        assert json.loads(file.read_bytes().split(b"\n")[0]) == events(tmp_path / "yard")[-1]
        ids = yard.add_many([{"kind": "build"}, {"kind": "build"}])
        assert json.loads(file.read_bytes().split(b"\n")[0]) == {
            "event": "added", "task": ids[0], "tasks": ids, "by": yard.worker
        }  # fmt: skip
        taken(yard.claim())
        assert json.loads(file.read_bytes().split(b"\n")[0]) == events(tmp_path / "yard")[-1]
    assert not list((tmp_path / "yard" / "writers").iterdir())


def test_a_line_of_the_archive_has_what_is_told(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "yard", "fast")
    play_prune(stage)()
    [archive] = (tmp_path / "yard" / "archive").iterdir()
    told = re.findall(r'"(\w+)":', blocks("archived")[""])
    assert list(json.loads(gzip.decompress(archive.read_bytes()))) == told


def test_a_segments_marker_is_a_line_and_a_byte_for_each_task(tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "yard") as yard:
        yard.add_many([{"kind": "build"}] * 3)
    assert re.fullmatch(r"\d{13} 5-build\n\.\.\.", (tmp_path / "yard" / "segments" / "0000").read_text())
    assert re.search(r"^```\n\d{13} 5-build\n\.\.\.\n```$", TEXT, re.MULTILINE)


# Moves


def play_refine(stage: Stage) -> Callable[[], object]:
    day = stage.store._context.clock.exact() // 86_400_000 + 5
    due = day * 86_400_000 + 12 * 3_600_000
    stage.yard.add("build", not_before=times.rfc3339(due))
    return lambda: list(stage.store.upkeep._overdue._waiting.due(due - 3 * 3_600_000))


def play_wake(stage: Stage) -> Callable[[], object]:
    stage.yard.add("build", delay=0.001)
    stage.until_overdue(1)
    return stage.yard.sweep


def play_expire(stage: Stage) -> Callable[[], object]:
    stage.yard.add("build", expires="2001-01-01T00:00:00Z")
    return stage.yard.sweep


def play_late(stage: Stage) -> Callable[[], object]:
    late = stage.lapsed()
    stage.yard.sweep()

    def play() -> None:
        with pytest.raises(ClaimLost):
            late.done("too late")

    return play


def play_retry(stage: Stage) -> Callable[[], object]:
    claim = stage.claimed()
    claim.fail("no use", retry=False)
    return lambda: stage.yard.retry(claim.task.id)


def play_reap(stage: Stage) -> Callable[[], object]:
    stage.lapsed()
    return stage.yard.sweep


def play_take_in(text: str) -> Callable[[Stage], Callable[[], object]]:
    def staged(stage: Stage) -> Callable[[], object]:
        added(stage)
        stage.yard.add("build", key="first")
        stage.drop(text)
        return lambda: stage.store.dropbox.intake("ada")

    return staged


def play_give_back(stage: Stage) -> Callable[[], object]:
    stage.drop('{"kind": "no kind"}')
    stage.store.dropbox.intake("ada")
    return lambda: stage.store.dropbox.give_back("order")


def play_broken(stage: Stage) -> Callable[[], object]:
    stage.drop('{"kind": "build"}')
    stage.store.dropbox.intake("ada")
    [file] = (stage.path / "todo" / "5-build").rglob("*.json")
    file.write_text("half of")
    return stage.yard.claim


def play_prune(stage: Stage) -> Callable[[], object]:
    stage.yard.add("build", key="order-17")
    claim = taken(stage.yard.claim())
    claim.note("half of it")
    claim.done({"ok": True})
    wait_until(lambda: stage.yard.prune(age=0)["tasks"] == 1)
    return lambda: stage.yard.prune(age=0, apply=True)


def play_done_followed(stage: Stage) -> Callable[[], object]:
    claim = stage.claimed()
    stage.yard.add("test", after=claim.task.id)
    return claim.done


def needed_by_two(stage: Stage) -> list[str]:
    """Three tasks; and a folder for those that will be blocked."""
    stage.yard.edit(stage.yard.add("build", after=added(stage)).id, after=[])
    ids = stage.yard.add_many([{"kind": "build", "priority": 5}] * 3)
    for path in ("blocked/0000", "sheets", "sheets/0000"):
        (stage.path / path).mkdir(exist_ok=True)
    return ids


def behind(stage: Stage, needed: list[str]) -> list[str]:
    return stage.yard.add_many([{"kind": "build", "after": needed}] * 2)


def play_done_in_sheet(stage: Stage) -> Callable[[], object]:
    needed = needed_by_two(stage)
    behind(stage, needed)
    for id in needed[:2]:
        taken(stage.yard.claim(id)).done()
    return taken(stage.yard.claim(needed[2])).done


def play_take_in_after(stage: Stage) -> Callable[[], object]:
    stage.yard.edit(stage.yard.add("build", priority=9).id, title="t")
    stage.drop(json.dumps({"kind": "build", "after": added(stage)}))
    return lambda: stage.store.dropbox.intake("ada")


def play_in_use(stage: Stage) -> Callable[[], object]:
    stage.yard.add_many([{"kind": "build", "uses": "port 80"}] * 2)
    taken(stage.yard.claim())
    claims: Any = stage.store._claims
    passes = iter((None,))  # it is seen too late that the other one runs
    claims._pass_over = lambda *_: next(passes, "its digest")
    return lambda: claims.next(Want("ada"), "dddddddd1")


def play_pass_over(stage: Stage) -> Callable[[], object]:
    stage.yard.add_many([{"kind": "build", "uses": "port 80"}, {"kind": "build", "uses": "port 80"}, {"kind": "build"}])
    for _ in range(2):
        taken(stage.yard.claim())
    stage.yard.add("build", uses="port 80")
    stage.yard.add("build")
    return lambda: taken(stage.yard.claim())


def play_prune_unneeded(stage: Stage) -> Callable[[], object]:
    stage.yard.cancel(added(stage))
    wait_until(lambda: stage.yard.prune(age=0)["tasks"] == 1)
    return lambda: stage.yard.prune(age=0, apply=True)


# What the dead leave, made by hand


def play_unmet(stage: Stage) -> Callable[[], object]:
    claim = stage.claimed()
    stage.yard.add("build", after=claim.task.id)
    follow: Any = stage.store._shifts
    follow._go_on = lambda *_: None  # killed before it came to that
    claim.done()
    del follow._go_on
    return lambda: stage.store.upkeep.mend("ada")


def play_unplaced(stage: Stage) -> Callable[[], object]:
    task = stage.yard.add("build", key="order-17")
    [file] = (stage.path / "todo").rglob(f"{task.id}*")
    file.rename(stage.path / "tmp" / f"{task.id}.json")
    return lambda: stage.store.upkeep.mend("ada")


def play_given_up(stage: Stage) -> Callable[[], object]:
    added(stage)
    (stage.path / "tmp" / "4711-deaddead.1").touch()
    (stage.path / "writers" / "4711-deaddead").touch()
    return lambda: stage.store.upkeep.mend("ada")


def play_unlogged(stage: Stage) -> Callable[[], object]:
    stage.claimed()
    [log] = (stage.path / "events").iterdir()
    (stage.path / "writers" / "4711-deaddead").write_text(log.read_text().splitlines()[-1] + "\n")
    os.truncate(log, 0)
    stage.store._context.log.forget()  # else the living has it in mind as well
    return lambda: stage.store.upkeep.mend("ada")


def play_twin(stage: Stage) -> Callable[[], object]:
    id = added(stage)
    [old] = (stage.path / "todo").rglob(f"{id}*")
    taken(stage.yard.claim())
    os.link(next((stage.path / "processing").iterdir()), old)
    return lambda: stage.store.upkeep.mend("ada")


def wanted(stage: Stage) -> Claim:
    stage.yard.add("build", review=True)
    return taken(stage.yard.claim())


def play_review(judge: Callable[[Yard, str], object]) -> Callable[[Stage], Callable[[], object]]:
    def play(stage: Stage) -> Callable[[], object]:
        claim = wanted(stage)
        claim.done({"ok": True})
        return lambda: judge(Yard(stage.store, "bob"), claim.id)

    return play


def play_second_accept(stage: Stage) -> Callable[[], object]:
    """Bob writes that he accepts, and no more; then eve accepts."""
    claim = wanted(stage)
    claim.done({"ok": True})
    with pytest.MonkeyPatch.context() as patch:

        def stop(*_: object) -> None:
            raise RuntimeError

        patch.setattr(stage.disk, "rename", stop, raising=False)
        with pytest.raises(RuntimeError):
            Yard(stage.store, "bob").accept(claim.id)

    def accept() -> None:
        with pytest.raises(taskyard.Conflict, match="waits for review"):
            Yard(stage.store, "eve").accept(claim.id)

    return accept


def play_schedule(stage: Stage) -> None:
    """Make a schedule, and have its first tick added."""
    from tests.contract.test_recurring import far_off, next_of, sweep_at

    far_off(stage.yard, "@hourly")
    assert sweep_at(stage.yard, next_of(stage.yard)) == 1


def play_tick(stage: Stage) -> Callable[[], object]:
    play_schedule(stage)
    [at] = stage.store.schedules.all()
    hour = 3_600_000
    return lambda: stage.store.schedules.tick(at, at.moved(due=at.due + hour, last_at=at.due), at.draft(at.due), "ada")


def after(
    prepare: Callable[[Stage], Any], play: Callable[[Stage, Any], object]
) -> Callable[[Stage], Callable[[], object]]:
    def staged(stage: Stage) -> Callable[[], object]:
        prepared = prepare(stage)
        return lambda: play(stage, prepared)

    return staged


def added(stage: Stage) -> str:
    return stage.yard.add("build").id


PLAYS: dict[str, Callable[[Stage], Callable[[], object]]] = {
    "first add": lambda stage: lambda: added(stage),
    "add": after(added, lambda stage, _: added(stage)),
    "add with a delay": after(added, lambda stage, _: stage.yard.add("build", delay=3600)),
    "add many": after(added, lambda stage, _: stage.yard.add_many([{"kind": "build"}] * 5)),
    "add with a key": after(
        lambda stage: stage.yard.add("build", key="first"), lambda stage, _: stage.yard.add("build", key="second")
    ),
    "take in": play_take_in('{"kind": "build"}'),
    "take in with a taskId": play_take_in('{"kind": "build", "taskId": "second"}'),
    "set aside": play_take_in('{"kind": "no kind"}'),
    "give back": play_give_back,
    "claim": after(added, lambda stage, _: taken(stage.yard.claim())),
    "claim of a broken dropped file": play_broken,
    "resume": after(Stage.claimed, lambda stage, _: stage.yard.resume("ada")),
    "heartbeat": after(Stage.claimed, lambda _, claim: claim.heartbeat()),
    "progress": after(Stage.claimed, lambda _, claim: claim.heartbeat(0.5)),
    "note": after(Stage.claimed, lambda _, claim: claim.note("half of it")),
    "done": after(Stage.claimed, lambda _, claim: claim.done()),
    "done with a result": after(Stage.claimed, lambda _, claim: claim.done({"ok": True})),
    "late done": play_late,
    "fail": after(Stage.claimed, lambda _, claim: claim.fail("no disk")),
    "fail for good": after(Stage.claimed, lambda _, claim: claim.fail("no use", retry=False)),
    "release": after(Stage.claimed, lambda _, claim: claim.release()),
    "submit": after(wanted, lambda _, claim: claim.done({"ok": True})),
    "accept": play_review(lambda yard, id: yard.accept(id)),
    "reject": play_review(lambda yard, id: yard.reject(id, "no")),
    "accept what another has accepted and not moved": play_second_accept,
    "reap": play_reap,
    "wake": play_wake,
    "refine": play_refine,
    "add with a deadline": lambda stage: (
        (stage.yard.add("build", expires=60), stage.yard.add("build")),
        lambda: stage.yard.add("build", expires=60),
    )[1],
    "expire": play_expire,
    "cancel": after(added, lambda stage, task: stage.yard.cancel(task)),
    "cancel with a reason": after(added, lambda stage, task: stage.yard.cancel(task, "not needed")),
    "cancel a held task": after(Stage.claimed, lambda stage, claim: stage.yard.cancel(claim.task.id)),
    "retry": play_retry,
    "edit": after(
        lambda stage: (stage.yard.edit(added(stage), title="Ship it"), added(stage))[1],
        lambda stage, task: stage.yard.edit(task, title="Ship it"),
    ),
    "edit again": after(
        lambda stage: stage.yard.edit(added(stage), title="Ship it").id,
        lambda stage, task: stage.yard.edit(task, priority=0, delay=60),
    ),
    "pause": after(added, lambda stage, _: stage.yard.pause("build")),
    "unpause": after(lambda stage: stage.yard.pause("build"), lambda stage, _: stage.yard.unpause("build")),
    "add after another": after(
        lambda stage: (first := added(stage), stage.yard.add("build", after=first))[0],
        lambda stage, first: stage.yard.add("build", after=first),
    ),
    "add with a parent": after(
        lambda stage: (first := added(stage), stage.yard.add("build", parent=first))[0],
        lambda stage, first: stage.yard.add("build", parent=first),
    ),
    "take in after another": play_take_in_after,
    "done with a follower": play_done_followed,
    "add with a sheet": after(needed_by_two, behind),
    "done of a task in a sheet": play_done_in_sheet,
    "claim of what is in use": play_in_use,
    "claim that passes one over": play_pass_over,
    "prune of what was not done": play_prune_unneeded,
    "mend: a need that is met": play_unmet,
    "prune": play_prune,
    "mend: a task not in its place": play_unplaced,
    "mend: a draft": play_given_up,
    "mend: an event": play_unlogged,
    "mend: two names": play_twin,
    "schedule add": lambda stage: lambda: stage.yard.new_schedule("nightly", "@hourly", "build"),
    "tick": play_tick,
    "schedule pause": after(play_schedule, lambda stage, _: stage.yard.pause_schedule("nightly")),
    "schedule remove": after(play_schedule, lambda stage, _: stage.yard.remove_schedule("nightly")),
    "turn": lambda stage: lambda: stage.store.upkeep.turn(0),
}
CALLS = {
    title: [" ".join(line.partition("#")[0].split()) for line in block.splitlines()]
    for title, block in blocks("calls").items()
}


def without_folders(lines: list[str]) -> list[str]:
    """Leave out folders that were made, and the sync of what each was made in."""
    kept: list[str] = []
    made: str | None = None
    for line in lines:
        call, _, path = line.partition(" ")
        if call != "mkdir" and line != f"sync {made}":
            kept.append(line)
        made = path.rpartition("/")[0] if call == "mkdir" else None
    return kept


def unsynced(lines: list[str]) -> list[str]:
    return [line.removesuffix(" + fsync") for line in lines if not line.startswith("sync")]


def test_every_list_of_calls_is_played() -> None:
    assert {title.removesuffix(", strict") for title in CALLS} == set(PLAYS)


@pytest.mark.parametrize("durability", ["fast", "durable", "strict"])
@pytest.mark.parametrize("title", PLAYS)
def test_a_move_makes_the_calls_that_are_told(title: str, durability: str, tmp_path: Path) -> None:
    told = CALLS[title]
    if durability == "strict":
        told = CALLS.get(f"{title}, strict", told)
    if durability == "fast" and title != "late done" and not title.startswith("prune"):  # these are synced even so
        told = unsynced(told)
    stage = Stage(tmp_path / "yard", durability)
    assert without_folders(stage.record(PLAYS[title](stage))) == told


# ARCHITECTURE.md and docs/rooms.md


def test_the_architecture_names_every_verb_and_every_part_of_the_seam() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    verbs, parts = text[text.index("| verb | does |") :].split("| part | has |")
    assert _named_in_rows(verbs) == sorted(name for name in vars(Store) if not name.startswith("_"))
    assert _named_in_rows(parts) == sorted(name for name, part in vars(Parts).items() if isinstance(part, property))
    assert len(_named_in_rows(verbs)) <= 14, "a seam is small"


def test_every_file_that_the_architecture_sends_a_reader_to_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text[text.index("| to change | look into |") : text.index("## The two seams")]
    named = set(re.findall(r"`([\w./*]*(?:/|\.\w+))`|`((?:\w+/)+\w+)`", table))
    paths = {one or other for one, other in named}
    assert len(paths) > 50, "the table is read"
    package = Path(layout.__file__).parents[2]
    missing = [path for path in paths if not any(list(root.glob(path)) for root in (package, ROOT))]
    assert missing == []


def _named_in_rows(table: str) -> list[str]:
    rows = (line for line in table.splitlines() if line.startswith("| `"))
    return sorted(name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1]))


@pytest.mark.parametrize(
    ("store", "title", "end"),
    [
        ("directory", "## The directory store", "## The PostgreSQL store"),
        ("postgres", "## The PostgreSQL store", None),
    ],
)
def test_the_page_of_rooms_names_every_part_of_a_store(store: str, title: str, end: str | None) -> None:
    text = (ROOT / "docs" / "rooms.md").read_text(encoding="utf-8")
    part = text[text.index(title) : None if end is None else text.index(end)]
    folder = Path(layout.__file__).parents[1] / store
    own = {path.parent.name if path.stem == "__init__" else path.stem for path in folder.rglob("*.py")}
    inside = {
        path.stem for room in ("doctor", "fsck") for path in (folder / room).glob("*.py")
    }  # these have pages of their own
    assert own - inside - {"store", "queries", store} <= set(re.findall(r"`(\w+)`", part))
    assert set(re.findall(r"`(\w+)`", part)) <= own
