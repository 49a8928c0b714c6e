"""Without a browser the tests of the board say so: they fail where they must run, and are skipped elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.board import conftest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TASKYARD_TEST_BROWSER", raising=False)
    monkeypatch.delenv("CI", raising=False)


def test_a_plain_user_reads_what_to_install() -> None:
    with pytest.raises(pytest.skip.Exception, match=r"no browser.*apt-get install chromium"):
        conftest.executable()


def test_a_run_that_counts_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no browser"):
        conftest.executable()


def test_a_browser_of_playwrights_own_is_found(tmp_path: Path) -> None:
    program = tmp_path / ".cache/ms-playwright/chromium-1234/chrome-linux64/chrome"
    program.parent.mkdir(parents=True)
    program.touch()
    assert conftest.executable() == str(program)
