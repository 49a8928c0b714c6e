"""All that a process remembers, as far as it matters to what it does next."""

from __future__ import annotations

import functools
import itertools
import re
import threading
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from .kernel import Mapped

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = (type(None), bool, int, float, str, bytes)
NAMED = (type, ModuleType, BuiltinFunctionType)


def picture(*roots: object) -> object:
    """Equal for two processes whose memory is: every object that can be reached, each once, with what it refers to.

    Whatever it does not know how to look into is an error, so that nothing is ever taken for equal unseen.
    """
    numbers: dict[int, int] = {}
    kept: list[object] = []
    seen: list[object] = []
    ahead: list[object] = list(reversed(roots))
    while ahead:
        thing = ahead.pop()
        if isinstance(thing, PLAIN):
            seen.append((type(thing), thing))
            continue
        if id(thing) in numbers:
            seen.append(("again", numbers[id(thing)]))
            continue
        numbers[id(thing)] = len(numbers)
        kept.append(thing)  # so that no other gets its number
        what, within = _opened(thing)
        seen.append((what, len(within)))
        ahead += reversed(within)
    return tuple(seen)


def _opened(thing: Any) -> tuple[object, list[object]]:
    """What it is, and all that is within it."""
    if isinstance(thing, NAMED):
        return (type(thing), thing.__name__), []
    for kind, within in WITHIN.items():
        if isinstance(thing, kind):
            return type(thing), within(thing)
    return _parted(thing)


WITHIN: dict[type, Callable[[Any], list[object]]] = {
    list: list,
    tuple: list,
    dict: lambda thing: [part for pair in thing.items() for part in pair],
    set: lambda thing: sorted(thing, key=repr),
    frozenset: lambda thing: sorted(thing, key=repr),
    FunctionType: lambda thing: [
        thing.__module__,
        thing.__qualname__,
        thing.__code__.co_firstlineno,
        thing.__closure__,
        thing.__defaults__,
        thing.__kwdefaults__,
    ],
    MethodType: lambda thing: [thing.__func__, thing.__self__],
    CellType: lambda thing: [thing.cell_contents],
    functools.partial: lambda thing: [thing.func, thing.args, thing.keywords],
    re.Pattern: lambda thing: [thing.pattern, thing.flags],
    itertools.count: lambda thing: [repr(thing)],
    Mapped: lambda thing: [thing.ino],
    type(threading.Lock()): lambda thing: [thing.locked()],
}


def _parted(thing: Any) -> tuple[object, list[object]]:
    """An object of a class, by its attributes."""
    kind = type(thing)
    names = [name for base in kind.__mro__ for name in _slots(base) if hasattr(thing, name)]
    attributes = getattr(thing, "__dict__", None)
    if attributes is None and not names and kind is not object:
        raise TypeError(f"cannot look into {thing!r}")
    within = [part for name in names for part in (name, getattr(thing, name))]
    return kind, [*within, *(part for pair in (attributes or {}).items() for part in pair)]


def _slots(base: type) -> list[str]:
    slots = base.__dict__.get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]
