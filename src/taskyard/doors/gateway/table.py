"""Which route of the table a path means, and with which arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskyard.core.errors import Invalid, NotFound
from taskyard.remote import routes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.remote.routes import Route


class NoRoute(NotFound):
    """There is nothing under this path."""

    def __init__(self) -> None:
        super().__init__(hint="/openapi.json and /docs have all paths")


class NoMethod(Invalid):
    """The path has other methods."""

    def __init__(self, method: str, allowed: Iterable[str]) -> None:
        self.allowed = ", ".join(sorted(allowed))
        super().__init__(f"this path has no {method}", hint=f"it has {self.allowed}; /openapi.json has all paths")


class Table:
    """Finds the route of a path, with the arguments that the path names."""

    def __init__(self) -> None:
        self._routes: dict[int, list[tuple[Route, list[str]]]] = {}
        for route in sorted(routes.ROUTES, key=lambda one: one.path.count("{")):  # a fixed path wins over a named part
            parts = route.parts()
            self._routes.setdefault(len(parts), []).append((route, parts))

    def find(self, method: str, given: list[str]) -> tuple[Route, dict[str, Any]]:
        """Return the route, and the arguments in its path."""
        others = set()
        for route, parts in self._routes.get(len(given), ()):
            if all(part == word or part[0] == "{" for part, word in zip(parts, given, strict=True)):
                if route.method == method:
                    named = zip(parts, given, strict=True)
                    return route, {part[1:-1]: word for part, word in named if part[0] == "{"}
                others.add(route.method)
        if others:
            raise NoMethod(method, others)
        raise NoRoute
