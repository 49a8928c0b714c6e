"""A yard behind a gateway, with a spool on the client's machine: only where $TASKYARD_SPOOL names a place."""

from __future__ import annotations

from taskyard.remote.request import opened
from taskyard.remote.yard import RemoteYard
from taskyard.spool import place
from taskyard.spool.yard import Spooling

TYPE_CHECKING = False
if TYPE_CHECKING:

    class SpooledRemoteYard(RemoteYard):
        """As below; to a type checker, `Spooling` is a near yard."""

        def use_spool(self, path: str) -> None:
            """Keep the spool in this folder."""

else:

    class SpooledRemoteYard(Spooling, RemoteYard):
        """A yard behind a gateway, with a spool."""

        @property
        def by(self) -> str:
            """Who changes something: for the gateway to say, which knows the token."""
            return self.worker


def open_spooled(url: str, worker: str | None) -> RemoteYard:
    """Open the yard behind the gateway of this URL, with the spool that the environment names, if it is not off."""
    requests = opened(url)
    path = place.folder(requests.address.url, asked=True)
    if path is None:
        return RemoteYard(requests, worker)
    yard = SpooledRemoteYard(requests, worker)
    yard.use_spool(path)
    return yard
