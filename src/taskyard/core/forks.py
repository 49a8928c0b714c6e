"""What a fork changes: how often this process was forked off (cheaper to ask than its pid), and what begins anew then."""

from __future__ import annotations

import os
from weakref import WeakSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

count = 0


class Renewed(Protocol):
    """Something that a forked child must not share with its parent: locks that are held, numbers that go on."""

    def renew(self) -> None:
        """Begin anew in the child."""


_renewed: WeakSet[Renewed] = WeakSet()


def renew_in_child(one: Renewed) -> None:
    """Have this begin anew in every process that is forked off."""
    _renewed.add(one)


def _forked() -> None:
    global count  # noqa: PLW0603  there is one process to count for
    count += 1
    for one in _renewed:
        one.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
