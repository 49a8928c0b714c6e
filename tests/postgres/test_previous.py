"""The client of the schema before, on this one: it passes the contract suite that it was right by, and works beside this version.

The last packed version is the last that was given to users (`previous/pack.py`); its code and its tests run in processes of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import taskyard
from taskyard.proof import FinalState, History, check
from taskyard.stores.postgres import schema
from tests.conftest import taken, wait_until
from tests.servers import postgres

if TYPE_CHECKING:
    from psycopg import Connection

pytestmark = pytest.mark.proof

HERE = Path(__file__).parent / "previous"
PREVIOUS = max(int(path.name.removeprefix("schema").partition(".")[0]) for path in HERE.glob("schema*.tar.xz"))
ROOT = Path(taskyard.__file__).parents[1]
ROUNDS = 40
SHARES = 6  # of the contract suite, each a matter of seconds where nothing else runs
ASKED = "postgresql and not refused and not refuses and not never_be_right"  # what is refused reaches no database


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The version before, unpacked."""
    place = tmp_path_factory.mktemp("previous")
    with tarfile.open(HERE / f"schema{PREVIOUS}.tar.xz") as archive:
        archive.extractall(place, filter="data")
    return place


def environment(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source), "PYTEST_RUN_ID": postgres.run()}


def previously(packed: Path, program: str, *words: str) -> str:
    """What the version before prints."""
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env=environment(packed / "src"),
        cwd=packed,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()


def test_the_packed_version_is_the_one_before(packed: Path) -> None:
    program = "from taskyard.stores.postgres import schema; print(schema.CLIENT, schema.__file__)"
    number, file = previously(packed, program).split()
    assert int(number) == PREVIOUS < schema.CLIENT
    assert file.startswith(str(packed))


def test_a_migration_lets_the_clients_of_the_schema_before_go_on() -> None:
    assert max(one.min_client for one in schema.known()) <= PREVIOUS


@pytest.mark.parametrize("share", range(SHARES))
def test_the_version_before_passes_its_contract_suite_on_this_schema(
    share: int, packed: Path, sql: Connection[Any]
) -> None:
    """On the database of this run, in which this version has made the schema; in shares, which may run side by side."""
    assert ledger(sql) == schema.CLIENT
    files = sorted(path.relative_to(packed) for path in packed.glob("tests/contract/test_*.py"))[share::SHARES]
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    words += ["--rootdir", ".", "-k", ASKED, *map(str, files)]
    done = subprocess.run(
        words, env=environment(packed / "src"), cwd=packed, stdout=subprocess.PIPE, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout
    assert ledger(sql) == schema.CLIENT, "and has left it as it was"


def test_what_one_version_begins_the_other_ends(packed: Path, url: str) -> None:
    with taskyard.open(url, worker="new") as yard:
        first = yard.add("build", {"n": 1}, key="k").id
        program = """
import sys, taskyard
with taskyard.open(sys.argv[1], worker="old") as yard:
    assert yard.add("build", {"n": 1}, key="k").created is False
    claim = yard.claim()
    claim.note("half way")
    print(claim.handle, yard.add("test", after=[claim.task.id]).id)
"""
        handle, second = previously(packed, program, url).split()
        assert handle.startswith(first)
        yard.held(handle).done({"ok": True})
        report = yard.report(first)
        assert report.task.result == {"ok": True}
        assert [note["text"] for note in report.notes] == ["half way"]
        claim = taken(yard.claim())
        assert claim.task.id == second
        program = """
import sys, taskyard
with taskyard.open(sys.argv[1], worker="old") as yard:
    yard.held(sys.argv[2]).done()
    print(yard.get(sys.argv[3]).state, [event["event"] for event in yard.events(task=sys.argv[3])])
"""
        assert previously(packed, program, url, claim.handle, second).startswith(
            "done ['added', 'blocked', 'unblocked',"
        )


def test_a_sleeper_of_either_version_is_woken_by_the_other(packed: Path, url: str) -> None:
    program = "import sys, taskyard; print(taskyard.open(sys.argv[1]).claim(wait=60) is not None, flush=True)"
    for asleep, awake in ((ROOT, packed / "src"), (packed / "src", ROOT)):
        sleeper = subprocess.Popen(
            [sys.executable, "-c", program, url], env=environment(asleep), stdout=subprocess.PIPE, text=True
        )
        with psycopg.connect(url.partition("&project=")[0], autocommit=True) as sql:
            _until_somebody_sleeps(sql, url)
        add = "import sys, taskyard; taskyard.open(sys.argv[1]).add('build')"
        subprocess.run([sys.executable, "-c", add, url], env=environment(awake), check=True, timeout=60)
        assert sleeper.communicate(timeout=15)[0] == "True\n"  # nobody looks by itself before 20 seconds


def test_workers_of_both_versions_keep_the_promise_together(packed: Path, url: str, tmp_path: Path) -> None:
    history = str(tmp_path / "history")
    crew = []
    for number, source in enumerate((ROOT, packed / "src", ROOT, packed / "src")):
        words = [sys.executable, str(HERE / "hand.py"), url, history, f"hand{number}", str(ROUNDS), str(number)]
        crew.append(
            subprocess.Popen(words, env=environment(source), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
    versions = []
    for member in crew:
        assert member.stdout is not None
        versions.append(int(member.stdout.readline()))
    assert sorted(versions) == [PREVIOUS, PREVIOUS, schema.CLIENT, schema.CLIENT]
    for member in crew:
        member.communicate("\n", timeout=120)
        assert member.returncode == 0
    with taskyard.open(url) as yard:
        verdict = check(History.load(history), FinalState.of(yard))
        assert verdict.legal, str(verdict)
        counts = yard.counts()
        assert counts["done"] > ROUNDS
        assert counts["todo"] == counts["processing"] == counts["waiting"] == 0


def ledger(sql: Connection[Any]) -> int:
    found = sql.execute("SELECT max(version) FROM taskyard.migration").fetchone()
    assert found is not None
    return int(found[0])


def _until_somebody_sleeps(sql: Connection[Any], url: str) -> None:
    query = """
        SELECT count(*) FROM pg_locks JOIN taskyard.project ON objid = project.id
        WHERE locktype = 'advisory' AND classid = 747159 AND granted AND project.name = %s
    """
    wait_until(lambda: sql.execute(query, (url.rpartition("=")[2],)).fetchone() == (1,))
