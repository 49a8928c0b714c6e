"""The Dockerfile and the compose files hold what their page promises, as far as reading them can tell."""

from __future__ import annotations

import re
import shlex
import subprocess
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from taskyard.doors.cli import parser, verbs

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = sorted(ROOT.glob("compose*.yaml"))
ONCE = ("secrets",)  # services that do one thing and end


def services(file: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))["services"]
    return found


EVERY = [pytest.param(file, name, id=f"{file.name} {name}") for file in COMPOSE for name in services(file)]
LASTING = [each for each in EVERY if each.values[1] not in ONCE]


def commands(service: dict[str, Any]) -> list[list[str]]:
    """The commands of Taskyard that a service runs, its health check's among them."""
    asked = [command(service), service.get("healthcheck", {}).get("test", [])[1:]]
    return [words[1:] for words in asked if words[:1] == ["taskyard"]]


def command(service: dict[str, Any]) -> list[str]:
    """The words of the process that a service runs: what its shell's last line replaces the shell by, if it has one."""
    words: list[str] = service.get("command", [])
    if words[:1] == ["/app/start.sh"]:
        words = words[1:]
    if words[:2] == ["sh", "-ec"] and "exec " in words[2]:
        return shlex.split(words[2].rpartition("exec ")[2])
    return words


def test_hadolint_finds_nothing() -> None:
    program = Path(sysconfig.get_path("scripts")) / "hadolint"
    told = subprocess.run(
        [program, "--strict-labels", ROOT / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_the_image_is_no_root_s_and_keeps_no_cache() -> None:
    stages = DOCKERFILE.split("\nFROM ")
    assert [stage.split(" AS ")[1].split()[0] for stage in stages[1:]][-2:] == ["core", "full"]
    runtime = next(stage for stage in stages if stage.startswith("${BASE} AS runtime"))
    assert re.search(r"^USER [1-9]\d*:0$", runtime, re.MULTILINE)
    assert "PIP_NO_CACHE_DIR=1" in DOCKERFILE
    assert "apt-get" not in DOCKERFILE
    assert re.search(r"^CMD \[", runtime, re.MULTILINE), "the exec form: a shell would not pass signals on"
    assert "ENTRYPOINT" not in DOCKERFILE


def test_the_full_image_has_every_extra_for_users() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (every,) = extras["all"]
    named = set(re.findall(r"\w+", every)) - {"taskyard"}
    assert named == set(extras) - {"all", "dev", "bench", "containers"}


@pytest.mark.parametrize("file", COMPOSE, ids=lambda file: file.name)
def test_every_volume_and_dependency_is_declared(file: Path) -> None:
    declared = yaml.safe_load(file.read_text(encoding="utf-8"))
    for name, service in services(file).items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in declared["volumes"] or (ROOT / source).is_file(), f"{name}: {volume}"
        assert set(service.get("depends_on", {})) <= set(services(file)), name


@pytest.mark.parametrize(("file", "name"), EVERY)
def test_every_service_has_limits_and_few_powers(file: Path, name: str) -> None:
    service = services(file)[name]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == ("no" if name in ONCE else "unless-stopped")
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:"), "what others reach is for the user to decide"
    if service["image"].startswith("taskyard:"):
        assert (service["read_only"], service["tmpfs"], service["cap_drop"]) == (True, ["/tmp"], ["ALL"])
        target = service["image"].partition(":")[2]
        base = re.search(r"^ARG BASE=(\S+)$", DOCKERFILE, re.MULTILINE)
        assert base is not None
        args = {"BASE": f"${{BASE:-{base[1]}}}"}
        assert service["build"] == {"context": ".", "target": target, "args": args}
    else:
        assert re.fullmatch(r"[\w/]+:\d+", service["image"]), "a release, and not whatever is the latest"


@pytest.mark.parametrize(("file", "name"), LASTING)
def test_every_service_that_lasts_has_a_health_check(file: Path, name: str) -> None:
    check = services(file)[name]["healthcheck"]
    assert set(check) == {"test", "interval", "timeout", "retries", "start_period"}
    if check["test"][:2] == ["CMD", "taskyard"]:
        words = command(services(file)[name])
        assert check["test"][2] == "alive"
        place = check["test"][3]
        assert place == "http://127.0.0.1:8377" if "serve" in words else words[words.index("--alive") + 1] == place


@pytest.mark.parametrize(("file", "name"), EVERY)
def test_commands_are_commands_of_taskyard(file: Path, name: str) -> None:
    found = commands(services(file)[name])
    assert found or name in (*ONCE, "postgres", "valkey")
    for words in found:
        before, verb, after = parser.split(words)
        assert verb is not None
        parser.parse(verbs.called(verb), verbs.command(verb), [*before, *after])  # raises Invalid on what is unknown


def test_the_three_agents_of_the_one_volume_have_their_names() -> None:
    found = services(ROOT / "compose.yaml")
    agents = {name: service for name, service in found.items() if name.startswith("agent-")}
    assert {name: service["environment"] for name, service in agents.items()} == {
        f"agent-{number}": [f"AGENT_ID=agent-{number}", "TASKYARD=/app/shared"] for number in (1, 2, 3)
    }
    for name, service in found.items():
        assert "shared-data:/app/shared" in service["volumes"], name


@pytest.mark.parametrize("file", COMPOSE, ids=lambda file: file.name)
def test_no_secret_stands_in_a_file(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for name, value in re.findall(r"\b(\w*(?:PASSWORD|TOKEN|TASKYARD)\w*)[=:] ?(\S*)", text):
        assert value.startswith("/"), f"{name} names no file"
