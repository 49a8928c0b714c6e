"""One file that somebody planted, wherever it is and whatever it is: no verb hangs, fills the memory or breaks, and work goes on."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.stores.directory.filesystem.disk import Disk
from tests.conftest import sampled, taken, wait_until
from tests.hostile import verbs
from tests.hostile.test_mutations import bind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GIB = 1 << 30


def sparse(size: int, head: bytes = b"") -> Callable[[Path], object]:
    def make(path: Path) -> None:
        with path.open("wb") as file:
            file.write(head)
            file.truncate(size)

    return make


def holding(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


SORTS: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a socket": bind,
    "a link to nowhere": lambda path: path.symlink_to("nowhere"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "nothing": Path.touch,
    "a huge file": sparse(5 * GIB),
    "a huge file that begins well": sparse(5 * GIB, b'{"taskyard":1,"at":"2026-01-01T00:00:00.000Z"'),
    "a large file": sparse(8 << 20),
    "a long line": holding(b'{"at":"' + b"x" * (5 << 20) + b'"}\n'),
    "many lines": holding(b"\n" * (1 << 20)),
    "deep lists": holding(b"[" * 100_000),
    "deep data": holding(b'{"taskyard":1,"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"),
    "many digits": holding(b"9" * 100_000),
    "numbers of many digits": holding(b'{"taskyard":1,"data":' + b"9" * 100_000 + b',"at":' + b"9" * 100_000 + b"}\n"),
    "a key twice": holding(b'{"taskyard":1,"taskyard":2,"id":"x","id":null,"data":1,"data":NaN}\n'),
    "halves of characters": holding(
        b'{"taskyard":1,"kind":"\\ud800","data":"\\udc00","event":"\\ud800","task":"\\ud800","at":"\\ud800","reason":"\\udfff"}\n'
    ),
    "zeros": holding(bytes(5000)),
}
# In every folder names that its readers take for their own, or nearly so; SEG, ID and HOUR are those of a real task.
NAMES = (
    "todo/planted.json", "todo/9-planted", "todo/5-a@b", "todo/5-lint/zzzz", "todo/5-lint/SEG/SEGzzzzzzzzzzzzzzzzz.0.e0.c0.json",
    "todo/5-lint/SEG/SEGzzzzzzzzzzzzzzzzy.99999999.e9999999999999.c0.m0.t0.json",
    "waiting/0001-01-01", "waiting/9999-12-31T23-59", "waiting/2026-13-45T99-99", "waiting/99999999999999999999", "waiting/-1",
    "blocked/zzzz", "blocked/SEG/SEGzzzzzzzzzzzzzzzzx.0.e0.c0.5-build.json",
    "processing/SEGzzzzzzzzzzzzzzzzw.999999999.e0.c0.5-build.l9999999999999.ada-00000000.json", "processing/SEGzzzzzzzzzzzzzzzzv.1.e0.c0.5-build.l0.L.ada-000000001.json",
    "processing/SEGzzzzzzzzzzzzzzzzt.1.e0.c0.u.5-build.l1.ada-000000001.json", "processing/SEGzzzzzzzzzzzzzzzzs.1.e-1.c0.5-build.l-5.ada-000000001.json", "processing/x",
    "done/zzzz", "done/SEG/SEGzzzzzzzzzzzzzzzzr.1.e0.c0.5-build.l1.ada-000000001.r.json", "failed/zzzz", "failed/planted.json", "failed/planted.reason",
    "failed/SEG/SEGzzzzzzzzzzzzzzzzq.1.e0.c0.5-build.l1.ada-000000001.json", "cancelled/zzzz", "results/zzzz", "results/SEG/ID.1.00000000.done.json",
    "attempts/zzzz", "attempts/SEG/SEGzzzzzzzzzzzzzzzzp", "edits/zzzz", "edits/SEG/ID.00000000.json", "needs/zzzz", "needs/SEG/ID", "followers/zzzz", "followers/SEG/ID",
    "keys/zz", "keys/ff", "paused/planted", "paused/%ZZ", "segments/zzzz", "segments/zzzy", "events/HOUR.planted.jsonl", "events/HOUR.KERNEL.1.jsonl",
    "events/HOUR.KERNEL.999999.jsonl", "events/HOUR.KERNEL.0007.jsonl", "events/HOUR.KERNEL.99999999999999999999.jsonl", "events/9999-99-99T99.x.jsonl", "events/x",
    "workers/ada-00000000", "workers/x", "writers/1-00000000", "writers/lost_races", "writers/1-00000000.new", "writers/ada.sh", "writers/x",
    "turns/00099", "turns/999999999999999999", "turns/" + "9" * 255, "turns/x", "archive/tasks-x.jsonl.gz", "archive/x",
    "dead/SEGzzzzzzzzzzzzzzzzn.json", "dead/x", "tmp/x", "tmp/SEGzzzzzzzzzzzzzzzzm.json", "tmp/1-00000000.1", "tmp/1-00000000.1.x.drop", "tmp/init-00000000", "tmp/made-00000000",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _little_memory() -> Iterator[None]:
    """Whoever reads all of a huge file fails, instead of taking the machine with it."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2 * GIB, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def called(yard: verbs.Yard, name: str) -> Path:
    page = next(path.name for path in (yard.path / "events").iterdir())
    hour, kernel, _ = page.split(".")
    for word, meaning in (("SEG", yard.plain[:4]), ("ID", yard.plain), ("HOUR", hour), ("KERNEL", kernel)):
        name = name.replace(word, meaning)
    return yard.path / name


@sampled("sort", SORTS, [*SORTS][::6])
def test_a_plant_in_every_folder_at_once(tmp_path: Path, sort: str) -> None:
    yard = verbs.Yard(tmp_path / "yard")
    for path in [called(yard, name) for name in NAMES]:
        path.parent.mkdir(exist_ok=True)
        if not os.path.lexists(path) and not (sort == "a socket" and len(path.name) > 250):
            SORTS[sort](path)
    verbs.use(yard)
    for words in (["fsck"], ["fsck", "--repair"], ["doctor"]):
        verbs.say(yard.path, *words)
    verbs.work_goes_on(yard.path)


@pytest.mark.parametrize("sort", SORTS)
def test_anything_in_the_place_of_this_hours_log(place: str, sort: str) -> None:
    """What happens is logged all the same, and told."""
    with taskyard.open(place, worker="ada") as yard:
        yard.add("build")
        (page,) = Path(place, "events").iterdir()
    page.unlink()
    SORTS[sort](page)
    with taskyard.open(place, worker="ada") as yard:
        yard.add("build")  # whose event is lost where the file before it ends in the midst of a line
    for _ in range(3):
        with taskyard.open(place, worker="ada") as yard:
            id = yard.add("build").id
            claim = taken(yard.claim(id))
            claim.done()
            events = [event["event"] for event in yard.events(task=id)]
            assert events == ["added", "claimed", "done"]
            assert yard.events(cursor=yard.events().cursor) == []
    verbs.work_goes_on(Path(place))


def test_a_pipe_that_somebody_reads_gets_no_events(place: str) -> None:
    with taskyard.open(place, worker="ada") as yard:
        yard.add("build")
    (page,) = Path(place, "events").iterdir()
    page.unlink()
    os.mkfifo(page)
    reader = os.open(page, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with taskyard.open(place, worker="ada") as yard:
            assert [event["event"] for event in yard.events(task=yard.add("build").id)] == ["added"]
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


def test_a_line_is_whole_however_it_is_cut_into_pieces(tmp_path: Path) -> None:
    from taskyard.stores.directory.log import lines

    content = b"\n\nfirst\n" + b"x" * 50 + b"\nthird\n\n\nlast\ntorn"
    (tmp_path / "page").write_bytes(content)
    for size in range(1, 80):
        found = list(lines.whole(Disk(), str(tmp_path / "page"), size))
        assert [line for _, line, _ in found] == [b"first", b"x" * 50, b"third", b"last"], size
        assert all(content[begin : end - 1] == line and content[end - 1 : end] == b"\n" for begin, line, end in found)


def test_a_turn_that_somebody_made_up_keeps_nobody_from_sweeping(place: str) -> None:
    for name in ("00099", "9" * 255, "999999999999999999", "x"):
        Path(place, "turns", name).touch()
    with taskyard.open(place) as yard:
        store = yard._store
        assert wait_until(lambda: store.upkeep.turn(0.001))
        assert wait_until(lambda: store.upkeep.turn(0.001))
