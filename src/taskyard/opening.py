"""From a URL to a yard: which yard the URL names, and which backend serves it."""

from __future__ import annotations

import os

from taskyard.core import secret_files
from taskyard.core.errors import Invalid, NoYard
from taskyard.core.words import shown
from taskyard.yard import Yard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from taskyard.core.diagnosis import Diagnosis
    from taskyard.core.store_records import Scratch
    from taskyard.core.transfer import Endpoint
    from taskyard.stores.backend import Backend
    from taskyard.yard.copy_yard import Copied, Progress

DEFAULT_NAME = ".taskyard"
DURABILITIES = ("fast", "durable", "strict")
# By the beginning of the URL; a URL with none of these is a path.
BACKENDS = {
    "memory": "taskyard.stores.memory",
    "file": "taskyard.stores.directory",
    "postgresql": "taskyard.stores.postgres",
    "postgres": "taskyard.stores.postgres",
}
GATEWAYS = ("http://", "https://")
_PLAIN = str.maketrans("", "", "+-.")  # characters of a scheme beside letters and digits


def open(url: str | os.PathLike[str] | None = None, worker: str | None = None, durability: str | None = None) -> Yard:
    """Open an existing yard; without a URL, the one that `locate` finds.

    While its server is away, only a yard opens that was reached from this machine before: adds and endings go to its spool.
    """
    yard = _named(_text(url) if url is not None else locate(), worker, durability)
    yard.tend_spool()
    return yard


def open_for_command(url: str | None = None, worker: str | None = None, *, brief: bool = True) -> Yard:
    """Open a yard for one command, which may be the first on this machine and has no other time to say what it says.

    A brief one does without what takes long to load; one that lasts is faster with it.
    """
    yard = _named(locate() if url is None else url, worker, None, unknown=True, brief=brief)
    yard.tend_spool()
    return yard


def open_spool(url: str | None = None, worker: str | None = None) -> Yard:
    """Open a yard to look at its spool, or to replay it: nothing of it is replayed on the way."""
    return _named(locate() if url is None else url, worker, None, unknown=True, brief=True)


def init(
    url: str | os.PathLike[str] | None = None,
    worker: str | None = None,
    durability: str | None = None,
    *,
    shared: bool | None = None,
    group: str | None = None,
) -> Yard:
    """Make a yard unless it exists, and open it; without a URL, the one that the environment names, else ./.taskyard.

    The group can use a `shared` yard too: the group of the directory, or the one called `group`.
    """
    named = _text(url) if url is not None else secret_files.given("TASKYARD") or DEFAULT_NAME
    if named.startswith(GATEWAYS):
        return _remote(named, worker, durability)  # the gateway's operator has made its yards
    backend, place = _served(named)
    created, warnings = backend.make(place, _durability(durability), shared, group)
    yard = _opened(backend, place, worker, durability)
    yard.created, yard.warnings = created, warnings
    return yard


def open_to_audit(url: str | os.PathLike[str] | None = None, worker: str | None = None) -> Yard:
    """Open a yard for `Yard.audit` alone: also one whose damage prevents work in it."""
    backend, place = _meant(url)
    return Yard(backend.open_to_audit(place), _worker(worker))


def copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    with_claims: bool = False,
    progress: Progress | None = None,
) -> Copied:
    """Make `target` equal to `source`, which must be paused; a missing target is made. Both are paused at the end."""
    from contextlib import closing

    from taskyard.yard import copy_yard

    (backend, place), (other, goal) = _served(_text(source)), _served(_text(target))
    with closing(backend.endpoint(place, target=False)) as origin:
        copy_yard.ready(origin, with_claims)  # raises before anything is made for an impossible copy
        if backend is other and backend.contains(place, goal):  # a copy there would change the source
            raise Invalid(f"{goal} is inside of the yard {place}", hint="name a directory beside it, or anywhere else")
        with closing(other.endpoint(goal, target=True)) as end:
            return copy_yard.copy(origin, end, with_claims, progress)


def endpoint(url: str | os.PathLike[str], *, target: bool) -> Endpoint:
    """Return a yard as the source or the target of a copy."""
    backend, place = _served(_text(url))
    return backend.endpoint(place, target=target)


def adopt(url: str | None = None) -> bool:
    """Make a yard of a queue that a person prepared by hand; return whether there was one (`Backend.adopt`)."""
    named = _text(url) if url is not None else locate()
    if named.startswith(GATEWAYS):
        return False  # the gateway's operator has made its yards
    backend, place = _served(named)
    return backend.adopt(place)


def examine(
    url: str | os.PathLike[str] | None = None,
    *,
    processes: int = 4,
    wait: float | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Diagnosis:
    """Try everything that decides whether a place is safe for a yard, which may exist or not.

    No yard is changed. With `wait`, wait up to that many seconds for a second examination of the same place on another
    machine. Both then check what they see of each other. `tell` is called with the command to start there.
    """
    backend, place = _meant(url)
    return backend.examine(place, processes, wait, tell)


def scratch(url: str | os.PathLike[str] | None, settings: Mapping[str, object]) -> Scratch:
    """Make a yard with these settings for one trial, beside the yard that `url` names; if there is none, here."""
    try:
        named = _text(url) if url is not None else locate()
    except NoYard:
        named = None
    backend, place = _served(DEFAULT_NAME if named is None else named)
    return backend.scratch(place, settings, exists=named is not None)


def migrate(
    url: str | os.PathLike[str] | None = None, *, check: bool = False, new_epoch: bool = False
) -> dict[str, Any]:
    """Bring a yard's schema up to date, or with `check` list what is pending; a missing schema is always pending.

    `new_epoch` is for a database that was restored to an earlier moment: every earlier claim is over then.
    """
    backend, place = _meant(url)
    return backend.migrate(place, check=check, new_epoch=new_epoch)


def locate(environment: Mapping[str, str] = os.environ, start: str | None = None) -> str:
    """Return the yard to use if none is named: $TASKYARD, else what is in $TASKYARD_FILE, else the nearest .taskyard upward."""
    named = secret_files.given("TASKYARD", environment)
    if named:
        return named
    from taskyard.find_yard import nearest

    try:
        here = os.getcwd() if start is None else start
        found = nearest(here, DEFAULT_NAME)
    except FileNotFoundError:
        raise NoYard("this working directory is gone, so there is no way up from it to a yard") from None
    if found is None:
        broken = nearest(here, DEFAULT_NAME, "segments")  # a folder that only Taskyard makes
        if broken is None:
            raise NoYard()
        raise NoYard(f"{broken} has no yard.json", hint=f"'taskyard fsck --yard {broken}' says how to mend it")
    return found


def _named(url: str, worker: str | None, durability: str | None, *, unknown: bool = False, brief: bool = False) -> Yard:
    if url.startswith(GATEWAYS):
        return _remote(url, worker, durability)
    return _opened(*_served(url), worker, durability, unknown=unknown, brief=brief)


def _opened(
    backend: Backend,
    place: str,
    worker: str | None,
    durability: str | None,
    *,
    unknown: bool = False,
    brief: bool = False,
) -> Yard:
    """Open a yard, with a spool if its server may be away."""
    server, kept = backend.server(place), _durability(durability)
    path = None
    if server is not None:
        from taskyard.spool import place as spool_place

        path = spool_place.folder(server[1])
    if server is None or path is None:
        return Yard(backend.open(place, kept, brief=brief), _worker(worker))
    from taskyard.spool.yard import opened

    return opened(
        lambda: backend.open(place, kept, brief=brief), place, server[0], path, _worker(worker), unknown=unknown
    )


def _remote(url: str, worker: str | None, durability: str | None) -> Yard:
    """Open a yard behind a gateway, which is as durable as the gateway opened it.

    It has every verb of a `Yard`, and is none only because it has no store.
    """
    _durability(durability)
    if os.environ.get("TASKYARD_SPOOL"):
        from taskyard.spool.remote import open_spooled as opened
    else:
        from taskyard.remote.yard import open_remote as opened
    yard: Any = opened(url, _worker(worker))
    return yard  # type: ignore[no-any-return]


def _meant(url: str | os.PathLike[str] | None) -> tuple[Backend, str]:
    return _served(_text(url) if url is not None else locate())


def _served(url: str) -> tuple[Backend, str]:
    """Return the backend of a URL, and the place that the URL names there."""
    scheme, colon, rest = url.partition(":")
    if not (colon and scheme in BACKENDS):
        if url.startswith(GATEWAYS):
            raise Invalid(
                "this is not done through a gateway",
                hint="run it beside the gateway, on the URL of the yard that it serves",
            )
        if colon and rest.startswith("//") and scheme.translate(_PLAIN).isalnum():
            raise Invalid(
                f"no store for {scheme!a} URLs", hint="a yard is a path, file:/path, memory:, postgresql:// or http://"
            )
        scheme = "file"
    # Not importlib.import_module, which costs 0.4 ms more.
    backend: Backend = __import__(BACKENDS[scheme], fromlist=("open",))
    return backend, backend.place(url)


def _text(url: str | os.PathLike[str]) -> str:
    text = url.__fspath__() if hasattr(url, "__fspath__") else url
    if not isinstance(text, str):
        raise Invalid(f"a yard's URL must be a text or a path, not {type(text).__name__}")
    return text


def _worker(name: str | None) -> str | None:
    if name is not None:
        return name  # the yard refuses an empty one
    return os.environ.get("TASKYARD_WORKER") or os.environ.get("AGENT_ID") or None


def _durability(value: str | None) -> str | None:
    if value is not None and value not in DURABILITIES:
        raise Invalid(f"not a durability: {shown(value)}", hint=f"choose one of {', '.join(DURABILITIES)}")
    return value
