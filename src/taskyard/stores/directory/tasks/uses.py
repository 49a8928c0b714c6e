"""What running tasks have to themselves: read from processing/, and from nothing else, so that there is no lock to lose.

A claim of a task that uses something is a claim only after a look around: the task is put into processing/ first, and
whoever then sees another one there that uses the same gives its own back. Of two who come at the same time at least one
sees the other. The name says whether a task uses anything (`u`, `w`), its body says what.
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
    """Knows what tasks use."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[tuple[str, str], tuple[str, ...]] = {}

    def of(self, folder: str, name: str) -> tuple[str, ...]:
        """What the task of this name uses; nothing if it has moved on, or is broken and will run nowhere."""
        id, _, _, _, part = name.split(".", 5)[:5]
        known = self._known.get((id, part))  # a body changes by an edit only, and then the name does
        if known is None:
            try:
                known = tuple(task_file.decode(self._context.edits.read(folder, name)).get("uses") or ())
            except (FileNotFoundError, Invalid):
                return ()
            except OSError as error:
                if error.errno not in NO_FILE:
                    raise  # too many open files, say: what cannot be asked for now must not count as free
                return ()
            if len(self._known) > _KNOWN_MOST:
                self._known.clear()
            self._known[id, part] = known
        return known

    def taken(self, but: str = "") -> dict[str, str]:
        """What is in use now, each with the name in processing/ of the task that has it."""
        folder = self._context.processing
        taken: dict[str, str] = {}
        for name in self._context.disk.listdir(folder):
            if uses_something(name) and name != but:
                for resource in self.of(folder, name):
                    taken[resource] = name
        return taken

    def clash(self, name: str) -> bool:
        """Whether the task that was put into processing/ under this name is in somebody's way.

        Two listings, because one may miss a claim that is taken over by its own worker, under another name, meanwhile.
        """
        own = self.of(self._context.processing, name)
        return any(resource in taken for taken in (self.taken(name), self.taken(name)) for resource in own)

    def first_taken(self, own: tuple[str, ...]) -> tuple[str, Token] | None:
        """Something of this that is in use, and who has it."""
        taken = self.taken()
        for resource in own:
            token = Token.parse(taken[resource]) if resource in taken else None
            if token is not None:
                return resource, token
        return None
