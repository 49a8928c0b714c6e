"""A folder for each mission: mission.json, TASKS.md, and its brief in PRD.md."""

from __future__ import annotations

import json
import os

from taskyard.core import words
from taskyard.core.errors import Conflict, Invalid, NotFound, TaskyardError
from taskyard.doors.tasksmd import file
from taskyard.doors.tasksmd import sync as syncing
from taskyard.doors.tasksmd.report import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from taskyard.doors.tasksmd.sync import Options
    from taskyard.port import YardPort

FILES = MISSION, TASKS, BRIEF = "mission.json", "TASKS.md", "PRD.md"
_LIVING = ("empty", "open", "running")
_KEPT = ("name", "owner", "state", "progress", "counts")
_TRIES = 20


class Folder:
    """A directory that is one mission's folder, or has a folder for each mission."""

    def __init__(self, yard: YardPort, path: str, options: Options) -> None:
        self._yard = yard
        self._path = path
        self._options = options

    def paths(self) -> list[str]:
        """Return the files and directories whose change may mean something."""
        folders = self.folders()
        return [self._path, *folders, *(os.path.join(folder, name) for folder in folders for name in FILES)]

    def folders(self) -> list[str]:
        """Return the missions' folders: this one, or those in it."""
        if _is_mission(self._path):
            return [self._path]
        try:
            names = sorted(os.listdir(self._path))
        except OSError as error:
            raise Invalid(f"{self._path} cannot be listed: {error.strerror or error}") from None
        inside = [os.path.join(self._path, name) for name in names if not name.startswith(".")]
        return [folder for folder in inside if os.path.isdir(folder) and _is_mission(folder)]

    def sync(self) -> list[Report]:
        """Sync every mission's folder; missions of the yard that have none and have not ended get one."""
        folders = self.folders()
        alone = folders == [self._path]
        names: dict[str, str] = {}
        reports = []
        for folder in folders:
            try:
                name = self._name(folder, alone)
                if name in names:
                    raise Conflict(
                        f"{folder} and {names[name]} are both the mission {name}",
                        hint="give one of them another name in its mission.json",
                    )
                names[name] = folder
                reports.append(self._one(folder, name))
            except TaskyardError as error:
                if alone:
                    raise
                reports.append(_failed(folder, error))
        if not alone:
            reports += [self._made(mission["name"]) for mission in self._missing(names)]
        return reports

    def status(self) -> list[Report]:
        """Return what a sync of each folder would find, and change nothing."""
        folders = self.folders()
        return [
            syncing.status(
                self._yard, os.path.join(folder, TASKS), self._options.of(self._name(folder, folders == [self._path]))
            )
            for folder in folders
        ]

    def _missing(self, names: dict[str, str]) -> list[dict[str, Any]]:
        return [one for one in self._yard.missions() if one["name"] not in names and one["state"] in _LIVING]

    def _made(self, name: str) -> Report:
        folder = os.path.join(self._path, _folder_name(name))
        try:
            os.makedirs(folder, exist_ok=True)
            return self._one(folder, name)
        except OSError as error:
            return _failed(folder, Invalid(f"{folder} cannot be made: {error.strerror or error}"))
        except TaskyardError as error:
            return _failed(folder, error)

    def _name(self, folder: str, alone: bool) -> str:
        """Return the mission's name: mission.json says it, else `--mission`, else the folder's own name."""
        said = _read_json(os.path.join(folder, MISSION))[1].get("name")
        if said is None:
            said = (self._options.mission if alone else None) or os.path.basename(os.path.abspath(folder))
        return words.text(said, "mission")

    def _one(self, folder: str, name: str) -> Report:
        notices = self._brief(folder, name)
        report = syncing.sync(self._yard, os.path.join(folder, TASKS), self._options.of(name))
        for notice in notices:
            report.notice("brief", name, notice)
        report.written |= self._state(folder, name)
        return report

    def _brief(self, folder: str, name: str) -> list[str]:
        """Make the mission in the yard, with the brief of the file; write down the yard's if the file has none."""
        path = os.path.join(folder, BRIEF)
        here = file.read(path)
        owner = _read_json(os.path.join(folder, MISSION))[1].get("owner")
        try:
            known = self._yard.mission(name)
        except NotFound:
            known = {"created_at": None}
        if known["created_at"] is None:
            self._yard.new_mission(name, here or None, owner if isinstance(owner, str) else None)
        elif here is None and known["brief"]:
            file.replace(path, None, known["brief"])
        elif here and here != (known["brief"] or ""):
            return [
                f"{BRIEF} and the brief in the yard differ: the yard keeps the words that the mission was made with"
            ]
        return []

    def _state(self, folder: str, name: str) -> bool:
        """Have mission.json say what the yard says; whether that was written. Keys of others stay as they are."""
        path, known = os.path.join(folder, MISSION), self._yard.mission(name)
        for _ in range(_TRIES):
            text, said = _read_json(path)
            new = {**said, **{key: known[key] for key in _KEPT}}
            if new == said:
                return False
            try:
                file.replace(path, text, json.dumps(new, indent=2, ensure_ascii=False) + "\n")
            except file.Changed:
                continue
            return True
        return False


def _is_mission(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, name)) for name in FILES)


def _read_json(path: str) -> tuple[str | None, dict[str, Any]]:
    """Return the text and the object of a JSON file; nothing and an empty one if there is none."""
    text = file.read(path)
    if text is None:
        return None, {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Invalid(
            f"{path} is not JSON: {error}", hint="put it right, and sync again; nothing was changed"
        ) from None
    if not isinstance(found, dict):
        raise Invalid(f"{path} must be a JSON object", hint='write {"name": "launch"}')
    return text, found


def _folder_name(mission: str) -> str:
    """Return a name that every filesystem takes, and that is never hidden."""
    plain = "".join(letter if letter.isalnum() or letter in "-_ ." else "_" for letter in mission).strip(". ")
    return (
        plain[:60]
        if plain and len(plain) <= 60 and plain == mission
        else f"{plain[:40]}-{words.encoded(mission)[-12:]}".replace("%", "_")
    )


def _failed(folder: str, error: TaskyardError) -> Report:
    report = Report(os.path.join(folder, TASKS))
    report.notice("error", "", error.message + (f" ({error.hint})" if error.hint else ""))
    return report
