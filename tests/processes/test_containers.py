"""Containers that share a volume, as compose.yaml has them: made here of namespaces, with the file's own environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import yaml

import taskyard
from tests.processes import tools

COMPOSE = Path(__file__).parents[2] / "compose.yaml"
TASK = {
    "taskId": "123-abc-789",
    "inputFile": "/path/to/shared/volume/data/source_image.png",
    "outputFile": "/path/to/shared/volume/results/processed_image.png",
    "operation": "sharpen",
    "parameters": {"amount": 0.85, "radius": 1.5},
}


def environments() -> list[dict[str, str]]:
    """What each agent of the file is given."""
    services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"].values()
    return [
        dict(each.split("=", 1) for each in one["environment"])
        for one in services
        if "AGENT_ID" in str(one["environment"])
    ]


def test_three_containers_do_what_is_dropped_into_folders_that_were_made_by_hand(tmp_path: Path) -> None:
    volume = tmp_path / "shared"
    for folder in ("todo", "processing", "done", "failed", "data"):
        (volume / folder).mkdir(parents=True)
    (volume / "data" / "source_image.png").write_bytes(b"picture")
    for number in range(12):
        (volume / "todo" / f"task_{number}.json").write_text(json.dumps({**TASK, "taskId": f"task-{number}"}))

    given = environments()
    assert [one["AGENT_ID"] for one in given] == ["agent-1", "agent-2", "agent-3"]
    agents = [
        subprocess.Popen(
            [*tools.container(one["AGENT_ID"]), *tools.COMMAND, "work", "--drain", "--", "sh", "-c", "sleep 0.05; cat"],
            env=tools.environment(**{**one, "TASKYARD": str(volume)}),
            stdout=subprocess.DEVNULL,
        )
        for one in given
    ]
    assert [agent.wait(60) for agent in agents] == [0, 0, 0]

    with taskyard.open(volume) as yard:
        done = [yard.get(task.id) for task in yard.find(state="done", limit=100)]
        assert sorted(str(task.key) for task in done) == sorted(f"task-{number}" for number in range(12))
        assert {task.kind for task in done} == {"sharpen"}
        assert {event["worker"] for event in yard.events(event="claimed")} <= {one["AGENT_ID"] for one in given}
    assert (volume / "data" / "source_image.png").read_bytes() == b"picture"
    assert not (volume / ".gitignore").exists()  # it would hide the data from git, too


def test_a_worker_makes_no_yard_of_a_folder_that_is_empty_or_not_there(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        answer = subprocess.run(
            [*tools.COMMAND, "work", "--", "true"],
            env=tools.environment(TASKYARD=str(folder)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == 8
        assert "taskyard init" in answer.stderr
    assert not list(tmp_path.iterdir())
