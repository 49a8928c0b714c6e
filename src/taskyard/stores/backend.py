"""What belongs to one sort of URL: opening a yard there, making one, and whatever is done to a yard from outside.

Each store's package is such a backend. `opening` has the table of them, and nothing else compares schemes. Nothing here is
loaded at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from taskyard.core.diagnosis import Diagnosis
    from taskyard.core.store_records import Scratch
    from taskyard.core.transfer import Endpoint
    from taskyard.store import Store


class Backend(Protocol):
    """The module of one store; `place` is what its URL names: a path, a name, or the whole URL."""

    def place(self, url: str) -> str:
        """What this URL names; `Invalid` if it can be none."""

    def open(self, place: str, durability: str | None, *, brief: bool = False) -> Store:
        """Open a yard that exists; a brief opening is for one command, and does without what takes long to load."""

    def server(self, place: str) -> tuple[str, str] | None:
        """Of a yard whose server may be away: its label, and what names it alone, both without secrets; None if there is none."""

    def make(
        self, place: str, durability: str | None, shared: bool | None, group: str | None
    ) -> tuple[bool, list[str]]:
        """Make a yard, or find it made already: whether it is new, and what is doubtful about its place."""

    def open_to_audit(self, place: str) -> Store:
        """Open a yard also where what is wrong with it keeps it from being worked in."""

    def adopt(self, place: str) -> bool:
        """Whether a yard was made of what somebody has prepared by hand."""

    def endpoint(self, place: str, *, target: bool) -> Endpoint:
        """A yard as the source or the target of a copy."""

    def contains(self, place: str, other: str) -> bool:
        """Whether the other yard of the same backend lies inside of this one."""

    def examine(self, place: str, processes: int, wait: float | None, tell: Callable[[str], None]) -> Diagnosis:
        """Whether this is a safe place for a yard."""

    def scratch(self, place: str, settings: Mapping[str, object], *, exists: bool) -> Scratch:
        """Make a yard to be tried and thrown away, beside this one."""

    def migrate(self, place: str, *, check: bool, new_epoch: bool) -> dict[str, Any]:
        """Bring the schema up to date, or list what is pending."""
