"""What reaches a person: conflicts of a synced file on the page, and a desktop notification while nobody looks at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from taskyard.doors.tasksmd import sync
from tests.conftest import taken, wait_until
from tests.gateway.board.test_browser import board

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from taskyard import Yard
    from tests.gateway.board.test_browser import Sit
    from tests.servers.gateway import Running

NOTED = """
window.notified = [];
window.Notification = class extends Notification {
  constructor(title, options) { super(title, options); window.notified.push([title, options.body]); }
};
"""
"""Has a page write down the notifications that it makes; they are made all the same."""


def test_what_a_file_and_the_yard_have_both_edited_is_shown_until_it_is_settled(
    near: Yard, gateway: Running, seat: Sit, tmp_path: Path
) -> None:
    file = tmp_path / "TASKS.md"
    file.write_text("- [ ] Paint the door\n- [ ] Mow the lawn\n")
    sync.sync(near, str(file), sync.Options("maria"))
    [door] = [task for task in near.find() if task.title == "Paint the door"]
    page = seat().open(board(gateway))
    expect(page.locator('[data-sort="unserved"]')).to_be_visible()
    near.edit(door.id, title="Paint the door <b>blue</b>")
    file.write_text(file.read_text().replace("Paint the door", "Paint the door red"))
    sync.sync(near, str(file), sync.Options("maria"))
    part = page.locator('[data-sort="file_conflicts"]')
    expect(part.locator("h2 .count")).to_have_text("1")
    expect(part).to_contain_text("TASKS.md:1")
    expect(part).to_contain_text("Paint the door red")
    expect(part).to_contain_text("Paint the door <b>blue</b>")
    expect(page).to_have_title("(2) default · Taskyard")
    part.get_by_role("link", name="Open").click()
    expect(page.get_by_role("heading", name="Paint the door <b>blue</b>")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Title").fill("Paint the door red")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Paint the door red")).to_be_visible()
    sync.sync(near, str(file), sync.Options("maria"))
    page.goto(board(gateway))
    expect(page.locator('[data-sort="unserved"]')).to_be_visible()
    expect(part).to_have_count(0)


def hidden(page: Page) -> None:
    """Take the page out of sight. A driven browser holds every page in sight, so that the page has to be told."""
    page.evaluate("""() => {
      Object.defineProperty(document, "hidden", { value: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }""")


def test_a_failure_that_nobody_sees_is_notified_once_and_only_if_that_was_wanted(
    near: Yard, gateway: Running, seat: Sit
) -> None:
    near.add_many([{"kind": "build", "max_attempts": 1}] * 4)
    claims = near.claim_many(4)
    one = seat(permissions=["notifications"])
    one.context.add_init_script(NOTED)
    tabs = [one.open(board(gateway)) for _ in range(2)]
    for page in tabs:
        expect(page.locator(".live")).to_have_text("Stream: live")

    def fail() -> None:
        claims.pop().fail("no compiler", retry=False)
        for page in tabs:
            expect(page).to_have_title(f"({4 - len(claims)}) default · Taskyard")

    def notified() -> list[list[str]]:
        return [told for page in tabs for told in page.evaluate("notified")]

    switch = tabs[0].get_by_role("button", name="Notify")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    fail()
    hidden(tabs[0])  # which has the stream
    fail()
    assert notified() == [], "another tab is seen"
    hidden(tabs[1])
    fail()
    wait_until(notified)
    assert notified() == [["default", "3 things need you"]]
    tabs[0].evaluate("localStorage.setItem('taskyard-notify', 'off')")
    fail()
    assert len(notified()) == 1


def test_an_error_is_shown_by_what_it_says_and_workers_with_a_task_come_first(
    near: Yard, gateway: Running, seat: Sit
) -> None:
    trace = (
        "Traceback (most recent call last):\n"
        + '  File "importer.py", line 214, in read\n' * 20
        + "ValueError: no number"
    )
    near.add_many([{"kind": "build"}] * 2)
    taken(near.claim(worker="amy")).fail(trace, retry=False)
    taken(near.claim(worker="zoe"))
    page = seat().open(board(gateway))
    expect(page.locator('[data-sort="failed"] .error-text')).to_have_text("ValueError: no number")
    page.goto(board(gateway, "board"))
    expect(page.locator(".card-error")).to_have_text("ValueError: no number")
    page.goto(board(gateway, "agents"))
    expect(page.locator("[data-agent] h2")).to_have_text(["zoe", "amy"])
