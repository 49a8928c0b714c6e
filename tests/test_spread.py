"""A run that is spread over processes tells of every test once, also of one that ends its process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent
TESTS = """
import os, signal, time
import pytest

@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with open(os.environ["NOTES"], "a") as notes:
        notes.write("made ")
    yield tmp_path_factory.mktemp("shared")
    with open(os.environ["NOTES"], "a") as notes:
        notes.write("gone ")

@pytest.mark.parametrize("n", range(40))
def test_passes(n, tmp_path, capfd):
    assert list(tmp_path.iterdir()) == []
    os.write(1, b"heard by itself alone")
    assert capfd.readouterr().out == "heard by itself alone"

@pytest.mark.parametrize("n", range(3))
def test_fails(n):
    print("said by", n)
    raise AssertionError

def test_is_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def test_leaves_somebody_behind():
    if not os.fork():
        time.sleep(2)
    os._exit(3)

@pytest.mark.skip
def test_is_skipped():
    pass
"""
SHARING = TESTS.partition("@pytest.mark.parametrize")[0] + (
    "@pytest.mark.parametrize('n', range(9))\ndef test_shares(shared, n):\n    assert shared.is_dir()\n"
)


def ran(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "NOTES": str(folder / "notes")}
    words = ["-c", os.devnull, "--rootdir", str(folder), "-p", "tests.spread", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--basetemp", str(folder / "base"), str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_all.py").write_text(TESTS)
    (tmp_path / "test_sharing.py").write_text(SHARING)
    return tmp_path


def test_every_test_is_told_of_once(folder: Path) -> None:
    done = ran(folder, "-n", "3", "--junit-xml", str(folder / "told.xml"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "5 failed, 49 passed, 1 skipped" in done.stdout
    told = list(ElementTree.parse(folder / "told.xml").iter("testcase"))
    assert len(told) == len({(one.get("classname"), one.get("name")) for one in told}) == 55
    assert "the process that ran this test ended by signal 9" in done.stdout
    assert "the process that ran this test ended with code 3" in done.stdout
    assert all(done.stdout.count(f"said by {n}") == 1 for n in range(3))
    assert (folder / "notes").read_text() == "made gone ", "a fixture for a whole file is made in one process"


def test_a_run_stops_at_the_first_failure_if_it_is_to(folder: Path) -> None:
    done = ran(folder, "-n", "2", "-x", "-k", "fails")
    assert done.returncode == 1
    assert "stopping after 1 failures" in done.stdout, done.stdout
    assert "1 failed" in done.stdout


def test_what_breaks_pytest_itself_is_printed(folder: Path) -> None:
    (folder / "conftest.py").write_text(
        "def pytest_runtest_protocol(item):\n    if 'skipped' in item.name: raise ValueError('broken')\n"
    )
    done = ran(folder, "-n", "2", "-k", "skipped or passes")
    assert done.returncode == 1
    assert "ValueError: broken" in done.stderr
    assert "1 failed, 40 passed" in done.stdout


@pytest.mark.parametrize("options", [["-n", "0"], ["-n", "2", "--collect-only"]])
def test_without_processes_pytest_runs_the_tests_itself(folder: Path, options: list[str]) -> None:
    done = ran(folder, "-k", "passes", *options)
    assert done.returncode == 0, done.stdout
    assert "40" in done.stdout.splitlines()[-1]
