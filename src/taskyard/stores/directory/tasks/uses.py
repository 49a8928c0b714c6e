"""The resources that running tasks use: read only from processing/, so that there is no lock to lose.

A claim of a task that uses a resource needs a check afterwards. The task is put into processing/ first; a process that then
sees another task there with the same resource gives its own back. Of two simultaneous claims at least one sees the
other. The name shows whether a task uses anything (`u`, `w`), its body lists what.
"""

from __future__ import annotations

from taskyard.core.errors import Invalid
from taskyard.stores.directory.names import NO_FILE, Token, uses_something
from taskyard.stores.directory.tasks import task_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.directory.context import Context

_KNOWN_MOST = 100_000


class Uses:
    """Finds out which resources tasks use."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[tuple[str, str], tuple[str, ...]] = {}

    def of(self, folder: str, name: str) -> tuple[str, ...]:
        """Return the resources of the task with this name; none if it has moved, or is broken and will never run."""
        id, _, _, _, part = name.split(".", 5)[:5]
        known = self._known.get((id, part))  # only an edit changes a body, and it changes the name too
        if known is None:
            try:
                known = tuple(task_file.decode(self._context.edits.read(folder, name)).get("uses") or ())
            except (FileNotFoundError, Invalid):
                return ()
            except OSError as error:
                if error.errno not in NO_FILE:
                    raise  # as with too many open files: a resource that cannot be checked now must not count as free
                return ()
            if len(self._known) > _KNOWN_MOST:
                self._known.clear()
            self._known[id, part] = known
        return known

    def taken(self, but: str = "") -> dict[str, str]:
        """Return the resources in use now, each with the name in processing/ of the task that uses it."""
        folder = self._context.processing
        taken: dict[str, str] = {}
        for name in self._context.disk.listdir(folder):
            if uses_something(name) and name != but:
                for resource in self.of(folder, name):
                    taken[resource] = name
        return taken

    def clash(self, name: str) -> bool:
        """Whether the task that was put into processing/ under this name shares a resource with another one there.

        Two listings, because one may miss a claim that its own worker takes over, under another name, at that moment.
        """
        own = self.of(self._context.processing, name)
        return any(resource in taken for taken in (self.taken(name), self.taken(name)) for resource in own)

    def first_taken(self, own: tuple[str, ...]) -> tuple[str, Token] | None:
        """Return one of these resources that is in use, and the task that uses it; None if all are free."""
        taken = self.taken()
        for resource in own:
            token = Token.parse(taken[resource]) if resource in taken else None
            if token is not None:
                return resource, token
        return None
