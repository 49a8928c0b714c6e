"""Tokens: each route refuses whoever may not use it, by the table of routes itself."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from starlette.requests import Request

import taskyard
from taskyard.core import tokens
from taskyard.doors.gateway.access import Rules
from taskyard.doors.gateway.buckets import Buckets, TooMany
from taskyard.remote import routes
from tests.conftest import taken, wait_until
from tests.servers.gateway import Running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard import Yard
    from taskyard.remote.routes import Route

CERTIFICATE = os.path.join(os.path.dirname(__file__), "localhost.pem")  # with its key; good for 127.0.0.1


class Guarded:
    """A gateway in front of a yard with tokens, of another one with tokens, and of one without."""

    def __init__(self, folder: Path) -> None:
        self.near = taskyard.init(folder / "yard", worker="gateway", durability="fast")
        self.other = taskyard.init(folder / "other", durability="fast")
        self.free = taskyard.init(folder / "free", durability="fast")
        self.secrets = {scope: self.near.new_token(scope, scope=scope)["token"] for scope in tokens.SCOPES}
        self.secrets["elsewhere"] = self.near.new_token(scope="manage", project="elsewhere")["token"]
        self.secrets["other"] = self.other.new_token(scope="manage")["token"]
        self.secrets["revoked"] = self.near.new_token("old", scope="manage")["token"]
        self.near.revoke_token("old")
        self.secrets["wrong"] = f"ty_{tokens.chance()}"
        yards = {"default": self.near, "other": self.other, "free": self.free}
        self.running = Running(yards, Rules(["yard.example"]))
        self._line = http.client.HTTPConnection("127.0.0.1", self.running.port, timeout=50)

    def ask(
        self, method: str, path: str, token: str | None = None, body: bytes | None = None, **headers: str
    ) -> tuple[int, Any, Any]:
        """The status, the JSON and the headers of an answer."""
        if token is not None:
            headers["Authorization"] = f"Bearer {self.secrets.get(token, token)}"
        self._line.request(method, path, body, headers)
        answer = self._line.getresponse()
        text = answer.read()
        is_json = answer.headers.get("content-type") == "application/json"
        return answer.status, json.loads(text) if is_json else text, answer.headers

    def try_route(self, route: Route, token: str | None) -> tuple[int, Any, Any]:
        """Ask with arguments that are wrong on every route: whoever is admitted gets 400, and nothing happens."""
        path = "/".join(["", *("x" if part.startswith("{") else part for part in route.parts())])
        if route.method == "GET":
            return self.ask("GET", f"{path}?nonsense=1", token)
        return self.ask(route.method, path, token, b"[]")

    def stop(self) -> None:
        self._line.close()
        self.running.stop()
        for yard in (self.near, self.other, self.free):
            yard.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    made = Guarded(tmp_path_factory.mktemp("access"))
    yield made
    made.stop()


@pytest.mark.parametrize("token", [None, "wrong", "revoked", "other", "", "x" * 1000, "%ff"])
def test_every_route_refuses_whoever_has_no_token_of_the_yard(guarded: Guarded, token: str | None) -> None:
    for route in routes.ROUTES:
        status, told, headers = guarded.try_route(route, token)
        assert (status, told["ok"], told["error"]["code"]) == (401, False, "denied"), route.path
        assert "TASKYARD_TOKEN" in told["error"]["hint"]
        assert headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("scope", tokens.SCOPES)
def test_every_route_admits_its_scope_and_wider_ones_alone(guarded: Guarded, scope: str) -> None:
    for route in routes.ROUTES:
        status, told, _ = guarded.try_route(route, scope)
        allowed = tokens.SCOPES.index(scope) >= tokens.SCOPES.index(route.scope)
        assert (status, told["error"]["code"]) == ((400, "invalid") if allowed else (403, "denied")), route.path


def test_every_route_refuses_a_token_for_another_project(guarded: Guarded) -> None:
    for route in routes.ROUTES:
        assert guarded.try_route(route, "elsewhere")[0] == 403, route.path


def test_a_token_for_a_project_is_good_under_that_name(guarded: Guarded) -> None:
    guarded.running.serve("elsewhere", guarded.near)
    assert guarded.ask("GET", "/elsewhere/v1/counts", "elsewhere")[0] == 200
    guarded.running.drop("elsewhere")


def test_a_yard_without_tokens_needs_none_on_this_machine(guarded: Guarded) -> None:
    assert guarded.ask("GET", "/free/v1/counts")[0] == 200
    assert guarded.ask("GET", "/free/v1/counts", "manage")[0] == 200


def test_metrics_need_a_token_and_what_tells_nothing_of_tasks_needs_none(guarded: Guarded) -> None:
    assert guarded.ask("GET", "/metrics")[0] == 401
    assert guarded.ask("GET", "/metrics", "read")[0] == 200
    for page in ("/healthz", "/readyz", "/openapi.json", "/docs"):
        assert guarded.ask("GET", page)[0] == 200


@pytest.mark.parametrize(
    ("token", "status"),
    [(None, 401), ("wrong", 401), ("revoked", 401), ("other", 401), ("read", 403), ("elsewhere", 403)],
)
def test_agents_by_mcp_need_a_token_that_may_work(guarded: Guarded, token: str | None, status: int) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    body = json.dumps(message).encode()
    for path in ("/mcp", "/default/mcp"):
        assert guarded.ask("POST", path, token, body)[0] == status
        assert guarded.ask("POST", path, "work", body)[0] == 200


def test_another_word_than_bearer_is_refused(guarded: Guarded) -> None:
    secret = guarded.secrets["manage"]
    assert guarded.ask("GET", "/v1/counts", Authorization=f"Basic {secret}")[0] == 401
    assert guarded.ask("GET", "/v1/counts", Authorization=secret)[0] == 401
    assert guarded.ask("GET", "/v1/counts", Authorization=f"bearer {secret}")[0] == 200


def test_the_gateway_is_known_by_the_names_that_it_was_given(guarded: Guarded) -> None:
    assert guarded.ask("GET", "/v1/counts", "read", Host="Yard.example:8377")[0] == 200
    status, told, _ = guarded.ask("GET", "/v1/counts", "read", Host="evil.example")
    assert (status, told["error"]["code"]) == (403, "denied")
    assert "--allow-host" in told["error"]["hint"]


def test_no_one_reads_tokens_in_the_settings(guarded: Guarded) -> None:
    for told in (guarded.near.settings(), guarded.near.tokens(), guarded.ask("GET", "/v1/tokens", "manage")[1]):
        text = json.dumps(told)
        assert "sha256" not in text
        assert "ty_" not in text
    with pytest.raises(taskyard.Invalid, match="tokens"):
        guarded.near.set_settings({"tokens": None})


def test_tokens_are_made_and_revoked_through_a_gateway_too(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_TOKEN", guarded.secrets["manage"])
    with taskyard.open(guarded.running.url()) as far:
        secret = far.new_token("board", scope="read")["token"]
        assert "board" in [one["name"] for one in far.tokens()]
        with pytest.raises(taskyard.Conflict):
            far.new_token("board")
        assert guarded.ask("GET", "/v1/counts", secret)[0] == 200  # at once
        far.revoke_token("board")
        wait_until(lambda: guarded.ask("GET", "/v1/counts", secret)[0] == 401)
        with pytest.raises(taskyard.NotFound):
            far.revoke_token("board")


@pytest.mark.parametrize("renewed", [False, True])  # a leaked token is replaced by another one of its name
def test_a_stream_of_events_ends_when_its_token_is_revoked(guarded: Guarded, renewed: bool) -> None:
    secret = guarded.near.new_token("follower", scope="read")["token"]
    line = http.client.HTTPConnection("127.0.0.1", guarded.running.port, timeout=50)
    line.request("GET", "/v1/events", headers={"Authorization": f"Bearer {secret}", "Accept": "text/event-stream"})
    answer = line.getresponse()
    reader = threading.Thread(target=answer.read, daemon=True)
    reader.start()
    guarded.near.revoke_token("follower")
    if renewed:
        guarded.near.new_token("follower", scope="read")
    wait_until(lambda: guarded.ask("GET", "/v1/counts", secret)[0] == 401)
    guarded.near.add("build")  # the stream wakes, and finds that it may not go on
    wait_until(lambda: not reader.is_alive())
    line.close()


def test_the_log_names_the_token_that_asked(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_TOKEN", guarded.secrets["manage"])
    with taskyard.open(guarded.running.url(), worker="ada") as far:
        ended, cancelled = far.add("named"), far.add("named")
        taken(far.claim(ended.id)).done()
        far.cancel(cancelled.id)
        told = [(one["event"], one["worker"], one["by"]) for one in far.events(task=ended.id)]
        assert told == [("added", None, "manage"), ("claimed", "ada", "manage"), ("done", "ada", "manage")]
        assert [one["by"] for one in far.events(task=cancelled.id)] == ["manage", "manage"]


def test_a_client_without_a_good_token_is_denied_and_told_what_to_do(guarded: Guarded) -> None:
    environment = {**os.environ, "TASKYARD": guarded.running.url(), "TASKYARD_TOKEN": guarded.secrets["read"]}
    command = [sys.executable, "-m", "taskyard", "add", "build", "--json"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    told = json.loads(run.stdout)["error"]
    assert (run.returncode, told["code"]) == (2, "denied")
    assert told["hint"] == "use a token with the scope work"
    with taskyard.open(guarded.running.url()) as far, pytest.raises(taskyard.Denied, match="needs a token"):
        far.counts()


def test_a_client_finds_its_token_in_a_file(guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(f"{guarded.secrets['work']}\n")
    monkeypatch.setenv("TASKYARD_TOKEN_FILE", str(tmp_path / "token"))
    with taskyard.open(guarded.running.url()) as far:
        assert far.add("from-a-file").created
    monkeypatch.setenv("TASKYARD_TOKEN_FILE", str(tmp_path / "none"))
    with pytest.raises(taskyard.Unavailable, match="TASKYARD_TOKEN_FILE names"):
        taskyard.open(guarded.running.url())


def test_a_yard_whose_tokens_are_all_revoked_stays_closed() -> None:
    with taskyard.init("memory:closed") as yard:
        assert yard.token_digests() is None
        yard.new_token("one")
        yard.revoke_token("one")
        assert yard.token_digests() == {}


def test_who_asks_too_often_is_refused_until_the_bucket_fills(tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "yard", durability="fast") as near:
        secret, spare = near.new_token()["token"], near.new_token()["token"]
        running = Running({"default": near}, Rules(rate=0.001, proxied=True))
        statuses, line = [], http.client.HTTPConnection("127.0.0.1", running.port, timeout=50)
        for token, peer in ((secret, "a"), (secret, "b"), (spare, "a"), ("?", "x, a"), ("?", "y, a"), ("?", "a, b")):
            headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": peer}
            line.request("GET", "/v1/counts", headers=headers)
            answer = line.getresponse()
            code = json.loads(answer.read()).get("error", {}).get("code")
            statuses.append((answer.status, code, answer.headers.get("retry-after")))
        line.close()
        running.stop()
    good, refused, many = (200, None, None), (401, "denied", None), (429, "unavailable", "1")
    assert statuses == [good, many, good, refused, many, refused]


def test_a_client_cannot_hide_behind_a_line_of_its_own_before_that_of_the_proxy() -> None:
    lines = [(b"x-forwarded-for", b"10.9.9.9"), (b"x-forwarded-for", b"192.0.2.1, 192.0.2.7")]
    request = Request({"type": "http", "headers": lines, "client": ("127.0.0.1", 1)})
    assert Rules(proxied=True).peer(request) == "192.0.2.7"
    assert Rules().peer(request) == "127.0.0.1"


def test_a_bucket_fills_at_its_rate_and_many_askers_fill_no_memory() -> None:
    now = [0.0]
    buckets = Buckets(2, lambda: now[0])
    for _ in range(10):
        buckets.take("ada")
    with pytest.raises(TooMany):
        buckets.take("ada")
    now[0] = 0.5
    buckets.take("ada")
    with pytest.raises(TooMany):
        buckets.take("ada")
    for number in range(20_000):
        buckets.take(str(number))
    assert len(buckets._left) <= 10_000


def test_a_client_checks_the_certificate_of_a_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, yard_of_tokens: Yard
) -> None:
    secret = yard_of_tokens.new_token(scope="work")["token"]
    running = Running({"default": yard_of_tokens}, cert=CERTIFICATE)
    monkeypatch.setenv("TASKYARD_TOKEN", secret)
    with taskyard.open(running.url()) as far, pytest.raises(taskyard.Unavailable, match="certificate"):
        far.counts()
    monkeypatch.setenv("SSL_CERT_FILE", CERTIFICATE)
    with taskyard.open(running.url()) as far:
        far.add("build", {"text": "x" * 200_000})
        assert len(taken(far.claim()).task.data["text"]) == 200_000
    running.stop()


@pytest.fixture
def yard_of_tokens(tmp_path: Path) -> Iterator[Yard]:
    with taskyard.init(tmp_path / "yard", durability="fast") as opened:
        yield opened


def serve(yard: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "taskyard", "serve", "--yard", str(yard), "--port", "0", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


@pytest.mark.parametrize("words", [["--host", "0.0.0.0"], ["--allow-host", "yard.example"], ["--proxy-header"]])
def test_a_gateway_for_other_machines_is_refused_while_there_is_no_token(tmp_path: Path, words: list[str]) -> None:
    taskyard.init(tmp_path / "yard", durability="fast").close()
    run = serve(tmp_path / "yard", *words)
    assert run.returncode == 2
    assert "taskyard token new" in run.stderr


def test_a_gateway_for_other_machines_serves_once_there_is_a_token(tmp_path: Path) -> None:
    with taskyard.init(tmp_path / "yard", durability="fast") as near:
        secret = near.new_token(scope="read")["token"]
    words = ["--host", "0.0.0.0", "--port", "0", "--cert", CERTIFICATE]
    command = [sys.executable, "-m", "taskyard", "serve", "--yard", str(tmp_path / "yard"), *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            assert first.startswith("https://0.0.0.0:")
            assert "all who have a token;" in process.stderr.readline()
            port = first.split(":")[2].split("/")[0]
            environment = {
                **os.environ,
                "TASKYARD": f"https://127.0.0.1:{port}",
                "TASKYARD_TOKEN": secret,
                "SSL_CERT_FILE": CERTIFICATE,
            }
            stats = [sys.executable, "-m", "taskyard", "stats", "--json"]
            run = subprocess.run(stats, env=environment, capture_output=True, text=True, check=False)
            assert run.returncode == 0, run.stdout
        finally:
            process.terminate()


def test_files_that_are_no_certificate_are_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.pem").write_text("odd")
    for words in (["--cert", str(tmp_path / "odd.pem")], ["--cert", "/nowhere"], ["--key", CERTIFICATE]):
        run = serve(tmp_path, *words)
        assert run.returncode == 2
        assert "cert" in run.stderr
