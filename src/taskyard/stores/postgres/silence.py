"""What it means that a server is silent: a second connection asks whether it still works on a statement.

A statement may take long because it does much or waits for a lock; then its server process is visible to others. A
server that is frozen, or behind a cut network, is just silent: neither the socket nor a server-side time limit reports
it.
"""

from __future__ import annotations

from taskyard.stores.postgres import driver, queries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.stores.postgres.connection import Connection

SILENCE = 5.0  # seconds without an answer, after which a second connection checks on the server
# The same behind a pooler that accepts connections: for a while it may have no free connection to the server.
QUEUE = 30.0
LONGEST_PAUSE = 60.0  # seconds between two checks, at the most, while the server works
CHECK_TIMEOUT = 4.0  # seconds that a check may take


def is_served(connection: Connection, waited: float) -> bool | None:
    """Whether the server still has a process for this connection; None if the server does not answer."""
    try:
        other = connection.another()
        try:
            if connection.pid is None:
                return waited < QUEUE or bool(other.exchange("SELECT 1", CHECK_TIMEOUT))
            if other.server != connection.server:
                return False  # another server has taken over
            return bool(other.exchange(queries.load("outages")["served"].format(pid=connection.pid), CHECK_TIMEOUT))
        finally:
            other.close()
    except driver.errors() as error:
        # A refusal, such as too many connections: the server is there, and may be at work.
        return True if "FATAL:" in str(error) else None


def message(connection: Connection, waited: float) -> str:
    """What is said of a connection that was given up."""
    behind = ", or a pooler there has no connection free" if connection.pid is None else ""
    return f"the server has said nothing for {waited:.0f} s{behind}"
