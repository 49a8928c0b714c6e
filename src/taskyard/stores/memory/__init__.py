"""The backend of `memory:NAME`: a yard in one process's memory."""

from __future__ import annotations

from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

    from taskyard.core.diagnosis import Diagnosis
    from taskyard.stores.memory.store import MemoryStore

_SCHEME = "memory:"


def place(url: str) -> str:
    """Return the yard's name."""
    return url[len(_SCHEME) :]


def open(place: str, durability: str | None, *, brief: bool = False) -> MemoryStore:  # noqa: ARG001  nothing here survives its process
    """Open the yard of this name; make it if this process has none."""
    from taskyard.stores.memory.store import MemoryStore

    return MemoryStore.named(place)


def server(place: str) -> tuple[str, str] | None:  # noqa: ARG001
    """Memory has no server that could be away."""
    return None


def make(place: str, durability: str | None, shared: bool | None, group: str | None) -> tuple[bool, list[str]]:  # noqa: ARG001
    """Return that the yard was made, without warnings: opening it makes it."""
    return True, []


def open_to_audit(place: str) -> MemoryStore:
    """Open the yard as usual: nothing can be wrong with its place."""
    return open(place, None)


def adopt(place: str) -> bool:  # noqa: ARG001
    """Return False: no person can prepare such a yard by hand."""
    return False


def contains(place: str, other: str) -> bool:  # noqa: ARG001
    """Return False: no name is inside another."""
    return False


def endpoint(place: str, *, target: bool) -> NoReturn:  # noqa: ARG001
    """Raise `Invalid`: a copy of a yard that ends with its process is of no use."""
    raise Invalid(
        "a yard in memory cannot be copied: it is one process's, and ends with it",
        hint="copy between directories and PostgreSQL",
    )


def examine(place: str, processes: int, wait: float | None, tell: Callable[[str], None]) -> Diagnosis:  # noqa: ARG001
    """Return a green diagnosis: memory is always safe."""
    from taskyard.core.diagnosis import Diagnosis, green

    reason = "one process's own memory: no filesystem that could be unsafe, and nothing that outlives the process"
    return Diagnosis(f"{_SCHEME}{place}", [green("memory", reason)])


def scratch(place: str, settings: Mapping[str, object], *, exists: bool) -> NoReturn:  # noqa: ARG001
    """Raise an error: a trial takes several processes."""
    raise Invalid(
        "a yard in memory belongs to one process, and this takes several", hint="name a directory with --yard"
    )


def migrate(place: str, *, check: bool, new_epoch: bool) -> dict[str, Any]:  # noqa: ARG001
    """Return that nothing is pending: there is no schema."""
    if new_epoch:
        raise Invalid("only a yard in PostgreSQL has epochs", hint="name one with --yard postgresql://...")
    return {"version": 1, "known": 1, "pending" if check else "applied": []}
