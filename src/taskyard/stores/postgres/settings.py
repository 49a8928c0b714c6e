"""The `Settings` part of the PostgreSQL store: a project's settings and pauses."""

from __future__ import annotations

from taskyard.core import json_codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from taskyard.stores.postgres.connection import Statements
    from taskyard.stores.postgres.context import Context


class PostgresSettings:
    """The settings of one project; what is changed counts at once for this store."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.on_change: Callable[[str], None] = lambda _: None
        """Called after each change, with the reason."""

    @property
    def checks(self) -> dict[str, list[str]]:
        """The command of each check, as the settings have it."""
        return self._context.checks

    def read(self) -> dict[str, Any]:
        """Return the project's settings, as they are written."""
        [(written,)] = self._context.run("upkeep", "settings")
        return dict(json_codec.read(written))

    def change(self, changed: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Replace the settings by what `changed` makes of them, in one transaction, and return them."""
        context = self._context

        def once(connection: Statements) -> dict[str, Any]:
            with connection.transaction():
                [(before,)] = context.on(connection, "upkeep", "lock_settings")
                written = changed(json_codec.read(before))
                context.on(connection, "upkeep", "change_settings", {"settings": _written(written)})
            return written

        written: dict[str, Any] = context.pool.attempt(once)
        context.heed_settings(_written(written))
        self.on_change("settings")
        return written

    def pause(self, kind: str | None, on: bool) -> None:
        """Stop handing out tasks of this kind, or of any; or resume it."""
        if kind is None:
            self._context.run("upkeep", "pause_all", {"on": on})
        else:
            self._context.run("upkeep", "pause_kind", {"on": on, "kind": kind})
        self.on_change("paused" if on else "unpaused")

    def paused(self) -> tuple[bool, frozenset[str]]:
        """Return whether the whole yard is paused, and which kinds are."""
        [(everything, kinds)] = self._context.run("upkeep", "paused")
        return everything, frozenset(kinds)


def _written(settings: dict[str, Any]) -> str:
    import json  # its escapes stand for what UTF-8 has not

    return json.dumps(settings)
