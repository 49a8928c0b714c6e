"""A real Chromium for the tests of the board: the system's own, installed from its packages where that is allowed."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, Page

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
WAIT = 60_000  # milliseconds: the machine may be busy
INSTALL = (
    "DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND; apt-get -qq update && apt-get -qq install -y chromium"
)


def _found() -> str | None:
    named = os.environ.get("TASKYARD_TEST_BROWSER")
    own = glob.glob(os.path.expanduser("~/.cache/ms-playwright/chromium-*/chrome-linux*/chrome"))
    return named or next((path for name in NAMES if (path := shutil.which(name))), None) or next(iter(own), None)


def executable() -> str:
    """The browser's program; without one the tests fail where they must run (CI), and are skipped elsewhere."""
    if _found() is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with open(os.path.join(tempfile.gettempdir(), "taskyard-test-browser.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _found() is None:
                subprocess.run(["sh", "-c", INSTALL], check=False, capture_output=True, timeout=280)
    found = _found()
    if found is None:
        why = (
            f"no browser: none of {', '.join(NAMES)} is here, and only root may install one; "
            "say 'apt-get install chromium' or 'playwright install chromium', or name one in TASKYARD_TEST_BROWSER"
        )
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            pytest.fail(why)
        pytest.skip(why)
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable(), args=list(FLAGS))
        yield launched
        launched.close()


class Seat:
    """One browser profile: its pages share cookies and the stream. What goes wrong in one of them is kept."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self.trouble: list[str] = []
        self.expected: tuple[str, ...] = ()
        context.set_default_timeout(WAIT)

    def open(self, url: str) -> Page:
        page = self.context.new_page()
        page.on("console", lambda said: self._note(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self._note(str(error)))
        page.on("dialog", lambda dialog: self._note(f"a dialog: {dialog.message}"))
        page.goto(url)
        return page

    def _note(self, text: str) -> None:
        if not any(word in text for word in self.expected):
            self.trouble.append(text)


@pytest.fixture
def seat(browser: Browser) -> Iterator[Callable[..., Seat]]:
    seats: list[Seat] = []

    def sit(**options: Any) -> Seat:
        seats.append(Seat(browser.new_context(viewport={"width": 1440, "height": 900}, **options)))
        return seats[-1]

    yield sit
    for one in seats:
        one.context.close()
    assert [text for one in seats for text in one.trouble] == []
