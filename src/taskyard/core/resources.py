"""Which resources conflict: equal names do, and a folder (`src/auth/`) with all that is below it. Pure.

A name is compared by its key: without `.` and empty parts, and with a `/` at the end only if it is a folder. What was given
is what a task shows; only comparisons use the key.
"""

from __future__ import annotations

from taskyard.core import words
from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def legal(name: object) -> str:
    """Return the name of a resource if a task may use it, else raise `Invalid`."""
    text = words.text(name, "uses")
    if text in (".", "..") or "/" in text:
        if ".." in text.split("/"):
            raise Invalid(
                f"uses {words.shown(text)} has a part '..'", hint="name it from one root on, such as src/auth/login.py"
            )
        if text.endswith("/."):
            raise Invalid(
                f"uses {words.shown(text)} may mean a file or a folder",
                hint=f"write {path(text)}/ for all that is below it",
            )
        if not path(text).strip("/."):
            raise Invalid(f"uses {words.shown(text)} names no folder", hint="name one below it, such as src/")
    return text


def key(name: str) -> str:
    """Return the form of a name that comparisons use."""
    if "/" not in name:
        return name
    return f"{path(name)}/" if name.endswith("/") else path(name)


def path(name: str) -> str:
    """Return the key without the `/` of a folder."""
    if "/" not in name:
        return name
    parts = "/".join(part for part in name.split("/") if part not in ("", "."))
    return f"/{parts}" if name.startswith("/") else parts


def above(path: str) -> Iterator[str]:
    """Yield the folders that a path is in, each without a `/` at its end, the nearest first."""
    while (end := path.rfind("/")) > 0:
        path = path[:end]
        yield path


def is_folder(name: str) -> bool:
    """Whether all below this name belongs to it."""
    return name.endswith("/")


def conflict(one: str, other: str) -> bool:
    """Whether the resource `one` and the resource `other` conflict: their tasks must not run at the same time."""
    if "/" not in one and "/" not in other:
        return one == other
    first, second = path(one), path(other)
    return (
        first == second
        or (is_folder(one) and second.startswith(f"{first}/"))
        or (is_folder(other) and first.startswith(f"{second}/"))
    )


def is_plain(name: str) -> bool:
    """Whether the name conflicts with nothing but its equals, as they are written."""
    return "/" not in name or (key(name) == name and not is_folder(name))


def may_starve(names: Sequence[str]) -> bool:
    """Whether a task with these resources may wait for ever: with several, or with a folder, one part may always be in use."""
    return len(names) > 1 or any(map(is_folder, names))


def marks(names: Iterable[str]) -> frozenset[str]:
    """Return the marks that a task with these resources leaves; a task that has one of them in its `sought` conflicts with it."""
    return frozenset(mark for name in names for mark in _marks(name, _FOLDER, _ABOVE))


def sought(names: Iterable[str]) -> frozenset[str]:
    """Return the marks of other tasks with which a task with these resources would conflict (`marks`)."""
    return frozenset(mark for name in names for mark in _marks(name, _ABOVE, _FOLDER))


def _marks(name: str, folder: str, above_it: str) -> list[str]:
    if "/" not in name:
        return [name]
    own = path(name)
    found = [own, *(above_it + around for around in above(own))]
    return [*found, folder + own] if is_folder(name) else found


_FOLDER, _ABOVE = "\1", "\2"  # no name has a control character


class InUse:
    """The resources in use, by key, each with its user; finds what stands in the way of a name without reading all."""

    def __init__(self) -> None:
        self._users: dict[str, dict[str, str]] = {}
        self._below: dict[str, set[tuple[str, str]]] = {}

    def __bool__(self) -> bool:
        return bool(self._users)

    def __iter__(self) -> Iterator[str]:
        return (key for users in self._users.values() for key in users)

    def add(self, name: str, user: str) -> None:
        """Note that this task uses the name."""
        own, whole = path(name), key(name)
        self._users.setdefault(own, {})[whole] = user
        for folder in above(own):
            self._below.setdefault(folder, set()).add((own, whole))

    def remove(self, name: str, user: str) -> bool:
        """Note that the task uses the name no more; return whether it did."""
        own, whole = path(name), key(name)
        users = self._users.get(own, {})
        if users.get(whole) != user:
            return False
        del users[whole]
        if not users:
            del self._users[own]
        for folder in above(own):
            self._below[folder].discard((own, whole))
            if not self._below[folder]:
                del self._below[folder]
        return True

    def conflict(self, name: str, but: str | None = None) -> tuple[str, str] | None:
        """Return a key in use that conflicts with this name, and its task, ignoring the task `but`; None if there is none."""
        own = path(name)
        found = [*self._users.get(own, {}).items()]
        if "/" in own:
            for folder in above(own):
                user = self._users.get(folder, {}).get(f"{folder}/")
                found += [] if user is None else [(f"{folder}/", user)]
        if is_folder(name):
            found += [(whole, self._users[inner][whole]) for inner, whole in sorted(self._below.get(own, ()))]
        return next(((whole, user) for whole, user in found if user != but), None)

    def first(self, names: Iterable[str], but: str | None = None) -> tuple[str, str, str] | None:
        """Return the first of these names that conflicts, the key that it conflicts with, and who uses that."""
        for name in names if self._users else ():
            found = self.conflict(name, but)
            if found is not None:
                return name, *found
        return None
