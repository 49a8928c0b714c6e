"""Forks: how many forks lie between this process and the first (cheaper than its pid), and what a child must renew."""

from __future__ import annotations

import os
from _weakref import ref  # the class that `weakref` has, which costs a claim 0.3 ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

count = 0


class Renewed(Protocol):
    """An object with state that a forked child must not share with its parent: held locks, running numbers."""

    def renew(self) -> None:
        """Reset that state in the child."""


_renewed: list[ref[Renewed]] = []


def renew_in_child(one: Renewed) -> None:
    """Call `one.renew()` in every process that is forked off."""
    _renewed.append(ref(one, _renewed.remove))


def _forked() -> None:
    global count  # noqa: PLW0603  there is one process to count for
    count += 1
    for known in _renewed.copy():
        one = known()
        if one is not None:
            one.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
