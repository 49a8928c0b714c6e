"""The backend of `postgresql://` URLs: a yard is one project in a database."""

from __future__ import annotations

from taskyard.core.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from taskyard.core.diagnosis import Diagnosis
    from taskyard.core.store_records import Scratch
    from taskyard.core.transfer import Endpoint
    from taskyard.stores.postgres.store import PostgresStore


def place(url: str) -> str:
    """The whole URL: libpq reads most of it."""
    if "://" not in url:
        raise Invalid(
            "a URL of PostgreSQL begins with postgresql://, with both slashes",
            hint="write postgresql://user@host:5432/database?project=NAME; a directory of that name is ./postgresql:...",
        )
    return url


def open(place: str, durability: str | None, *, brief: bool = False) -> PostgresStore:
    """Open the project that the URL names; a brief opening is for one command."""
    from taskyard.stores.postgres.store import PostgresStore

    return PostgresStore(place, durability, brief=brief)


def server(place: str) -> tuple[str, str] | None:
    """The URL without a password, and what all URLs of the same project and role have in common."""
    from taskyard.stores.postgres.address import Address

    address = Address(place)
    return address.label, address.identity


def make(place: str, durability: str | None, shared: bool | None, group: str | None) -> tuple[bool, list[str]]:  # noqa: ARG001
    """Make the schema and the project, where they are missing."""
    from taskyard.stores.postgres import schema

    return schema.make(place), []


def open_to_audit(place: str) -> PostgresStore:
    """A project that cannot be opened cannot be looked at either."""
    return open(place, None)


def adopt(place: str) -> bool:  # noqa: ARG001
    """Nothing is prepared by hand in a database."""
    return False


def contains(place: str, other: str) -> bool:  # noqa: ARG001
    """No project is inside of another."""
    return False


def endpoint(place: str, *, target: bool) -> Endpoint:
    """The project as the source or the target of a copy."""
    from taskyard.stores.postgres.transfer import PostgresEndpoint

    return PostgresEndpoint(place, target)


def examine(place: str, processes: int, wait: float | None, tell: Callable[[str], None]) -> Diagnosis:  # noqa: ARG001
    """Ask the server what it is and how it is set."""
    from taskyard.stores.postgres.doctor import examine as asked

    if wait is not None:
        raise Invalid("machines that share a database do not meet on a disk", hint="leave --peer out")
    return asked(place)


def scratch(place: str, settings: Mapping[str, object], *, exists: bool) -> Scratch:  # noqa: ARG001
    """Make a project in the same database."""
    from taskyard.stores.postgres import scratch_project

    return scratch_project.make(place, settings)


def migrate(place: str, *, check: bool, new_epoch: bool) -> dict[str, Any]:
    """Run the migrations that are missing, or list them."""
    from taskyard.stores.postgres import schema

    return schema.migrate(place, check=check, new_epoch=new_epoch)
