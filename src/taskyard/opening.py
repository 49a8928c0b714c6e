"""From a URL to a yard: which yard is meant, which store serves it, and making one."""

from __future__ import annotations

import os

from taskyard.core.errors import Invalid, NoYard
from taskyard.core.words import shown
from taskyard.yard import Yard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from taskyard.core.diagnosis import Diagnosis
    from taskyard.core.transfer import Port
    from taskyard.store import Scratch, Store
    from taskyard.yard.copy_yard import Copied, Progress

DEFAULT_NAME = ".taskyard"
DURABILITIES = ("fast", "durable", "strict")
_PLAIN = str.maketrans("", "", "+-.")  # what a scheme may have beside letters and digits


def open(url: str | os.PathLike[str] | None = None, worker: str | None = None, durability: str | None = None) -> Yard:
    """Open a yard that exists; without a URL the one that `locate` finds."""
    place = _text(url) if url is not None else locate()
    return Yard(_store(place, _durability(durability)), _worker(worker))


def init(
    url: str | os.PathLike[str] | None = None,
    worker: str | None = None,
    durability: str | None = None,
    *,
    shared: bool | None = None,
    group: str | None = None,
) -> Yard:
    """Make a yard, or find it made already, and open it; without a URL the one named by $TASKYARD, else ./.taskyard.

    A shared one is its group's as well: that of the directory, or the one that is named.
    """
    place = _text(url) if url is not None else os.environ.get("TASKYARD") or DEFAULT_NAME
    scheme, rest = _split(place)
    created, warnings = True, []
    if scheme == "file":
        from taskyard.stores.directory import layout

        made = layout.make(rest, _durability(durability), shared, group)
        created, warnings = made.created, made.warnings
    elif scheme == "postgresql":
        from taskyard.stores.postgres import schema

        created = schema.make(rest)
    yard = Yard(_store(place, _durability(durability)), _worker(worker))
    yard.created, yard.warnings = created, warnings
    return yard


def open_to_audit(url: str | os.PathLike[str] | None = None, worker: str | None = None) -> Yard:
    """The same for `Yard.audit` alone: also where what is wrong with a yard keeps it from being worked in."""
    place = _text(url) if url is not None else locate()
    scheme, rest = _split(place)
    if scheme != "file":
        return open(place, worker)
    from taskyard.stores.directory.store import DirectoryStore

    return Yard(DirectoryStore(rest, links=True), _worker(worker))


def copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    with_claims: bool = False,
    progress: Progress | None = None,
) -> Copied:
    """Make another yard the same as this one, which must be paused; one that is not there is made. Both are paused then."""
    from contextlib import closing

    from taskyard.yard import copy_yard

    with closing(_port(_text(source), target=False)) as origin:
        copy_yard.ready(origin, with_claims)  # nothing is made for a copy that cannot be
        _refuse_inside(_text(source), _text(target))
        with closing(_port(_text(target), target=True)) as other:
            return copy_yard.copy(origin, other, with_claims, progress)


def _refuse_inside(source: str, target: str) -> None:
    """A copy inside of its origin would change what is only read."""
    (scheme, outer), (other, inner) = _split(source), _split(target)
    if scheme == other == "file" and os.path.realpath(inner).startswith(os.path.realpath(outer) + os.sep):
        raise Invalid(f"{inner} is inside of the yard {outer}", hint="name a directory beside it, or anywhere else")


def _port(url: str, target: bool) -> Port:
    scheme, rest = _split(url)
    if scheme == "memory":
        raise Invalid(
            "a yard in memory cannot be copied: it is one process's, and ends with it",
            hint="copy between directories and PostgreSQL",
        )
    if scheme == "postgresql":
        from taskyard.stores.postgres.transfer import PostgresPort

        return PostgresPort(rest, target)
    from taskyard.stores.directory.transfer.endpoint import DirectoryPort

    return DirectoryPort(rest, target)


def adopt(url: str | None = None) -> bool:
    """Whether a yard was made of a queue that somebody has made by hand: a directory with its four folders, and no yard.

    So containers that share such a volume need no step before the first worker. An empty or missing directory is more
    likely a slip, and stays an error.
    """
    scheme, rest = _split(_text(url) if url is not None else locate())
    if scheme != "file":
        return False
    from taskyard.stores.directory import layout

    return layout.is_by_hand(rest) and bool(layout.make(rest))


def examine(
    url: str | os.PathLike[str] | None = None,
    *,
    processes: int = 4,
    wait: float | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Diagnosis:
    """Whether a place is safe for a yard, by all that can be tried there: one that exists, or one that is to be.

    Nothing of a yard is changed. With `wait` a second examination of the same place, on another machine, is waited for so many
    seconds, and both try what they see of each other; `tell` is told what to start there.
    """
    place = _text(url) if url is not None else locate()
    scheme, rest = _split(place)
    if scheme == "memory":
        from taskyard.core.diagnosis import Diagnosis, green

        reason = "one process's own memory: no filesystem that could be unsafe, and nothing that outlives the process"
        return Diagnosis(place, [green("memory", reason)])
    if scheme == "postgresql":
        from taskyard.stores.postgres.doctor import examine as asked

        if wait is not None:
            raise Invalid("machines that share a database do not meet on a disk", hint="leave --peer out")
        return asked(rest)
    from taskyard.stores.directory.doctor.examination import examine as examined

    return examined(rest, processes, wait, tell)


def scratch(url: str | os.PathLike[str] | None, settings: Mapping[str, object]) -> Scratch:
    """Make a yard with these settings to be tried and thrown away, beside the one that is meant; where there is none, here."""
    try:
        place = _text(url) if url is not None else locate()
    except NoYard:
        place = None
    scheme, path = _split(DEFAULT_NAME if place is None else place)
    if scheme == "memory":
        raise Invalid(
            "a yard in memory belongs to one process, and this takes several", hint="name a directory with --yard"
        )
    if scheme == "postgresql":
        from taskyard.stores.postgres import scratch as neighbour

        return neighbour.make(path, settings)
    from taskyard.stores.directory import scratch

    return scratch.make(path, settings, exists=place is not None)


def migrate(
    url: str | os.PathLike[str] | None = None, *, check: bool = False, new_epoch: bool = False
) -> dict[str, Any]:
    """Bring a yard's schema up to date, or with `check` tell what is pending; a yard without a schema always is.

    `new_epoch` is for a database that was set back to an earlier moment: every claim from before is over then.
    """
    scheme, rest = _split(_text(url) if url is not None else locate())
    if scheme != "postgresql":
        if new_epoch:
            raise Invalid("only a yard in PostgreSQL has epochs", hint="name one with --yard postgresql://...")
        if scheme == "file":
            from taskyard.stores.directory import layout

            layout.load(rest)
        return {"version": 1, "known": 1, "pending" if check else "applied": []}
    from taskyard.stores.postgres import schema

    return schema.migrate(rest, check=check, new_epoch=new_epoch)


def locate(environment: Mapping[str, str] = os.environ, start: str | None = None) -> str:
    """The yard that is meant where none is named: $TASKYARD, else the nearest .taskyard upward."""
    named = environment.get("TASKYARD")
    if named:
        return named
    from taskyard.find_yard import nearest

    try:
        found = nearest(os.getcwd() if start is None else start, DEFAULT_NAME)
    except FileNotFoundError:
        raise NoYard("this working directory is gone, so there is no way up from it to a yard") from None
    if found is None:
        raise NoYard()
    return found


def _store(url: str, durability: str | None) -> Store:
    scheme, rest = _split(url)
    if scheme == "memory":
        from taskyard.stores.memory.store import MemoryStore

        return MemoryStore.named(rest)
    if scheme == "postgresql":
        from taskyard.stores.postgres.store import PostgresStore

        return PostgresStore(rest, durability)
    from taskyard.stores.directory.store import DirectoryStore

    return DirectoryStore(rest, durability)


def _split(url: str) -> tuple[str, str]:
    """The scheme, and for a directory its absolute path, for a database the whole URL."""
    if url.startswith("memory:"):
        return "memory", url[len("memory:") :]
    scheme, colon, _ = url.partition("://")
    if url.startswith("file:"):
        from urllib.parse import unquote, urlsplit

        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost"):
            raise Invalid(
                f"a file: URL names a path on this machine, not a host: {url!a}",
                hint="write file:///absolute/path, or just the path",
            )
        url = unquote(parts.path)
    elif colon and scheme in ("postgresql", "postgres"):
        return "postgresql", url
    elif colon and scheme.translate(_PLAIN).isalnum():
        raise Invalid(f"no store for {scheme!a} URLs", hint="a yard is a path, file:/path, memory: or postgresql://")
    elif url.startswith(("postgresql:", "postgres:")):
        raise Invalid(
            "a URL of PostgreSQL begins with postgresql://, with both slashes",
            hint="write postgresql://user@host:5432/database?project=NAME; a directory of that name is ./postgresql:...",
        )
    if not url or "\0" in url:
        raise Invalid("the yard's path is empty or holds a NUL", hint="name a directory")
    return "file", os.path.abspath(os.path.expanduser(url))


def _text(url: str | os.PathLike[str]) -> str:
    text = os.fspath(url)
    if not isinstance(text, str):
        raise Invalid(f"a yard's URL must be a text, not {type(text).__name__}")
    return text


def _worker(name: str | None) -> str | None:
    if name is not None:
        return name  # an empty one is refused by the yard
    return os.environ.get("TASKYARD_WORKER") or os.environ.get("AGENT_ID") or None


def _durability(value: str | None) -> str | None:
    if value is not None and value not in DURABILITIES:
        raise Invalid(f"not a durability: {shown(value)}", hint=f"choose one of {', '.join(DURABILITIES)}")
    return value
