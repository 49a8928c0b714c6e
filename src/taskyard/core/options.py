"""The options of Python's verbs, as types: a misspelt one is an error in an editor, and `Invalid` at run time.

For type checkers only: nothing here is loaded at run time, and `core.draft` checks the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Required, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from taskyard.core.task import Task

    Duration = float | str
    """Seconds, or a text such as `90s`, `10m`, `2h`."""
    Moment = str | datetime
    """RFC 3339, or a datetime with a time zone."""
    Need = str | Task | dict[str, str]
    """A task that another comes after: its id, `ID:cancel`, or an object with `id` (or `ref`, `key`) and `on_failure`."""
    After = Sequence[Need] | Need


class TaskOptions(TypedDict, total=False):
    """The options of `add` beside kind and data."""

    title: str | None
    priority: int | None
    after: After | None
    parent: str | Task | None
    discovered_from: str | Task | None
    delay: Duration | None
    not_before: Moment | None
    expires: Moment | Duration | None
    timeout: Duration | None
    key: str | None
    max_attempts: int | None
    lease: Duration | None
    assignee: str | None
    uses: Sequence[str] | str | None
    mission: str | None
    verify: str | None
    review: bool | None


class NewTask(TaskOptions, total=False):
    """One task of `add_many`."""

    kind: Required[str]
    data: Any
    ref: str | None
    """A local name, by which other tasks of the same list can come after this one."""


class EditOptions(TypedDict, total=False):
    """The options that `edit` can change; None stands for the default."""

    title: str | None
    data: Any
    priority: int | None
    assignee: str | None
    delay: Duration | None
    not_before: Moment | None
    expires: Moment | Duration | None
    timeout: Duration | None
    max_attempts: int | None
    after: After | None


class RunOptions(TypedDict, total=False):
    """The options of `Worker.run`."""

    kinds: Iterable[str] | str | None
    mission: str | None
    concurrency: int
    processes: bool
    drain: bool
    once: bool
    max_tasks: int | None
    idle_exit: Duration | None
    grace: Duration
    alive: str | None
