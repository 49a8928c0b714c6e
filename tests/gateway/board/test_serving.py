"""What a board's requests get: its files with strict headers, a cookie that scripts cannot read, and nothing for other sites."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import taskyard
from taskyard.core import abandonment
from taskyard.doors.gateway import board
from taskyard.doors.gateway.board import bulk, questions
from taskyard.doors.gateway.board.shared import Shared
from taskyard.doors.gateway.threads import SIZE, Threads
from tests.conftest import taken, wait_until
from tests.gateway.test_pages import Stream

if TYPE_CHECKING:
    from taskyard import Yard
    from tests.servers.gateway import Running

STATIC = Path(board.__file__).parent / "static"
OWN = {"Taskyard-Board": "1"}


class Answer:
    def __init__(self, gateway: Running, method: str, path: str, body: Any = None, **headers: str) -> None:
        line = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=50)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, path, None if body is None else json.dumps(body), named)
        answer = line.getresponse()
        self.status, self.headers, self.text = answer.status, answer.headers, answer.read().decode()
        line.close()

    @property
    def data(self) -> Any:
        return json.loads(self.text)["data"]


def ask(gateway: Running, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    """A request as the board's own page sends it."""
    return Answer(gateway, method, f"/default/board/{path}", body, **OWN, **headers)


def signed_in(gateway: Running, token: str) -> dict[str, str]:
    answer = ask(gateway, "POST", "session", {"token": token})
    assert answer.status == 200
    return {"Cookie": answer.headers["set-cookie"].split(";")[0]}


def test_names_that_are_no_files_are_not_remembered(gateway: Running) -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(50):
            assert Answer(gateway, "GET", f"/default/board/static/{number}{'x' * 40_000}").status == 404
        assert tracemalloc.get_traced_memory()[0] - before < 1_000_000
    finally:
        tracemalloc.stop()


def test_one_who_starts_many_bulk_actions_leaves_threads_for_others(near: Yard, gateway: Running) -> None:
    near.add_many({"kind": "a"} for _ in range(3))
    cookies = [signed_in(gateway, near.new_token(name, scope="manage")["token"]) for name in ("hasty", "calm")]
    go_on = threading.Event()
    wait, verbs = bulk.run, {"verb": "cancel", "state": ["todo"], "apply": True}

    def waiting(*given: Any) -> None:
        go_on.wait(50)
        wait(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "run", waiting)
        for _ in range(SIZE + 4):
            ask(gateway, "POST", "bulk", verbs, **cookies[0])
        assert ask(gateway, "GET", "v1/overview", **cookies[1]).status == 200
        go_on.set()
    wait_until(lambda: near.counts()["cancelled"] == 3)


def test_the_plain_address_leads_to_the_board(gateway: Running) -> None:
    for path in ("/", "/default", "/default/", "/default/board"):
        answer = Answer(gateway, "GET", path)
        assert (answer.status, answer.headers["location"]) == (302, "/default/board/")
    page = Answer(gateway, "GET", "/default/board/")
    assert page.status == 200
    assert "<title>Taskyard</title>" in page.text
    assert Answer(gateway, "GET", "/nothing/board/").status == 404
    assert Answer(gateway, "GET", "/default/board/static/nothing.js").status == 404
    assert Answer(gateway, "GET", "/default/board/static/..%2f__init__.py").status == 404
    assert Answer(gateway, "POST", "/default/board/").status == 405


def test_every_file_forbids_what_is_not_its_own(gateway: Running) -> None:
    for name in sorted(path.name for path in STATIC.iterdir()):
        answer = Answer(gateway, "GET", f"/default/board/static/{name}")
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        again = Answer(gateway, "GET", f"/default/board/static/{name}", If_None_Match=answer.headers["etag"])
        assert (again.status, again.text) == (304, "")


def test_the_files_name_no_other_host_and_insert_nothing_as_markup() -> None:
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        hosts = set(re.findall(r"https?://[\w.-]+", text)) - {"http://www.w3.org"}
        assert not hosts, f"{path.name} names {hosts}"
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            path.name
        )
        if path.suffix == ".html":
            assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", text)


def test_a_token_becomes_a_cookie_that_scripts_cannot_read(near: Yard, gateway: Running) -> None:
    token = near.new_token("maria", scope="manage")["token"]
    assert ask(gateway, "GET", "session").data["scope"] is None
    refused = ask(gateway, "POST", "session", {"token": "ty_wrong"})
    assert (refused.status, refused.headers["set-cookie"]) == (401, None)
    kept = ask(gateway, "POST", "session", {"token": token}).headers["set-cookie"]
    assert "HttpOnly" in kept
    assert "SameSite=strict" in kept
    assert "Path=/default/board" in kept
    cookie = signed_in(gateway, token)
    session = ask(gateway, "GET", "session", **cookie).data
    assert (session["name"], session["scope"], session["project"]) == ("maria", "manage", "default")
    assert "Max-Age=0" in ask(gateway, "DELETE", "session", **cookie).headers["set-cookie"]
    near.revoke_token("maria")
    wait_until(lambda: ask(gateway, "GET", "v1/overview", **cookie).status == 401)


def test_without_a_cookie_nothing_of_the_yard_is_told(near: Yard, gateway: Running) -> None:
    near.new_token("maria", scope="manage")
    for path in ("v1/overview", "v1/tasks", "bulk?job=x", "drawing?mission=m"):
        assert ask(gateway, "GET", path).status == 401
    assert Answer(gateway, "GET", "/default/board/stream").status == 401


def test_a_reader_looks_and_cannot_act(near: Yard, gateway: Running) -> None:
    cookie = signed_in(gateway, near.new_token("visitor", scope="read")["token"])
    id = near.add("build").id
    assert ask(gateway, "GET", "v1/lanes", **cookie).status == 200
    for path, body in (
        (f"v1/tasks/{id}/cancel", {}),
        ("v1/tasks", {"kind": "build"}),
        ("v1/pause", {}),
        ("bulk", {"verb": "cancel", "state": ["todo"], "apply": True}),
    ):
        assert ask(gateway, "POST", path, body, **cookie).status == 403
    assert near.get(id).state == "todo"


def test_a_page_of_another_site_cannot_act_with_the_cookie(near: Yard, gateway: Running) -> None:
    cookie = signed_in(gateway, near.new_token("maria", scope="manage")["token"])
    id = near.add("build").id
    path = f"/default/board/v1/tasks/{id}/cancel"
    # A form of another site sends no header of ours; a script there sends its origin, whatever else it may send.
    assert Answer(gateway, "POST", path, {}, **cookie).status == 403
    assert Answer(gateway, "POST", path, {}, Origin="http://evil.example", **OWN, **cookie).status == 403
    assert Answer(gateway, "POST", path, {}, Origin="http://127.0.0.1:1", **OWN, **cookie).status == 403
    assert Answer(gateway, "POST", path, {}, Sec_Fetch_Site="same-site", **OWN, **cookie).status == 403
    # And the cookie is no token for the API itself.
    assert Answer(gateway, "POST", f"/v1/tasks/{id}/cancel", {}, **cookie).status == 401
    assert near.get(id).state == "todo"
    own = f"http://127.0.0.1:{gateway.port}"
    assert Answer(gateway, "POST", path, {}, Origin=own, **OWN, **cookie).status == 200
    assert near.get(id).state == "cancelled"


def test_the_log_names_who_acted_at_the_board(near: Yard, gateway: Running) -> None:
    cookie = signed_in(gateway, near.new_token("maria", scope="manage")["token"])
    id = near.add("write", review=True).id
    taken(near.claim(id, worker="ada")).done({"text": "so be it"})
    assert ask(gateway, "POST", f"v1/tasks/{id}/accept", {}, **cookie).status == 200
    assert near.get(id).state == "done"
    assert near.events(task=id, event="done")[-1]["by"] == "maria"


def test_a_stream_begins_with_a_summary_and_goes_on_with_ticks(near: Yard, gateway: Running) -> None:
    streams = [Stream(gateway, "/default/board/stream") for _ in range(3)]
    for stream in streams:
        wait_until(lambda stream=stream: stream.events)  # type: ignore[misc]
        assert stream.events[0]["needs"] == 0
    feed = gateway.gateway.projects["default"].board.feed
    assert feed.watching() == 3
    id = near.add("build", title="one").id
    for stream in streams:
        wait_until(
            lambda stream=stream: any(  # type: ignore[misc]
                event["task"] == id for tick in stream.events for event in tick.get("events", ())
            )
        )
        wait_until(lambda stream=stream: stream.events[-1].get("needs") == 1)  # type: ignore[misc]
        stream.close()
    wait_until(lambda: near.add("build").created and feed.watching() == 0)


def test_two_boards_that_come_at_once_are_told_everything_once(
    near: Yard, gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_end, looks = near.log_end, list[str]()

    def slow() -> str:
        looks.append(log_end())
        time.sleep(0.2)
        return looks[-1]

    monkeypatch.setattr(near, "log_end", slow)
    with ThreadPoolExecutor(2) as browsers:
        streams = list(browsers.map(lambda path: Stream(gateway, path), ["/default/board/stream"] * 2))
    for number in range(5):
        near.add("build", title=f"number {number}")
        time.sleep(0.3)
    for stream in streams:
        wait_until(lambda stream=stream: told_of(stream) >= 5)  # type: ignore[misc]
        assert told_of(stream) == 5
        stream.close()
    assert len(looks) == 1


def told_of(stream: Stream) -> int:
    """How many added tasks a board was told of."""
    return sum(tick["names"].get("added", 0) for tick in stream.events if "names" in tick)


def test_a_burst_is_summed_up(near: Yard, gateway: Running) -> None:
    stream = Stream(gateway, "/default/board/stream")
    wait_until(lambda: stream.events)
    near.add_many({"kind": "build"} for _ in range(5000))
    wait_until(lambda: told_of(stream) == 5000)
    assert max(len(tick.get("events", ())) for tick in stream.events) <= 150
    stream.close()


def test_boards_share_one_look_and_an_own_action_is_seen_at_once(near: Yard, gateway: Running) -> None:
    near.add("build")
    first = ask(gateway, "GET", "v1/overview").text
    near.add("build")
    assert ask(gateway, "GET", "v1/overview").text == first, "a look of a moment ago serves all"
    anew = Answer(gateway, "GET", "/default/board/v1/overview", Taskyard_Board="anew").data
    assert anew["overview"]["counts"]["todo"] == 2


def test_a_look_is_given_up_when_all_who_waited_for_it_are_gone() -> None:
    threads, begun, ended = Threads(), threading.Event(), threading.Event()

    def look(question: str, _: dict[str, Any]) -> questions.Answer:
        if ended.is_set():
            return questions.Answer({}, question.encode())
        begun.set()
        try:
            while True:
                abandonment.check()
                time.sleep(0.01)
        finally:
            ended.set()

    async def two_ask_and_go_away() -> None:
        shared = Shared(threads.of("boards"), look)
        asked = [asyncio.ensure_future(shared.answer("lanes", {"text": "x"})) for _ in range(2)]
        await asyncio.to_thread(begun.wait, 60)
        asked[0].cancel()
        await asyncio.wait([asked[0]])
        assert not ended.is_set(), "the other one still waits"
        asked[1].cancel()
        assert await asyncio.to_thread(ended.wait, 60)
        assert (await shared.answer("lanes", {"text": "x"})).body == b"lanes"

    asyncio.run(two_ask_and_go_away())
    threads.close()


def test_one_with_many_questions_leaves_threads_for_others() -> None:
    threads, go_on = Threads(), threading.Event()

    def look(question: str, _: dict[str, Any]) -> questions.Answer:
        if question == "lanes":
            go_on.wait(50)
        return questions.Answer({}, question.encode())

    async def ask_much() -> None:
        shared = Shared(threads.of("boards"), look)
        hasty, calm = threads.of("hasty"), threads.of("calm")
        asked = [asyncio.ensure_future(shared.answer("lanes", {"text": str(n)}, share=hasty)) for n in range(SIZE + 4)]
        assert (await asyncio.wait_for(shared.answer("agents", {}, share=calm), 40)).body == b"agents"
        go_on.set()
        await asyncio.gather(*asked)

    asyncio.run(ask_much())
    threads.close()


def test_bulk_counts_first_and_reports_its_progress(near: Yard, gateway: Running) -> None:
    near.add_many({"kind": f"kind{n % 2}", "title": f"Part {n}"} for n in range(250))
    wanted = {"verb": "cancel", "state": ["todo"], "kind": "kind1"}
    assert ask(gateway, "POST", "bulk", wanted).data["count"] == 125
    assert near.counts()["cancelled"] == 0
    job = ask(gateway, "POST", "bulk", {**wanted, "apply": True, "reason": "not now"}).data["job"]
    done = wait_until(lambda: (one := ask(gateway, "GET", f"bulk?job={job}").data)["over"] and one)
    assert (done["changed"], done["refused"], done["done"], done["total"]) == (125, 0, 125, 125)
    assert near.counts()["cancelled"] == 125
    narrow = {"verb": "cancel", "state": ["todo"], "text": "part 1"}
    expected = sum(str(n).startswith("1") for n in range(0, 250, 2))
    assert ask(gateway, "POST", "bulk", narrow).data["count"] == expected
    assert ask(gateway, "POST", "bulk", {**narrow, "text": "nothing"}).data["count"] == 0
    assert ask(gateway, "POST", "bulk", {"verb": "cancel", "apply": True}).status in (200, 400)
    assert ask(gateway, "POST", "bulk", {"verb": "cancel"}).status == 400
    assert ask(gateway, "GET", "bulk?job=unknown").status == 404


def test_a_drawing_has_a_place_for_every_task(near: Yard, gateway: Running) -> None:
    first = near.add("a", mission="m <1>")
    near.add("b", mission="m <1>", after=[first])
    found = ask(gateway, "GET", "drawing?mission=m%20%3C1%3E").data
    assert [node["critical"] for node in found["nodes"]] == [True, True]
    assert all(len(node["at"]) == 2 for node in found["nodes"])
    assert len(found["edges"][0]["points"]) == 2
    assert len(ask(gateway, "GET", f"drawing?task={first.id}").data["nodes"]) == 2
    assert ask(gateway, "GET", "drawing").status == 400


def test_output_of_a_command_is_read_and_no_link_is_followed(near: Yard, gateway: Running, tmp_path: Path) -> None:
    claim = taken(near.claim(near.add("build").id))
    folder = near.workdir(claim.handle, make=True)
    assert folder is not None
    Path(folder, "stdout.log").write_text("x" * 20_000 + "the end\n")
    secret = tmp_path / "secret"
    secret.write_text("a secret")
    Path(folder, "stderr.log").symlink_to(secret)
    [log] = ask(gateway, "GET", f"v1/tasks/{claim.task.id}/output").data["output"]
    assert (log["name"], log["size"], log["fence"]) == ("stdout.log", 20_008, 1)
    assert log["text"].endswith("the end\n")
    assert len(log["text"]) == 16_384
    claim.done()
    assert near.output(claim.task.id, most=8)[0]["text"] == "the end\n"
    with pytest.raises(taskyard.Invalid):
        near.output(claim.task.id, most=0)
