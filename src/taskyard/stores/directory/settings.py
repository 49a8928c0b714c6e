"""The `Settings` part of the directory store: yard.json, and the files in paused/."""

from __future__ import annotations

from taskyard.stores.directory import layout
from taskyard.stores.directory.filesystem.errors import explains_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.stores.directory.context import Context
    from taskyard.stores.directory.tasks.claims import Claims


class DirectorySettings:
    """The settings of one yard; what is changed counts at once for this store's claims."""

    def __init__(self, context: Context, claims: Claims) -> None:
        self._context = context
        self._claims = claims
        self.url = context.root

    @property
    def checks(self) -> dict[str, list[str]]:
        """The command of each check, as the settings have it."""
        return self._context.checks

    @explains_errors
    def read(self) -> dict[str, Any]:
        """Return the settings in yard.json."""
        return layout.settings(self.url)[0]

    @explains_errors
    def change(self, changed: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Replace yard.json by one with what `changed` makes of its settings, and return them."""
        written = layout.revised(self.url, self._context.disk, changed)
        self._claims.heed_settings()
        return written

    @explains_errors
    def pause(self, kind: str | None, on: bool) -> None:
        """Stop claims of this kind, or of all tasks if `kind` is None; with `on=False`, allow them again."""
        self._claims.pause(kind, on)

    @explains_errors
    def paused(self) -> tuple[bool, frozenset[str]]:
        """Return whether the whole yard is paused, and which kinds are."""
        return self._claims.paused()
