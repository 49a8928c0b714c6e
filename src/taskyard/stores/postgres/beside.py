"""A scratch project beside another one: in the same database, under a name that says what it is."""

from __future__ import annotations

import json

from taskyard import ids
from taskyard.errors import Unavailable
from taskyard.store import Scratch
from taskyard.stores.postgres import driver, queries, schema
from taskyard.stores.postgres.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_DIGITS = 8
_NAME_MOST = 40  # characters of the project's own name in that of its neighbour


def make(url: str, settings: Mapping[str, object]) -> Scratch:
    """Make one beside the project of this URL, which must be there; what belongs to the trial is in a local folder."""
    import tempfile

    address = Address(url)
    word = f"torture-{ids.base32(ids.chance(5 * _DIGITS), _DIGITS)}"
    beside = Address(address.beside(f"{address.project[:_NAME_MOST]}-{word}"))
    with driver.connect(address) as connection:
        schema.greet(connection, address)
        try:
            values = {"name": beside.project, "settings": json.dumps(settings)}
            connection.execute(queries.load("schema")["make_project"].encode(), values)
        except driver.module().errors.InsufficientPrivilege:
            raise Unavailable(
                f"this role cannot make a project in {address.where}",
                hint="torture makes one of its own: name the yard with a role that owns the schema",
            ) from None
        except driver.module().Error as error:
            raise driver.meaning(error, connection, address) or error from None
    try:
        folder = tempfile.mkdtemp(prefix=f"taskyard-{word}-")
    except OSError as error:
        _remove(beside)
        raise Unavailable(f"no folder can be made for the history: {error.strerror}", hint="set $TMPDIR") from None
    return Scratch(beside.url, folder, None, prompt_log=True, label=beside.label, remove=lambda: _remove(beside))


def _remove(address: Address) -> None:
    """Let the scratch project go, with all that is in it; nobody is at work there any more."""
    statements = queries.load("beside")
    with driver.connect(address) as connection:
        try:
            with connection.transaction():
                for name in sorted(statements):
                    connection.execute(statements[name].encode(), {"name": address.project})
        except driver.module().Error as error:
            raise driver.meaning(error, connection, address) or error from None
