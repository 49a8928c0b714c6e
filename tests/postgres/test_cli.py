"""Every verb of the command line on a yard in PostgreSQL, as processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import taskyard
from tests.processes import tools
from tests.servers import postgres

CLI = [sys.executable, "-m", "taskyard"]


class Desk:
    """One yard, named by $TASKYARD as users do."""

    def __init__(self, url: str, folder: Path) -> None:
        self.environment = tools.environment(TASKYARD=url, AGENT_ID="ada")
        self.folder = folder

    def run(self, *words: str, code: int = 0, stdin: str = "") -> str:
        done = subprocess.run(
            [*CLI, *words],
            env=self.environment,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=tools.PATIENCE,
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout

    def ask(self, *words: str, code: int = 0, stdin: str = "") -> Any:
        reply = json.loads(self.run(*words, "--json", code=code, stdin=stdin))
        return reply["data"] if reply["ok"] else reply["error"]


def test_a_day_on_the_command_line(tmp_path: Path) -> None:
    url = postgres.url()
    desk = Desk(url, tmp_path)
    assert desk.ask("stats", code=8)["code"] == "unavailable"
    made = desk.ask("init")
    assert (made["created"], made["yard"]) == (True, url)
    assert not desk.ask("init")["created"]

    first = desk.ask("add", "build", "--data", '{"n": 1}', "--title", "Build it", "--key", "k")["task"]
    assert not desk.ask("add", "build", "--data", '{"n": 1}', "--key", "k")["created"]
    assert desk.ask("add", "build", "--data", '{"n": 2}', "--key", "k", code=7)["code"] == "conflict"
    second = desk.ask("add", "test", "--after", first["id"])["task"]
    assert second["state"] == "blocked"
    many = desk.ask("add", "--from", "-", stdin='{"kind":"bulk"}\n' * 60)
    assert many["created"] == 60

    assert [task["id"] for task in desk.ask("ready", "--kind", "build")["tasks"]] == [first["id"]]
    claim = desk.ask("claim", "--kind", "build")
    assert claim["task"]["data"] == {"n": 1}
    assert claim["workdir"] is None
    desk.ask("heartbeat", claim["claim"], "--progress", "0.5")
    desk.ask("note", claim["claim"], "half way")
    assert desk.ask("done", claim["claim"], "--result", '{"ok": true}')["task"]["state"] == "done"
    desk.ask("done", claim["claim"], "--result", '{"ok": true}')
    assert desk.ask("fail", claim["claim"], "--reason", "late", code=7)["code"] == "conflict"
    assert desk.ask("release", claim["claim"], code=4)["code"] == "claim_lost"

    shown = desk.ask("show", first["id"])
    assert (shown["task"]["result"], shown["notes"][0]["text"]) == ({"ok": True}, "half way")
    assert len(desk.ask("list", "--state", "todo", "--limit", "10")["tasks"]) == 10
    assert desk.ask("stats")["counts"] == {
        "waiting": 0, "blocked": 0, "todo": 61, "processing": 0, "done": 1, "failed": 0, "cancelled": 0,
    }  # fmt: skip
    log = desk.ask("log", "--task", first["id"])
    assert [event["event"] for event in log["events"]] == ["added", "claimed", "noted", "done", "refused", "refused"]
    assert desk.ask("log", "--cursor", log["cursor"])["events"] == []

    held = desk.ask("claim", second["id"], "--worker", "bob")
    [again] = desk.ask("resume", "--worker", "bob")["claims"]
    assert again["claim"] != held["claim"]
    assert desk.ask("done", held["claim"], code=4)["code"] == "claim_lost"
    desk.ask("fail", again["claim"], "--reason", "broken", "--no-retry")
    desk.ask("retry", second["id"])
    desk.ask("edit", second["id"], "--title", "New", "--priority", "0")
    desk.ask("cancel", second["id"])
    desk.ask("pause", "bulk")
    assert desk.ask("claim", code=3)["code"] == "nothing_ready"
    desk.ask("unpause", "bulk")
    desk.ask("janitor")
    assert desk.ask("wait", first["id"])["tasks"][0]["state"] == "done"
    assert desk.ask("wait", many["ids"][0], "--timeout", "0.1", code=5)["code"] == "timed_out"

    told: list[Any] = []
    watcher = threading.Thread(target=lambda: told.append(desk.ask("watch", "--event", "done", "--timeout", "50")))
    watcher.start()
    desk.run(
        "work",
        "--concurrency",
        "3",
        "--kind",
        "bulk",
        "--drain",
        "--",
        "sh",
        "-c",
        'test "$TASKYARD" = "$TASKYARD" && cat > /dev/null',
    )
    assert desk.ask("stats")["kinds"]["bulk"] == {"done": 60}
    desk.ask("add", "last")
    desk.ask("done", desk.ask("claim")["claim"])  # however late the watcher was
    watcher.join(60)
    assert told[0]["events"][0]["event"] == "done"

    assert desk.ask("prune", "--keep", "0")["tasks"] == 63
    assert desk.ask("prune", "--keep", "0", "--apply")["tasks"] == 63
    assert sum(desk.ask("stats")["counts"].values()) == 0


def test_a_crew_works_a_yard_in_postgresql_off(tmp_path: Path) -> None:
    url = postgres.url()
    with taskyard.init(url) as yard:
        yard.add_many([{"kind": "build"}] * 10)
        (tmp_path / "crew.toml").write_text('[worker.ann]\ncommand = ["true"]\n\n[worker.ben]\ncommand = ["true"]\n')
        Desk(url, tmp_path).run("crew", "crew.toml", "--drain")
        assert yard.counts()["done"] == 10


def test_a_command_has_a_folder_for_the_time_of_its_attempt(tmp_path: Path) -> None:
    """Without one, `$TASKYARD_WORKDIR/result.json` would be a file in the root folder, and the result lost."""
    url = postgres.url()
    with taskyard.init(url) as yard:
        id = yard.add("build").id
        script = f'echo "$TASKYARD_WORKDIR" > {tmp_path}/where; cp "$0" "$TASKYARD_WORKDIR/copy"; echo 17 > "$TASKYARD_WORKDIR/result.json"'
        Desk(url, tmp_path).run("work", "--once", "--", "sh", "-c", script, "{file}")
        assert yard.get(id).result == 17
        assert not Path((tmp_path / "where").read_text().strip()).exists()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["where"]


def test_a_password_is_in_no_answer(tmp_path: Path) -> None:
    url = postgres.url().replace("taskyard@", "taskyard:geheim@")
    desk = Desk(url, tmp_path)
    assert "geheim" not in desk.run("init") + desk.run("init", "--json")
    assert "geheim" not in desk.run("work", "--once", "--", "true", code=3)
    away = Desk(url.replace("host=/", "host=/nowhere/"), tmp_path)
    for words in (("stats",), ("init",), ("claim", "--json")):
        done = subprocess.run(
            [*CLI, *words], env=away.environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 8
        assert "geheim" not in done.stdout + done.stderr
