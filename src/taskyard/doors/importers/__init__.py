"""Importers: the tasks of other tools, brought into a yard as one graph.

Each tool has a module with `read(path, options)`, which returns what it found and touches no yard. `plan` makes new tasks
of that, `load` adds them and ends those that are done.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.doors.importers.item import Found, Options

TOOLS = {
    "beads": "beads: .beads/issues.jsonl, or the output of 'bd list --json'",
    "taskmaster": "Taskmaster: .taskmaster/tasks/tasks.json",
    "claude": "Claude Code: a folder of ~/.claude/tasks",
    "backlog": "Backlog.md: the folder with backlog/tasks in it, or one file",
    "mosaic": "Mosaic: the orchestrator's tasks.json, coord's mission.json, a TASKS.md, or the folder of them",
    "checklist": "a Markdown file with check-boxes",
    "lab": "a coordinator's queue.json, with the events.jsonl beside it",
}


def read(tool: str, path: str, options: Options) -> Found:
    """Return what the tool's importer finds in a file, a folder, or stdin (`-`)."""
    module = __import__(f"taskyard.doors.importers.{tool}", fromlist=("read",))
    found: Found = module.read(path, options)
    return found
