"""The board in a real Chromium: sign in, watch, filter, step in, by mouse and by keyboard; cut off and back again."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Literal

import pytest
from playwright.sync_api import expect

import taskyard
from taskyard.doors.gateway import server
from tests.conftest import crash, is_alive, taken, wait_until
from tests.gateway.board.conftest import WAIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from taskyard import Yard
    from tests.gateway.board.conftest import Seat
    from tests.servers.gateway import Running

    Sit = Callable[..., Seat]

expect.set_options(timeout=WAIT)
NASTY = "<script>window.harmed=1</script><img src=x onerror=window.harmed=1>&amp;'\""
VIEWS = ("needs", "board", "agents", "missions", "figures", "events", "add")


def board(gateway: Running, place: str = "needs") -> str:
    return f"{gateway.url()}/board/#/{place}"


def lane(page: Page, state: str) -> Locator:
    return page.locator(f'[data-lane="{state}"]')


def work(url: str, *command: str, options: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "taskyard", "--yard", url, "work", *options, "--", *command]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_one_signs_in_with_a_token_and_a_reader_has_no_buttons(near: Yard, gateway: Running, seat: Sit) -> None:
    failed = near.add("build", title="It broke")
    taken(near.claim(failed.id)).fail("no compiler", retry=False)
    reader, manager = (near.new_token(name, scope=name)["token"] for name in ("read", "manage"))
    one = seat()
    one.expected = ("401",)  # the browser itself writes down a sign-in that is refused
    page = one.open(board(gateway))
    page.get_by_label("Token").fill("ty_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("does not know this token")
    page.get_by_label("Token").fill(reader)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="1 thing needs you")).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    for place in ("needs", f"task/{failed.id}", "board"):
        page.goto(board(gateway, place))
        expect(page.get_by_text("It broke").first).to_be_visible()
        assert page.locator("main button:not([type=search])").count() == 0
    expect(page.get_by_role("link", name="Add task")).to_have_count(0)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Token").fill(manager)
    page.get_by_role("button", name="Sign in").click()
    page.goto(board(gateway, f"task/{failed.id}"))
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    near.revoke_token("manage")
    near.add("build")
    expect(page.get_by_label("Token")).to_be_visible()


def test_cards_move_while_a_crew_works_and_the_title_counts(
    near: Yard, gateway: Running, seat: Sit, tmp_path: Path
) -> None:
    near.add_many({"kind": "build", "title": f"Part {n}"} for n in range(12))
    page = seat().open(board(gateway, "board"))
    expect(lane(page, "todo").locator(".card")).to_have_count(12)
    expect(page).to_have_title("(1) default · Taskyard")  # no worker serves the kind yet
    page.evaluate("window.stayed = 1")
    go = tmp_path / "go"
    command = ("sh", "-c", 'while [ ! -e "$1" ]; do sleep 0.05; done', "sh", str(go))
    crew = work(near.url, *command, options=("--concurrency", "2", "--drain", "--worker", "ada"))
    expect(lane(page, "processing").locator(".card")).to_have_count(2)
    expect(lane(page, "processing").locator(".card").first).to_contain_text("ada")
    go.touch()
    expect(lane(page, "done").locator(".card")).to_have_count(12)
    expect(lane(page, "todo").locator(".card")).to_have_count(0)
    expect(page).to_have_title("default · Taskyard")
    assert page.evaluate("window.stayed") == 1
    assert crew.wait(60) == 0
    page.goto(board(gateway, "agents"))
    expect(page.locator('[data-agent="ada"]')).to_contain_text("12 tasks done in the hour")
    expect(page.locator('[data-row="ada"] [data-span="done"]')).to_have_count(12)
    page.goto(board(gateway, "events"))
    expect(page.locator('[data-event="done"]').first).to_contain_text("ada")
    page.goto(board(gateway, "figures"))
    expect(page.locator('[data-plot="Done a minute"]')).to_contain_text("12 in the hour")
    page.goto(board(gateway, "events"))
    near.add("build", title="Later")
    expect(page.locator('[data-event="added"]')).to_have_count(13)


def test_filters_are_kept_in_the_address(near: Yard, gateway: Running, seat: Sit) -> None:
    near.add_many({"kind": f"kind{n % 2}", "title": f"Part {n}", "mission": "house"} for n in range(30))
    near.add("other", title="Apart", assignee="bob")
    page = seat().open(board(gateway, "board"))
    page.get_by_label("Title or id").fill("part 7")
    expect(lane(page, "todo").locator(".card")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"text=part\+7"))
    page.reload()
    expect(page.get_by_label("Title or id")).to_have_value("part 7")
    expect(lane(page, "todo").locator(".card")).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Kind").fill("kind1")
    expect(lane(page, "todo").locator("[data-count]")).to_have_text("15")
    page.get_by_label("Kind").fill("")
    page.get_by_label("Assignee").fill("bob")
    expect(lane(page, "todo").locator(".card")).to_have_count(1)
    page.get_by_label("Assignee").fill("")
    page.get_by_label("Mission").fill("house")
    expect(page.get_by_text("0 of 30 done")).to_be_visible()
    expect(lane(page, "todo").locator("[data-count]")).to_have_text("20 of 30")
    lane(page, "todo").get_by_role("button", name="Show more").click()
    expect(lane(page, "todo").locator(".card")).to_have_count(30)


def test_a_running_task_is_cancelled_and_its_process_stops(
    near: Yard, gateway: Running, seat: Sit, tmp_path: Path
) -> None:
    held, failed = near.add("build", title="Long"), near.add("test", title="Broken")
    taken(near.claim(failed.id)).fail("no compiler", retry=False)
    note = tmp_path / "pid"
    script = 'echo "begun by $TASKYARD_WORKER"; echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 600'
    worker = work(near.url, "sh", "-c", script, "sh", str(note), options=("--max-tasks", "1", "--worker", "ada"))
    page = seat().open(board(gateway, f"task/{held.id}"))
    expect(page.locator("[data-output]").first).to_contain_text("begun by ada")
    pid = int(str(wait_until(lambda: note.exists() and note.read_text())))
    page.get_by_role("button", name="Cancel").click()
    page.get_by_label("Why").fill("no longer needed")
    page.get_by_role("button", name="Cancel the task").click()
    expect(page.locator(".meta .chip").first).to_have_text("cancelled")
    wait_until(lambda: not is_alive(pid))
    worker.terminate()
    worker.wait(60)
    assert near.get(held.id).state == "cancelled"
    page.goto(board(gateway, f"task/{failed.id}"))
    expect(page.locator('[data-part="Last error"]')).to_contain_text("no compiler")
    page.get_by_role("button", name="Retry").click()
    expect(page.locator(".meta .chip").first).to_have_text("todo")
    assert near.get(failed.id).state == "todo"
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Title").fill("Broken no more")
    page.get_by_label("Data (JSON)").fill("{not json")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("no JSON")
    page.get_by_label("Data (JSON)").fill('{"n": 1}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Broken no more")).to_be_visible()
    assert near.get(failed.id).data == {"n": 1}


def test_many_are_retried_at_once_and_one_is_added(near: Yard, gateway: Running, seat: Sit) -> None:
    made = near.add_many({"kind": "build", "max_attempts": 1} for _ in range(130))
    for claim in near.claim_many(130):
        claim.fail("broken")
    page = seat().open(board(gateway, "board?kind=build"))
    page.get_by_role("button", name="Retry all in Failed").click()
    expect(page.get_by_role("dialog")).to_contain_text("All that are failed, with kind build")
    page.get_by_role("button", name="Retry 130 tasks").click()
    expect(page.locator("[data-outcome]")).to_have_text("130 tasks retried.")
    page.get_by_role("button", name="Close").click()
    expect(lane(page, "todo").locator("[data-count]")).to_have_text("20 of 130")
    assert near.counts()["todo"] == len(made)
    page.get_by_role("link", name="Add task").click()
    expect(page.get_by_role("heading", name="Add a task")).to_be_visible()
    page.get_by_label("Kind").fill("docs")
    page.get_by_label("Title").fill("Write it down")
    page.get_by_label("Data (JSON)").fill('{"page": 3}')
    page.get_by_label("Comes after").fill(made[0])
    page.get_by_role("button", name="Add task").click()
    expect(page.get_by_role("heading", name="Write it down")).to_be_visible()
    expect(page.locator("[data-why]")).to_contain_text("It comes after")
    [added] = near.find(kind="docs")
    assert (added.state, near.get(added.id).data) == ("blocked", {"page": 3})


def test_a_review_is_judged_and_a_graph_follows_what_runs(near: Yard, gateway: Running, seat: Sit) -> None:
    first = near.add("plan", title="First", mission="house")
    second = near.add("build", title="Second", mission="house", after=[first])
    near.add("paint", title="Third", mission="house", after=[second], review=True)
    near.new_mission("house", "Build it well")
    page = seat().open(board(gateway, "missions"))
    page.get_by_role("link", name="house").click()
    node = page.locator(f'[data-node="{first.id}"]')
    expect(node).to_have_attribute("data-state", "todo")
    expect(page.locator(".node.critical")).to_have_count(3)
    claim = taken(near.claim(first.id, worker="ada"))
    expect(node).to_have_attribute("data-state", "processing")
    claim.done()
    expect(node).to_have_attribute("data-state", "done")
    expect(page.locator("[data-progress]")).to_contain_text("1 of 3 done, 33 %")
    taken(near.claim(second.id)).done()
    for word, answer in (("rejected", "Reject"), ("done", "Accept")):
        taken(near.claim(kinds="paint", worker="ada")).done({"colour": "red"})
        page.goto(board(gateway))
        page.locator('[data-sort="reviews"]').get_by_role("link", name="Third", exact=True).click()
        expect(page.locator('[data-part="Submitted"]')).to_contain_text("red")
        page.get_by_role("button", name=answer).click()
        if answer == "Reject":
            page.get_by_label("What is missing").fill("make it green")
            page.get_by_role("dialog").get_by_role("button", name="Reject").click()
        expect(page.locator(".meta .chip").first).to_have_text("todo" if answer == "Reject" else word)
        page.goto("about:blank")
    lost = crash(near, near.add("test").id)
    with pytest.raises(taskyard.ClaimLost):
        lost.done()
    page.goto(board(gateway, "agents"))
    expect(page.locator('[data-mark="reaped"]')).to_have_count(1)
    expect(page.locator('[data-mark="refused"]')).to_have_count(1)


def test_keys_go_from_card_to_card_and_the_theme_stays(near: Yard, gateway: Running, seat: Sit) -> None:
    near.add_many({"kind": "build", "title": f"Part {n}"} for n in range(3))
    page = seat(color_scheme="light").open(board(gateway, "board"))
    expect(lane(page, "todo").locator(".card")).to_have_count(3)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    focused = "document.activeElement.textContent"
    page.keyboard.press("j")
    assert page.evaluate(focused) == "Part 0"
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate(focused) == "Part 1"
    near.add("build", title="Part 3")
    expect(lane(page, "todo").locator(".card")).to_have_count(4)
    assert page.evaluate(focused) == "Part 1", "what happens meanwhile takes no focus away"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Part 1")).to_be_visible()
    page.keyboard.press("2")
    expect(lane(page, "todo")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("part 2")
    expect(lane(page, "todo").locator(".card")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.reload()
    expect(lane(page, "todo")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    dark_from_system = seat(color_scheme="dark").open(board(gateway, "board"))
    assert dark_from_system.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_a_gateway_that_is_killed_and_comes_back_is_noticed(near: Yard, seat: Sit) -> None:
    line = server.bound("127.0.0.1", 0)
    port = line.getsockname()[1]
    line.close()

    def serve() -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "taskyard", "--yard", near.url, "serve", "--port", str(port)]
        process = subprocess.Popen(words, stderr=subprocess.PIPE)
        assert process.stderr is not None
        process.stderr.readline()
        return process

    running = serve()
    one = seat()
    one.expected = ("ERR_", "Failed to load")  # the browser's own words about a gateway that is away
    page = one.open(f"http://127.0.0.1:{port}/default/board/#/board")
    expect(page.locator(".live")).to_have_text("Stream: live")
    running.kill()
    running.wait()
    expect(page.locator("#banner")).to_contain_text("is cut")
    near.add("build", title="While it was away")
    again = serve()
    expect(page.locator("#banner")).to_be_hidden()
    expect(lane(page, "todo").locator(".card")).to_contain_text("While it was away")
    near.add("build", title="Live again")
    expect(lane(page, "todo").locator(".card")).to_have_count(2)
    page.close()
    again.kill()
    again.wait()


def test_all_tabs_share_one_stream_and_the_next_takes_it_over(near: Yard, gateway: Running, seat: Sit) -> None:
    one = seat()
    pages = [one.open(board(gateway, "board")) for _ in range(3)]
    feed = gateway.gateway.projects["default"].board.feed
    for page in pages:
        expect(page.locator(".live")).to_have_text("Stream: live")
    assert feed.watching() == 1
    near.add("build", title="For all")
    for page in pages:
        page.bring_to_front()
        expect(lane(page, "todo").locator(".card")).to_have_count(1)
    pages[0].close()
    near.add("build", title="For the others")
    for page in pages[1:]:
        page.bring_to_front()
        expect(lane(page, "todo").locator(".card")).to_have_count(2)
    wait_until(lambda: feed.watching() == 1)


@pytest.fixture
def full(near: Yard) -> dict[str, str]:
    """A yard with something of every sort, and markup in every field that a user gives."""
    near.new_mission(NASTY, f"A brief {NASTY}", owner="maria")
    first = near.add(
        "plan", {"html": NASTY, NASTY: [NASTY]}, title=f"Plan {NASTY}", mission=NASTY, key=NASTY, uses=[NASTY]
    )
    second = near.add("build", title=f"Build {NASTY}", mission=NASTY, after=[first])
    near.add("ship", title=f"Ship {NASTY}", mission=NASTY, after=[second], assignee="bob")
    claim = taken(near.claim(first.id, worker="ada"))
    claim.note(NASTY)
    claim.done({"result": NASTY})
    taken(near.claim(second.id, worker="eve")).fail(NASTY, retry=False)
    review = near.add("write", title=f"Review {NASTY}", review=True)
    taken(near.claim(review.id, worker="ada")).done(NASTY)
    lost = crash(near, near.add("test", title=f"Late {NASTY}").id)
    with pytest.raises(taskyard.ClaimLost):
        lost.done(NASTY)
    running = near.add("run", title=f"Running {NASTY}")
    taken(near.claim(running.id, worker="kim")).heartbeat(progress=0.5)
    near.add("later", title="Not yet", delay=3600)
    near.cancel(near.add("no", title="Not at all").id, NASTY)
    near.pause("rest")
    with open(os.path.join(near.url, "todo", "<b>broken.json"), "w") as file:
        file.write('{"kind": "<script>"}')
    near.sweep()
    return {"first": first.id, "second": second.id, "review": review.id, "late": lost.task.id, "running": running.id}


def _places(full: dict[str, str]) -> list[str]:
    from urllib.parse import quote

    mission = quote(NASTY, safe="")
    return [*VIEWS, f"mission?name={mission}", f"board?mission={mission}", *(f"task/{id}" for id in full.values())]


def test_nothing_that_users_wrote_is_taken_for_markup(full: dict[str, str], gateway: Running, seat: Sit) -> None:
    page = seat().open(board(gateway))
    expect(page.get_by_text(f"Build {NASTY}").first).to_be_visible()
    for place in _places(full):
        page.goto(board(gateway, place))
        expect(page.locator("main h1")).not_to_have_text("")
        expect(page.get_by_text("Looking …")).to_have_count(0)
        assert page.locator("script:not([src]), img").count() == 0
        assert page.evaluate("window.harmed") is None
    page.goto(board(gateway, f"task/{full['second']}"))
    expect(page.locator('[data-part="Last error"] pre')).to_have_text(NASTY)


def test_every_page_is_readable_by_all_in_every_shape(
    full: dict[str, str], gateway: Running, seat: Sit, tmp_path: Path
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    axe, found = Axe(), dict[str, Any]()
    one = seat()
    page = one.open(board(gateway))
    themes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for theme in themes:
        page.emulate_media(color_scheme=theme)
        options = {"runOnly": ["color-contrast"]} if theme == "dark" else None  # all else is the same in both
        for place in (
            *VIEWS,
            f"mission?name={_places(full)[7].split('=')[1]}",
            f"task/{full['running']}",
            f"task/{full['late']}",
        ):
            for width in (1440, 390):
                page.set_viewport_size({"width": width, "height": 900})
                page.goto(board(gateway, place))
                expect(page.locator("main h1")).not_to_have_text("")
                expect(page.get_by_text("Looking …")).to_have_count(0)
                name = f"{place.split('?')[0].replace('/', '-')}-{theme}-{width}"
                page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
                overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert overflow <= 0, f"{name} is wider than the screen by {overflow}"
                if width == 1440 or theme == "light":
                    wrong = axe.run(page, options=options).response["violations"]
                    if wrong:
                        found[name] = [
                            (rule["id"], [node["html"][:200] for node in rule["nodes"][:3]]) for rule in wrong
                        ]
    assert not found, json.dumps(found, indent=1)
